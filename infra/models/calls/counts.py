"""Counts of tokens as a server says them, which may be anything."""

from collections.abc import Mapping
from typing import Any

MOST = 10**11
"""No call has so many tokens: a count of that many is a fault of its server."""


def count_of(value: Any) -> int:
    """``value`` as a number of tokens; 0 where it is none. What is charged follows from the vendor's own words, which
    are read apart (``infra.gateway.prices.read_usage``): an answer is not lost because its count cannot be read."""
    try:
        found = int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0
    return found if 0 <= found <= MOST else 0


def usage_in(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The counts in a part of an answer; empty where it has none."""
    found = answer.get("usage")
    return dict(found) if isinstance(found, Mapping) else {}
