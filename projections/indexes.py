"""One row per run: which benchmarks its tasks were compared with, so that none of them is trained on."""

import sqlite3
from collections.abc import Iterator

from agent0.events import benchmarks as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, as_json, projection, select, stamp


@projection(
    key=("run",),
    columns={
        "run": str,
        "benchmarks": str,
        "files": str,
        "items": int,
        "ngram": int,
        "similarity": float,
        "embedder": str,
        "indexed": str,
        "changes": int,
    },
    events=(facts.BenchmarksIndexed,),
    adds=("changes",),
)
def indexes(e: Recorded) -> Iterator[Row]:
    """The last index of a run: its benchmarks, the digests of their files, and what counts as an overlap. ``changes``
    above 1: earlier tasks were compared with something else; no benchmarks: the latest ones with nothing."""
    x = e.event
    assert isinstance(x, facts.BenchmarksIndexed)  # noqa: S101 - declared above
    yield {
        "run": e.run,
        "benchmarks": as_json(x.benchmarks),
        "files": as_json(x.files),
        "items": x.items,
        "ngram": x.ngram,
        "similarity": x.limit,
        "embedder": x.embedder,
        "indexed": stamp(e),
        "changes": 1,
    }


def index_of(db: sqlite3.Connection, run: str) -> Row | None:
    """What a run's tasks were compared with, None where it was nothing."""
    rows = select(db, "SELECT * FROM indexes WHERE run = ?", (run,), parse=("benchmarks", "files"))
    return rows[0] if rows else None


def rejections(db: sqlite3.Connection, run: str) -> list[Row]:
    """Refused tasks of a run by reason, and accepted ones whose own answer is in doubt; most frequent first."""
    return select(
        db,
        "SELECT reason, count(*) AS tasks FROM tasks WHERE run = ? AND reason IS NOT NULL"
        " GROUP BY reason ORDER BY tasks DESC, reason",
        (run,),
    )


def contamination(db: sqlite3.Connection, run: str, examples: int = 5) -> Row:
    """How many tasks of a run were screened, how many of them repeated an item of a benchmark, of which one, and the
    first few of them with what they had in common. ``index`` is None where tasks were compared with nothing."""
    counts = select(
        db,
        "SELECT count(*) AS screened, coalesce(sum(reason = 'contaminated'), 0) AS contaminated FROM tasks"
        " WHERE run = ? AND status IN ('accepted', 'rejected')",
        (run,),
    )[0]
    # a detail begins with the name of the benchmark
    of = select(
        db,
        "SELECT substr(detail, 1, instr(detail, ' ') - 1) AS benchmark, count(*) AS tasks FROM tasks"
        " WHERE run = ? AND reason = 'contaminated' GROUP BY 1 ORDER BY tasks DESC, benchmark",
        (run,),
    )
    first = select(
        db,
        "SELECT task, question, detail FROM tasks WHERE run = ? AND reason = 'contaminated'"
        " ORDER BY iteration, slot LIMIT ?",
        (run, examples),
    )
    return {"index": index_of(db, run), **counts, "benchmarks": of, "examples": first}
