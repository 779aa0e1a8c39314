"""The Markdown page of a hyperparameter search: its command, all trials, the best for a budget."""

from collections.abc import Mapping
from typing import Any

from agent0.report.conclusions import conclusion
from agent0.report.markdown.tables import folded, table

MADE = "<!-- Written by `agent0 experiment hyperparameters --write`; not by hand. -->\n"


def page(found: Mapping[str, Any], command: str) -> str:
    """Write the Markdown page of a search from its results; ``command`` made them."""
    rows, run = found["trials"], found["run"]
    best = next((row for row in rows if row["trial"] != run), None)
    lines = [
        MADE,
        "# Hyperparameters\n",
        "Which recipe suits the student's adapter?\n",
        *_answer(found, best),
        *table(_shown(row, found) for row in rows),
        "*difference* is to the run's own recipe, on the same items, with its 95 % interval; *p* is the exact "
        "paired test's after Holm's correction over all trials. *s* is training alone.\n",
        "```",
        *found["made_by"],
        command,
        "```\n",
        "## Method\n",
        "Each trial trains the stored trajectories of one run again, "
        "checkpoint by checkpoint, under another recipe. Nothing is generated anew, so all trials learn from the "
        "same attempts. They are scored on validation tasks; test is never scored, so nothing is chosen on it.\n",
        f"The run: profile {found['profile']}, seed {found['seed']}, {found['effort']}. Untrained, its student "
        f"solves {found['untrained']:.3f} of {found['n']} validation tasks.\n",
        "## The best for a budget\n",
        "After so many trainings (one an iteration):\n",
        *table(
            {
                "trainings": row["trainings"],
                "steps": row["steps"],
                **_settings(row, found),
                "validation": f"{row['validation']:.3f} ({row['low']:.3f} to {row['high']:.3f})",
            }
            for row in found["best_by_budget"]
        ),
        *_failed(found),
    ]
    return folded("\n".join(lines))


def _answer(found: Mapping[str, Any], best: Mapping[str, Any] | None) -> list[str]:
    """The answer in three lines, with what may not be read into it."""
    said = [row for row in found["trials"] if row["word"] == "improved"]
    shown = "No trial is significantly better than the run's own recipe."
    if said:
        shown = f"Significantly better than the run's own recipe: {len(said)} of {len(found['trials']) - 1}."
    own = next((row for row in found["trials"] if row["trial"] == found["run"]), None)
    same = [row for row in found["trials"] if own and row is not own and row["settings"] == own["settings"]]
    if own and same:
        alike = all(row["difference_low"] == row["difference_high"] == 0 for row in same)
        shown += f" The run's own recipe is among the trials, and {'solves the same tasks' if alike else 'differs'}."
    least = f", an interval of about ±{50 * (best['high'] - best['low']):.0f} points" if best else ""
    return [
        f"- {shown}",
        "- The best of many trials looks better than it is, since chance helped to choose it; this is one run "
        f"with one seed, and {found['n']} tasks a score{least}.",
        "- What is tried next should be a run of its own under that recipe, over several seeds.\n",
    ]


def _shown(row: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    change = "-"
    if row["difference"] is not None:
        low, high = row["difference_low"], row["difference_high"]
        change = f"{row['difference']:+.3f} ({low:+.3f} to {high:+.3f})"
    return {
        **_settings(row, found),
        "validation": f"{row['validation']:.3f} ({row['low']:.3f} to {row['high']:.3f})",
        "tool use": row["tool_use"],
        "difference": change,
        "p": row["adjusted_p"],
        "conclusion": conclusion(row["word"]) if row["word"] else "the run's own",
        "steps": row["steps"],
        "s": f"{row['training_s']:.0f}",
        "trial": f"`{row['trial']}`",
    }


def _settings(row: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("training.student."): row["settings"].get(key, "-") for key in found["searched"]}


def _failed(found: Mapping[str, Any]) -> list[str]:
    if not found["failed"]:
        return []
    lines = [f"- `{one['trial']}` ({one['words']}): {one['why']}" for one in found["failed"]]
    return ["## Failed\n", *lines, ""]
