"""Columns that pages and tables share."""

from agent0.projections.base import Row
from agent0.routing.budgets import dollars


def shown_iteration(number: int, start: str = "untrained") -> str:
    """An iteration as people read it: its number, and ``start`` for -1, which stands before the first."""
    return start if number < 0 else str(number)


WITHIN = ("checked", "checkable", "solved_at_once", "solved_within", "lower95_within", "upper95_within")
"""What stands beside accuracy where answers could be checked."""

STEP_COLUMNS = (
    "checkpoint", "steps", "skipped", "loss", "gradient_norm", "largest_norm", "entropy_estimate", "largest_kl",
    "clip_below", "clip_above", "mismatch", "learning_rate",
)  # fmt: skip
"""Of a training, what is printed; ``agent0 projections query`` has each step."""


def model_columns(row: Row) -> Row:
    """A row of ``agent0.projections.model_usage.model_stats`` with amounts in dollars: a cost that is not wholly known
    is said to be so."""
    is_priced = row["unpriced"] < row["calls"] or not row["calls"]
    cost = dollars(row["cost"]) if is_priced else "unknown"
    whole = {name: None if row[name] is None else round(row[name]) for name in ("mean_ms", "p50_ms", "p95_ms")}
    more = " and more" if is_priced and row["unpriced"] else ""
    return {**row, **whole, "cost": cost + more, "saved": dollars(row["saved"])}
