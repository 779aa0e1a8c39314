"""The attempts of a run, judged again."""

from typing import Annotated, Any, Literal

import typer

from agent0.assembly.replay.forks import pairs_of
from agent0.assembly.replay.reverify import Reverify
from agent0.assembly.replay.reverify import reverify as judge_again
from agent0.cli import console, flags, lookup
from agent0.cli.experiments.experiment import Name
from agent0.cli.experiments.rescore import Reporter, print_end
from agent0.errors import ConfigError
from agent0.report.score_answers import reverify_answer


def reverify(
    run: console.Run = "LAST",
    name: Name = "",
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    commit: Annotated[bool, typer.Option("--commit", help="Write it down; without it nothing is written.")] = False,
    asks: Annotated[
        Literal["", "calls", "batch"],
        typer.Option(
            "--ask", help="Ask the judge anew: by calls, or by its vendor's batch API (cheaper, takes hours)."
        ),
    ] = "",
    full: console.Full = False,
    as_json: console.Json = False,
) -> None:
    """Judge all attempts of a run again in fresh sandboxes, by today's verifiers or other settings of them (--set
    verification.agreeing=…), and show which verdicts change. With its own settings: none. Another judge (--set
    verification.judge.provider=…) has to be asked; killed while it waits for a batch, the same command goes on."""
    if commit and not name:
        raise ConfigError("An experiment that is written down needs a name.", fix="Add: --name NAME")
    settings = flags.settings(plugins=plugin)
    request = Reverify(lookup.run_id(run), name or "look", pairs_of(pairs), commit, asks)
    results = console.run_async(lambda: judge_again(settings, request, Reporter(quiet=as_json), _waiting))
    answer = reverify_answer(results)
    if as_json:
        console.data({**results, "answer": answer})
    else:
        console.print_lines(answer)
        if full:
            _show_verdicts(results)
        print_end(results)
    if results["own_settings"] and not results["identical"]:
        console.say("The run's own settings do not give its own verdicts: verifiers were changed since, or one failed.")
        raise typer.Exit(1)


def _waiting(batch: str, count: int) -> None:
    console.say(f"Waiting for {count} answers of batch {batch}; Ctrl-C, and the same command goes on.")


SHOWN = 20
"""Changed verdicts that are printed; --json has them all."""


def _show_verdicts(results: dict[str, Any]) -> None:
    for rows in (results["by_verifier"], [row for row in results["by_family"] if row["changed"]]):
        if rows:
            console.table([_labels(row) for row in rows], False)
    if results["changes"]:
        first = sorted(results["changes"], key=lambda row: not row["flip"])[:SHOWN]
        console.table([_changed(row) for row in first], False)
    if len(results["changes"]) > SHOWN:
        console.text(f"… and {len(results['changes']) - SHOWN} more: --json has them all.")
    for row in results["failures"][:SHOWN]:
        console.text(f"{row['attempt']} could not be judged: {row['error']}: {console.one_line(row['message'])}")


def _labels(row: dict[str, Any]) -> dict[str, Any]:
    """Counts as ``before > after``."""
    plain = {key: value for key, value in row.items() if not key.endswith(("_before", "_after"))}
    labels = ("right", "wrong", "undecided")
    return plain | {label: f"{row[f'{label}_before']} > {row[f'{label}_after']}" for label in labels}


def _changed(row: dict[str, Any]) -> dict[str, Any]:
    labels = {True: "right", False: "wrong", None: "undecided"}
    verdicts = {when: labels[row[when]["correct"]] if row[when] else "none" for when in ("before", "after")}
    reason = console.one_line(row["after"]["reason"] if row["after"] else "")
    return {"attempt": row["attempt"], "family": row["family"], **verdicts, "reason": reason}
