"""Everything that a run measured, for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.tracking.measured import measured
from agent0.assembly.tracking.sinks import export as write
from agent0.cli import console

Form = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="csv, parquet, tensorboard, mlflow or wandb (the last two need their package).",
    ),
]
Folder = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where it goes.")]


def export(
    run: console.Run = "LAST", form: Form = "csv", out: Folder = Path("exported"), as_json: console.Json = False
) -> None:
    """Write a run's learning curve, measures and test scores, by iterations done (0: untrained), as a file or a
    tracker's own store. Nothing is sent. Example: agent0 run export LAST --format tensorboard --out logs"""
    with console.tables() as db:
        series = measured(db, run)
    console.in_folder(out)
    target = write(series, form, out)
    values = {"run": series.run, "written": str(target), "steps": len(series.rows()), "values": len(series.points)}
    console.record(values, as_json)
