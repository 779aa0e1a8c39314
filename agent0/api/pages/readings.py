"""What pages show that no single query gives: queries put together, nothing asked anew in SQL."""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest

from agent0.api.conditional import keyed_page
from agent0.api.context import ApiContext
from agent0.api.v1.runs import whole_attempt
from agent0.assembly.models.token_heat import NO_TOKENS, token_heat
from agent0.errors import NotFoundError
from agent0.infra.training.progress import pace_of
from agent0.projections.attempts import list_attempts, own_turns
from agent0.projections.base import Row
from agent0.projections.budgets import list_budgets
from agent0.projections.checkpoints import find_checkpoint, list_checkpoints, requested_trainings
from agent0.projections.evaluation_items import evaluated_run, list_items
from agent0.projections.evaluations import list_evaluations
from agent0.projections.events import begun_in_parent, extent_of, first_event, iteration_starts, newest_lines
from agent0.projections.rewards import explain_rewards
from agent0.projections.runs import resolve, show_run
from agent0.projections.tasks import list_tasks, show_task
from agent0.projections.training_steps import list_training_steps
from agent0.report.alarm_groups import shown_by
from agent0.report.diagnosis.findings import Conclusion, observation_lines, step_words
from agent0.report.diagnosis.replies import reply_lines
from agent0.report.overview import overview, rows_for_people
from agent0.routing.budgets import dollars
from agent0.settings import RunConfig
from agent0.state.run_state import BASE

ALL = -1
FEED = 30
"""Events that a run's page begins with."""
VERDICTS = {None: "undecided", 0: "wrong", 1: "right"}


def run_data(context: ApiContext, db: sqlite3.Connection, run: str, at: int) -> Row:
    """Collect everything that a run's page shows, newest events included. ``as_of``: the event as of which ``why`` and
    ``targets`` are, which of a large run are read beside; 0: they are being read for the first time."""
    name = resolve(db, run)
    deep = context.deep.look(name, at)
    summary = overview(db, name, deep=deep.parts if deep else {"why": {**_UNREAD}, "targets": []})
    why, feed = summary["why"], newest_lines(db, name, FEED)
    shown = {} if why["well"] else {"step": step_words(why["step"]), "evidence": observation_lines(why["evidence"])}
    shown["reply_head"] = next(iter(reply_lines(why.get("replies"))), "")
    alarms = [{**row, "evidence": shown_by(row)} for row in summary["alarms"]]
    return {
        "run": summary,
        "why": {**why, **shown},
        "alarms": alarms,
        "scores": rows_for_people(summary),
        "checkpoints": list_checkpoints(db, name),
        "feed": feed,
        "last": feed[0]["seq"] if feed else 0,
        "budgets": [{**row, "shown": shown_amounts(row)} for row in list_budgets(db, "run", name)],
        "as_of": deep.seq if deep else 0,
    }


def training_steps(context: ApiContext, db: sqlite3.Connection, run: str, at: int) -> tuple[list[Row], bool]:
    """Collect the steps of all trainings of ``run``, where ``at`` is 0 with those of one that is under way on this
    machine; and whether one is."""
    rows, under_way = list_training_steps(db, run), False
    for training in [] if at else requested_trainings(db, run):
        pace = pace_of(context.settings.home / "training", training["checkpoint"], training["seed"])
        if pace is not None:
            under_way = True
            rows += [{**training, "step": n, **s} for n, s in enumerate(pace.steps, pace.done - len(pace.steps) + 1)]
    return rows, under_way


def shown_amounts(row: Row) -> Row:
    """Cap, spent, reserved and free amounts of a budget in dollars; None where there is no cap."""
    free = None if row["cap"] is None else max(0, row["cap"] - row["spent"] - row["reserved"])
    amounts = {"cap": row["cap"], "spent": row["spent"], "reserved": row["reserved"], "free": free}
    return {key: None if value is None else dollars(value) for key, value in amounts.items()}


_UNREAD: Conclusion = {
    "well": True, "conclusion": "", "cause": None, "step": None, "evidence": [], "mend": "", "advice": "",
}  # fmt: skip
"""What is known of a large run before its attempts were read."""


def moments(db: sqlite3.Connection, run: str, since: int = 0) -> Row:
    """From which event to which a run, or a run of benchmarks, can be looked at, and where its iterations began; of a
    part of it that is there from the event ``since`` on, from there."""
    name = evaluated_run(db, run)
    first, last = extent_of(db, name)
    first = max(first, since)
    begins = {number: seq for number, seq in iteration_starts(db, name).items() if seq >= first}
    return {"first": first, "last": max(first, last), "iterations": begins}


def began(db: sqlite3.Connection, run: str, attempt: Row) -> int:
    """The event from which on ``attempt`` (or an item of an evaluation) of ``run`` is there."""
    return attempt.get("scored_seq") or first_event(db, run, attempt["task"], attempt["attempt"])


def fork_points(db: sqlite3.Connection, run: str) -> dict[int, int]:
    """The event before each iteration; none of a fork, whose first iterations are its parent's."""
    row = show_run(db, run)
    return {} if row["parent"] else iteration_starts(db, row["run"])


def iteration_data(db: sqlite3.Connection, run: str, number: int, low: float | None, high: float | None) -> Row:
    """One iteration: attempts (``chosen``: with a reward in that range), tasks, what was refused, and
    what its training left out and why.

    Raises:
        NotFoundError: the run has not begun it; of a fork it says which parent did.
    """
    name = resolve(db, run)
    tasks = list_tasks(db, name, number, limit=ALL)
    if not tasks:
        why, fix = "", f"See: agent0 run show {name} --full"
        if begun := begun_in_parent(db, name, number):
            why, fix = (
                f"It is a fork, and its parent {begun[0]} made that.",
                f"See: `/runs/{begun[0]}/iterations/{number}`",
            )
        raise NotFoundError(f"Run {name} has not begun iteration {number} itself.", why, fix)
    attempts = list_attempts(db, name, iteration=number, limit=ALL)
    ranged = low is not None or high is not None
    chosen = [row for row in attempts if not ranged or _within(row["reward"], low, high)]
    return {
        "run": name,
        "number": number,
        "tasks": [row for row in tasks if row["status"] != "rejected"],
        "refused": [row for row in tasks if row["status"] == "rejected"],
        "attempts": attempts,
        "chosen": [{**row, "verdict": VERDICTS[row["correct"]]} for row in chosen],
        "low": low,
        "high": high,
        "trained": [_trained(db, name, row) for row in list_checkpoints(db, name) if row["iteration"] == number],
        "ended": _counts(attempts),
    }


def page_of(rows: list[Row], after: int, most: int) -> tuple[list[Row], int]:
    """``most`` of ``rows`` behind the first ``after``, and where the next ones begin; 0: there are none."""
    return rows[after : after + most], after + most if len(rows) > after + most else 0


def _within(reward: float | None, low: float | None, high: float | None) -> bool:
    if reward is None:
        return False
    return (low is None or reward >= low) and (high is None or reward <= high)


def _trained(db: sqlite3.Connection, run: str, row: Row) -> Row:
    checkpoint = find_checkpoint(db, f"{run}/{row['checkpoint']}")
    names = ("checkpoint", "role", "status", "samples", "examples", "reason")
    return {**{name: checkpoint[name] for name in names}, "left_out": checkpoint["skipped"] or {}}


def _counts(attempts: Iterable[Row]) -> list[Row]:
    """How attempts ended: those that the machine ended apart from wrong answers."""
    counts = Counter((row["end"] or row["status"], VERDICTS[row["correct"]]) for row in attempts)
    return [{"end": end, "verdict": verdict, "attempts": n} for (end, verdict), n in sorted(counts.items())]


def group_data(context: ApiContext, db: sqlite3.Connection, run: str, task: str) -> Row:
    """A task and all attempts at it, their own turns side by side."""
    name = resolve(db, run)
    shown = show_task(db, name, task)
    attempts = [whole_attempt(context, db, name, row["attempt"]) for row in shown["attempts"]]
    receipts = [row for row in explain_rewards(db, name, task) if row["role"] == "teacher"]
    columns = [own_turns(row) for row in attempts]
    rows = [list(turns) for turns in zip_longest(*columns)]
    return {"run": name, "task": shown, "attempts": attempts, "turns": rows, "receipts": receipts}


def trajectory_data(context: ApiContext, db: sqlite3.Connection, run: str, attempt: str, *, calls: bool = True) -> Row:
    """One attempt with its neighbours in the group, or one item of an evaluation; without its tool calls where they are
    read apart."""
    name = evaluated_run(db, run)
    item = whole_attempt(context, db, name, attempt, calls=calls)
    group = [] if item["evaluation"] else list_attempts(db, name, item["task"], limit=ALL)
    return {"run": name, "attempt": item, "siblings": [row["attempt"] for row in group]}


def evaluation_data(
    db: sqlite3.Connection, run: str, evaluation: str, correct: bool | None, limit: int, after: str
) -> Row:
    """The items of an evaluation behind the item ``after``, and the scores of what is listed (of a run of benchmarks
    its own page has them).

    Raises:
        NotFoundError: there is no such evaluation.
    """
    name = evaluated_run(db, run)
    page = keyed_page(list_items(db, name, evaluation, correct, limit + 1, after), limit, "attempt")
    keys = ("evaluation", "split", "checkpoint", "benchmark")
    scores = [row for row in list_evaluations(db, name) if evaluation in [row[key] for key in keys]]
    return {"run": name, "evaluation": evaluation, "scores": scores, "items": page.data, "next": page.next}


def tokens_of(context: ApiContext, db: sqlite3.Connection, data: Row) -> Row:
    """The tokens of the attempt of ``trajectory_data`` as ``token_heat`` has them, as far as they were recorded."""
    run, item = data["run"], data["attempt"]
    if item["evaluation"]:
        return {**NO_TOKENS, "problem": "evaluations keep texts, not their tokens"}
    return token_heat(db, context.artifacts, run, item["attempt"], plan_of(show_run(db, run)))


def plan_of(row: Row) -> RunConfig:
    """The settings of the run of ``row``. Those that this version does not know are left out: to show a run is not to
    execute it."""
    return RunConfig.recorded({key: value for key, value in row["config"].items() if key in RunConfig.model_fields})


def students_of(db: sqlite3.Connection, run: str) -> tuple[str, list[str]]:
    """The student of ``run``, and those before it to which one can go back, the newest first."""
    student = str(show_run(db, run)["student"])
    rows = list_checkpoints(db, run)
    promoted = [row["checkpoint"] for row in rows if row["role"] == "student" and row["status"] == "promoted"]
    return student, [row for row in dict.fromkeys([*promoted[::-1], BASE]) if row != student]


def model_data(db: sqlite3.Connection, run: str, checkpoint: str) -> Row:
    """Collect one checkpoint with every score that it has."""
    trained = find_checkpoint(db, f"{resolve(db, run)}/{checkpoint}")
    scores = [row for row in list_evaluations(db, trained["run"]) if row["checkpoint"] == trained["checkpoint"]]
    return {"checkpoint": trained, "evaluations": scores}


def lineage(db: sqlite3.Connection, rows: Iterable[Row]) -> list[Row]:
    """For each run of ``rows`` its checkpoints as a tree: ``run``, ``depth`` and the checkpoint, parents first."""
    runs = dict.fromkeys(str(row["model"]).partition("/")[0] for row in rows)
    return [row for run in runs for row in _tree(run, list_checkpoints(db, run))]


def _tree(run: str, rows: list[Row]) -> list[Row]:
    names = {row["checkpoint"] for row in rows}
    below: dict[str, list[Row]] = {}
    for row in rows:
        below.setdefault(row["parent"] if row["parent"] in names else "", []).append(row)
    out: list[Row] = []
    waiting = [(row, 0) for row in reversed(below.get("", []))]
    while waiting:
        row, depth = waiting.pop()
        out.append({"run": run, "depth": depth, **row})
        waiting += [(child, depth + 1) for child in reversed(below.get(row["checkpoint"], []))]
    return out
