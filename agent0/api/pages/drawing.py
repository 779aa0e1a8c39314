"""Pictures whose parts are links: the learning curve, whose points open their iterations, and the histogram of rewards,
whose bars open what lies in them. Places and sizes only; templates draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from agent0.projections.base import Row

WIDE, HIGH, LEFT, BOTTOM = 640.0, 240.0, 44.0, 30.0
BINS = 12
LANE, STEP = 16.0, 24.0
"""Between two branches, and between two checkpoints, of a lineage."""
DOTS = 40
"""Points of one line that are links."""


@dataclass(frozen=True)
class ChartPoint:
    """A score: where it is drawn, its interval, and what it is of. ``iteration`` as in rows, -1 being untrained;
    ``run`` where another one than that of the page has it."""

    x: float
    y: float
    low: float
    high: float
    iteration: int
    value: float
    promoted: bool
    run: str = ""


@dataclass(frozen=True)
class Curve:
    """Points, the line through them, and the band of their intervals, as SVG attributes."""

    points: tuple[ChartPoint, ...]
    line: str
    band: str
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class HistogramBar:
    """The rewards from ``low`` to ``high`` (the last bar's end included): how many, and where they are drawn."""

    low: float
    high: float
    count: int
    x: float
    y: float
    wide: float
    tall: float


def curve(rows: Sequence[Row]) -> Curve | None:
    """The learning curve of ``rows``; None where nothing was evaluated."""
    evaluated = [row for row in rows if row["validation"] is not None]
    if not evaluated:
        return None
    step = (WIDE - LEFT - 20) / max(1, len(evaluated) - 1)
    points = tuple(
        ChartPoint(
            x=round(LEFT + 10 + n * step, 1),
            y=_height(row["validation"]),
            low=_height(row["lower95"] if row["lower95"] is not None else row["validation"]),
            high=_height(row["upper95"] if row["upper95"] is not None else row["validation"]),
            iteration=row["iteration"],
            value=row["validation"],
            promoted=row["promoted"] != 0,
            run=row.get("run", ""),
        )
        for n, row in enumerate(evaluated)
    )
    line = " ".join(f"{p.x},{p.y}" for p in points)
    band = " ".join([*(f"{p.x},{p.high}" for p in points), *(f"{p.x},{p.low}" for p in reversed(points))])
    ticks = tuple((_height(share / 4), f"{share * 25} %") for share in range(5))
    return Curve(points, line, band, ticks)


def histogram(values: Sequence[float]) -> tuple[HistogramBar, ...]:
    """Bars of equal width over ``values``; none where there are none."""
    if not values:
        return ()
    low, high = min(values), max(values)
    size = (high - low) / BINS or 1.0
    counts = [0] * (BINS if high > low else 1)
    for value in values:
        counts[min(int((value - low) / size), len(counts) - 1)] += 1
    wide, most = (WIDE - LEFT - 10) / len(counts), max(counts)
    scale = (HIGH - BOTTOM - 20) / most
    return tuple(
        HistogramBar(
            low=low + n * size,
            high=low + (n + 1) * size if n < len(counts) - 1 else high,
            count=count,
            x=round(LEFT + n * wide, 1),
            y=round(HIGH - BOTTOM - count * scale, 1),
            wide=round(wide - 2, 1),
            tall=round(count * scale, 1),
        )
        for n, count in enumerate(counts)
    )


def _height(share: float) -> float:
    return round((HIGH - BOTTOM) - share * (HIGH - BOTTOM - 12), 1)


@dataclass(frozen=True)
class LineChart:
    """Several lines over one axis of iterations, scaled together: points, the range of their values, and of each line
    the ``dots`` that lead somewhere, at most ``DOTS``."""

    lines: tuple[str, ...]
    low: float
    high: float
    iterations: tuple[tuple[float, int], ...]
    dots: tuple[tuple["Dot", ...], ...] = ()


def curves(sides: Sequence[Sequence[Row]]) -> LineChart | None:
    """Lines through the ``validation`` of each side's rows by their iteration; None where there is none."""
    points = [
        [(row["iteration"], row["validation"]) for row in rows if row["validation"] is not None] for rows in sides
    ]
    values = [value for side in points for _, value in side]
    if not values:
        return None
    first, last = min(n for side in points for n, _ in side), max(n for side in points for n, _ in side)
    low, high = min(*values, 0.0, 0.0), max(*values, 1.0, 1.0)
    step = (WIDE - LEFT - 20) / max(1, last - first)

    def position(number: int, value: float) -> str:
        return f"{LEFT + 10 + (number - first) * step:.1f},{_height((value - low) / (high - low))}"

    lines = tuple(" ".join(position(*point) for point in side) for side in points)
    every = max(1, (last - first) // 20)
    ticks = tuple((round(LEFT + 10 + (n - first) * step, 1), n) for n in range(first, last + 1, every))
    dots = tuple(tuple(_dot(position(*point), *point) for point in side[:: len(side) // DOTS + 1]) for side in points)
    return LineChart(lines, low, high, ticks, dots)


def _dot(position: str, iteration: int, value: float) -> "Dot":
    x, _, y = position.partition(",")
    return Dot(float(x), float(y), 4.0, f"{value:.3g}", iteration)


@dataclass(frozen=True)
class Node:
    """A checkpoint in the picture of its run's lineage: where it is drawn, the line from its parent, and its row."""

    x: float
    y: float
    path: str
    row: Row


@dataclass(frozen=True)
class Lineage:
    """The checkpoints of one run, parents above; ``text`` is where the words begin."""

    run: str
    nodes: tuple[Node, ...]
    text: float
    tall: float


def lineages(rows: Sequence[Row]) -> tuple[Lineage, ...]:
    """Pictures of ``rows``, of ``readings.lineage``: a row of the picture each, a child below its parent; further
    children of the same parent stand beside."""
    return tuple(_lineage(run, [*group]) for run, group in groupby(rows, key=lambda row: row["run"]))


def _lineage(run: str, rows: Sequence[Row]) -> Lineage:
    lanes: list[int] = []
    places: dict[str, int] = {}
    for number, row in enumerate(rows):
        above = places.get(row["parent"]) if row["depth"] else None
        between = lanes[0 if above is None else above + 1 :]
        straight = above is not None and not between
        lanes.append(lanes[above] if straight and above is not None else max(between, default=-1) + 1)
        if above is not None and not straight:
            lanes[-1] = max(lanes[-1], lanes[above] + 1)
        places[row["checkpoint"]] = number
    at = [(12.0 + LANE * lane, 14.0 + STEP * number) for number, lane in enumerate(lanes)]
    nodes = tuple(
        Node(*at[number], _branch(at[places[row["parent"]]], at[number]) if row["depth"] else "", row)
        for number, row in enumerate(rows)
    )
    return Lineage(run, nodes, 12.0 + LANE * (max(lanes) + 1), STEP * len(rows) + 4)


def _branch(begin: tuple[float, float], end: tuple[float, float]) -> str:
    (x, y), (u, v) = begin, end
    return f"M{x} {y}V{v}" if x == u else f"M{x} {y}C{x} {y + STEP} {u} {y} {u} {y + STEP}V{v}"


@dataclass(frozen=True)
class CurriculumSlot:
    """One domain, family and level in one iteration: how many tasks, and which share of attempts was right."""

    tasks: int
    rate: float | None


@dataclass(frozen=True)
class Heatmap:
    """Rows by name, a slot for each iteration; None where nothing was asked."""

    iterations: tuple[int, ...]
    rows: tuple[tuple[str, tuple[CurriculumSlot | None, ...]], ...]


def heatmap(slots: Sequence[Row]) -> Heatmap:
    """Arrange ``slots``, rows of ``slots_by_iteration``, by family, level and iteration."""
    iterations = tuple(sorted({slot["iteration"] for slot in slots}))
    by_name: dict[str, dict[int, CurriculumSlot]] = {}
    for slot in slots:
        name = f"{slot['domain']}/{slot['family']} level {slot['level']}"
        by_name.setdefault(name, {})[slot["iteration"]] = CurriculumSlot(slot["asked"], slot["solve_rate"])
    return Heatmap(iterations, tuple((name, tuple(map(row.get, iterations))) for name, row in sorted(by_name.items())))


@dataclass(frozen=True)
class Dot:
    """What is drawn as a point: items of about one confidence on a square of 200, or a value of an iteration."""

    x: float
    y: float
    size: float
    label: str
    iteration: int = -1


def reliability(bins: Sequence[Row]) -> tuple[Dot, ...]:
    """Dots of a reliability diagram: confidence across, share of right answers up."""
    most = max((interval["items"] for interval in bins), default=1)
    return tuple(
        Dot(
            x=round(20 + 170 * interval["confidence"], 1),
            y=round(190 - 170 * interval["accuracy"], 1),
            size=round(3 + 5 * (interval["items"] / most) ** 0.5, 1),
            label=f"{interval['items']} items of confidence {interval['confidence']:.2f}: "
            f"{interval['accuracy']:.2f} right",
        )
        for interval in bins
    )
