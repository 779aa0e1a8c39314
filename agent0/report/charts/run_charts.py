"""Many runs in one chart: smoothed, thinned so that no spike is lost, and placed on axes whose ends are round numbers.
Places and numbers only; a template draws."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10
from threading import Lock

from agent0.projections.base import Row
from agent0.report.charts.run_series import AxisName, Metric, Series

WIDE, HIGH = 2000, 600
"""Of the drawing, which is stretched to the page."""
COLOURS, DASHES = 6, 9
"""Colours that eyes of every kind tell apart; a run of the same colour has another dash."""
MOST_POINTS, LEAST_POINTS, ALL_POINTS = 400, 60, 8_000
"""Of a line, and of all lines of a chart together."""
DOTTED = 24
"""A line of at most so many points shows them."""
MOST_ABOVE = 3
TICKS = 6
COLUMNS = 12
"""Values of a line that its row of the table shows, where there are more than ``FEW``."""
FEW = 20
_UNITS = (("seconds", 1, 180), ("minutes", 60, 180 * 60), ("hours", 3600, 72 * 3600), ("days", 86_400, float("inf")))
"""Units of time: seconds in each, and up to how many seconds it is used."""


@dataclass(frozen=True)
class Style:
    """How a run is drawn everywhere: the numbers of its colour and of its dash."""

    colour: int
    dash: int

    @classmethod
    def of(cls, place: int) -> "Style":
        """The style of the run that ``place`` others started before (``agent0.projections.runs.run_places``)."""
        return cls(place % COLOURS, place // COLOURS % DASHES)

    @classmethod
    def apart(cls, places: Sequence[int]) -> list["Style"]:
        """The styles of the runs of a chart: each its own, but of two that would share one the later takes the next
        that is free."""
        styles = dict[int, Style]()
        for place in sorted(places):
            free = (cls.of(place + n) for n in range(COLOURS * DASHES))
            styles[place] = next((style for style in free if style not in styles.values()), cls.of(place))
        return [styles[place] for place in places]


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high``, the first and last of its ``ticks``, which are evenly apart."""

    title: str
    low: float
    high: float
    ticks: tuple[float, ...]

    def labels(self, *, share: bool = False) -> list[str]:
        """The ticks as people read them; ``share``: in percent."""
        return [f"{100 * tick:g}%" if share else _short(tick) for tick in self.ticks]


@dataclass(frozen=True)
class LineValues:
    """What is drawn of a run's series, thinned and rounded: places ``xs``, values ``ys``, which may be smoothed, and
    ``raw``, which are not."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    raw: tuple[float, ...]


class LineCache:
    """Lines of charts that were drawn last, at most ``most``. A run's log grows only, so a line of its first events
    stays as it is: its key has the run and their number."""

    def __init__(self, most: int = 2_000) -> None:
        self._most = most
        self._lines: dict[tuple[object, ...], LineValues] = {}
        self._lock = Lock()

    def line(self, key: tuple[object, ...], read: Callable[[], LineValues]) -> LineValues:
        """The line of ``key``; where it was not drawn lately, what ``read`` gives."""
        with self._lock:
            kept = self._lines.pop(key, None)
        line = kept or read()
        with self._lock:
            self._lines[key] = line
            while len(self._lines) > self._most:
                del self._lines[next(iter(self._lines))]
        return line


@dataclass(frozen=True)
class RunLine:
    """The line of one run: ``points`` is what is looked at, ``faint`` the values behind it where it is smoothed,
    ``dots`` a path that marks its points where they are few; all as SVG has them. ``above`` (at most ``MOST_ABOVE``)
    counts later lines that share a stretch with it: it is drawn wider than these. ``xs``, ``ys`` and ``raw`` are the
    values that are drawn."""

    run: str
    points: str
    faint: str
    dots: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    raw: tuple[float, ...]
    above: int = 0


@dataclass(frozen=True)
class RunChart:
    """One metric of several runs: its axes, and a line for each run."""

    metric: Metric
    x: Scale
    y: Scale
    lines: tuple[RunLine, ...]

    def row(self) -> Row:
        """The chart as programs read it: axes, and of each line the values that are drawn."""
        axes = {name: {"title": axis.title, "low": axis.low, "high": axis.high} for name, axis in self._axes()}
        lines = [{"run": line.run, "x": line.xs, "y": line.ys, "raw": line.raw} for line in self.lines]
        named = {"metric": self.metric.name, "title": self.metric.title, "share": self.metric.share}
        return {**named, **axes, "lines": lines}

    def _axes(self) -> tuple[tuple[str, Scale], ...]:
        return ("x", self.x), ("y", self.y)

    def table(self) -> tuple[tuple[float, ...], tuple[tuple[float | None, ...], ...]]:
        """Places along x, and a row of values a line: all where they are few, else the last value up to each place;
        None where the run has none there."""
        places = sorted({x for line in self.lines for x in line.xs})
        if len(places) > FEW:
            places = [self.x.low + (self.x.high - self.x.low) * n / COLUMNS for n in range(1, COLUMNS + 1)]
        return tuple(places), tuple(tuple(_value_at(line, place) for place in places) for line in self.lines)


def _value_at(line: RunLine, place: float) -> float | None:
    before = bisect_right(line.xs, place)
    return line.ys[before - 1] if before and place <= line.xs[-1] else None


def line_values(values: Series, weight: float, runs: int) -> LineValues:
    """What a chart of ``runs`` runs draws of ``values``. ``weight``: how much of each smoothed value is the one before,
    0 (not smoothed) to below 1."""
    most = max(LEAST_POINTS, min(MOST_POINTS, ALL_POINTS // max(1, runs)))
    averages = smoothed(values.ys, weight) if weight else values.ys
    kept = thinned(values.ys, most)
    columns = ([column[n] for n in kept] for column in (values.xs, averages, values.ys))
    xs, ys, raw = map(_rounded, columns)
    return LineValues(xs, ys, raw)


def run_chart(
    metric: Metric, axis: AxisName, names: Sequence[str], every: Sequence[LineValues], weight: float
) -> RunChart:
    """Draw ``every`` line, which are those of the runs ``names``; ``weight`` as of ``line_values``."""
    last = max((values.xs[-1] for values in every if values.xs), default=0.0)
    unit, size = _unit(last) if axis == "time" else ("", 1)
    title = {"tokens": "tokens learned from", "time": f"{unit} since the start of the run"}.get(
        axis, "iterations done" if metric.by_iteration else "steps of the optimiser"
    )
    drawn = [replace(line, xs=_rounded([x / size for x in line.xs])) for line in every] if size != 1 else every
    ys = [y for line in drawn for values in (line.ys, line.raw) if values for y in (min(values), max(values))]
    alone = len({x for values in every for x in values.xs}) == 1  # then in the middle
    across = scale(title, 0.0, (1 + alone) * last / size, whole=axis == "step")
    up = scale("", 0.0, 1.0) if metric.share else _upright(ys)
    lines = [_line(name, values, across, up, faint=weight > 0) for name, values in zip(names, drawn, strict=True)]
    return RunChart(metric, across, up, tuple(_apart(lines)))


def _apart(lines: Sequence[RunLine]) -> list[RunLine]:
    """``lines``, each with how many later ones would hide a stretch of it."""
    later, counted = defaultdict[tuple[str, str], set[int]](set), list[RunLine]()
    for number, line in reversed([*enumerate(lines)]):
        stretches = [later[stretch] for stretch in {*pairwise(line.points.split())}]
        counted.append(replace(line, above=min(MOST_ABOVE, len(set[int]().union(*stretches)))))
        for hiding in stretches:
            if len(hiding) < MOST_ABOVE:  # more of them change no count
                hiding.add(number)
    return counted[::-1]


def smoothed(values: Sequence[float], weight: float) -> list[float]:
    """The exponential moving average of ``values``: each is ``weight`` of the one before and the rest of its own, from
    the first on without a pull towards 0 (Kingma and Ba 2015, section 3)."""
    own, mean, share = 1 - weight, 0.0, 0.0
    return [(mean := mean + own * (v - mean)) / (share := share + own * (1 - share)) for v in values]


def thinned(values: Sequence[float], most: int) -> list[int]:
    """Which of ``values`` are drawn, at most about ``most``: the lowest and the highest of each stretch, the first and
    the last."""
    if len(values) <= most:
        return [*range(len(values))]
    size, kept = ceil(2 * len(values) / most), {0, len(values) - 1}
    for begin in range(0, len(values), size):
        stretch = values[begin : begin + size]
        kept |= {begin + stretch.index(min(stretch)), begin + stretch.index(max(stretch))}
    return sorted(kept)


def scale(title: str, low: float, high: float, *, whole: bool = False, most: int = TICKS) -> Scale:
    """An axis that holds ``low`` to ``high`` and begins and ends at a round number; ``whole``: its ticks are whole
    numbers."""
    high = high if high - low > max(1e-9 * max(abs(low), abs(high)), 1e-30) else low + 1.0
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    rounds = (1, 2, 5, 10) if whole and power < 10 else (1, 2, 2.5, 5, 10)
    step = next(power * n for n in rounds if power * n >= rough * 0.999)
    step = max(1.0, step) if whole else step
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = tuple(float(f"{n * step:.12g}") for n in range(first, last + 1))
    return Scale(title, ticks[0], ticks[-1], ticks)


def _upright(ys: Sequence[float]) -> Scale:
    """From 0 where that is near; never shorter than its values."""
    low, high = min(ys, default=0.0), max(ys, default=1.0)
    return scale("", 0.0 if 0 < low < high / 2 else low, high, most=5)


def _short(value: float) -> str:
    """A tick in a few characters: 12k for 12,000."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(size, 1e4):
            return f"{value / size:.4g}{letter}"
    return f"{value:.4g}"


def _unit(seconds: float) -> tuple[str, int]:
    return next((name, size) for name, size, most in _UNITS if seconds <= most)


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    """Six digits of each."""
    return tuple(float(f"{value:.6g}") for value in values)


def _line(name: str, drawn: LineValues, x: Scale, y: Scale, *, faint: bool) -> RunLine:
    xs, ys, raw = drawn.xs, drawn.ys, drawn.raw
    places = [*_places(xs, ys, x, y)]
    twice = places * 2 if len(places) == 1 else places  # a line of no length is a dot
    behind = " ".join(_places(xs, raw, x, y)) if faint else ""
    dots = "".join(f"M{place.replace(',', ' ')}h0" for place in places) if len(places) <= DOTTED else ""
    return RunLine(name, " ".join(twice), behind, dots, xs, ys, raw)


def _places(xs: Sequence[float], ys: Sequence[float], x: Scale, y: Scale) -> Iterator[str]:
    across, up = WIDE / (x.high - x.low), HIGH / (y.high - y.low)
    for place, value in zip(xs, ys, strict=True):
        yield f"{int((place - x.low) * across + 0.5)},{int(HIGH - (value - y.low) * up + 0.5)}"
