"""Part of the rim: the results of an ablation study as an object."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent0.assembly.ablations.study_request import StudyRequest, read_study, request_of
from agent0.assembly.api.calls import Settable, texts
from agent0.assembly.api.rows import Rows, html_table, text
from agent0.experiments.ablation_study import Variant
from agent0.experiments.study_results import StudyResults
from agent0.report.html.benchmark_page import ablation_page
from agent0.report.markdown.ablation import answers


def requested(
    variants: Mapping[str, Settable] | str | Path,
    typed: Mapping[str, str],
    usual: str | None,
    seeds: Sequence[int] | None,
    *,
    profile: str | None,
    **more: Any,
) -> StudyRequest:
    """Make the request of a study whose ``variants`` are settings by name, or the path of a study file. ``usual`` is
    the profile of variants that come without one.

    Raises:
        ConfigError: variants or seeds that cannot be compared, or a file that is no study.
    """
    chosen = None if seeds is None else ",".join(map(str, seeds))
    if isinstance(variants, str | Path):
        file = Path(variants)
        return request_of(read_study(file), typed, file=file, profile=profile, seeds=chosen, **more)
    typed_variants = [Variant(name, texts(settings)) for name, settings in variants.items()]
    profile = profile or usual
    return request_of(
        read_study(None, typed_variants), typed, variants=typed_variants, profile=profile, seeds=chosen, **more
    )


class Study:
    """What an ablation study came to. ``found`` is what `agent0 experiment ablation --json` prints."""

    def __init__(self, results: StudyResults) -> None:
        self.found = results

    def __repr__(self) -> str:
        return "\n".join(self.answers)

    @property
    def answers(self) -> list[str]:
        """A line for each variant but the first: whether it is better, by how much, and what would have been found."""
        return [line.replace("**", "") for line in answers(self.found)]

    @property
    def complete(self) -> bool:
        """Whether every run is finished."""
        return bool(self.found["complete"])

    def means(self) -> Rows:
        """The mean over seeds of each measure, variant and control, with its 95 % interval."""
        return Rows(map(dict, self.found["arms"]))

    def differences(self) -> Rows:
        """Each variant less the first, and less its controls, paired on the same tasks and seeds."""
        return Rows(map(dict, self.found["against"]))

    def page(self, path: str | Path | None = None) -> Path:
        """Write the page of the study, beside its runs unless ``path`` names a place; returns where it is."""
        file = Path(path) if path else Path(self.found["folder"]) / "page.html"
        file.write_text(ablation_page(self.found), encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        html = "".join(f"<p>{text(line)}</p>" for line in self.answers)
        return html + html_table(self.means(), ("measure", "arm", "student", "mean", "low", "high", "seeds", "items"))
