"""Why a task or an attempt got its reward; calibrators of confidence, as rules of rewards take them."""

from typing import Annotated

import typer

from agent0.cli import console, flags, lookup
from agent0.errors import NotFoundError
from agent0.projections.attempts import show_attempt
from agent0.projections.calibrators import list_calibrators
from agent0.projections.rewards import explain_rewards
from agent0.projections.runs import resolve
from agent0.projections.tasks import show_task
from agent0.rewards.describe import explain_receipt
from agent0.rollout.confidence.signals import SEVERAL


def explain(
    name: Annotated[str, typer.Argument(metavar="TASK|ATTEMPT", help="For example t0-003, or t0-003-a2.")],
    run: console.Run = "LAST",
    of: Annotated[str, typer.Option("--run", help="The same as RUN.")] = "",
    plugin: console.Plugin = None,
    as_json: console.Json = False,
) -> None:
    """Explain the reward of a task's teacher, or of an attempt: each part with its inputs, value, weight and what
    the total would lack without it."""
    if plugin:
        flags.settings(plugins=plugin)
    attempt = name if "-a" in name else ""
    with lookup.tables() as db:
        run_id = resolve(db, of or run)
        show_attempt(db, run_id, attempt) if attempt else show_task(db, run_id, name)
        receipts = explain_rewards(db, run_id, attempt=attempt) if attempt else explain_rewards(db, run_id, task=name)
    explained_receipts = [explain_receipt(receipt) for receipt in receipts if attempt or receipt["role"] == "teacher"]
    if not explained_receipts:
        with lookup.tables() as db:  # which does not know it either, says so
            (show_attempt if attempt else show_task)(db, run_id, name)
        raise NotFoundError(
            f"{name!r} of {run_id} has no receipt.", "No reward was assigned yet.", "See: agent0 task list"
        )
    if as_json:
        console.data(explained_receipts)
        return
    for receipt in explained_receipts:
        console.record({k: value for k, value in receipt.items() if k != "parts" and value not in ("", None)}, False)
        columns = ("part", "value", "weight", "worth", "contribution", "inputs", "part_formula")
        console.table([{**part, "part_formula": part["formula"]} for part in receipt["parts"]], False, columns)


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
