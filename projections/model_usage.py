"""One row per run, task, day, role and model: calls of remote models, what they took and cost, and how often strategies
went on to a model. Whole numbers throughout, so that any order of adding up gives the same table."""

import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from agent0.errors import ConfigError
from agent0.events import models as facts
from agent0.events.base import Recorded
from agent0.projections.base import Row, projection, select, stamp
from agent0.projections.tool_usage import quantile, whole

BOUNDS_MS = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 120_000)
"""Upper bounds of the buckets of a call's latency; one more holds what is longer."""
BUCKETS = (*(f"ms_{bound}" for bound in BOUNDS_MS), "ms_more")
BY = ("model", "role", "domain", "day")
"""What calls are counted by. The domain is that of the task they were made for."""

_COUNTS = ("calls", "errors", "retries", "hits", "read", "written", "cache_read", "cost", "unpriced", "saved")
_CHOSEN = ("asked_on", "chosen")
_SUMS = (*_COUNTS, *_CHOSEN, "timed", "wall_us", *BUCKETS)


@projection(
    key=("run", "task", "day", "role", "model"),
    columns={**dict.fromkeys(("run", "task", "day", "role", "model"), str), **dict.fromkeys(_SUMS, int)},
    events=(facts.ModelCalled, facts.CallRouted),
    adds=_SUMS,
)
def model_usage(e: Recorded) -> Iterator[Row]:
    """``calls`` counts each try, and answers of the cache (``hits``) among them; ``read``, ``written`` and
    ``cache_read`` are tokens, ``cost`` and ``saved`` nano-dollars, ``unpriced`` calls whose cost nobody knows.
    ``asked_on``: a strategy had an answer and asked this model, too; ``chosen``: it gave this model's answer."""
    x, key = e.event, {"run": e.run, "task": e.task, "day": stamp(e)[:10]}
    if isinstance(x, facts.CallRouted):
        for number, answer in enumerate(x.answers):
            more = {"asked_on": int(number > 0), "chosen": int(answer.model == x.chosen)}
            yield {**key, "role": x.role, "model": answer.model, **more}
        return
    assert isinstance(x, facts.ModelCalled)  # noqa: S101 - declared above
    yield {**key, "role": x.role, "model": f"{x.provider}/{x.requested_model or x.model}", **_counts(x), **_latency(x)}


def _counts(x: facts.ModelCalled) -> Row:
    counted = x.tokens
    return {
        "calls": 1,
        "errors": int(bool(x.error)),
        "retries": int(x.retries > 0),
        "hits": int(x.cache == "hit"),
        "read": whole(counted.read if counted else x.usage.prompt_tokens),
        "written": whole(counted.written if counted else x.usage.completion_tokens),
        "cache_read": whole(counted.cache_read if counted else 0),
        "cost": whole(x.cost or 0),
        "unpriced": int(x.cost is None),
        "saved": whole(x.saved),
    }


def _latency(x: facts.ModelCalled) -> Row:
    """Of answers that a model gave: a failure says nothing of how fast it is, the cache less."""
    if x.finish == "error" or x.cache == "hit":
        return {}
    bucket = BUCKETS[bisect_left(BOUNDS_MS, x.usage.wall_s * 1000)]
    return {"timed": 1, "wall_us": whole(x.usage.wall_s * 1e6), bucket: 1}


def model_stats(db: sqlite3.Connection, by: Sequence[str] = ("model",), run: str = "") -> list[Row]:
    """Count the calls of remote models, and escalations to any model, by each of ``by`` (of ``BY``).

    ``run`` empty: of all runs.
    ``escalations``: a strategy had an answer and asked another model as well. Latencies in milliseconds, None where no
    call was answered; ``cost`` and ``saved`` in nano-dollars. The dearest first; by day, the newest first.

    Raises:
        ConfigError: nothing is counted by that.
    """
    if not by or (odd := next((name for name in by if name not in BY), "")):
        why = "Nothing was named." if not by else f"Nothing is counted by {odd!r}."
        raise ConfigError("These calls cannot be counted.", why, f"Take one or more of {', '.join(BY)}.")
    names = tuple(dict.fromkeys(by))
    return _summaries(_cells(db, names, run), names)


def stats_by_each(db: sqlite3.Connection) -> dict[str, list[Row]]:
    """``model_stats`` of all runs by each of ``BY`` alone; the table is read once for all of them."""
    cells = _cells(db, BY, "")
    return {name: _summaries(cells, (name,)) for name in BY}


def _cells(db: sqlite3.Connection, names: Sequence[str], run: str) -> list[Row]:
    listed, sums = ", ".join(names), ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in _SUMS)
    sql = (
        f"SELECT {listed}, {sums} FROM (SELECT u.*, coalesce(t.domain, '') AS domain FROM model_usage u"  # noqa: S608
        f" LEFT JOIN tasks t ON t.run = u.run AND t.task = u.task WHERE u.run = ?1 OR ?1 = '') GROUP BY {listed}"
    )  # names of our own, all of them
    return select(db, sql, (run,))


def _summaries(cells: Sequence[Row], names: Sequence[str]) -> list[Row]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[name] for name in names), []).append(cell)
    rows = [
        _summary(dict(zip(names, key, strict=True)), {name: sum(cell[name] for cell in group) for name in _SUMS})
        for key, group in sorted(groups.items(), reverse=names[0] == "day")
    ]
    return rows if names[0] == "day" else sorted(rows, key=lambda row: (-row["cost"], -row["calls"]))


def _summary(key: Row, sums: Row) -> Row:
    buckets, timed = [sums[name] for name in BUCKETS], sums["timed"]
    return {
        **key,
        **{name: sums[name] for name in _COUNTS},
        "escalations": sums["asked_on"],
        "chosen": sums["chosen"],
        "mean_ms": sums["wall_us"] / timed / 1000 if timed else None,
        **{f"p{n}_ms": quantile(buckets, n / 100, BOUNDS_MS) for n in (50, 95)},
    }
