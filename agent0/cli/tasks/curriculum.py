"""What was asked of the teacher, how hard it was for the student, and how that changed."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agent0.cli import console
from agent0.errors import ConfigError
from agent0.settings import RunConfig


def show(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Families and levels with their difficulty for this student, and each iteration in numbers."""
    from agent0.projections.iterations import list_iterations, list_slots
    from agent0.projections.runs import resolve, show_run
    from agent0.report.diagnosis.settings import recorded_config
    from agent0.tasks.curriculum.difficulty import grade

    with console.tables() as db:
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
    columns = ("iteration", "tasks", "accepted", "families", "largest_family", "solve_rate", "frontier", "novelty")
    title = "\nIterations; validation is that of the student who made the attempts, before it was trained on them"
    console.table(iterations, False, (*columns, "label_accuracy", "surprise", "validation"), title=title)


def draw(
    run: console.Run = "LAST",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", callback=console.in_folder, help="An SVG file.")
    ] = None,
    as_json: console.Json = False,
) -> None:
    """A picture: families and levels down, iterations across, colour by how many attempts were right."""
    from agent0.projections.iterations import slots_by_iteration
    from agent0.projections.runs import resolve
    from agent0.report.charts.curriculum_heatmap import heatmap
    from agent0.report.charts.plots import as_file

    with console.tables() as db:
        name = resolve(db, run)
        picture = heatmap(slots_by_iteration(db, name), f"Curriculum of {name}")
    path = out or Path(f"{name}-curriculum.svg")
    if path.suffix.lower() != ".svg":
        raise ConfigError(f"{path} cannot hold the picture.", "It is an SVG.", "Name a file that ends with .svg.")
    console.write(path, as_file(picture))
    console.record({"path": str(path)}, as_json)
