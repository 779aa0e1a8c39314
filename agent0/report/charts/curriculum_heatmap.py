"""A picture of the curriculum: families and levels down, iterations across; size says how many tasks, colour how many
attempts solved them."""

from collections.abc import Sequence

import matplotlib
from markupsafe import Markup
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle

from agent0.projections.base import Row
from agent0.report.charts.plots import STAND_IN, STYLE, canvas, short, svg
from agent0.report.columns import shown_iteration

RATES = LinearSegmentedColormap.from_list("solve rate", ["#d55e00", "#f0e442", "#0072b2"])
"""Colours of Okabe and Ito, from unsolved to solved: told apart by colour-blind people, too."""


@matplotlib.rc_context(STYLE)
def heatmap(rows: Sequence[Row], title: str) -> Markup:
    """``rows``: family, level, iteration, tasks (accepted) and solve_rate (None: nothing was decided). Empty
    without a row."""
    if not rows:
        return Markup()
    down = sorted({(row["family"], row["level"]) for row in rows})
    across = range(max(row["iteration"] for row in rows) + 1)
    most = max(row["tasks"] for row in rows) or 1
    figure, axes = canvas(max(2.4 + 0.25 * len(across), 5.5), 1.0 + 0.25 * len(down))
    for number, row in enumerate(rows):
        side = 0.35 + 0.6 * (row["tasks"] / most) ** 0.5 if row["tasks"] else 0.14
        corner = row["iteration"] - side / 2, down.index((row["family"], row["level"])) - side / 2
        rate = row["solve_rate"]
        colour = STAND_IN["quiet"] if rate is None else RATES(rate)
        axes.add_patch(Rectangle(corner, side, side, facecolor=colour, gid=f"tip{number}"))
    axes.set(xlim=(-0.6, len(across) - 0.4), ylim=(len(down) - 0.4, -0.6), aspect="equal")
    axes.set_xticks(across, [shown_iteration(number) for number in across])
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(down)), [short(f"{family} {level}") for family, level in down])
    axes.tick_params(colors=STAND_IN["ink"], length=0)
    axes.spines[:].set_visible(False)
    axes.set_anchor("W")
    figure.supxlabel("orange: unsolved, yellow: half, blue: solved; size: tasks", size=9, color=STAND_IN["quiet"])
    return svg(figure, title, [_tip(row) for row in rows])


def _tip(row: Row) -> str:
    solved = "" if row["solve_rate"] is None else f", solved {row['solve_rate']:.0%}"
    return (
        f"{row['family']} {row['level']}, iteration {shown_iteration(row['iteration'])}: {row['tasks']} tasks{solved}"
    )
