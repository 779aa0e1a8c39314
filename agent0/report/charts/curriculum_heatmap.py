"""A picture of the curriculum: families and levels down, iterations across; size says how many tasks, colour how many
attempts solved them."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

Row = Mapping[str, Any]
CELL, LEFT, TOP, LEGEND = 22, 190, 30, 340
_UNSOLVED, _FRONTIER, _SOLVED = (213, 94, 0), (240, 228, 66), (0, 114, 178)
"""Colours of Okabe and Ito: told apart by colour-blind people, too."""


def heatmap(rows: Sequence[Row], title: str) -> Markup:
    """``rows``: family, level, iteration, tasks (accepted) and solve_rate (None: nothing was decided). Empty
    without a row."""
    if not rows:
        return Markup()
    arms = sorted({(row["family"], row["level"]) for row in rows})
    iterations = range(max(row["iteration"] for row in rows) + 1)
    most = max(row["tasks"] for row in rows) or 1
    parts = [_label(LEFT - 10, TOP + place * CELL + 15, f"{arm[0]} {arm[1]}", "end") for place, arm in enumerate(arms)]
    parts += [_label(LEFT + n * CELL + CELL / 2, TOP - 10, str(n), "middle") for n in iterations]
    for row in rows:
        place = arms.index((row["family"], row["level"]))
        parts.append(_cell(LEFT + row["iteration"] * CELL, TOP + place * CELL, row, most))
    wide, high = LEFT + max(len(iterations) * CELL, LEGEND) + 12, TOP + len(arms) * CELL + 34
    parts.append(_label(LEFT, high - 8, "orange: unsolved, yellow: half, blue: solved; size: tasks", "start"))
    frame = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12"><title>{title}</title>'
        '<rect width="{w}" height="{h}" fill="#ffffff"/>{parts}</svg>'
    )
    return frame.format(w=wide, h=high, title=title, parts=Markup("").join(parts))


def _cell(x: float, y: float, row: Row, most: int) -> Markup:
    side = (CELL - 2) * (0.35 + 0.65 * (row["tasks"] / most) ** 0.5) if row["tasks"] else 3.0
    rate = row["solve_rate"]
    tooltip = f"{row['family']} {row['level']}, iteration {row['iteration']}: {row['tasks']} tasks"
    tooltip += "" if rate is None else f", solved {rate:.0%}"
    square = Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2" fill="{}"><title>{}</title></rect>'
    )
    off = (CELL - side) / 2
    return square.format(x + off, y + off, side, side, _colour(rate), tooltip)


def _colour(rate: float | None) -> str:
    if rate is None:
        return "#bbbbbb"
    low, high, along = (_UNSOLVED, _FRONTIER, 2 * rate) if rate < 0.5 else (_FRONTIER, _SOLVED, 2 * rate - 1)
    mixed = [round(a + (b - a) * along) for a, b in zip(low, high, strict=True)]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _label(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" fill="#222222">{}</text>').format(x, y, anchor, text)
