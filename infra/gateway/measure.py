"""How sure a model is of a turn: features of the turn itself, and what the model says when it is asked further.

Only a model that costs nothing is asked further: samples of the same turn, which agree with it or not, and whether its
answer is right. What cannot be measured is absent, which is not 0.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from agent0.errors import DependencyError, TransientError
from agent0.events.base import sha256
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.routing.confidence import features, folded

AGREEMENT, SELF_CRITIQUE = "agreement", "self_critique"

Features = Callable[[GenerateRequest, Generation], dict[str, float]]
Critique = Callable[[Model, GenerateRequest, Generation], Awaitable[float | None]]
"""Asks a model whether a turn's answer is right: the probability that it says so; None where there is none."""


@dataclass(frozen=True)
class Measure:
    """What is measured of a turn. ``key`` is equal for equal answers; ``samples`` further ones are drawn of a model
    that costs nothing, and ``critique`` asks it for its judgement; None: it is not asked."""

    features: Features = features
    key: Callable[[str], str] = folded
    samples: int = 0
    critique: Critique | None = None
    calls: Callable[[str], bool] = lambda _: False
    """Whether a text calls a tool, and is no answer yet."""

    async def of(self, model: Model | None, request: GenerateRequest, written: Generation) -> dict[str, float]:
        """Measure ``written``, the answer to ``request`` by ``model``; None: it costs money."""
        signals = self.features(request, written)
        if model is None:
            return signals
        alike, sure = await asyncio.gather(
            self._agreement(model, request, written), self._judgement(model, request, written)
        )
        signals |= {} if alike is None else {AGREEMENT: alike}
        return signals | ({} if sure is None else {SELF_CRITIQUE: sure})

    async def _agreement(self, model: Model, request: GenerateRequest, written: Generation) -> float | None:
        """The share of further samples with the same answer; None where none was drawn."""
        requests = [further(request, number) for number in range(self.samples)]
        came = await asyncio.gather(*(model.generate(sample) for sample in requests), return_exceptions=True)
        for answer in came:
            if isinstance(answer, BaseException) and not isinstance(answer, DependencyError | TransientError):
                raise answer
        keys = [self.key(answer.text) for answer in came if isinstance(answer, Generation)]
        return keys.count(self.key(written.text)) / len(keys) if keys else None

    async def _judgement(self, model: Model, request: GenerateRequest, written: Generation) -> float | None:
        if self.critique is None:
            return None
        try:
            return await self.critique(model, request, written)
        except (DependencyError, TransientError):
            return None


def further(request: GenerateRequest, number: int) -> GenerateRequest:
    """``request`` for further sample ``number``: drawn with a seed of its own, at temperature 1 where it is greedy."""
    sampling = request.sampling
    seed = int(sha256(f"{sampling.seed} sample {number}")[:16], 16) >> 1
    drawn = replace(sampling, seed=seed, temperature=sampling.temperature or 1.0)
    return replace(request, sampling=drawn, listen=None, margins=False)
