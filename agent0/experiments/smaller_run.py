"""Shrinks a run for machines where every tool call starts a process: fewer tasks and held-out items, so that it ends
within the hour. Nothing else changes, nothing grows, and what a person typed stays."""

from collections.abc import Collection

from agent0.settings import RunConfig

TASKS, VALIDATION, TEST = 16, 30, 60
"""At most, an iteration and a held-out scoring."""


def shrunk(run: RunConfig, typed: Collection[str] = ()) -> RunConfig:
    """Limit ``run`` to TASKS tasks an iteration and VALIDATION and TEST held-out items, but for the settings that are
    ``typed`` (dotted keys). Idempotent."""
    limits = {"validation": VALIDATION, "test": TEST}
    fewer = {
        name: min(getattr(run.evaluation, name), most)
        for name, most in limits.items()
        if f"run.evaluation.{name}" not in typed
    }
    tasks = run.tasks if "run.tasks" in typed else min(run.tasks, TASKS)
    return run.model_copy(update={"tasks": tasks, "evaluation": run.evaluation.model_copy(update=fewer)})


def difference(before: RunConfig, after: RunConfig) -> str:
    """Describe what was shrunk; empty where nothing was."""
    pairs = (
        ("tasks an iteration", before.tasks, after.tasks),
        ("validation", before.evaluation.validation, after.evaluation.validation),
        ("test", before.evaluation.test, after.evaluation.test),
    )
    return ", ".join(f"{what} {was} -> {shrunk}" for what, was, shrunk in pairs if was != shrunk)
