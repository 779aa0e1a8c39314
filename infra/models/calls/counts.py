"""Counts and log-probabilities of tokens as a server says them, which may be anything."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from agent0.errors import clean_text

MOST_IDS = 2**31
DEEPEST, LONGEST = 3, 500
"""Of a vendor's own counts: levels of nesting, and characters of a text."""
MOST = 10**11
"""No call has so many tokens: a count of that many is a fault of its server."""


def count_of(value: Any) -> int:
    """``value`` as a number of tokens; 0 where it is none. What is charged follows from the vendor's own words, which
    are read apart (``agent0.infra.gateway.prices.read_usage``): an answer is not lost because its count cannot be
    read."""
    try:
        count = int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return 0
    return count if 0 <= count <= MOST else 0


def usage_in(answer: Mapping[str, object]) -> dict[str, object]:
    """The counts in a part of an answer, as far as JSON can hold them again; empty where it has none."""
    usage = answer.get("usage")
    return _bounded(usage, DEEPEST) if isinstance(usage, Mapping) else {}


def token_id(value: Any) -> int:
    """``value`` as the id of a token; raises ValueError where it can be none."""
    number = int(value)
    if not 0 <= number < MOST_IDS:
        raise ValueError("no token has such an id")
    return number


def logprob(value: Any) -> float | None:
    """``value`` as a log-probability, at most 0; None where it is none, or no number."""
    number = float(value) if value is not None else math.nan
    return min(0.0, number) if math.isfinite(number) else None


def _bounded(counts: Mapping[Any, Any], depth: int) -> dict[str, object]:
    """Without lists, and without what lies deeper than ``depth``."""
    bounded: dict[str, object] = {}
    for key, value in counts.items():
        if isinstance(value, Mapping) and depth:
            bounded[clean_text(str(key))] = _bounded(value, depth - 1)
        elif isinstance(value, str):
            bounded[clean_text(str(key))] = clean_text(value[:LONGEST])
        elif isinstance(value, int | float | None):
            bounded[clean_text(str(key))] = value
    return bounded


def margin(logprobs: Iterable[float]) -> list[float]:
    """Return the highest probability less the second of ``logprobs`` (natural), alone in a list; none where there are
    fewer than two."""
    values = [float(value) for value in logprobs]
    if not all(map(math.isfinite, values)):
        return []
    ordered = sorted((math.exp(min(0.0, value)) for value in values), reverse=True)
    return [ordered[0] - ordered[1]] if len(ordered) > 1 else []
