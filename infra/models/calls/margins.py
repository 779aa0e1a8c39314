"""How far the likeliest token was ahead of the second, where a server reports both."""

import math
from collections.abc import Iterable


def margin(logprobs: Iterable[float]) -> list[float]:
    """Return the highest probability less the second of ``logprobs`` (natural), alone in a list; none where there are
    fewer than two."""
    values = [float(value) for value in logprobs]
    if not all(map(math.isfinite, values)):
        return []
    ordered = sorted((math.exp(min(0.0, value)) for value in values), reverse=True)
    return [ordered[0] - ordered[1]] if len(ordered) > 1 else []
