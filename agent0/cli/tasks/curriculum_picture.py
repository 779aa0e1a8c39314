"""The curriculum as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.cli import console, lookup
from agent0.errors import ConfigError
from agent0.projections.iterations import slots_by_iteration
from agent0.projections.runs import resolve
from agent0.report.charts.curriculum_heatmap import heatmap
from agent0.report.charts.plots import as_file


def draw(
    run: console.Run = "LAST",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", callback=console.in_folder, help="An SVG file.")
    ] = None,
    as_json: console.Json = False,
) -> None:
    """A picture: families and levels down, iterations across, colour by how many attempts were right."""
    with lookup.tables() as db:
        name = resolve(db, run)
        picture = heatmap(slots_by_iteration(db, name), f"Curriculum of {name}")
    path = out or Path(f"{name}-curriculum.svg")
    if path.suffix.lower() != ".svg":
        raise ConfigError(f"{path} cannot hold the picture.", "It is an SVG.", "Name a file that ends with .svg.")
    console.write(path, as_file(picture))
    console.record({"path": str(path)}, as_json)
