"""The Markdown page of a hyperparameter search: its command, all trials, the best for a budget."""

from collections.abc import Mapping
from typing import Any

from agent0.report.markdown.rendering import render

STUDENT = "training.student."


def page(found: Mapping[str, Any], command: str) -> str:
    """Write the Markdown page of a search from its results; ``command`` made them."""
    others = [row for row in found["trials"] if row["trial"] != found["run"]]
    own = next((row for row in found["trials"] if row["trial"] == found["run"]), None)
    same = [row for row in others if own and row["settings"] == own["settings"]]
    return render(
        "hyperparameters.md.jinja",
        found=found,
        command=command,
        recipe=lambda one: {key.removeprefix(STUDENT): one["settings"].get(key, "-") for key in found["searched"]},
        best=next(iter(others), None),
        better=[row for row in found["trials"] if row["word"] == "improved"],
        same=same,
        alike=not any(row["changed"] for row in same),
    )
