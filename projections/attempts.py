"""One row per attempt: the student's answer, its cost, the verdict and the reward."""

import json
import sqlite3
from collections.abc import Iterable, Iterator

from agent0.errors import NotFoundError
from agent0.events import alarms
from agent0.events import tasks as facts
from agent0.events.base import Recorded
from agent0.events.benchmarks import SAMPLED
from agent0.projections.base import TABLES, Row, as_json, behind_row, find, projection, select, stamp
from agent0.projections.calibrators import confidence
from agent0.projections.evaluation_items import show_item
from agent0.projections.tool_calls import list_calls

_COPIED = {
    "answer", "end", "turns", "tool_calls", "tool_ok", "parse_errors", "grounded", "mean_logprob", "prompt", "model",
    "wall_s",
}  # fmt: skip


@projection(
    key=("run", "attempt"),
    columns={
        "run": str,
        "attempt": str,
        "task": str,
        "iteration": int,
        "number": int,
        "student": str,
        "status": str,
        "answer": str,
        "correct": bool,
        "credit": float,
        "reward": float,
        "end": str,
        "turns": int,
        "tool_calls": int,
        "tool_ok": int,
        "parse_errors": int,
        "grounded": bool,
        "mean_logprob": float,
        "self_critique": float,
        "prompt_tokens": int,
        "completion_tokens": int,
        "wall_s": float,
        "subgoals": str,
        "work": str,
        "progress": str,
        "model": str,
        "prompt": str,
        "seed": int,
        "requested": str,
        "attempted": str,
        "attempted_seq": int,
    },
    events=(
        facts.AttemptRequested,
        facts.TurnCompleted,
        facts.TaskAttempted,
        facts.ResultVerified,
        facts.RewardAssigned,
        alarms.ReactionDropped,
    ),
    indexes=(
        ("run", "task", "correct", "turns", "tool_calls", "credit"),
        ("run", "iteration", "tool_ok", "reward", "wall_s"),
    ),
)
def attempts(e: Recorded) -> Iterator[Row]:
    """``status``: requested, working (a long task, ``turns`` so far), attempted, verified, rewarded, dropped.

    ``attempted_seq`` leads to the transcript, ``progress`` (an artifact) to that of an attempt that goes on.
    ``self_critique`` is the probability that the student gave to its answer being right.
    ``subgoals`` are a long task's answers, ``work`` the digest of the work folder's last manifest.
    """
    at = {"run": e.run, "attempt": e.attempt, "task": e.task}
    match e.event:
        case facts.AttemptRequested() as x:
            request = {"iteration": x.iteration, "number": x.number, "student": x.student, "seed": x.seed}
            yield {**at, **request, "status": "requested", "requested": stamp(e)}
        case facts.TurnCompleted() as x:
            columns = {"turns": x.turn, "subgoals": as_json(x.subgoals), "progress": x.progress.model_dump_json()}
            yield {**at, "iteration": x.iteration, "number": x.number, "status": "working", **columns}
        case facts.TaskAttempted() as x:
            yield {
                **at,
                **{name: getattr(x, name) for name in _COPIED},
                "iteration": x.iteration,
                "number": x.number,
                "student": x.student,
                "status": "attempted",
                "self_critique": x.critique.probability if x.critique else None,
                "subgoals": as_json(x.subgoals) if x.subgoals else None,
                "work": x.work.sha256 if x.work else None,
                "progress": None,
                "prompt_tokens": x.usage.prompt_tokens,
                "completion_tokens": x.usage.completion_tokens,
                "attempted": stamp(e),
                "attempted_seq": e.seq,
            }
        case facts.ResultVerified() as x:
            yield {**at, "status": "verified", "correct": x.correct, "credit": x.credit}
        case facts.RewardAssigned(role="student") as x:
            yield {**at, "status": "rewarded", "reward": x.total}
        case alarms.ReactionDropped(failed_handler="attempt_task" | "continue_attempt" | "verify_result") as x:
            yield {"run": e.run, "attempt": x.cause_attempt, "task": x.cause_task, "status": "dropped"}


def list_attempts(
    db: sqlite3.Connection,
    run: str,
    task: str = "",
    iteration: int | None = None,
    correct: bool | None = None,
    limit: int = 100,
    after: str = "",
) -> list[Row]:
    """List attempts of a run in the order they were requested, filtered by the arguments given; those behind the
    attempt ``after`` where it is named.

    Raises:
        NotFoundError: there is no such attempt.
    """
    order = ("iteration", "task", "number")
    narrowed = bool(task) or iteration is not None  # then the index of what it is narrowed to, not one in this order
    return find(
        db,
        "SELECT attempt, task, iteration, student, status, answer, correct, credit, reward, turns, tool_calls, tool_ok,"
        " grounded, end, wall_s FROM attempts",
        {"run": run, "task": task, "iteration": iteration, "correct": correct},
        order=", ".join(f"+{name}" if narrowed else name for name in order),
        limit=limit,
        behind=behind_row(db, "attempts", {"run": run, "attempt": after}, order) if after else ("", ()),
    )


def show_attempt(db: sqlite3.Connection, run: str, attempt: str, *, calls: bool = True) -> Row:
    """One attempt with question, transcript (as recorded), tool calls (without ``calls`` none), verdicts and receipts.

    ``wanted`` are the subgoals of a long task; ``confidence`` is calibrated, None where nothing was fitted for this
    student. ``attempt`` may also name an item of the ``evaluation`` that is then not None; what only attempts have is
    None of it.

    Raises:
        NotFoundError: the run has no such attempt.
    """
    rows = select(
        db,
        "SELECT attempts.*, question, domain, family, level,"
        " json_extract(body, '$.data.transcript') AS transcript,"
        " json_extract(body, '$.data.transcript_artifact') AS transcript_artifact,"
        " json_extract(body, '$.data.signals') AS signals"
        " FROM attempts LEFT JOIN tasks USING (run, task) LEFT JOIN events ON seq = attempted_seq"
        " WHERE attempts.run = ? AND attempts.attempt = ?",
        (run, attempt),
        parse=("transcript", "transcript_artifact", "signals", "subgoals", "progress"),
    )
    if not rows and (item := show_item(db, run, attempt)):
        return {
            **dict.fromkeys(TABLES.entries["attempts"].columns),
            "confidence": None,
            "family": None,
            "wanted": [],
            **item,
        }
    if not rows:
        raise NotFoundError(f"Run {run} has no attempt {attempt!r}.", fix=f"`agent0 trajectory list {run}` shows them.")
    return {
        **rows[0],
        "evaluation": None,
        "confidence": _confidence(db, rows[0]),
        "wanted": _subgoals(db, run, rows[0]["task"], attempt),
        "calls": list_calls(db, run, attempt) if calls else [],
        "verdicts": _verdicts(db, (run, attempt)),
    }


def trajectory_of(db: sqlite3.Connection, run: str, attempt: str) -> Row:
    """The recorded ``trajectory`` of an attempt, or ``trajectory_artifact`` where it is long; both None where nothing
    was recorded or it has not ended. ``id`` and ``seq`` are those of the event; ``trajectory_problem`` and ``capture``
    say why there is none."""
    rows = select(
        db,
        "SELECT id, seq, json_extract(body, '$.data.trajectory') AS trajectory,"
        " json_extract(body, '$.data.trajectory_problem') AS trajectory_problem,"
        " json_extract(body, '$.data.capture') AS capture,"
        " json_extract(body, '$.data.trajectory_artifact') AS trajectory_artifact"
        " FROM attempts JOIN events ON seq = attempted_seq WHERE attempts.run = ? AND attempts.attempt = ?",
        (run, attempt),
        parse=("trajectory", "trajectory_artifact"),
    )
    names = ("id", "seq", "trajectory", "trajectory_artifact", "trajectory_problem", "capture")
    return rows[0] if rows else dict.fromkeys(names)


def own_turns(attempt: Row) -> list[Row]:
    """The turns of an attempt from the student's first on: the prompt, which may hold turns of examples, is before."""
    transcript: list[Row] = attempt["transcript"]
    written = [n for n, turn in enumerate(transcript) if turn["role"] == "assistant"]
    own = written[-(attempt["turns"] or len(written)) :]
    return transcript[own[0] :] if own else []


def read_transcripts(db: sqlite3.Connection, run: str, attempts: Iterable[str]) -> Iterator[Row]:
    """Read attempts of a run one by one: ``attempt``, ``turns``, and ``transcript`` or, of a long one,
    ``transcript_artifact``; both None of one that has not ended."""
    query = (
        "SELECT attempts.attempt, turns, json_extract(body, '$.data.transcript') AS transcript,"
        " json_extract(body, '$.data.transcript_artifact') AS transcript_artifact"
        " FROM attempts LEFT JOIN events ON seq = attempted_seq WHERE attempts.run = ? AND attempts.attempt = ?"
    )
    for attempt in attempts:
        yield from select(db, query, (run, attempt), ("transcript", "transcript_artifact"))


def _confidence(db: sqlite3.Connection, row: Row) -> Row | None:
    """How likely the answer is right, where this student's confidence was calibrated."""
    if row["answer"] is None or not row["signals"]:
        return None
    student = row["student"] if row["student"] == "base" else f"{row['run']}/{row['student']}"
    return confidence(db, row["signals"], f"{row['model']} {SAMPLED}", student)


def _subgoals(db: sqlite3.Connection, run: str, task: str, attempt: str) -> list[str]:
    """What each step of a long task wants."""
    query = (
        "SELECT json_extract(body, '$.data.proposal.subgoals') AS wanted FROM events WHERE run = ? AND task = ?"
        " AND attempt = ? AND +type = 'AttemptRequested' ORDER BY seq"  # by the task: a run has many events of the type
    )
    return next((row["wanted"] or [] for row in select(db, query, (run, task, attempt), parse=("wanted",))), [])


def _verdicts(db: sqlite3.Connection, key: tuple[str, str]) -> list[Row]:
    rows = select(db, "SELECT * FROM verdicts WHERE run = ? AND attempt = ? ORDER BY verifier", key)
    lists = ("subgoals", "votes")
    return [{**row, **{name: json.loads(row.get(name) or "[]") for name in lists}} for row in rows]
