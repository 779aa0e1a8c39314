"""Part of the rim: the results of an ablation study as an object."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent0.assembly.api.rows import Rows, html_table, text


class Study:
    """What an ablation study came to. ``found`` is what `agent0 experiment ablation --json` prints."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        self.found = found

    def __repr__(self) -> str:
        return "\n".join(self.answers)

    @property
    def answers(self) -> list[str]:
        """A line for each variant but the first: whether it is better, by how much, and what would have been found."""
        from agent0.report.markdown.ablation import answers

        return [one.replace("**", "") for one in answers(self.found)]

    @property
    def complete(self) -> bool:
        """Whether every run is finished."""
        return bool(self.found["complete"])

    def means(self) -> Rows:
        """The mean over seeds of each measure, variant and control, with its 95 % interval."""
        return Rows(self.found["arms"])

    def differences(self) -> Rows:
        """Each variant less the first, and less its controls, paired on the same tasks and seeds."""
        return Rows(self.found["against"])

    def page(self, path: str | Path | None = None) -> Path:
        """Write the page of the study, beside its runs unless ``path`` names a place; returns where it is."""
        from agent0.report.html.ablation_page import ablation_page

        file = Path(path) if path else Path(self.found["folder"]) / "page.html"
        file.write_text(ablation_page(self.found), encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{text(one)}</p>" for one in self.answers)
        return said + html_table(self.means(), ("measure", "arm", "student", "mean", "low", "high", "seeds", "items"))
