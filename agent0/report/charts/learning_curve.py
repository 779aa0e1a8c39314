"""The learning curve: how held-out tasks went, before training and after each iteration."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from markupsafe import Markup

from agent0.projections.base import Row
from agent0.projections.evaluations import curve_with_shared, scores_with_shared
from agent0.projections.runs import show_run
from agent0.report.charts.plots import STAND_IN, STYLE, canvas, svg
from agent0.report.columns import shown_iteration
from agent0.state.run_state import first_student

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Palette:
    """Colours of Okabe and Ito, which colour-blind readers can distinguish; every line has a mark of its
    own besides."""

    ink: str = "#222222"
    quiet: str = "#8a8a8a"
    validation: str = "#0072b2"
    tools: str = "#d55e00"
    test: str = "#009e73"
    forced: str = "#cc79a7"
    within: str = "#e69f00"


VARIABLES = Palette(**{field.name: STAND_IN[field.name] for field in fields(Palette)})
"""What ``curve_svg`` draws with, to become variables of the page's style sheet."""


def draw_curve(db: sqlite3.Connection, run: str, path: Path) -> None:
    """Draw ``run``'s learning curve into ``path``; its ending (.png, .svg, .pdf) decides the format.

    Raises:
        NotFoundError: there is no such run.
        OSError: the file cannot be written.
    """
    row = show_run(db, run)
    with matplotlib.rc_context({**STYLE, "savefig.transparent": False}):
        figure, axes = canvas(9.0, 6.0)
        points, tests = curve_with_shared(db, row["run"]), _tests(db, row["run"])
        _draw(axes, points, tests, Palette(), first_student(row["student_adapter"]))
        axes.set_title(f"{row['run']}   (profile {row['profile']}, seed {row['seed']})", loc="left", fontsize=10)
        figure.savefig(path, dpi=150)


def curve_svg(db: sqlite3.Connection, run: str) -> Markup:
    """The same as an ``<svg>`` element without a title, coloured by CSS variables ``--ink``, ``--quiet``,
    ``--validation``, ``--tools``, ``--test``, ``--forced``, ``--within``; empty where nothing was evaluated yet.

    Raises:
        NotFoundError: there is no such run.
    """
    row = show_run(db, run)
    name, start = row["run"], first_student(row["student_adapter"])
    return drawn_curve(name, curve_with_shared(db, name), _tests(db, name), start)


@matplotlib.rc_context(STYLE)
def drawn_curve(name: str, points: Sequence[Row], tests: Sequence[Row], start: str) -> Markup:
    """The same of a run's ``points`` (``validation`` of its overview) and scores on test tasks (``test`` there);
    ``start``: what its first student is called."""
    if not any(point["validation"] is not None for point in points):
        return Markup()
    figure, axes = canvas(9.0, 5.0)
    _draw(axes, points, tests, VARIABLES, start)
    return svg(figure, f"learning curve of {name}")


def _tests(db: sqlite3.Connection, run: str) -> list[Row]:
    return [score for score in scores_with_shared(db, run) if score["split"] == "test"]


def _draw(axes: "Axes", points: Sequence[Row], tests: Sequence[Row], colours: Palette, start: str) -> None:
    evaluated = [point for point in points if point["validation"] is not None]
    _draw_validation(axes, evaluated, colours)
    _draw_within(axes, evaluated, colours)
    _draw_test(axes, tests, colours, start)
    _dress(axes, [int(point["iteration"]) for point in points] or [-1], colours, start)


def _draw_validation(axes: "Axes", evaluated: Sequence[Row], colours: Palette) -> None:
    at, values = ([point[name] for point in evaluated] for name in ("iteration", "validation"))
    low, high = ([point[name] for point in evaluated] for name in ("lower95", "upper95"))
    axes.plot(at, values, "-o", color=colours.validation, lw=2, label="validation accuracy", zorder=3)
    axes.fill_between(at, low, high, color=colours.validation, alpha=0.15, linewidth=0, label="its 95 % interval")
    if refused := [point for point in evaluated if point["promoted"] == 0]:
        where, what = [p["iteration"] for p in refused], [p["validation"] for p in refused]
        axes.plot(where, what, "x", color=colours.ink, ms=11, label="not promoted", zorder=4)
    axes.plot(at, [p["tool_use"] for p in evaluated], "--s", color=colours.tools, ms=4, label="tool use")


def _draw_within(axes: "Axes", evaluated: Sequence[Row], colours: Palette) -> None:
    """Of the tasks whose answers can be checked: solved at the first go, and within so many attempts."""
    tried = [point for point in evaluated if point["solved_within"] is not None]
    if not tried:
        return
    names = ("iteration", "lower95_within", "upper95_within", "solved_within", "solved_at_once")
    at, low, high, within, once = ([point[name] for point in tried] for name in names)
    label_text = f"pass@{tried[-1]['checked']} (verifier-selected)"
    axes.plot(at, within, "-^", color=colours.within, lw=2, label=label_text, zorder=3)
    axes.fill_between(at, low, high, color=colours.within, alpha=0.15, linewidth=0)
    axes.plot(at, once, ":^", color=colours.within, ms=5, label="these tasks at the first go", zorder=6)


def _draw_test(axes: "Axes", scores: Sequence[Row], colours: Palette, start: str) -> None:
    if free := [score for score in scores if not score["forced_tool"]]:
        below = [score["accuracy"] - score["lower95"] for score in free]
        above = [score["upper95"] - score["accuracy"] for score in free]
        at, values, label = map(_shifted, free), [score["accuracy"] for score in free], "test accuracy (first, last)"
        axes.errorbar([*at], values, [below, above], fmt="D", color=colours.test, capsize=4, label=label, zorder=5)
    for score in scores:
        _draw_test_within(axes, score, colours)
        if score["forced_tool"]:
            label = f"{start}, tool forced (control, test)"
            axes.axhline(score["accuracy"], color=colours.forced, ls=":", lw=2, label=label)


def _draw_test_within(axes: "Axes", score: Row, colours: Palette) -> None:
    within, low, high = (score[name] for name in ("solved_within", "lower95_within", "upper95_within"))
    if within is None:
        return
    forced, labels = score["forced_tool"], axes.get_legend_handles_labels()[1]
    label = f"test, {'tool forced, ' if forced else ''}pass@{score['checked']} (verifier-selected)"
    label, mark = label if label not in labels else "_", "v" if forced else "D"
    at, spread = [_shifted(score) + 0.08], [[max(within - low, 0.0)], [max(high - within, 0.0)]]
    axes.errorbar(at, [within], spread, fmt=mark, color=colours.within, capsize=4, label=label, zorder=5)


def _shifted(score: Row) -> float:
    """Beside the validation point, so that neither hides the other."""
    return float(score["iteration"]) + 0.08


def _dress(axes: "Axes", ticks: Sequence[int], colours: Palette, start: str) -> None:
    step = max(1, len(ticks) // 12)
    shown = [tick for index, tick in enumerate(ticks) if index % step == 0 or tick == ticks[-1]]
    axes.set_xticks(shown, [shown_iteration(tick, start) for tick in shown])
    axes.set_xlim(ticks[0] - 0.3, ticks[-1] + 0.4)
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0], ["0", "20 %", "40 %", "60 %", "80 %", "100 %"])
    axes.set_xlabel("iteration", color=colours.ink)
    axes.set_ylabel("share of held-out tasks", color=colours.ink)
    axes.tick_params(colors=colours.ink)
    axes.grid(axis="y", color=colours.quiet, alpha=0.3, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(colours.quiet)
    if axes.get_legend_handles_labels()[0]:
        axes.figure.legend(loc="outside lower center", ncols=3, frameon=False, labelcolor=colours.ink)
