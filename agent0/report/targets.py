"""The targets of a run: the limit, what was measured, and which command measures what was not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from statistics import stdev
from typing import TypedDict

from agent0.report.answers import FEW
from agent0.settings import RunConfig

GAINS: Mapping[str, float] = {"gsm8k": 0.15, "arc_challenge": 0.20, "humaneval": 0.10}
"""Wanted gains of accuracy over the base, by benchmark: 0.15 is 15 percentage points."""
TOOL_USE = 0.8
"""Share of the held-out tasks of the last evaluation with a successful tool call."""
SIMPLE_S, COMPLEX_S = 5.0, 30.0
"""95th percentile of seconds of an attempt with at most one tool call, and with more."""
SPREAD, SPREAD_OF, SPREAD_LEAST = 0.05, 5, 3
"""Standard deviation of validation accuracy over the last checkpoints, of how many, and the fewest that tell."""
COST = 0.10
"""Dollars an iteration."""
PATTERNS = 100.0
"""Solution patterns among 1,000 solved tasks."""
SERVED = ("openai",)
"""Providers whose tokens cost ``price``; those of others cost this machine's energy."""


@dataclass(frozen=True)
class Spent:
    """What complete iterations used: tokens (read, written) by role, and hours from their first request to their
    end."""

    iterations: int
    tokens: Mapping[str, tuple[int, int]]
    hours: float


@dataclass(frozen=True)
class RunMeasures:
    """What is known of a run. None: not measured.

    ``gains`` are gains over the base by benchmark, ``validation`` accuracies of every scored checkpoint in order,
    ``promoted`` those of the base and of each promoted one. Seconds are 95th percentiles.
    """

    gains: Mapping[str, float] = field(default_factory=dict)
    tool_use: float | None = None
    simple_s: float | None = None
    complex_s: float | None = None
    validation: Sequence[float] = ()
    promoted: Sequence[float] = ()
    spent: Spent | None = None
    patterns: float | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    """Tasks that a value rests on, by its name above or by benchmark; attempts, for seconds."""


class TargetRow(TypedDict):
    """A target: what is ``wanted``, what was measured and whether that meets it (None: not measured), and then the
    command or setting that would ``measure`` it. ``n`` tasks or attempts stand behind the value, and ``rests_on`` says
    so in words, also that they are few."""

    target: str
    wanted: str
    value: float | None
    met: bool | None
    measure: str
    n: int | None
    rests_on: str


def target_table(results: RunMeasures, config: RunConfig) -> list[TargetRow]:
    """Make one row a target. A student without tools has no target of tool use."""
    start, calls = "agent0 run start", "agent0 run start --set run.student.max_calls=4"
    longer = f"{start} --set run.iterations={max(config.iterations + 2, SPREAD_LEAST)}"
    spread, falls, (cost, lacking) = _spread(results.validation), _falls(results.promoted), _cost(results.spent, config)
    row, tool_use, patterns = partial(_row, results.counts), results.tool_use, results.patterns
    used = row("tasks solved with a tool", f"> {TOOL_USE:.0%}", tool_use, TOOL_USE, start, "tool_use", most=False)
    return [
        *(_gain(results, name, least) for name, least in GAINS.items()),
        *([used] if config.student.tools else []),
        row("latency of simple tasks, p95 (s)", f"< {SIMPLE_S:g}", results.simple_s, SIMPLE_S, start, "simple_s"),
        row("latency of complex tasks, p95 (s)", f"< {COMPLEX_S:g}", results.complex_s, COMPLEX_S, calls, "complex_s"),
        row("spread of validation over checkpoints", f"< {SPREAD:.0%}", spread, SPREAD, longer, "validation"),
        row("promotions that lost accuracy", "0", falls, 1, longer, "validation"),
        row("cost of an iteration ($)", f"< {COST:.2f}", cost, COST, lacking or longer, ""),
        row("solution patterns per 1,000 tasks", f"> {PATTERNS:g}", patterns, PATTERNS, start, "patterns", most=False),
    ]


def _row(
    counts: Mapping[str, int],
    target: str,
    required: str,
    value: float | None,
    limit: float,
    measure: str,
    of: str,
    *,
    most: bool = True,
) -> TargetRow:
    """``of``: the name in ``counts`` of what the value rests on; ``most``: ``limit`` is an upper bound."""
    met = None if value is None else value < limit if most else value > limit
    n = None if value is None else counts.get(of)
    what = "attempt" if target.startswith("latency") else "task"
    return {
        "target": target,
        "wanted": required,
        "value": value,
        "met": met,
        "measure": measure if met is None else "",
        "n": n,
        "rests_on": "" if n is None else f"{n:,} {what}{'s' * (n != 1)}{' (few)' if n < FEW else ''}",
    }


def _gain(results: RunMeasures, name: str, least: float) -> TargetRow:
    command = f"agent0 run start --set 'run.evaluation.benchmarks=[\"{name}\"]'"
    shown, value = f">= +{100 * least:g} points", results.gains.get(name)
    row = _row(results.counts, f"{name}, gain over the base", shown, value, least, command, name, most=False)
    return row if value is None else {**row, "met": value >= least - 1e-9}


def _spread(accuracies: Sequence[float]) -> float | None:
    last = accuracies[-SPREAD_OF:]
    return stdev(last) if len(last) >= SPREAD_LEAST else None


def _falls(accuracies: Sequence[float]) -> float | None:
    steps = list(pairwise(accuracies))
    return float(sum(after < before for before, after in steps)) if steps else None


def _cost(spent: Spent | None, config: RunConfig) -> tuple[float | None, str]:
    """Dollars an iteration, and which setting is missing where they cannot be known."""
    actors = {"student": config.student, "teacher": config.teacher}
    unpriced = [f"run.{role}.price" for role, row in actors.items() if row.provider in SERVED and not any(row.price)]
    energy = config.energy
    unset = [name for name in ("power_w", "price_kwh") if getattr(energy, name) is None]
    if lacking := [*unpriced, *(f"run.energy.{name}" for name in unset)]:
        return None, f"agent0 run start, with {' and '.join(lacking)} set"
    if spent is None or not spent.iterations:
        return None, ""
    tokens = sum(
        price * used
        for role, row in actors.items()
        for price, used in zip(row.price, spent.tokens.get(role, (0, 0)), strict=True)
    )
    power = (energy.power_w or 0.0) / 1000 * spent.hours * (energy.price_kwh or 0.0)
    return (tokens / 1_000_000 + power) / spent.iterations, ""
