"""The calibrators of a student's confidence."""

from typing import Annotated

import typer

from agent0.cli import console, lookup
from agent0.errors import NotFoundError
from agent0.projections.calibrators import list_calibrators
from agent0.rollout.confidence.signals import SEVERAL


def calibrator(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Its name, as agent0 calibrate wrote it.")],
    checkpoint: Annotated[str, typer.Option(help="base, or RUN/CHECKPOINT.")] = "base",
    signal: Annotated[str, typer.Option(help="Of these signals alone, with + between them.")] = "",
    as_json: console.Json = False,
) -> None:
    """The newest and best calibrator of a model that needs no further samples, as a table for rules of rewards; with
    --signal that of certain signals, as strategies read them."""
    with lookup.tables() as db:
        rows = list_calibrators(db, model, checkpoint)
    able = [row for row in rows if not set(row["signal"].split("+")) & {*SEVERAL}]
    able = [row for row in able if signal in ("", row["signal"])]
    if not able:
        raise NotFoundError(f"There is no calibrator of {model!r} at {checkpoint}.", fix="See: agent0 calibrate --help")
    settings_row = {key: able[0][key] for key in ("signal", "method", "parameters")}
    if as_json:
        console.data(settings_row)
        return
    console.text(f'[calibrator]\nsignal = "{settings_row["signal"]}"\nmethod = "{settings_row["method"]}"')
    console.text(f"parameters = {list(settings_row['parameters'])}")
