"""Gathers from the tables what a diagnosis looks at."""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from agent0.projections.base import Row, select
from agent0.projections.runs import show_run
from agent0.report.diagnosis.iterations import iterations_of, part_means
from agent0.report.diagnosis.replies import failed_replies
from agent0.report.diagnosis.settings import changes_of, recorded_config
from agent0.run.diagnosis.case import NEVER, Case, HeldOutScore, Loss, Retry, Training, Wait
from agent0.run.diagnosis.local_state import LocalState
from agent0.settings import RunConfig

_MILESTONES = ("RunStarted", "RunFailed", "RunPaused", "RunCancelled", "TrainingRequested", "DependencyLost")


def case_of(db: sqlite3.Connection, run: str, here: LocalState | None = None) -> Case:
    """Gather what the tables say of ``run``. ``here``: see ``Case``.

    Raises:
        NotFoundError: there is no such run.
    """
    row = show_run(db, run)
    name, config = str(row["run"]), recorded_config(row["config"])
    marks = _milestones(db, name)
    iterations = iterations_of(db, name, plugins=bool(config and config.plugins))
    ended = marks["RunFailed"][-1] if marks["RunFailed"] and row["status"] == "failed" else None
    return Case(
        run=name,
        profile=str(row["profile"] or ""),
        status=str(row["status"]),
        config=config or RunConfig(),
        started=min((event["seq"] for event in marks["RunStarted"]), default=1),
        last=event_of(db, "SELECT max(seq) FROM events WHERE run = ?", name) or 1,
        reason=_reason(row, marks),
        changes=changes_of(db, row, config) if config else (),
        iterations=iterations,
        trainings=_trainings(db, name, marks),
        scores=_scores(db, name),
        part_means=part_means(db, name, config) if config else (),
        waits=_waits(db, name, marks),
        losses=_losses(db, name),
        retries=retries_of(db, name) if row["status"] in ("running", "paused") else (),
        replies=failed_replies(db, name),
        open_work=open_work(db, name) if row["status"] == "running" else (),
        ended=ended["data"]["cause_kind"] if ended else "",
        iteration=iterations[-1].number if iterations else NEVER,
        here=here or LocalState(),
    )


def _milestones(db: sqlite3.Connection, run: str) -> dict[str, list[Row]]:
    """Events of the run as a whole, by type, in order: sequence, time and data. Such events have no task, or that of
    their cause."""
    marks = ", ".join("?" * len(_MILESTONES))
    rows = select(
        db,
        f"SELECT seq, time, type, json_extract(body, '$.data') AS data FROM events WHERE run = ? AND task = '-'"  # noqa: S608 - question marks
        f" AND type IN ({marks}) ORDER BY seq",
        (run, *_MILESTONES),
        ("data",),
    )
    by_type: dict[str, list[Row]] = {name: [] for name in _MILESTONES}
    for row in rows:
        by_type[row["type"]].append(row)
    return by_type


def _reason(row: Row, marks: Mapping[str, list[Row]]) -> str:
    if row["status"] == "failed":
        return str(row["failed"])
    kind = {"paused": "RunPaused", "cancelled": "RunCancelled"}.get(row["status"], "")
    return str(marks[kind][-1]["data"].get("reason", "")) if kind and marks[kind] else ""


def _trainings(db: sqlite3.Connection, run: str, marks: Mapping[str, list[Row]]) -> tuple[Training, ...]:
    requested = {event["data"]["checkpoint"]: event["seq"] for event in marks["TrainingRequested"]}
    rows = select(
        db,
        "SELECT checkpoint, role, iteration, coalesce(nullif(parent, ''), 'base') AS parent, status,"
        " coalesce(samples, 0) + coalesce(replay, 0) AS samples, coalesce(skipped, '{}') AS skipped,"
        " coalesce(metrics, '{}') AS metrics, coalesce(reason, '') AS reason FROM checkpoints"
        " WHERE run = ? AND role IS NOT NULL AND iteration IS NOT NULL ORDER BY iteration, role DESC, checkpoint",
        (run,),
        ("skipped", "metrics"),
    )
    return tuple(Training(**row, requested=requested.get(row["checkpoint"], 0)) for row in rows)


def _scores(db: sqlite3.Connection, run: str) -> tuple[HeldOutScore, ...]:
    rows = select(
        db,
        "SELECT evaluation, checkpoint, iteration, split, status = 'evaluated' AS done, coalesce(n, 0) AS n, accuracy,"
        " coalesce(undecided, 0) AS undecided, coalesce(outcomes, '') AS outcomes,"
        " coalesce(evaluated_seq, 0) AS event FROM evaluations WHERE run = ? AND NOT forced_tool"
        " ORDER BY evaluated_seq IS NULL, evaluated_seq, evaluation",
        (run,),
    )
    return tuple(HeldOutScore(**row) for row in rows)


def _waits(db: sqlite3.Connection, run: str, marks: Mapping[str, list[Row]]) -> tuple[Wait, ...]:
    """What is waited for now; of a run that failed, what was at the end. One entry a dependency and message."""
    rows = select(
        db,
        "SELECT alarm, message, raised FROM alarms WHERE run = ? AND status = 'raised' AND alarm LIKE 'dependency/%'"
        " ORDER BY raised, alarm",
        (run,),
    )
    who: dict[tuple[str, str], list[str]] = defaultdict(list)
    since: dict[tuple[str, str], str] = {}
    for row in rows:
        _, rest = row["alarm"].split("/", 1)
        dependency, _, waiting = rest.rpartition("/")
        key = (dependency, str(row["message"]).partition(": ")[2])
        who[key].append(waiting)
        since.setdefault(key, row["raised"])
    seqs = {event["data"]["dependency"]: event["seq"] for event in reversed(marks["DependencyLost"])}
    return tuple(
        Wait(dependency, tuple(sorted(names)), message, since[dependency, message], seqs.get(dependency, 0))
        for (dependency, message), names in who.items()
    )


def _losses(db: sqlite3.Connection, run: str) -> tuple[Loss, ...]:
    """Reactions given up and not retried, by handler and error, the most frequent first."""
    rows = select(
        db,
        "SELECT failed_handler AS handler, error, message, coalesce(nullif(cause_task, '-'), '') AS task,"
        " coalesce(nullif(cause_attempt, '-'), '') AS attempt, cause_seq AS event, failure, status = 'open' AS waits"
        " FROM failures WHERE run = ? AND status IN ('open', 'dropped') ORDER BY failed, cause_seq",
        (run,),
    )
    kinds = Counter((row["handler"], row["error"]) for row in rows)
    losses = []
    for kind, count in kinds.most_common():
        first = next(row for row in rows if (row["handler"], row["error"]) == kind)
        first["message"] = " ".join(str(first["message"]).split())[:300]
        losses.append(Loss(**first, count=count, iteration=_iteration_at(db, run, first["event"])))
    return tuple(losses)


def _iteration_at(db: sqlite3.Connection, run: str, seq: int) -> int:
    """The iteration whose tasks were the last to be requested at the event ``seq``."""
    query = "SELECT max(iteration) FROM tasks WHERE run = ? AND iteration >= 0 AND requested_seq <= ?"
    iteration = db.execute(query, (run, seq)).fetchone()[0]
    return NEVER if iteration is None else int(iteration)


def _named(token: str | None) -> str:
    return "" if token in (None, "-") else str(token)


def event_of(db: sqlite3.Connection, query: str, *values: object) -> int:
    """The sequence that ``query`` gives for ``values``; 0 where there is none."""
    row = db.execute(query, values).fetchone()
    return int(row[0] or 0) if row else 0


def written_by_teacher(db: sqlite3.Connection, run: str, task: str) -> str:
    """What the teacher wrote as its proposal for ``task``; empty where nothing is recorded."""
    query = (
        "SELECT json_extract(body, '$.data.text') FROM events WHERE run = ? AND task = ? AND type = 'TaskProposed'"
        " ORDER BY seq DESC LIMIT 1"
    )
    row = db.execute(query, (run, task)).fetchone()
    return str(row[0] or "") if row else ""


def written_by_student(db: sqlite3.Connection, run: str, attempt: str) -> str:
    """The student's last turn of ``attempt``; empty where the transcript is an artifact or not recorded."""
    rows = select(
        db,
        "SELECT json_extract(body, '$.data.transcript') AS turns FROM attempts JOIN events ON seq = attempted_seq"
        " WHERE attempts.run = ? AND attempts.attempt = ?",
        (run, attempt),
    )
    turns = json.loads(rows[0]["turns"] or "[]") if rows else []
    written = [turn["content"] for turn in turns if turn["role"] == "assistant"]
    return str(written[-1]) if written else ""


_OPEN = """
SELECT 'the training of ' || checkpoint AS what, requested AS since, NULL AS left FROM checkpoints
WHERE run = ?1 AND status = 'requested'
UNION ALL
SELECT 'items of ' || evaluation, requested, nullif(max(n - coalesce(scored, 0), 0), 0) FROM evaluations
WHERE run = ?1 AND status = 'requested'
UNION ALL
SELECT 'attempts', min(requested), count(*) FROM attempts
WHERE run = ?1 AND status IN ('requested', 'working', 'attempted') HAVING count(*)
UNION ALL
SELECT 'tasks', min(requested), count(*) FROM tasks WHERE run = ?1 AND status IN ('requested', 'proposed')
HAVING count(*)
"""


def open_work(db: sqlite3.Connection, run: str) -> tuple[str, ...]:
    """Trainings, evaluations, attempts and tasks that ``run`` waits for, in words, with the time of day since when."""
    return tuple(map(_description, select(db, _OPEN, (run,))))


def _description(row: Row) -> str:
    count = f"{row['left']:,} " if row["left"] else ""
    return f"{count}{row['what']} (since {str(row['since'])[11:19]} UTC)"


_TRIES = (
    "SELECT tried.seq, tried.cause, json_extract(tried.body, '$.data') AS data, of.task, of.attempt"
    " FROM events AS tried LEFT JOIN events AS of ON of.id = tried.cause"
    " WHERE tried.run = ? AND tried.type = 'ReactionTried' ORDER BY tried.seq"
)
_EFFECTS = (
    "SELECT cause, handler, max(seq) AS seq FROM events WHERE run = ? AND handler != ''"
    " AND cause IN (SELECT value FROM json_each(?)) GROUP BY cause, handler"
)
Tries = dict[tuple[str, str], list[Row]]
"""(handler, id of the cause) -> tries that failed, or during which the process ended."""


def retries_of(db: sqlite3.Connection, run: str) -> tuple[Retry, ...]:
    """Gather the tries of ``run`` that failed and that no effect of their reaction followed, by handler."""
    rows = select(db, _TRIES, (run,), ("data",))
    if not rows:
        return ()
    causes = json.dumps(sorted({row["cause"] for row in rows}))
    done = {(row["handler"], row["cause"]): row["seq"] for row in select(db, _EFFECTS, (run, causes))}
    by_handler: dict[str, list[list[Row]]] = defaultdict(list)
    for (handler, cause), tries in _open(rows).items():
        if tries and tries[-1]["seq"] > done.get((handler, cause), 0):
            by_handler[handler].append(tries)
    retries = [_retry(handler, reactions) for handler, reactions in by_handler.items()]
    return tuple(sorted(retries, key=lambda retry: (-retry.tries, -retry.event)))


def _open(rows: Sequence[Row]) -> Tries:
    """Failed tries, and beginnings without an end: a failure, or what was given back, ends the one before it."""
    tries: Tries = defaultdict(list)
    for row in rows:
        attempts = tries[row["data"]["tried_handler"], row["cause"]]
        if row["data"]["noted"] and attempts and attempts[-1]["data"]["outcome"] == "begun":
            attempts.pop()
        if row["data"]["outcome"] != "left":
            attempts.append(row)
    return tries


def _retry(handler: str, reactions: Sequence[Sequence[Row]]) -> Retry:
    tries = sorted((row for reaction in reactions for row in reaction), key=lambda row: int(row["seq"]))
    worst = max(reactions, key=len)
    last = next((row for row in reversed(worst) if row["data"]["error"]), worst[-1])
    return Retry(
        handler=handler,
        error=last["data"]["error"],
        message=" ".join(str(last["data"]["message"]).split())[:300],
        tries=len(tries),
        reactions=len(reactions),
        most=len(worst),
        cause=f"{last['data']['cause_type']}, event {last['data']['cause_seq']}",
        task=_named(last["task"]),
        attempt=_named(last["attempt"]),
        event=last["seq"],
        events=tuple(int(row["seq"]) for row in tries),
    )
