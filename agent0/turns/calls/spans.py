"""Where in a text its calls stand, and the text around them."""

from collections.abc import Sequence
from typing import NamedTuple

from agent0.events.values import ToolCall


class CallSpan(NamedTuple):
    """The ``calls`` that a text writes from ``start`` to ``end``; none where what stands there is neither a call nor
    prose, as a closing mark and all behind an output that the text makes up."""

    start: int
    end: int
    calls: list[ToolCall]


def outside(text: str, spans: Sequence[CallSpan]) -> str:
    """Return ``text`` with a line break in the place of each of ``spans``, which are in order."""
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    return "\n".join(text[end:start] for end, start in zip([0, *ends], [*starts, len(text)], strict=True))
