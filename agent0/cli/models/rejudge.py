"""The items of a run's evaluations, judged anew."""

from typing import Annotated

import typer

from agent0.assembly.replay.rejudge import rejudge as judge_again
from agent0.cli import console, flags, lookup


def rejudge(
    checkpoint: Annotated[
        str,
        typer.Argument(metavar="RUN[/CHECKPOINT]", help="A run, or one of its checkpoints.", callback=lookup.of_newest),
    ],
    as_json: console.Json = False,
) -> None:
    """Judge the stored answers of all evaluations again, by the verifiers of today, and show which verdicts differ.
    Exit 1 where one does. No model is called; what is not stored is named."""
    settings = flags.settings()
    result = console.run_async(lambda: judge_again(settings, checkpoint))
    if as_json:
        console.data(result)
    else:
        stored = [{**row, "answers": row["answers"] or "not stored"} for row in result["evaluations"]]
        console.table(stored, False)
        console.table(result["differences"], False, title="\nVerdicts that differ")
    if result["differences"]:
        raise typer.Exit(1)
