"""What was asked of the teacher, how hard it was for the student, and how that changed."""

from typing import Any

from agent0.cli import console, lookup
from agent0.projections.iterations import list_iterations, list_slots
from agent0.projections.runs import resolve, show_run
from agent0.report.diagnosis.settings import recorded_config
from agent0.settings import RunConfig
from agent0.tasks.curriculum.difficulty import grade


def show(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Families and levels with their difficulty for this student, and each iteration in numbers."""
    with lookup.tables() as db:
        name = resolve(db, run)
        config = recorded_config(show_run(db, name)["config"]) or RunConfig()
        arms, iterations = list_slots(db, name), list_iterations(db, name)
    graded: list[dict[str, Any]] = []
    for arm in arms:
        graded_arm = grade(int(arm["solved"]), arm["tried"], config.curriculum.band, arm["turns"], arm["calls"])
        graded.append({**arm, "grade": graded_arm.grade, "lower95": graded_arm.lower95, "upper95": graded_arm.upper95})
    if as_json:
        console.data({"run": name, "arms": graded, "iterations": iterations})
        return
    arm_columns = (
        "domain",
        "family",
        "level",
        "grade",
        "asked",
        "tasks",
        "tried",
        "solve_rate",
        "lower95",
        "upper95",
    )
    console.table(graded, False, (*arm_columns, "turns", "calls", "last"))
    refills = ("refilled", "no_contrast") if config.refill > 1 else ()
    columns = ("accepted", "families", "largest_family", "solve_rate", "frontier", "novelty", "label_accuracy")
    title = "\nIterations; validation is that of the student who made the attempts, before it was trained on them"
    console.table(iterations, False, ("iteration", "tasks", *refills, *columns, "surprise", "validation"), title=title)
