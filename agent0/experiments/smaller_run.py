"""Shrinks a run for machines where every tool call starts a process: fewer tasks and held-out items, so that it ends
within the hour. Nothing else changes, and nothing grows."""

from agent0.settings import RunConfig

TASKS, VALIDATION, TEST = 16, 30, 60
"""At most, an iteration and a held-out scoring."""


def shrunk(run: RunConfig) -> RunConfig:
    """Limit ``run`` to TASKS tasks an iteration and VALIDATION and TEST held-out items. Idempotent."""
    held = run.evaluation
    fewer = {"validation": min(held.validation, VALIDATION), "test": min(held.test, TEST)}
    return run.model_copy(update={"tasks": min(run.tasks, TASKS), "evaluation": held.model_copy(update=fewer)})


def difference(before: RunConfig, after: RunConfig) -> str:
    """Describe what was shrunk; empty where nothing was."""
    pairs = (
        ("tasks an iteration", before.tasks, after.tasks),
        ("validation", before.evaluation.validation, after.evaluation.validation),
        ("test", before.evaluation.test, after.evaluation.test),
    )
    return ", ".join(f"{what} {was} -> {now}" for what, was, now in pairs if was != now)
