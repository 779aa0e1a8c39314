"""One try of a model that costs money: reserve, ask once, charge, and say so in the log."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from agent0.errors import AuthError, ConfigError, ModelChangedError, NotSentError, RefusedError, UsageError
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.ports.storage import Artifacts
from agent0.routing.budgets import Purpose, most_cost
from events.budgets import BudgetScope
from events.models import ModelCalled
from events.values import Artifact, TokenCounts, Usage
from infra.gateway.ledger import Clock, Ledger, Reservation, Stamp, accounts_of
from infra.gateway.pins import Pins
from infra.gateway.prices import Price, Prices, read_usage
from infra.gateway.records import answer_json, request_json
from infra.log.event_log import Log

FREE = (NotSentError, AuthError, ConfigError, RefusedError)
"""What ends a call for which nobody sends a bill: nothing was sent, or it was refused before a word was written."""

TEMPLATE_BYTES = 4096
"""Bytes that a vendor may add to a prompt: a chat template's marks and instructions on tools."""

JSON = "application/json"

Kept = asyncio.Future[Artifact]
"""A text that is being written to disk."""


@dataclass(frozen=True)
class Remote:
    """A model that costs money, and whose budgets are charged. ``vendor`` and ``model``: as in the price table;
    ``usage``: (provider, flavor) of the format in which it counts tokens."""

    vendor: str
    model: str
    role: str
    user: str
    caps: Mapping[BudgetScope, int | None]
    outside: str = "outside"
    """Whose budget a call is charged to that belongs to no run."""
    usage: tuple[str, str] = ("openai", "chat")
    place: str = ""
    """Address of its server, where that is not the vendor's own."""

    @property
    def id(self) -> str:
        """``vendor/model``."""
        return f"{self.vendor}/{self.model}"


@dataclass(frozen=True)
class Books:
    """Where the calls of a process are charged, noted in the log and kept."""

    ledger: Ledger
    prices: Prices
    log: Log
    artifacts: Artifacts
    stamp: Stamp
    clock: Clock
    pins: Pins


@dataclass(frozen=True)
class Try:
    """Describes one try of a request to a model.

    ``route`` is the id that all tries of the request share, ``number`` how many came before with this model, ``reason``
    why this model is asked, ``cache`` is ``miss`` where its cache had no answer.
    """

    route: str = ""
    number: int = 0
    reason: str = ""
    cache: Literal["", "miss"] = ""


@dataclass(frozen=True)
class Priced:
    """An answer and what it cost in nano-dollars; None: nobody knows."""

    answer: Generation
    cost: int | None


class Billed:
    """The way to one model that costs money: each call of it is charged and noted."""

    def __init__(self, inner: Model, remote: Remote, books: Books) -> None:
        self.inner, self.remote, self._books = inner, remote, books

    async def ask(self, request: GenerateRequest, of: Try) -> Priced:
        """Ask once, and charge what it cost: by the vendor's count, or else all that was reserved.

        Raises:
            BudgetExhaustedError: a budget has not enough left; nothing was sent.
            UnknownPriceError: nobody knows the price, and a budget is capped.
            ModelChangedError: it is another model than before, and ``router.pin`` refuses that.
            What the model raises.
        """
        books, remote, at = self._books, self.remote, self._books.clock()
        await self._require(request)
        accounts = accounts_of(self._run(request), at, remote.vendor, remote.user, remote.caps)
        purpose = Purpose(remote.vendor, remote.model)
        held = await books.ledger.reserve(accounts, self.most(request), purpose)
        prompt = self._keep(request_json(request))
        try:
            written = await self.inner.generate(replace(request, joint=1))  # turns drawn together share one count
        except BaseException as error:
            await self._failed(request, of, held, error, prompt)
            raise
        return await self._charge(request, of, held, written, prompt)

    async def note_hit(self, request: GenerateRequest, of: Try, kept: Priced) -> None:
        """Note an answer that came from the cache: it cost nothing, and saved what it had cost."""
        said = {**_said(kept.answer, self.remote), "usage": Usage(), "tokens": TokenCounts()}
        files = self._keep(request_json(request)), self._keep(answer_json(kept.answer))
        await self._note(request, of, *files, **said, cost=0, cache="hit", saved=kept.cost or 0)

    async def _failed(
        self, request: GenerateRequest, of: Try, held: Reservation, error: BaseException, prompt: Kept
    ) -> None:
        kind, free = type(error).__name__, isinstance(error, FREE)
        purpose = Purpose(self.remote.vendor, self.remote.model, reason=kind)
        end = self._books.ledger.refund if free else self._books.ledger.charge_in_full
        await end(held, purpose)
        await self._note(request, of, prompt, cost=0 if free else held.amount, call=held.call, error=kind)

    async def _charge(
        self, request: GenerateRequest, of: Try, held: Reservation, written: Generation, prompt: Kept
    ) -> Priced:
        remote, books = self.remote, self._books
        output = self._keep(answer_json(written))
        tokens: TokenCounts | None = None
        purpose, error = Purpose(remote.vendor, remote.model), ""
        try:
            tokens = read_usage(remote.usage[0], {"usage": written.counted}, remote.usage[1])
            price = books.prices.of(remote.vendor, remote.model, tokens, books.clock())
            await self._settle(held, price, purpose)
        except UsageError as wrong:
            tokens, price, error = None, _full(held), type(wrong).__name__
            await books.ledger.charge_in_full(held, replace(purpose, reason=f"{error}: {wrong.why}"))
        cost, table = (None, "") if price is None else (price.amount, price.table)
        said = {**_said(written, remote), "tokens": tokens, "cost": cost, "prices": table, "call": held.call}
        await self._note(request, of, prompt, output, **{**said, **await self._pinned(request, written, error)})
        await self._require(request)
        return Priced(written, cost)

    async def _pinned(self, request: GenerateRequest, written: Generation, error: str) -> dict[str, Any]:
        """Fields of the note on what was served; where that is refused, whoever asks next is told so."""
        if not request.group or not written.served.model:
            return {"error": error}
        try:
            segment, former = await self._books.pins.follow(
                request.group, self.remote.id, self.remote.vendor, written.served
            )
        except ModelChangedError as changed:
            return {"error": type(changed).__name__, "finish": "error"}
        return {"segment": segment, "former": former, "error": error}

    async def _require(self, request: GenerateRequest) -> None:
        """Raises ModelChangedError where this model was refused in the run."""
        if request.group:
            await self._books.pins.require(request.group, self.remote.id)

    async def _settle(self, held: Reservation, price: Price | None, purpose: Purpose) -> None:
        if price is None:
            await self._books.ledger.charge_in_full(held, replace(purpose, reason="nobody knows the price"))
        else:
            await self._books.ledger.settle(held, price.amount, replace(purpose, prices=price.table))

    def most(self, request: GenerateRequest) -> int | None:
        """The most that it may cost, None where nobody knows."""
        rates = self._books.prices.rates(self.remote.vendor, self.remote.model, self._books.clock())
        if rates is None:
            return None
        return most_cost(prompt_bytes(request), request.sampling.max_tokens, rates.read, rates.written)

    async def _note(
        self, request: GenerateRequest, of: Try, prompt: Kept, output: Kept | None = None, **fields: Any
    ) -> None:
        """Append the event, once the prompt and answer that it names are on disk."""
        remote, books = self.remote, self._books
        known = {"model": remote.model, "finish": "error", "usage": Usage(), "cache": of.cache, **fields}
        called = ModelCalled(
            task=request.task or "-",
            attempt=request.attempt or "-",
            provider=remote.vendor,
            role=remote.role,
            asked=remote.model,
            retries=of.number,
            route=of.route,
            reason=of.reason,
            prompt=await prompt,
            output=await output if output else None,
            **known,
        )
        await books.log.append([books.stamp(self._run(request), called)])

    def _keep(self, text: str) -> Kept:
        """Begin to write ``text``: disks are slow, and the model or the log is waited for meanwhile."""
        data = text.encode(errors="replace")
        return asyncio.ensure_future(asyncio.to_thread(self._books.artifacts.put, data, JSON))

    def _run(self, request: GenerateRequest) -> str:
        return request.group or self.remote.outside


def _said(written: Generation, remote: Remote) -> dict[str, Any]:
    """Fields of the note that an answer has."""
    served = written.served
    return {
        "model": served.model or written.model or remote.model,
        "finish": written.finish,
        "usage": written.usage,
        "capture": written.capture,
        "quantization": served.quantization,
        "fingerprint": served.fingerprint,
        "host": served.host,
    }


def prompt_bytes(request: GenerateRequest) -> int:
    """Bytes of everything that a vendor may be sent for ``request``, and of what it may add."""
    parts = [turn.model_dump_json() for turn in request.turns]
    parts += [json.dumps(asdict(tool), ensure_ascii=False) for tool in request.tools]
    parts += [json.dumps(request.schema or {}, ensure_ascii=False), request.prefill]
    return sum(len(part.encode()) for part in parts) + TEMPLATE_BYTES


def _full(held: Reservation) -> Price | None:
    """All that was reserved; None where nobody knew what to reserve."""
    return None if held.amount is None else Price(held.amount, "")
