"""Pictures as inline SVG: lines over iterations, scores with their intervals, reliability. Colours are classes of the
page's style sheet (``c0`` to ``c7``, ``grid``, ``soft``), every text is escaped."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from agent0.report.html.rendering import FOLDER, visible

COLOURS = 8
LONGEST = 28
"""Characters of a label."""
WIDE, HALF = 720, 480
_FIFTHS = [n / 5 for n in range(6)]
_DASHES = ("none", "7 4", "2 4", "9 3 2 3")

Place = Callable[[float], float]


@dataclass(frozen=True)
class Score:
    """A value with an interval, as a share with its 95 % interval; ``series`` names what it is one of."""

    series: str
    value: float
    low: float
    high: float


Span = tuple[float, float]


def lines(
    series: Mapping[str, Sequence[float | None]],
    ticks: Sequence[str],
    title: str,
    spans: Mapping[str, Sequence[Span | None]] | None = None,
) -> Markup:
    """Draw shares over ``ticks`` as lines that differ in colour, mark and dashes; empty without a value. ``spans``
    are their intervals, drawn beside one another so that none hides another."""
    if not any(value is not None for values in series.values() for value in values):
        return Markup()
    left, right, top, bottom = 50, HALF - 22, 12, 200
    step = (right - left) / max(1, len(ticks) - 1)

    def y(share: float) -> float:
        return bottom - share * (bottom - top)

    parts = [*_shares_up(left, right, y), *_ticks_below(ticks, left, step, bottom + 18)]
    for number, values in enumerate(series.values()):
        points = [(left + place * step, y(value)) for place, value in enumerate(values) if value is not None]
        parts.append(_path(points, number))
        parts += [_mark(*point, number) for point in points]
    held = [name for name in series if name in (spans or {})]
    for beside, name in enumerate(held):
        number = list(series).index(name)
        for place, span in enumerate((spans or {})[name]):
            at = left + place * step + 3 * (beside - (len(held) - 1) / 2)
            parts += [_line(at, y(span[0]), at, y(span[1]), f"c{number % COLOURS}")] if span else []
    return _picture(parts, HALF, bottom + 26, title) + _key(list(series))


def intervals(groups: Mapping[str, Sequence[Score]], title: str) -> Markup:
    """A row for each share: a dot, its interval, both in figures; groups are named at the left. Empty without one."""
    return _rows(groups, title, [n / 5 for n in range(6)], lambda share, exact: f"{share:.{int(exact)}%}")


def spreads(groups: Mapping[str, Sequence[Score]], title: str) -> Markup:
    """The same for numbers of any size, on a scale that holds them all."""
    scores = [score for held in groups.values() for score in held]
    if not scores:
        return Markup()
    scale = _scale(min(score.low for score in scores), max(score.high for score in scores))
    return _rows(groups, title, scale, lambda value, exact: f"{value:.3f}" if exact else f"{value:g}")


def _scale(low: float, high: float) -> list[float]:
    """A few round numbers that enclose both."""
    seen = high - low > 1e-6 * max(1.0, abs(low), abs(high))
    least = (high - low if seen else 1.0) / 6
    tenth = 10.0 ** math.floor(math.log10(least))
    step = next(step for step in (tenth, 2 * tenth, 5 * tenth, 10 * tenth) if step >= least)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(n * step, 12) for n in range(first, max(last, first + 1) + 1)]


def _rows(
    groups: Mapping[str, Sequence[Score]], title: str, scale: Sequence[float], figure: Callable[[float, bool], str]
) -> Markup:
    names = list(dict.fromkeys(score.series for scores in groups.values() for score in scores))
    if not names:
        return Markup()
    left, right, row, gap = 180, WIDE - 190, 19, 9

    def x(value: float) -> float:
        return left + (value - scale[0]) / (scale[-1] - scale[0]) * (right - left)

    parts: list[Markup] = []
    at = 14.0
    for group, scores in groups.items():
        parts.append(_text(left - 14, at + row * (len(scores) - 1) / 2 + 4, group, "end"))
        for score in scores:
            numbers = f"{figure(score.value, True)}  ({figure(score.low, True)} to {figure(score.high, True)})"
            parts += _whisker(x, at, score, names.index(score.series), numbers)
            at += row
        at += gap
    bottom = at - gap
    lined = [_line(x(n), 2, x(n), bottom, "grid") for n in scale]
    lined += [_text(x(n), bottom + 16, figure(n, False), "middle", "soft") for n in scale]
    return _picture([*lined, *parts], WIDE, round(bottom + 24), title) + _key(names)


def _whisker(x: Place, at: float, score: Score, colour: int, numbers: str) -> Iterator[Markup]:
    yield _line(x(score.low), at, x(score.high), at, f"c{colour % COLOURS} thick")
    yield _mark(x(score.value), at, colour)
    yield _text(WIDE - 176, at + 4, numbers, "start", "soft")


def reliability(bins: Sequence[tuple[float, float, int]], title: str) -> Markup:
    """Share that is right over confidence, for bins of (confidence, share, items); on the dashed line both agree. A
    dot's area says how many items it stands for. Empty without a bin."""
    if not bins:
        return Markup()
    left, right, top, bottom = 50, 310, 12, 272
    most = max(items for _, _, items in bins)

    def x(share: float) -> float:
        return left + share * (right - left)

    def y(share: float) -> float:
        return bottom - share * (bottom - top)

    parts = [*_shares_up(left, right, y), _line(left, bottom, right, top, "soft dashed")]
    parts += [_text(x(n), bottom + 18, f"{n:.0%}", "middle", "soft") for n in _FIFTHS]
    for confidence, share, items in bins:
        tooltip = f"{items} items: confidence {confidence:.2f}, right {share:.1%}"
        dot = Markup('<circle class="c0 dot" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>')
        parts.append(dot.format(x(confidence), y(share), 3 + 9 * (items / most) ** 0.5, tooltip))
    return _picture(parts, 330, bottom + 26, title)


def _shares_up(left: float, right: float, y: Place) -> Iterator[Markup]:
    for share in _FIFTHS:
        yield _line(left, y(share), right, y(share), "grid")
        yield _text(left - 8, y(share) + 4, f"{share:.0%}", "end", "soft")


def _ticks_below(ticks: Sequence[str], left: float, step: float, at: float) -> Iterator[Markup]:
    """About a dozen of them, the first and the last always."""
    every = max(1, -(-len(ticks) // 12))
    for place, tick in enumerate(ticks):
        if place % every == 0 or place == len(ticks) - 1:
            yield _text(left + place * step, at, tick, "middle", "soft")


def _path(points: Sequence[tuple[float, float]], number: int) -> Markup:
    drawn = Markup(" ").join(Markup("{:.1f},{:.1f}").format(*point) for point in points)
    dashes = _DASHES[number % len(_DASHES)]
    return Markup('<polyline class="c{} thick" fill="none" stroke-dasharray="{}" points="{}"/>').format(
        number % COLOURS, dashes, drawn
    )


def _mark(x: float, y: float, number: int) -> Markup:
    """A circle, square, diamond or triangle."""
    shape = (
        '<circle class="c{0} dot" cx="{1:.1f}" cy="{2:.1f}" r="4.5"/>',
        '<path class="c{0} dot" d="M{1:.1f},{2:.1f}m-4,-4h8v8h-8z"/>',
        '<path class="c{0} dot" d="M{1:.1f},{2:.1f}m0,-5.5l5.5,5.5l-5.5,5.5l-5.5,-5.5z"/>',
        '<path class="c{0} dot" d="M{1:.1f},{2:.1f}m0,-5l5,9h-10z"/>',
    )[number % 4]
    return Markup(shape).format(number % COLOURS, x, y)  # noqa: S704 - one of the shapes above


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(kind, x1, y1, x2, y2)


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> Markup:
    shape = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
    return shape.format(kind, x, y, anchor, _short(text))


def _short(text: str) -> str:
    """What fits beside a picture; a model may have written it."""
    text = visible(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _picture(parts: Iterable[Markup], wide: int, high: int, title: str) -> Markup:
    shape = Markup(
        '<svg class="drawn" viewBox="0 0 {0} {1}" style="max-width: {0}px" role="img" aria-label="{2}">{3}</svg>'
    )
    return shape.format(wide, high, title, Markup().join(parts))


def _key(names: Sequence[str]) -> Markup:
    if len(names) < 2:
        return Markup()
    sample = Markup('<span><svg viewBox="0 0 12 12" aria-hidden="true">{}</svg>{}</span>')
    shown = Markup().join(sample.format(_mark(6, 6, number), _short(name)) for number, name in enumerate(names))
    return Markup('<div class="key">{}</div>').format(shown)


_opened = re.compile(r'<svg class="drawn" viewBox="0 0 ([0-9]+) ([0-9]+)" style="[^"]*"(.*)', re.DOTALL)


def as_file(drawn: Markup, names: Sequence[str] = ()) -> str:
    """What one of the functions above drew, as a file of its own: with its colours, for light and dark, on a ground of
    its own, and with a key of ``names`` below, in their order. Empty where nothing was drawn."""
    found = _opened.match(drawn.partition("</svg>")[0])
    if found is None:
        return ""
    wide, high, held = int(found[1]), int(found[2]), found[3]
    beside = max(1, wide // 170)
    rows = -(-len(names) // beside)
    key = [
        part
        for number, name in enumerate(names)
        for x, y in [(14 + number % beside * 170, high + 14 + number // beside * 20)]
        for part in (_mark(x, y, number), _text(x + 10, y + 4, name, "start", "soft"))
    ]
    all_high = high + 22 * rows + 4
    style = (FOLDER / "drawing.css.jinja").read_text(encoding="utf-8")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn" viewBox="0 0 {wide} {all_high}" width="{wide}"'
        f"{held.partition('>')[0]}><style>{style}text {{ font-family: system-ui, sans-serif; }}\n</style>"
        f'<rect width="{wide}" height="{all_high}" rx="8" style="fill: var(--paper)"/>'
        f"{held.partition('>')[2]}{Markup().join(key)}</svg>\n"
    )
