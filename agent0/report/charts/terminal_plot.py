"""The learning curve in characters, for terminals."""

from collections.abc import Sequence

from agent0.projections.base import Row
from agent0.report.columns import shown_iteration

ROWS = 20
"""Steps of five points between 0 and 100 %."""
FEW, MANY = 7, 3
"""Columns a point takes, where there are few points and where there are many."""
WIDE = 96


def plot(scores: Sequence[Row]) -> str:
    """Accuracy (●) with its 95 % interval (│), tool use (○) and verifier-selected pass@k (◆) of each
    score, untrained first; empty without one. Where there are more than fit, some in the middle are left out."""
    if not scores:
        return ""
    step = FEW if len(scores) * FEW <= WIDE else MANY
    shown = _thinned(scores, WIDE // step)
    columns = [_column(score) for score in shown]
    lines = []
    for row in range(ROWS, -1, -1):
        label = f"{row * 100 // ROWS:>4} %" if row % 4 == 0 else ""
        lines.append(f"{label:>6} ┤" + "".join(f"{column[row]:^{step}}" for column in columns).rstrip())
    ticks = ["base" if score["iteration"] < 0 else shown_iteration(score["iteration"]) for score in shown]
    lines.append(f"{'':>6} └" + "─" * (step * len(shown)))
    lines.append(f"{'':>8}" + "".join(f"{tick[:step]:^{step}}" for tick in ticks).rstrip())
    within = next((f"  ◆ pass@{s['checked']} (verifier-selected)" for s in scores if s.get("checked")), "")
    lines.append(f"        ● validation accuracy  │ its 95 % interval  ○ tool use{within}")
    return "\n".join(lines)


def _column(score: Row) -> list[str]:
    low, high = _row(score["lower95"]), _row(score["upper95"])
    column = ["│" if low <= row <= high else " " for row in range(ROWS + 1)]
    column[_row(score["tool_use"])] = "○"
    if score.get("solved_within") is not None:
        column[_row(score["solved_within"])] = "◆"
    column[_row(score["accuracy"])] = "●"
    return column


def _row(share: float) -> int:
    return round(min(max(share, 0.0), 1.0) * ROWS)


def _thinned(scores: Sequence[Row], most: int) -> list[Row]:
    if len(scores) <= most:
        return list(scores)
    kept = {round(index * (len(scores) - 1) / (most - 1)) for index in range(most)}
    return [scores[index] for index in sorted(kept)]
