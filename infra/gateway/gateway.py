"""The one way to models that cost money: out of the cache, else the model that is meant, else those that stand in."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Literal, TypeVar
from uuid import uuid4

from agent0.errors import (
    Agent0Error,
    BudgetExhaustedError,
    DependencyError,
    ModelChangedError,
    NotSentError,
    ServerBusyError,
    TransientError,
)
from agent0.events.models import Health
from agent0.infra.gateway.billed import Billed, Books, Priced, Try, prompt_bytes
from agent0.infra.gateway.cache import AnswerCache
from agent0.infra.gateway.compression import AS_IT_WAS, Shortened, Shortening
from agent0.infra.gateway.rates import RateLimits
from agent0.infra.gateway.retries import Retries
from agent0.infra.gateway.streaming import BYTES_A_TOKEN, heard, require_held, with_held_text
from agent0.ports.models import GenerateRequest, Generation, Likelihood, Model, Resting
from agent0.routing.breaker import Breaker

T = TypeVar("T")
ELSEWHERE = (DependencyError, TransientError)
"""Failures after which the next model of the chain is asked. What is wrong with request, key or settings is raised."""
WELL = (BudgetExhaustedError, ModelChangedError, ServerBusyError)
"""Failures that say nothing against the server: the breaker does not count them."""


@dataclass(frozen=True)
class Guards:
    """What all callers of one remote model share: its rate limits, its breaker, how it is tried again."""

    limits: RateLimits
    breaker: Breaker
    retries: Retries


class RemoteLink:
    """A model of the chain that costs money, with its guards; ``cache`` None: its answers are not kept; ``shorten``:
    what makes its prompts shorter, None: nothing does."""

    def __init__(
        self,
        billed: Billed,
        books: Books,
        guards: Guards,
        cache: AnswerCache | None = None,
        shorten: Shortening | None = None,
    ) -> None:
        self._billed, self._books, self._guards, self._cache = billed, books, guards, cache
        self._shorten = shorten

    @property
    def name(self) -> str:
        """Of the model; some servers say at the first call what they have."""
        return self._billed.inner.name

    @property
    def id(self) -> str:
        """``vendor/model``, as the settings name it."""
        return self._billed.remote.id

    def most(self, request: GenerateRequest) -> int | None:
        """The most that the request may cost in nano-dollars; None where nobody knows."""
        turns = self._shorten.most(request.turns) if self._shorten else request.turns
        return self._billed.most(replace(request, turns=turns))

    async def _sent(self, request: GenerateRequest) -> tuple[GenerateRequest, Shortened]:
        """The request as it is sent, and what was done to its turns."""
        if self._shorten is None:
            return request, AS_IT_WAS
        turns, done = await self._shorten(request.turns)
        return replace(request, turns=turns), done

    async def ask(self, request: GenerateRequest, route: str, reason: str) -> Priced:
        """Answer out of the cache, or ask, as often as the guards have it; raises what the last try raised."""
        remote, at = self._billed.remote, self._books.clock().timestamp()
        request, done = await self._sent(request)
        owner = remote.owner
        if self._cache and (kept := self._cache.get(owner, remote.model, request, at)):
            await self._billed.note_hit(request, Try(route, 0, reason, shortened=done), Priced(kept.answer, kept.cost))
            return Priced(kept.answer, 0)
        missed: Literal["", "miss"] = "miss" if self._cache else ""
        priced = await self._guards.retries.call(
            lambda n: self._try(request, Try(route, n, reason, missed, done, self._ended))
        )
        self._guards.limits.learn(priced.answer.served.limits, self._books.clock())
        if self._cache:
            self._cache.put(owner, remote.model, request, priced.answer, priced.cost, at)
        return priced

    async def _try(self, request: GenerateRequest, of: Try) -> Priced:
        breaker = self._guards.breaker
        if wait_s := breaker.wait_s(monotonic()):
            why = f"It failed {breaker.failed} times in a row; it is asked again in {wait_s:.0f} s."
            raise DependencyError(self.name, why)
        await self._guards.limits.wait(prompt_bytes(request) // BYTES_A_TOKEN + request.sampling.max_tokens)
        return await _unbroken(request, self._billed.ask(request, of))

    def _ended(self, error: BaseException | None) -> Health:
        """Have the breaker count how a call ended."""
        breaker = self._guards.breaker
        if error is None:
            return "well" if breaker.succeed() else ""
        counts = isinstance(error, ELSEWHERE) and not isinstance(error, WELL)
        return "failing" if counts and breaker.fail(monotonic()) else ""


class TriedModel:
    """The ``Model`` port on a model that costs money and is charged to no budget, as where there is no log: it is tried
    again as others are."""

    streams = True

    def __init__(self, inner: Model, retries: Retries, hold: int = 0) -> None:
        self.name, self._inner, self._retries, self._hold = inner.name, inner, retries, hold

    async def close(self) -> None:
        """Close the model."""
        await self._inner.close()

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn; raises what the last try raised. StreamBrokenError: one that was passed on broke off."""
        request, text = with_held_text(heard(self._inner, request), self._hold)
        written = await self._retries.call(lambda _: _unbroken(request, self._inner.generate(request)))
        if text:
            text.require_whole(written.text)
        self.name = self._inner.name
        return written


class LocalLink:
    """A model of the chain that costs nothing: no cache, no charge, no event of its own. Its ``id`` stays the name that
    settings give it, since a model's own name may be learned from its server with the first answer."""

    def __init__(self, model: Model) -> None:
        self._model, self.id = model, model.name

    @property
    def model(self) -> Model:
        """The model itself: to ask it further costs nothing."""
        return self._model

    @property
    def name(self) -> str:
        """Of the model."""
        return self._model.name

    def most(self, request: GenerateRequest) -> int | None:
        """Nothing: it runs here."""
        return 0

    async def ask(self, request: GenerateRequest, route: str, reason: str) -> Priced:
        """Ask it; raises what it raises."""
        return Priced(await _unbroken(request, self._model.generate(heard(self._model, request))), 0)


async def _unbroken(request: GenerateRequest, asking: Awaitable[T]) -> T:
    """What ``asking`` gives; StreamBrokenError where it fails after text of ``request`` was passed on."""
    try:
        return await asking
    except ELSEWHERE as error:
        require_held(request, error)
        raise


Link = RemoteLink | LocalLink


class Gateway:
    """The ``Model`` port in front of a chain of models: the one that is meant, then those that stand in for it.

    An answer is one model's, whole: a turn that breaks off is dropped before another model is asked. Who listens hears
    a turn once ``hold`` tokens of it are there, and from then on no other model is asked. An answer of a model that
    stands in says so, and nothing may be trained on it.
    """

    streams: bool = True

    def __init__(self, links: Sequence[Link], inner: Model, hold: int = 0) -> None:
        self._links, self._inner, self._hold = links, inner, hold
        self.name = inner.name
        if isinstance(inner, Likelihood):
            self.likelihood = inner.likelihood
        if isinstance(inner, Resting):
            self.rest = inner.rest

    async def close(self) -> None:
        """Close the model that is meant; those that stand in are closed by whoever opened them."""
        await self._inner.close()

    async def generate(self, request: GenerateRequest) -> Generation:
        """Write one turn.

        Raises:
            BudgetExhaustedError: a budget has not enough left; nothing was sent.
            UnknownPriceError: nobody knows the price, and a budget is capped. What the model that is meant raises.
            StreamBrokenError: a turn broke off after it was passed on to who listens.
        """
        request, text = with_held_text(request, self._hold)
        route, reasons = uuid4().hex, list[str]()
        first: Agent0Error | None = None
        for number, link in enumerate(self._links):
            sent = replace(request, adapter=None) if number else request
            try:
                priced = await link.ask(sent, route, "; ".join(reasons))
            except ELSEWHERE as error:
                first = first or error
                reasons.append(f"{link.name}: {type(error).__name__}")
                continue
            self.name = self._links[0].name
            if text:
                text.require_whole(priced.answer.text)
            return labelled(priced.answer, "; ".join(reasons)) if number else priced.answer
        if first is None:
            raise NotSentError("A model", "The chain has none.")
        raise first


def labelled(written: Generation, reason: str) -> Generation:
    """Label an answer that another model wrote than the one that was meant: nothing is trained on it."""
    why = f"another model wrote it, {written.model}, since {reason}"
    return replace(written, untrainable=why, author=written.model or "unknown")
