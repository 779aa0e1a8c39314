"""Accuracy over cost as one picture: strategies with their intervals, random routing and the best that is possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
from markupsafe import Markup
from matplotlib.ticker import PercentFormatter

from agent0.report.charts.plots import SERIES, STAND_IN, STYLE, canvas, svg
from benchmarks.cost_accuracy import Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS, DASHES = "osD^vPXd<", ("-", (0, (4, 2.5)), (0, (1, 2)), (0, (5, 2, 1, 2)))


@dataclass(frozen=True)
class Curve:
    """Where a strategy stands over the values of its setting, cheapest first, and the one value of the table."""

    swept: Sequence[Standing]
    chosen: Standing


@matplotlib.rc_context(STYLE)
def picture(curves: Mapping[str, Curve], cloud: Standing, best: Sequence[tuple[float, float]]) -> Markup:
    """Draw a line with a mark for each of ``curves``; what has no setting is a mark. ``best`` is the oracle's line, of
    (cost, accuracy); random routing goes straight from its first point to ``cloud``."""
    figure, axes = canvas(7.2, 5.0)
    home = best[0][1]
    axes.plot(
        [0, 1], [home, cloud.accuracy.value], ls=DASHES[1], lw=1.5, color=STAND_IN["quiet"], label="random routing"
    )
    axes.plot(*zip(*best, strict=True), lw=1.5, color=STAND_IN["ink"], label="oracle")
    for number, (name, curve) in enumerate(curves.items()):
        _draw(axes, number, name, curve)
    _mark(axes, cloud, len(curves), "cloud alone", {"color": STAND_IN["ink"], "marker": "*"})
    axes.set_xlabel("cost, as a share of the cloud's alone", color=STAND_IN["quiet"])
    axes.set_ylabel("accuracy", color=STAND_IN["quiet"])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(color=STAND_IN["line"], linewidth=1)
    axes.tick_params(colors=STAND_IN["quiet"], labelsize=9)
    for spine in axes.spines.values():
        spine.set_color(STAND_IN["line"])
    figure.legend(loc="outside lower left", ncols=4, frameon=False, labelcolor=STAND_IN["quiet"], fontsize=9)
    told = [_told(name, curve.chosen) for name, curve in curves.items()]
    return svg(figure, "accuracy over cost by strategy, with 95 % intervals", [*told, _told("cloud alone", cloud)])


def _draw(axes: "Axes", number: int, name: str, curve: Curve) -> None:
    style: dict[str, Any] = {"color": STAND_IN[f"c{number % SERIES}"], "marker": MARKS[number % len(MARKS)]}
    if curve.swept:
        at = [one.cost.value for one in curve.swept]
        axes.plot(
            at,
            [one.accuracy.value for one in curve.swept],
            color=style["color"],
            lw=1.8,
            ls=DASHES[(number + number // SERIES) % 4],
        )
    if curve.swept and number == 0:  # bands of several would hide one another
        low, high = ([getattr(one.accuracy, edge) for one in curve.swept] for edge in ("low", "high"))
        axes.fill_between(at, low, high, color=style["color"], alpha=0.15, linewidth=0)
    _mark(axes, curve.chosen, number, name, style)


def _mark(axes: "Axes", one: Standing, number: int, name: str, style: dict[str, Any]) -> None:
    """The point of a strategy with both of its intervals."""
    cost, accuracy = one.cost, one.accuracy
    axes.vlines(cost.value, accuracy.low, accuracy.high, colors=style["color"], lw=1)
    axes.hlines(accuracy.value, cost.low, cost.high, colors=style["color"], lw=1)
    size, above = (60, 4) if number else (36, 5)  # the first is seen where another strategy comes to the same
    where: Any = {"gid": f"tip{number}", "zorder": above, "clip_on": False, "edgecolors": STAND_IN["paper"]}
    axes.scatter([cost.value], [accuracy.value], s=size, label=name, **where, **style)


def _told(name: str, one: Standing) -> str:
    return f"{name}: cost {one.cost.value:.0%}, accuracy {one.accuracy.value:.1%}"
