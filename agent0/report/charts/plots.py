"""Charts by matplotlib as SVG: lines over iterations, scores with their intervals, reliability.

Colours are variables of the page's style sheet (``--c0`` to ``--c7``, ``--ink``, ``--quiet``, ``--line``), so that one
picture serves light and dark; every text is escaped.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator, PercentFormatter

from agent0.report.charts.figures import Figure, FigureCanvasAgg
from agent0.report.html.rendering import FOLDER, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE: Any = {
    "font.size": 10,
    "svg.fonttype": "none",  # text stays text: it can be selected, and takes the page's font
    "svg.hashsalt": "agent0",  # ids are the same again
    "text.parse_math": False,  # a run's name is a person's text
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "savefig.transparent": True,
}
LONGEST = 28
"""Characters of a label."""
SERIES = 8
VARIABLES = (
    *("ink", "quiet", "line", "paper"),
    *("validation", "tools", "test", "forced", "within"),
    *(f"c{number}" for number in range(SERIES)),
)
"""Variables of the style sheet that pictures use."""
STAND_IN = {name: f"#0b0c{number:02x}" for number, name in enumerate(VARIABLES)}
"""The colour that is drawn with in place of each, until ``svg`` writes the variable."""
_MARKS, _DASHES = "osD^", ("-", (0, (4, 2.5)), (0, (1, 2)), (0, (5, 2, 1, 2)))
_FIFTHS = [n / 5 for n in range(6)]

_NAMESPACES = ' xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'

Span = tuple[float, float]


@dataclass(frozen=True)
class Score:
    """A value with an interval, as a share with its 95 % interval; ``series`` names what it is one of."""

    series: str
    value: float
    low: float
    high: float


def canvas(wide: float, high: float) -> tuple[Figure, "Axes"]:
    """A figure of so many inches with its axes. Nothing of pyplot: its figures are global and never freed."""
    figure = Figure(figsize=(wide, high), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def svg(figure: Figure, title: str, tips: Sequence[str] = ()) -> Markup:
    """``figure`` as an ``<svg>`` element for a page. ``tips`` are shown over the artists with gid ``tip0``, ``tip1``, …
    The same figure gives the same bytes."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    drawn = text.getvalue()
    drawn = re.sub(r"#0b0c([0-9a-f]{2})", lambda match: f"var(--{VARIABLES[int(match[1], 16)]})", drawn)
    drawn = re.sub(r'<g id="tip([0-9]+)">', lambda match: f"<g><title>{escape(tips[int(match[1])])}</title>", drawn)
    drawn = re.sub(r' id="[A-Za-z0-9.]+_[0-9]+"', "", drawn)  # a page has several figures; nothing refers to these
    drawn = re.sub(r' xmlns(:xlink)?="[^"]*"', "", drawn)  # HTML needs none
    wide = round(figure.get_figwidth() * 100)
    opening = Markup('<svg class="drawn" style="max-width: {}px" role="img" aria-label="{}"').format(wide, title)
    return opening + Markup(re.sub(r' (width|height)="[0-9.]+pt"', "", drawn.partition("<svg")[2], count=2))  # noqa: S704 - texts are escaped by matplotlib


def as_file(drawn: Markup) -> str:
    """A drawn element as a file of its own: with its colours, for light and dark, on a ground of its own. Empty where
    nothing was drawn."""
    head, opened, rest = drawn.partition(">")
    style = (FOLDER / "drawing.css.jinja").read_text(encoding="utf-8")
    ground = '<rect width="100%" height="100%" rx="6" style="fill: var(--paper)"/>'
    font = "text { font-family: system-ui, sans-serif !important; }"
    return f"{head}{_NAMESPACES}>\n<style>{style}{font}\n</style>{ground}{rest}" if opened else ""


@matplotlib.rc_context(STYLE)
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
    figure, axes = canvas(4.8, 2.4)
    for number, (name, values) in enumerate(series.items()):
        points = [(index, value) for index, value in enumerate(values) if value is not None]
        style: Any = {"ls": _DASHES[_kind(number)], **_marked(number)}
        axes.plot([index for index, _ in points], [value for _, value in points], label=short(name), **style)
    with_spans = [name for name in series if name in (spans or {})]
    for beside, name in enumerate(with_spans):
        shift = 0.012 * len(ticks) * (beside - (len(with_spans) - 1) / 2)
        number = list(series).index(name)
        for index, span in enumerate((spans or {})[name]):
            if span:
                axes.vlines(index + shift, span[0], span[1], colors=_colour(number), linewidth=1)
    every = max(1, -(-len(ticks) // 12))
    shown = [index for index in range(len(ticks)) if index % every == 0 or index == len(ticks) - 1]
    axes.set_xticks(shown, [short(ticks[index]) for index in shown])
    axes.set_ylim(0, 1.02)
    _shares(axes.yaxis)
    _dress(axes, "y")
    return svg(figure, title)


@matplotlib.rc_context(STYLE)
def intervals(groups: Mapping[str, Sequence[Score]], title: str) -> Markup:
    """A row for each share: a dot, its interval, both in figures; groups are named at the left. Empty without one."""
    if not any(groups.values()):
        return Markup()
    figure, axes = _rows(groups, lambda share: f"{share:.1%}")
    axes.set_xlim(0, 1)
    _shares(axes.xaxis)
    return svg(figure, title)


@matplotlib.rc_context({**STYLE, "axes.autolimit_mode": "round_numbers", "axes.xmargin": 0})
def spreads(groups: Mapping[str, Sequence[Score]], title: str) -> Markup:
    """The same for numbers of any size, on a scale that holds them all."""
    if not any(groups.values()):
        return Markup()
    figure, axes = _rows(groups, lambda value: f"{value:.3f}")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter("{x:g}")
    return svg(figure, title)


def _rows(groups: Mapping[str, Sequence[Score]], figured: Callable[[float], str]) -> tuple[Figure, "Axes"]:
    names = list(dict.fromkeys(score.series for scores in groups.values() for score in scores))
    places = list(_places(groups))
    figure, axes = canvas(7.2, 0.35 + 0.2 * (places[-1] + 2) + 0.22 * -(-len(names) // 4))
    scores = [score for group in groups.values() for score in group]
    for at, score in zip(places, scores, strict=True):
        number = names.index(score.series)
        axes.hlines(at, score.low, score.high, colors=_colour(number), linewidth=2)
        label = short(score.series) if score is next(other for other in scores if other.series == score.series) else "_"
        axes.plot([score.value], [at], ls="none", label=label, clip_on=False, **_marked(number))
        text = f"{figured(score.value)}  ({figured(score.low)} to {figured(score.high)})"
        axes.text(1.02, at, text, transform=axes.get_yaxis_transform(), va="center", color=STAND_IN["quiet"], size=9)
    named, begin = [], 0
    for name, group in groups.items():
        if group:
            named.append((sum(places[begin : begin + len(group)]) / len(group), short(name)))
        begin += len(group)
    axes.set_yticks([at for at, _ in named], [name for _, name in named])
    axes.set_ylim(places[-1] + 0.7, -0.7)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    _dress(axes, "x")
    return figure, axes


def _places(groups: Mapping[str, Sequence[Score]]) -> Iterator[float]:
    """Down the page, in rows: half a row between groups."""
    at = 0.0
    for scores in groups.values():
        for _ in scores:
            yield at
            at += 1
        at += 0.5 * bool(scores)


@matplotlib.rc_context(STYLE)
def reliability(bins: Sequence[tuple[float, float, int]], title: str) -> Markup:
    """Share that is right over confidence, for bins of (confidence, share, items); on the dashed line both agree. A
    dot's area says how many items it stands for. Empty without a bin."""
    if not bins:
        return Markup()
    figure, axes = canvas(3.3, 3.1)
    axes.plot([0, 1], [0, 1], ls=(0, (5, 4)), color=STAND_IN["quiet"], lw=1)
    most = max(items for _, _, items in bins)
    for number, (confidence, share, items) in enumerate(bins):
        style: Any = {"color": _colour(0), "edgecolors": STAND_IN["paper"], "gid": f"tip{number}", "clip_on": False}
        axes.scatter([confidence], [share], s=(6 + 12 * (items / most) ** 0.5) ** 2, zorder=3, **style)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    _shares(axes.xaxis)
    _shares(axes.yaxis)
    _dress(axes, "y")
    tips = [f"{items} items: confidence {confidence:.2f}, right {share:.1%}" for confidence, share, items in bins]
    return svg(figure, title, tips)


def _shares(axis: Any) -> None:
    axis.set_ticks(_FIFTHS)
    axis.set_major_formatter(PercentFormatter(1, decimals=0))


def _colour(number: int) -> str:
    return STAND_IN[f"c{number % SERIES}"]


def _kind(number: int) -> int:
    """Which mark and dashes a series has: others than the series before it of the same colour."""
    return (number + number // SERIES) % 4


def _marked(number: int) -> dict[str, Any]:
    """A circle, square, diamond or triangle in the series' colour, with an edge like the ground."""
    mark = {"marker": _MARKS[_kind(number)], "markersize": 7, "markeredgecolor": STAND_IN["paper"]}
    return {**mark, "color": _colour(number), "linewidth": 2, "zorder": 3}


def _dress(axes: "Axes", grid: Any) -> None:
    axes.grid(axis=grid, color=STAND_IN["line"], linewidth=1)
    axes.tick_params(colors=STAND_IN["quiet"], labelsize=9)
    for label in axes.get_yticklabels() if grid == "x" else ():
        label.set_color(STAND_IN["ink"])
    for spine in axes.spines.values():
        spine.set_color(STAND_IN["line"])
    if len(axes.get_legend_handles_labels()[0]) > 1:
        _legend(axes.figure)


def _legend(figure: Any) -> None:
    """A legend below, in as many columns as fit."""
    for columns in range(4, 0, -1):
        looks = {"frameon": False, "labelcolor": STAND_IN["quiet"], "fontsize": 9}
        legend = figure.legend(loc="outside lower left", ncols=columns, **looks)
        if columns == 1 or legend.get_window_extent().x1 <= figure.bbox.x1:
            return
        legend.remove()


def short(text: str) -> str:
    """What fits beside a picture; a model may have written it."""
    text = visible(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
