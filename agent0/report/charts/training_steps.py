"""Charts of the steps of all trainings of a run, a small one for each metric: places only, which a template draws."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from agent0.projections.base import Row

WIDE, HIGH, EDGE = 300.0, 110.0, 6.0
METRICS = {
    "loss": "loss",
    "replay_loss": "loss of replayed successes",
    "gradient_norm": "gradient norm, before clipping",
    "entropy_estimate": "entropy, estimated from sampled tokens (nats)",
    "parent_kl": "KL from the parent (nats a token)",
    "penalised_kl": "KL that the penalty is on (nats a token)",
    "clip_below": "share clipped from below",
    "clip_above": "share clipped from above",
    "mismatch": "sampler against trainer (nats a token)",
    "learning_rate": "learning rate",
    "tokens": "tokens learned from",
}
"""What is charted, and the title of each chart."""
MOST_POINTS = 300
"""Of a line: of more steps, the lowest and the highest of each stretch are drawn, so that no spike is lost."""

MOST_BEGINS = 50
"""Trainings whose begins are drawn; lines of more would be a surface."""


@dataclass(frozen=True)
class StepLine:
    """One role's line: its ``points`` as SVG has them, and the last value."""

    role: str
    points: str
    last: float


@dataclass(frozen=True)
class StepPanel:
    """One metric over the steps of all trainings of a run: ``low`` and ``high`` are the ends of its axis, ``begins``
    where the trainings of an iteration begin."""

    title: str
    lines: tuple[StepLine, ...]
    low: float
    high: float
    steps: int
    begins: tuple[float, ...]


def step_panels(rows: Sequence[Row]) -> tuple[StepPanel, ...]:
    """A panel for each metric that any of ``rows``, of ``list_training_steps``, has. Trainings of one iteration share
    its stretch of the axis, which has a place for each step of the longest of them."""
    trainings: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        trainings.setdefault((row["iteration"], row["role"]), []).append(row)
    lengths: dict[int, int] = {}
    for (iteration, _), members in trainings.items():
        lengths[iteration] = max(lengths.get(iteration, 0), len(members))
    lengths = dict(sorted(lengths.items()))
    begins = dict(zip(lengths, accumulate(lengths.values(), initial=0), strict=False))
    steps = sum(lengths.values())
    placed: dict[str, list[tuple[float, Row]]] = {}
    for (iteration, role), members in trainings.items():
        apart = lengths[iteration] / len(members)
        placed.setdefault(role, []).extend((begins[iteration] + at * apart, row) for at, row in enumerate(members))
    marks = tuple(_across(at, steps) for at in begins.values() if at) if len(begins) <= MOST_BEGINS else ()
    panels = []
    for metric, title in METRICS.items():
        values = {role: [*_values(members, metric)] for role, members in placed.items()}
        if any(values.values()):
            panels.append(_panel(title, values, metric, steps, marks))
    return tuple(panels)


def _values(members: Sequence[tuple[float, Row]], metric: str) -> Iterator[tuple[float, float]]:
    """(place, value) of the steps that have one; losses of the two kinds of steps are two metrics."""
    kind = {"loss": "policy", "replay_loss": "replay"}.get(metric)
    column = "loss" if kind else metric
    for at, row in members:
        if row[column] is not None and kind in (None, row["kind"]):
            yield at, float(row[column])


def _panel(
    title: str, values: dict[str, list[tuple[float, float]]], metric: str, steps: int, begins: tuple[float, ...]
) -> StepPanel:
    known = [value for line in values.values() for _, value in line]
    low, high = min(known), max(known)
    low = min(low, 0.0) if "loss" not in metric else low
    high = high if high > low else low + 1.0
    lines = tuple(
        StepLine(role, " ".join(_points(line, steps, low, high)), line[-1][1]) for role, line in values.items() if line
    )
    return StepPanel(title, lines, low, high, steps, begins)


def _points(line: Sequence[tuple[float, float]], steps: int, low: float, high: float) -> Iterator[str]:
    """A single point is there twice: a line of no length is a dot."""
    for at, value in _thinned(line if len(line) > 1 else [*line, *line]):
        yield f"{_across(at, steps)},{HIGH - EDGE - (value - low) / (high - low) * (HIGH - 2 * EDGE):.1f}"


def _across(at: float, steps: int) -> float:
    return round(EDGE + at * (WIDE - 2 * EDGE) / (steps - 1), 1) if steps > 1 else WIDE / 2


def _thinned(line: Sequence[tuple[float, float]]) -> Iterable[tuple[float, float]]:
    if len(line) <= MOST_POINTS:
        return line
    size = -(-len(line) // (MOST_POINTS // 2))
    stretches = (line[begin : begin + size] for begin in range(0, len(line), size))
    return (
        point
        for stretch in stretches
        for point in sorted({min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])})
    )
