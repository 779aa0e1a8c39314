"""Part of the rim: the read models as Prometheus metrics. Read anew at every scrape, so nothing is counted twice."""

import sqlite3
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from agent0.assembly.runtime.read_models import reading
from agent0.errors import Agent0Error, OperationError
from agent0.events.values import ToolState
from agent0.projections import position, select
from agent0.projections.base import Row
from agent0.projections.tool_usage import BOUNDS_MS, BUCKETS, LIMITS, OTHER, usage
from agent0.settings import Settings
from agent0.tools import tools

_COUNTS: dict[str, tuple[str, str, str]] = {
    "agent0_events": ("type", "Events in the log.", "SELECT type, sum(events) FROM event_counts GROUP BY type"),
}
_GAUGES: dict[str, tuple[str, str, str]] = {
    "agent0_runs": (
        "status",
        "Runs by where they stand.",
        "SELECT status, count(*) FROM runs WHERE started IS NOT NULL GROUP BY status",
    ),
    "agent0_failures": (
        "status",
        "Reactions that were given up, by what was decided.",
        "SELECT status, count(*) FROM failures GROUP BY status",
    ),
    "agent0_alarms": (
        "severity",
        "Alarms that are raised now.",
        "SELECT coalesce(severity, 'warning'), count(*) FROM alarms WHERE status = 'raised' GROUP BY 1",
    ),
    "agent0_policy_changes": (
        "profile",
        "Things that persons allowed or denied, by profile.",
        "SELECT profile, count(*) FROM policies GROUP BY profile",
    ),
}
LATEST = """
    SELECT run, {column} FROM evaluations WHERE evaluated_seq IN (
        SELECT max(evaluated_seq) FROM evaluations WHERE split = 'validation' AND NOT forced_tool GROUP BY run
        ORDER BY 1 DESC LIMIT 20) AND {column} IS NOT NULL
"""
"""Of the 20 runs scored last: labels must have a bound."""
_GAUGES |= {
    f"agent0_validation_{name}": ("run", about, LATEST.format(column=column))
    for name, column, about in (
        ("accuracy", "accuracy", "Share of validation tasks that the last scored student solves greedily."),
        ("solved_at_once", "solved_at_once", "The same of those tasks whose answers can be checked."),
        ("solved_within", "solved_within", "Share of these that it solves within run.evaluation.checked attempts."),
    )
}


Waiting = Callable[[Container[str]], Sequence[Row]]
"""Runs -> a row a handler with the events of these runs that ``wait`` for it and that are ``in_hand``."""


class Tables(Collector):
    """Collects from the tables of ``settings``. Where they cannot be read it says so and nothing else."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def describe(self) -> list[Metric]:
        """Nothing: registering must not read."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every metric."""
        metrics: list[Metric] = []
        try:
            with reading(self._settings) as db:
                db.execute("BEGIN")  # all of one scrape as of one moment
                about = "The last event that is in the tables."
                last = GaugeMetricFamily("agent0_tables_position", about, position(db).seq)
                metrics = [*_tools(usage(db)), *_models(db), *_counted(db), last]
        except (Agent0Error, sqlite3.Error):
            metrics = []
        yield GaugeMetricFamily("agent0_tables_readable", "Whether the read models can be read.", float(bool(metrics)))
        yield from metrics


class PendingWork(Collector):
    """Collects the pending work of each handler in running runs, by asking the log (``waiting``); that of paused runs
    is not counted. Where the log does not answer there is no sample, rather than zero."""

    def __init__(self, settings: Settings, waiting: Waiting) -> None:
        self._settings, self._waiting = settings, waiting

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One metric, by handler and by whether a process has begun it."""
        try:
            with reading(self._settings) as db:
                runs = {str(row["run"]) for row in select(db, "SELECT run FROM runs WHERE status = 'running'")}
            rows = self._waiting(runs)
        except (Agent0Error, sqlite3.Error, TimeoutError):
            return
        family = GaugeMetricFamily("agent0_work", "Events to react to, of runs under way.", labels=["handler", "state"])
        for row in rows:
            for state in ("wait", "in_hand"):
                family.add_metric([row["consumer"], state], row[state] or 0)
        yield family


def registry(settings: Settings, waiting: Waiting | None = None) -> CollectorRegistry:
    """A registry of its own: what other libraries register about this process is not about the log."""
    created = CollectorRegistry()
    created.register(Tables(settings))
    if waiting:
        created.register(PendingWork(settings, waiting))
    return created


def exposition(settings: Settings) -> str:
    """Render all metrics of the data folder in Prometheus' text format."""
    return generate_latest(registry(settings)).decode()


@contextmanager
def serving(settings: Settings, host: str, port: int, waiting: Waiting | None = None) -> Iterator[str]:
    """Serve them over HTTP in threads, with the work that is ``waiting``; the address that is listened on, as
    ``host:port``.

    Raises:
        OperationError: the address cannot be listened on.
    """
    try:
        server, thread = start_http_server(port, host, registry(settings, waiting))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise OperationError(f"{host}:{port} cannot be listened on.", f"{why}.", "Choose another --port.") from error
    try:
        yield f"{host}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _tools(used: dict[str, list[Row]]) -> Iterator[Metric]:
    by_tool: dict[str, list[Row]] = {}
    for tool, rows in used.items():
        by_tool.setdefault(_label(tool, rows), []).extend(rows)
    yield _by_state("agent0_tool_calls", "Tool calls by how they ended.", by_tool, list(ToolState))
    yield _by_state("agent0_tool_limit_hits", "Tool calls that a limit ended.", by_tool, LIMITS)
    yield _by_state("agent0_tool_refusals", "Tool calls that were not carried out.", by_tool, _REFUSED)
    for name, (column, about) in _SUMS.items():
        family = CounterMetricFamily(name, about, labels=["tool"])
        for tool, rows in by_tool.items():
            family.add_metric([tool], sum(row[column] for row in rows) / (1e6 if column.endswith("_us") else 1))
        yield family
    peaks = GaugeMetricFamily("agent0_tool_peak_memory_bytes", "The most a call ever took.", labels=["tool"])
    for tool, rows in by_tool.items():
        peaks.add_metric([tool], max(row["peak_mem_mib"] for row in rows) * (1 << 20))
    yield peaks
    yield _latencies(by_tool)


_REFUSED = (ToolState.REFUSED, ToolState.BUSY)
_SUMS = {
    "agent0_tool_cached": ("cached", "Tool calls whose result was there already."),
    "agent0_tool_kills": ("kills", "Tool calls that a signal from outside ended."),
    "agent0_tool_cpu_seconds": ("cpu_us", "CPU time of tool calls."),
    "agent0_tool_output_bytes": ("output_bytes", "What tool calls printed."),
}


def _label(tool: str, rows: Sequence[Row]) -> str:
    """Models write names: those that are no tool's and never did anything share one label, or labels had no bound."""
    did_something = any(row["state"] != ToolState.ERROR for row in rows)
    return tool if did_something or tool in tools() else OTHER


def _by_state(name: str, about: str, by_tool: dict[str, list[Row]], states: Sequence[ToolState]) -> Metric:
    family = CounterMetricFamily(name, about, labels=["tool", "state"])
    for tool, rows in by_tool.items():
        for state in states:
            family.add_metric([tool, state.value], sum(row["calls"] for row in rows if row["state"] == state))
    return family


def _latencies(by_tool: dict[str, list[Row]]) -> Metric:
    family = HistogramMetricFamily("agent0_tool_seconds", "Wall time of tool calls that were made.", labels=["tool"])
    bounds = [*(str(bound / 1000) for bound in BOUNDS_MS), "+Inf"]
    for tool, rows in by_tool.items():
        counts = accumulate(sum(row[name] for row in rows) for name in BUCKETS)
        family.add_metric([tool], list(zip(bounds, counts, strict=True)), sum(row["wall_us"] for row in rows) / 1e6)
    return family


_MODELS: dict[str, tuple[str, str]] = {
    "agent0_model_calls": ("sum(calls)", "Calls of remote models, each try counted."),
    "agent0_model_errors": ("sum(errors)", "Calls of remote models that failed."),
    "agent0_model_cache_hits": ("sum(hits)", "Calls that the cache answered."),
    "agent0_model_tokens_read": ("sum(read)", "Tokens that remote models read."),
    "agent0_model_tokens_written": ("sum(written)", "Tokens that remote models wrote."),
    "agent0_model_answer_seconds": ("sum(wall_us) / 1e6", "Seconds until answers of remote models were complete."),
    "agent0_model_answers": ("sum(timed)", "Answers of remote models that these seconds are of."),
    "agent0_model_cost_dollars": ("sum(cost) / 1e9", "What calls cost whose price is known."),
    "agent0_model_unpriced": ("sum(unpriced)", "Calls whose cost is unknown."),
    "agent0_model_saved_dollars": ("sum(saved) / 1e9", "What the calls that the cache answered would have cost."),
}


def _models(db: sqlite3.Connection) -> Iterator[Metric]:
    """By provider and role, which have a bound; names of models are what a server says."""
    sums = ", ".join(sql for sql, _ in _MODELS.values())
    rows = select(
        db,
        f"SELECT substr(model, 1, instr(model, '/') - 1) AS provider, role, {sums} FROM model_usage"  # noqa: S608
        " WHERE calls > 0 GROUP BY 1, role",
    )
    for index, (name, (_, about)) in enumerate(_MODELS.items(), 2):
        family = CounterMetricFamily(name, about, labels=["provider", "role"])
        for row in rows:
            provider, role, *_ = values = [*row.values()]
            family.add_metric([provider, role], values[index] or 0)
        yield family


def _counted(db: sqlite3.Connection) -> Iterator[Metric]:
    for kind, queries in ((CounterMetricFamily, _COUNTS), (GaugeMetricFamily, _GAUGES)):
        for name, (label, about, sql) in queries.items():
            family = kind(name, about, labels=[label])
            for row in select(db, sql):
                value, count = row.values()
                family.add_metric([str(value)], count)
            yield family
