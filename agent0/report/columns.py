"""Columns that pages and tables share."""

from agent0.projections.base import Row

UNTRAINED = "untrained"


def shown_iteration(number: int) -> str:
    """An iteration as people read it: its number, and ``untrained`` for -1, which stands before the first."""
    return UNTRAINED if number < 0 else str(number)


def named_iteration(iteration: object) -> object:
    """``untrained`` for what stands before the first iteration, all else as it is."""
    return UNTRAINED if isinstance(iteration, int) and iteration < 0 else iteration


WITHIN = ("checked", "checkable", "solved_at_once", "solved_within", "lower95_within", "upper95_within")
"""What stands beside accuracy where answers could be checked."""


def model_columns(row: Row) -> Row:
    """A row of ``agent0.projections.model_usage.model_stats`` with amounts in dollars: a cost that is not wholly known
    is said to be so."""
    from agent0.routing.budgets import dollars  # slow to import, and most tables have no cost

    is_priced = row["unpriced"] < row["calls"] or not row["calls"]
    cost = dollars(row["cost"]) if is_priced else "unknown"
    whole = {name: None if row[name] is None else round(row[name]) for name in ("mean_ms", "p50_ms", "p95_ms")}
    more = " and more" if is_priced and row["unpriced"] else ""
    return {**row, **whole, "cost": cost + more, "saved": dollars(row["saved"])}
