"""A person's verdicts on answers."""

from typing import Annotated, Any

import typer

from agent0.assembly.log.access import open_log
from agent0.assembly.requests.reviews import review_events
from agent0.assembly.runtime.stamping import recorded
from agent0.cli import console, flags, lookup
from agent0.events.base import Event
from agent0.projections.reviews import awaiting, judged
from agent0.projections.runs import resolve


def review(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Run id, or LAST for the newest.")],
    name: Annotated[str, typer.Argument(metavar="ATTEMPT", help="One attempt, or a task whose attempts agree.")] = "",
    correct: Annotated[bool, typer.Option("--correct", help="The answer is right.")] = False,
    wrong: Annotated[bool, typer.Option("--wrong", help="The answer is wrong.")] = False,
    cannot_tell: Annotated[bool, typer.Option("--cannot-tell", help="It cannot be decided.")] = False,
    reviewer: Annotated[str, typer.Option(help="Whose verdict it is; it is recorded.")] = "",
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")] = "",
    limit: console.Limit = 20,
    as_json: console.Json = False,
) -> None:
    """What awaits a reviewer's verdict, undecided answers first; or give one. It decides where nothing has yet; later
    it is recorded, counts against training that has not begun, and raises an alarm where it contradicts the machine."""
    verdicts = [verdict for verdict, flag in ((True, correct), (False, wrong), (None, cannot_tell)) if flag]
    with lookup.tables() as db:
        run_id = resolve(db, run)
        rows = judged(db, run_id, name) if name else awaiting(db, run_id, limit)
    if verdicts or reviewer or reason:
        seqs = _record(run_id, review_events(rows if name else [], verdicts, reviewer, reason))
        console.record({"run": run_id, "attempts": [row["attempt"] for row in rows], "events": seqs}, as_json)
    elif as_json:
        console.data(rows)
    else:
        _tell_awaiting(rows)


def _record(run: str, events: list[Event]) -> list[int]:
    async def work() -> list[int]:
        async with open_log(flags.settings()) as log:
            return list(await log.append([recorded(run, event) for event in events]))

    return console.run_async(work)


def _tell_awaiting(rows: list[dict[str, Any]]) -> None:
    labels = {None: "undecided", 0: "wrong", 1: "right"}
    for row in rows:
        verdict = (
            f"{labels[row['correct']]}, {row['verifier']}: {row['reason']}" if row["verifier"] else "not judged yet"
        )
        cast = [f"{vote['check']} {_SAID[vote['correct']]} ({vote['reason']})" for vote in row["votes"] or []]
        shown = {"question": row["question"], "answer": row["answer"], "verdict": verdict, "votes": "\n".join(cast)}
        console.text(f"[{row['attempt']}]")
        console.record({key: value for key, value in shown.items() if value}, False)
        console.text("")
    if not rows:
        console.say("Nothing awaits a verdict.")


_SAID = {True: "yes", False: "no", None: "cannot tell"}
