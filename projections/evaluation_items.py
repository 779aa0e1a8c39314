"""One row per item of a held-out evaluation, or sample of a benchmark's item: how it was attempted, the verdict, and
where its conversation is. What is listed here is never training data (``agent0.projections.trajectories``)."""

import json
import sqlite3
from collections.abc import Iterator, Sequence

from agent0.errors import NotFoundError
from agent0.events import benchmarks, checkpoints, submissions
from agent0.events.base import Recorded
from agent0.events.values import Artifact
from agent0.ports.storage import Artifacts
from agent0.projections.base import Row, behind_row, find, projection, select, stamp
from agent0.projections.runs import lineage, resolve
from agent0.projections.tool_calls import recorded_calls

BATCH = "rows"
"""The evaluation that rows of ``agent0 batch run`` are listed as."""
_COPIED = {"answer", "correct", "end", "turns", "tool_calls", "tool_ok", "parse_errors", "reason"}


@projection(
    key=("run", "attempt"),
    columns={
        "run": str,
        "attempt": str,
        "evaluation": str,
        "number": int,
        "item": str,
        "domain": str,
        "level": int,
        "answer": str,
        "correct": bool,
        "end": str,
        "turns": int,
        "tool_calls": int,
        "tool_ok": int,
        "parse_errors": int,
        "tokens": int,
        "wall_s": float,
        "reason": str,
        "scored": str,
        "scored_seq": int,
    },
    events=(checkpoints.EvaluationItemScored, benchmarks.ItemScored, submissions.RowAnswered),
)
def evaluation_items(e: Recorded) -> Iterator[Row]:
    """``attempt`` names an item in its run; ``evaluation`` is that of the table ``evaluations``, of ``agent0 bench``
    the benchmark, of a batch ``BATCH``. ``scored_seq`` leads to the conversation."""
    row = {"run": e.run, "attempt": e.attempt, "scored": stamp(e), "scored_seq": e.seq}
    match e.event:
        case checkpoints.EvaluationItemScored() as x:
            of = x.model_dump(include={"evaluation", "number", "item", "domain", "level", "tokens", *_COPIED})
            yield {**row, **of, "wall_s": x.seconds}
        case benchmarks.ItemScored() as x:
            of = {"evaluation": x.benchmark, "number": x.sample, "tokens": x.usage.completion_tokens}
            yield {**row, **of, **x.model_dump(include={"item", "wall_s", *_COPIED}), "domain": x.facts.get("domain")}
        case submissions.RowAnswered() as x:
            of = {"evaluation": BATCH, "number": x.row, "item": x.item, "tokens": x.usage.completion_tokens}
            copied = x.model_dump(include={"wall_s", *_COPIED} - {"correct", "reason"})
            yield {**row, **of, **copied, "attempt": x.item, "reason": x.error}


def evaluated_run(db: sqlite3.Connection, run: str) -> str:
    """Resolve what a user typed to the id of a run, a run of benchmarks (``agent0 bench run``), or a batch.

    Raises:
        NotFoundError: there is neither.
    """
    query = "SELECT run FROM benchmark_scores WHERE run = ?1 AND settings IS NOT NULL"
    query += " UNION SELECT batch FROM batches WHERE batch = ?1"
    return run if select(db, query, (run,)) else resolve(db, run)


_LIST = """
SELECT run, attempt, evaluation, number, item, domain, level, answer, correct, end, turns, tool_calls, tool_ok, tokens,
       wall_s, reason, scored_seq, (SELECT checkpoint FROM evaluations AS of
                            WHERE of.run = item.run AND of.evaluation = item.evaluation) AS student,
       (SELECT json_extract(body, '$.data.question') FROM events WHERE seq = scored_seq) AS question
FROM evaluation_items AS item
"""
_ORDER = ("evaluation", "number", "scored_seq")


def list_items(
    db: sqlite3.Connection, run: str, evaluation: str, correct: bool | None = None, limit: int = 100, after: str = ""
) -> list[Row]:
    """List the items of an evaluation in set order, those behind the item ``after`` where it is named. ``evaluation``
    is its id, or a split, checkpoint or benchmark, of which all evaluations are listed. What a fork did not evaluate
    itself is its parents', as of the fork.

    Raises:
        NotFoundError: there is no such evaluation, or no item ``after``.
    """
    owner, until, names = _named(db, run, evaluation)
    condition = "evaluation IN (SELECT value FROM json_each(?)) AND scored_seq <= ?"
    values: tuple[object, ...] = (json.dumps(names), until)
    if after:
        behind, key = behind_row(db, "evaluation_items", {"run": owner, "attempt": after}, _ORDER)
        condition, values = f"{condition} AND {behind}", (*values, *key)
    conditions = {"run": owner, "correct": correct}
    return find(db, _LIST, conditions, ", ".join(_ORDER), limit, behind=(condition, values))


def first_scored(db: sqlite3.Connection, run: str, evaluation: str) -> int:
    """Sequence of the event that first scored an item of ``evaluation``, as ``list_items`` names it, or where no item
    is an event of its own, all of them; 0: none is scored yet."""
    owner, _, names = _named(db, run, evaluation)
    first = "SELECT min({}) AS seq FROM {} WHERE run = ? AND evaluation IN (SELECT value FROM json_each(?))"
    queries = first.format("scored_seq", "evaluation_items"), first.format("evaluated_seq", "evaluations")
    rows = [select(db, query, (owner, json.dumps(names)))[0] for query in queries]
    return min((int(row["seq"]) for row in rows if row["seq"]), default=0)


def _named(db: sqlite3.Connection, run: str, name: str) -> tuple[str, int, list[str]]:
    """The run that has evaluations that ``name`` is the id, split, checkpoint or benchmark of, itself or the nearest of
    its parents; the last event that counts there; and the ids of these evaluations."""
    names: dict[str, None] = {}
    for owner, until in lineage(db, run):
        rows = select(
            db,
            "SELECT evaluation, split, checkpoint, benchmark FROM evaluations WHERE run = ?1"
            " UNION SELECT DISTINCT evaluation, '', '', '' FROM evaluation_items WHERE run = ?1 ORDER BY evaluation",
            (owner,),
        )
        if evaluations := [row["evaluation"] for row in rows if name and name in row.values()]:
            return owner, until, evaluations
        names |= dict.fromkeys(row["evaluation"] for row in rows)
    why = f"It has: {', '.join(names)}." if names else "It has none yet."
    raise NotFoundError(f"Run {run} has no evaluation {name[:80]!r}.", why, "Name one, a split, or a checkpoint.")


def is_item(db: sqlite3.Connection, run: str, attempt: str) -> bool:
    """Whether ``attempt`` is an item of an evaluation of ``run``, or of a parent before it was forked."""
    query = "SELECT 1 FROM evaluation_items WHERE run = ? AND attempt = ? AND scored_seq <= ?"
    return any(select(db, query, (owner, attempt, until)) for owner, until in lineage(db, run))


def show_item(db: sqlite3.Connection, run: str, attempt: str) -> Row | None:
    """One item with its conversation, in the columns of an attempt as far as it has them; ``transcript_artifact`` where
    the conversation is long. None: neither the run nor, before it was forked, a parent has such an item."""
    query = """
    SELECT item.*, held.task, of.checkpoint AS student, of.iteration,
           coalesce(json_extract(body, '$.data.question'), json_extract(body, '$.data.facts.question')) AS question,
           json_extract(body, '$.data.expected') AS expected,
           json_extract(body, '$.data.signals') AS signals,
           json_extract(body, '$.data.conversation') AS conversation,
           json_extract(body, '$.data.conversation_artifact') AS transcript_artifact
    FROM evaluation_items AS item JOIN events AS held ON held.seq = scored_seq
         LEFT JOIN evaluations AS of ON of.run = item.run AND of.evaluation = item.evaluation
    WHERE item.run = ? AND item.attempt = ? AND scored_seq <= ?
    """
    parsed = ("signals", "conversation", "transcript_artifact")
    rows = (select(db, query, (owner, attempt, until), parse=parsed) for owner, until in lineage(db, run))
    if (row := next((rows[0] for rows in rows if rows), None)) is None:
        return None
    blank = {"verifier": "", "credit": None, "got": row["answer"], "subgoals": [], "votes": []}
    verdict = blank | {name: row[name] for name in ("correct", "reason")} | {"expected": row.pop("expected") or ""}
    conversation = row.pop("conversation") or {"transcript": [], "calls": []}
    tokens = row.pop("tokens")
    return {
        **row,
        "status": "verified",
        "completion_tokens": tokens,
        "transcript": conversation["transcript"],
        "calls": recorded_calls(conversation["calls"]),
        "verdicts": [verdict],
    }


def conversation_at(db: sqlite3.Connection, seq: int, artifacts: Artifacts | None = None) -> Row:
    """The ``transcript`` and ``calls`` of the item that the event ``seq`` scored; empty where none was recorded, or
    where it is long and there are no ``artifacts``.

    Raises:
        NotFoundError, LogError: it is long, and its artifact is missing or damaged.
    """
    rows = select(
        db,
        "SELECT json_extract(body, '$.data.conversation') AS inline,"
        " json_extract(body, '$.data.conversation_artifact') AS stored FROM events WHERE seq = ?",
        (seq,),
        parse=("inline", "stored"),
    )
    if rows and rows[0]["stored"] and artifacts:
        conversation: Row = json.loads(artifacts.get(Artifact(**rows[0]["stored"])))
        return conversation
    return (rows[0]["inline"] if rows else None) or {"transcript": [], "calls": []}


def last_reply(transcript: Sequence[Row]) -> str:
    """The last turn of a transcript that the student wrote; empty where there is none."""
    return next((str(turn["content"]) for turn in reversed(transcript) if turn["role"] == "assistant"), "")
