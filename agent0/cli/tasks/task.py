"""Tasks of a run, and a person's verdicts on answers to them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent0.cli import console
from agent0.errors import ConfigError, OperationError

if TYPE_CHECKING:
    from agent0.events.base import Event


LONGEST_NAME, LONGEST_REASON = 100, 2000
"""Characters of a review."""


def list_(
    run: console.Run = "LAST",
    iteration: console.Iteration = None,
    status: Annotated[str, typer.Option(help="requested, proposed, accepted, rejected or dropped.")] = "",
    domain: Annotated[str, typer.Option(help="One domain only.")] = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Tasks in the order they were asked for."""
    from agent0.projections.runs import resolve
    from agent0.projections.tasks import list_tasks

    with console.tables() as db:
        of = resolve(db, run)
        rows = console.limited(lambda n: list_tasks(db, of, iteration, status, domain, n), limit)
    columns = (
        "task",
        "status",
        "solve_rate",
        "level",
        "question",
        "family",
        "teacher_reward",
        "novelty",
        "domain",
        "credit",
    )
    why = ("reason", "detail") if any(row["reason"] for row in rows) else ()
    console.table(rows, as_json, (*columns[:5], *why, *columns[5:]))


def show(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task id, for example t0-003.")],
    run: console.Run = "LAST",
    as_json: console.Json = False,
) -> None:
    """One task with its attempts, partial credit apart from success, and what persons said of them."""
    from agent0.projections.runs import resolve
    from agent0.projections.tasks import show_task

    with console.tables() as db:
        row = show_task(db, resolve(db, run), task)
    if as_json:
        console.data(row)
        return
    attempts, reviews = row.pop("attempts"), row.pop("reviews")
    console.record(row, False)
    console.table(attempts, False)
    if reviews:
        console.table(reviews, False, ("attempt", "reviewer", "correct", "reason", "reviewed"), title="reviews")


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
    from agent0.projections.reviews import awaiting, judged
    from agent0.projections.runs import resolve

    verdicts = [verdict for verdict, flag in ((True, correct), (False, wrong), (None, cannot_tell)) if flag]
    with console.tables() as db:
        run_id = resolve(db, run)
        rows = judged(db, run_id, name) if name else awaiting(db, run_id, limit)
    if verdicts or reviewer or reason:
        seqs = _record(run_id, _verdicts(rows if name else [], verdicts, reviewer, reason))
        console.record({"run": run_id, "attempts": [row["attempt"] for row in rows], "events": seqs}, as_json)
    elif as_json:
        console.data(rows)
    else:
        _tell_awaiting(rows)


def _verdicts(rows: list[dict[str, Any]], verdicts: list[bool | None], reviewer: str, reason: str) -> "list[Event]":
    """Events of one verdict about all of ``rows``.

    Raises:
        ConfigError: no attempt, no verdict or several, nobody who gives it, attempts that answer differently.
        OperationError: an attempt without an answer yet.
    """
    from agent0.events.benchmarks import TaskReviewed
    from agent0.grading.normal_form import normal_form
    from agent0.verification.human_review import reviewed

    if not rows:
        raise ConfigError(
            "A verdict needs an attempt.", "None was named.", "agent0 task review RUN ATTEMPT --correct …"
        )
    if len(verdicts) != 1:
        why = "Exactly one of --correct, --wrong and --cannot-tell says it."
        raise ConfigError("There is no verdict." if not verdicts else "There are several verdicts.", why)
    if not 0 < len(reviewer.strip()) <= LONGEST_NAME or len(reason) > LONGEST_REASON:
        why = f"--reviewer has 1 to {LONGEST_NAME} characters, --reason at most {LONGEST_REASON}."
        raise ConfigError("A verdict needs somebody who gives it.", why)
    if open_ones := [row["attempt"] for row in rows if row["status"] in ("requested", "working")]:
        raise OperationError(f"Attempt {open_ones[0]} is still under way.", "There is no answer to judge yet.")
    if len({row["answer"] and normal_form(row["answer"]) for row in rows}) > 1:
        names = ", ".join(row["attempt"] for row in rows)
        raise ConfigError("The attempts of this task gave different answers.", f"Name one: {names}.")
    fields = {"correct": verdicts[0], "reviewer": reviewer.strip(), "reason": reason.strip()}
    out: list[Event] = []
    for row in rows:
        review = TaskReviewed(task=row["task"], attempt=row["attempt"], **fields)
        out += reviewed(review, None if row["correct"] is None else bool(row["correct"]), row["verifier"] or "")
    return out


def _record(run: str, events: "list[Event]") -> list[int]:
    from agent0.assembly.log.access import open_log
    from agent0.assembly.runtime.stamping import recorded

    async def work() -> list[int]:
        async with open_log(console.settings()) as log:
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


def lineage(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task id, as in t0-003.")],
    run: console.Run = "LAST",
    as_json: console.Json = False,
) -> None:
    """Every checkpoint that a task touched, of runs and experiments: by its own events, or through a parent."""
    from agent0.assembly.models.lineage import TouchedCheckpoint, touched
    from agent0.assembly.runtime.read_models import sound_log
    from agent0.infra.storage.artifacts import FileArtifacts
    from agent0.projections.runs import resolve

    settings = console.settings()
    with console.tables() as db:
        name = str(resolve(db, run))

    async def work() -> list[TouchedCheckpoint]:
        async with sound_log(settings) as log:
            return await touched(log, FileArtifacts(settings.home), name, task)

    checkpoints = console.run_async(work)
    console.table(checkpoints, as_json, ("run", "checkpoint", "events", "through", "adapter"))
    if not checkpoints and not as_json:
        console.say(f"No checkpoint was trained on {task}.")
