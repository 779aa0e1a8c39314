"""Calls of remote models as people read them."""

from collections.abc import Mapping
from typing import Any

from agent0.routing.budgets import dollars


def shown_stats(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of ``projections.model_usage.model_stats`` with amounts in dollars: a cost that is not wholly known is said
    to be so."""
    known = row["unpriced"] < row["calls"] or not row["calls"]
    cost = dollars(row["cost"]) if known else "unknown"
    whole = {name: None if row[name] is None else round(row[name]) for name in ("mean_ms", "p50_ms", "p95_ms")}
    more = " and more" if known and row["unpriced"] else ""
    return {**row, **whole, "cost": cost + more, "saved": dollars(row["saved"])}
