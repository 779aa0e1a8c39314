"""Accuracy in characters: by level, where rows of later students reach further to the right, and by iteration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent0.experiments.ablation_results import CurvePoint
from agent0.tasks.curriculum.ladder_height import Standing

WIDE = 80
NAME, TAIL = 14, 10
"""Columns before the levels, and of T and S behind them."""
BLOCKS, DIGITS = "·▁▂▃▄▅▆▇█", "0123456789"
"""From no task solved to all; digits are tenths, for terminals that write ASCII only."""
KEY = {BLOCKS: "· none solved, █ all", DIGITS: "tenths solved; 9: nearly all"}
MOST = 12
"""Iterations shown; of more, those in the middle are left out."""


@dataclass(frozen=True)
class Row:
    """A row of the picture: a name of at most ``NAME`` - 1 columns, and where its student stands."""

    name: str
    standing: Standing


def picture(rows: Sequence[Row], what: str, taught: int = 0, marks: str = BLOCKS) -> list[str]:
    """Draw ``rows``: a title that names ``what`` was scored, a line of levels, and a line each; every line has at most
    ``WIDE`` columns. Empty where no row was scored. ``taught``: the highest level that the base was taught, marked."""
    levels = sorted({int(level) for row in rows for level in row.standing.by_level})
    if not levels:
        return []
    cell = max(1, min(4, (WIDE - NAME - TAIL) // len(levels)))
    shown = [row for row in rows if row.standing.by_level]
    head = f"{'level':<{NAME}}{_scale(levels, cell)}{'T':>4}{'S':>6}"
    title = f"accuracy by level, {what} ({KEY[marks]})"
    lines = [title[:WIDE], head, *(_line(row, levels, cell, marks) for row in shown)]
    edge = sum(level <= taught for level in levels) * cell
    return [*lines, f"{'':<{NAME}}{'taught'[:edge]:-<{edge}}|"] if edge else lines


def curve_picture(curves: Mapping[str, Sequence[CurvePoint]], what: str, marks: str = BLOCKS) -> list[str]:
    """Draw how the mean of each variant went, a line each with a column for each iteration, the untrained student's
    first; every line has at most ``WIDE`` columns. ``curves`` are by variant. Empty without any."""
    drawn = {name: [point["mean"] for point in points] for name, points in curves.items() if points}
    lines = []
    for name, means in drawn.items():
        bar = "".join(_mark(mean, marks) for mean in (*means[:1], *means[1:][-(WIDE - 3 * NAME) :]))
        lines.append(f"{name[: NAME + 6]:<{NAME + 7}}{means[0]:>5.1%} {bar} {means[-1]:.1%}")
    return [f"accuracy by iteration, {what} ({KEY[marks]})", *lines] if lines else []


def latest(rows: Sequence[Row]) -> list[Row]:
    """The first row, which is the base's, and the last ``MOST``."""
    return [*rows[:1], *rows[1:][-MOST:]]


def _scale(levels: Sequence[int], cell: int) -> str:
    """The levels above their columns, as many as do not touch."""
    text = ""
    for index, level in enumerate(levels):
        if index * cell >= len(text) + bool(text) and index * cell + len(str(level)) <= len(levels) * cell:
            text = f"{text:<{index * cell}}{level}"
    return f"{text:<{len(levels) * cell}}"


def _line(row: Row, levels: Sequence[int], cell: int, marks: str) -> str:
    shares = row.standing.by_level
    bar = "".join(cell * _mark(shares.get(str(level)), marks) for level in levels)
    return f"{row.name[: NAME - 1]:<{NAME}}{bar}{row.standing.height:>4}{row.standing.added:>6.2f}"


def _mark(share: float | None, marks: str) -> str:
    """The lowest mark is for nothing at all; unknown is blank."""
    if share is None:
        return " "
    if marks == DIGITS:
        return marks[min(9, int(10 * share))]
    return marks[0] if share <= 0 else marks[max(1, round(share * (len(marks) - 1)))]


def mean_standing(standings: Sequence[Standing]) -> Standing:
    """The mean accuracy by level of several students, level by level."""
    levels = dict.fromkeys(level for standing in standings for level in standing.by_level)
    shares_by_level: Mapping[str, list[float]] = {
        level: [standing.by_level[level] for standing in standings if level in standing.by_level] for level in levels
    }
    return Standing({level: sum(shares) / len(shares) for level, shares in shares_by_level.items()})
