"""A model whose prompts are made shorter first, to measure what that costs in accuracy."""

from dataclasses import replace

from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.routing.compression import Compression


class Compressing:
    """The ``Model`` port on another model. ``read`` counts the characters of turns that it was given, ``left`` those
    that were left out."""

    def __init__(self, inner: Model, compress: Compression) -> None:
        self.name, self._inner, self._compress = inner.name, inner, compress
        self.read = self.left = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn; errors as the model's."""
        turns = self._compress(request.turns)
        before, after = (sum(len(turn.content) for turn in told) for told in (request.turns, turns))
        self.read, self.left = self.read + before, self.left + before - after
        written = await self._inner.generate(replace(request, turns=turns))
        self.name = self._inner.name
        return written

    async def close(self) -> None:
        """Nothing of its own is open."""
