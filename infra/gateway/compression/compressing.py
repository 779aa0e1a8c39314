"""A model whose prompts are made shorter first, to measure what that costs in accuracy."""

from dataclasses import replace

from agent0.infra.gateway.compression.shortening import Shortening
from agent0.ports.models import GenerateRequest, Generation, Model


class Compressing:
    """The ``Model`` port on another model. ``read`` counts the characters of turns that it was given, ``left`` those
    that were left out; ``summaries`` outputs in prompts that had one, ``without`` those as long that had none."""

    def __init__(self, inner: Model, shorten: Shortening) -> None:
        self.name, self._inner, self._shorten = inner.name, inner, shorten
        self.read = self.left = self.summaries = self.without = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn; errors as the model's."""
        turns, done = await self._shorten(request.turns)
        self.read += sum(len(turn.content) for turn in request.turns)
        self.left += done.left
        self.summaries, self.without = self.summaries + done.summaries, self.without + done.without
        written = await self._inner.generate(replace(request, turns=turns))
        self.name = self._inner.name
        return written

    async def close(self) -> None:
        """Nothing of its own is open."""
