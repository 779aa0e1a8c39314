"""Whether a checkpoint that was trained again is the very same as the run's own, and what explains it if not."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent0.events.checkpoints import CheckpointTrained

Row = Mapping[str, Any]


def compare_adapters(
    originals: Mapping[str, CheckpointTrained], again: Sequence[CheckpointTrained]
) -> list[dict[str, Any]]:
    """A row for each checkpoint of ``again``: whether its adapter is that of its training in ``originals`` (None: the
    run has none), whether both were trained on the same samples by the same recipe, and in which names of the recorded
    ``environment`` they differ, with both values."""
    return [
        {
            "checkpoint": trained.checkpoint,
            "same": None
            if (before := originals.get(trained.checkpoint)) is None
            else before.adapter == trained.adapter,
            "same_inputs": before is not None and before.recipe == trained.recipe and before.samples == trained.samples,
            "environment": {} if before is None else _differences(before.environment, trained.environment),
        }
        for trained in again
    ]


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str]]:
    names = sorted(before.keys() | after.keys())
    pairs = {name: [before.get(name, "not recorded"), after.get(name, "not recorded")] for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def adapters_answer(rows: Sequence[Row], changed: bool) -> str:
    """One sentence of what ``compare_adapters`` returns; ``changed``: other settings, rewards or tasks were asked for.
    Checkpoints build on one another, so the first that differs is the one to explain."""
    compared = [row for row in rows if row["same"] is not None]
    if not compared:
        return "The run has no adapter of its own beside them."
    first = next((row for row in compared if not row["same"]), None)
    if first is None:
        single = len(compared) == 1
        return f"The {'adapter is' if single else 'adapters are'} the very same as the run's own."
    head = f"{first['checkpoint']} is not the very same adapter as the run's own"
    if changed or not first["same_inputs"]:
        return f"{head}: what it was trained on, or how, is another."
    if not first["environment"]:
        return f"{head}, on the same processor, threads and packages: nothing that is recorded explains it."
    differences = "; ".join(f"{name} {before}, now {after}" for name, (before, after) in first["environment"].items())
    return f"{head}. Where it was computed differs ({differences}), which changes roundings and so explains it."
