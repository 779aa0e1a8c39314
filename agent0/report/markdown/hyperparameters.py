"""The Markdown page of a hyperparameter search: its command, all trials, the best for a budget."""

from collections.abc import Mapping
from typing import Any

from agent0.report.markdown.rendering import render

STUDENT = "training.student."


def page(results: Mapping[str, Any], command: str) -> str:
    """Write the Markdown page of a search from its results; ``command`` made them."""
    others = [row for row in results["trials"] if row["trial"] != results["run"]]
    recipe = next((row for row in results["trials"] if row["trial"] == results["run"]), None)
    same = [row for row in others if recipe and row["settings"] == recipe["settings"]]
    return render(
        "hyperparameters.md.jinja",
        found=results,
        command=command,
        recipe=lambda trial: {
            key.removeprefix(STUDENT): trial["settings"].get(key, "-") for key in results["searched"]
        },
        best=next(iter(others), None),
        better=[row for row in results["trials"] if row["word"] == "improved"],
        same=same,
        alike=not any(row["changed"] for row in same),
    )
