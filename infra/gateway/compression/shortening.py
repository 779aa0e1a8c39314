"""Turns as they are sent: what may have to be waited for is written first, then they are compressed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent0.events.values import Turn
from agent0.infra.gateway.compression.summary import Summaries
from agent0.routing.compression import Compression


@dataclass(frozen=True)
class Shortened:
    """What was done to a prompt: characters ``left`` out; how many outputs of tools have a summary in their place, the
    model that wrote these, its calls for this prompt, and how many outputs that were as long have none."""

    left: int = 0
    summaries: int = 0
    summarizer: str = ""
    calls: int = 0
    without: int = 0


AS_IT_WAS = Shortened()
"""Nothing was done."""


class Shortening:
    """Makes turns shorter by ``compress``, which looks summaries up in ``summaries``; None: it has none."""

    def __init__(self, compress: Compression, summaries: Summaries | None = None) -> None:
        self._compress, self._summaries = compress, summaries

    def most(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Turns that take at least as many bytes as those that would be sent: a summary is not known before it is
        written."""
        return self._compress(turns) if self._summaries is None else tuple(turns)

    async def __call__(self, turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], Shortened]:
        """Return ``turns`` as they are sent, one for one, and what was done to them."""
        done, summaries = AS_IT_WAS, self._summaries
        if summaries is not None and (long := self._compress.long(turns)):
            calls = await summaries.write(long)
            kept = sum(bool(summaries.of(*pair)) for pair in long)
            done = Shortened(0, kept, summaries.name, calls, len(long) - kept)
        sent = self._compress(turns)
        left = sum(len(old.content) - len(new.content) for old, new in zip(turns, sent, strict=True))
        return sent, replace(done, left=left)
