"""One try of a model that costs money: reserve, ask once, charge, and say so in the log."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Literal, TypedDict

from agent0.errors import AuthError, ConfigError, ModelChangedError, NotSentError, RefusedError, UsageError
from agent0.events.base import Recorded
from agent0.events.budgets import BudgetScope
from agent0.events.models import Health, ModelCalled
from agent0.events.values import Artifact, Capture, TokenCounts, Usage
from agent0.infra.gateway.compression import AS_IT_WAS, Shortened
from agent0.infra.gateway.ledger import Clock, Ledger, Reservation, Stamp, accounts_of
from agent0.infra.gateway.pins import Pins
from agent0.infra.gateway.prices import Price, Prices, read_usage
from agent0.infra.gateway.records import answer_json, request_json
from agent0.infra.gateway.streaming import heard
from agent0.infra.log.event_log import Log
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.ports.storage import Artifacts
from agent0.routing.budgets import Purpose, dollars, most_cost

FREE = (NotSentError, AuthError, ConfigError, RefusedError)
"""What ends a call for which nobody sends a bill: nothing was sent, or it was refused before a word was written."""

TEMPLATE_BYTES = 4096
"""Bytes that a vendor may add to a prompt: a chat template's marks and instructions on tools."""

JSON = "application/json"

End = Callable[[Sequence[Recorded]], Awaitable[None]]
"""Stores how a call ended, with the notes on it."""


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
    location: str = ""
    """Address of its server, where that is not the vendor's own."""
    setup: str = ""
    """How its thinking and its template are set, where they are."""

    @property
    def id(self) -> str:
        """``vendor/model``."""
        return f"{self.vendor}/{self.model}"

    @property
    def owner(self) -> str:
        """Whose answers they are in the cache: the vendor, at an address, and how it was set."""
        return " ".join(filter(None, (self.vendor, self.location, self.setup)))


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
    why this model is asked, ``cache`` is ``miss`` where its cache had no answer. ``shortened``: what was done to the
    prompt.
    """

    route: str = ""
    number: int = 0
    reason: str = ""
    cache: Literal["", "miss"] = ""
    shortened: Shortened = AS_IT_WAS
    ended: Callable[[BaseException | None], Health] = lambda _: ""
    """Is told how the call ended, by an error or by none; says what that changes."""


@dataclass(frozen=True)
class Priced:
    """An answer and what it cost in nano-dollars; None: unknown."""

    answer: Generation
    cost: int | None


class CallFields(TypedDict, total=False):
    """What is noted on a call beside its request: see ``ModelCalled``."""

    model: str
    finish: str
    usage: Usage
    capture: Capture
    quantization: str
    fingerprint: str
    host: str
    tokens: TokenCounts | None
    cost: int | None
    prices: str
    call: str
    segment: int
    former: str
    cache: Literal["", "hit", "miss"]
    saved: int
    error: str
    health: Health
    batch: str


class Billed:
    """The way to one model that costs money: each call of it is charged and noted."""

    def __init__(self, inner: Model, remote: Remote, books: Books) -> None:
        self.inner, self.remote, self._books = inner, remote, books
        self._miscounts = False

    async def ask(self, request: GenerateRequest, of: Try) -> Priced:
        """Ask once, and charge what it cost: by the vendor's count, or else all that was reserved.

        Nothing is sent before the reservation is stored. The charge, the note and the texts are stored by the log's
        queue: whoever dies before that is charged in full, when the reservation expires.

        Raises:
            BudgetExhaustedError: a budget has not enough left; nothing was sent.
            UnknownPriceError: nobody knows the price, and a budget is capped.
            ModelChangedError: it is another model than before, and ``router.pin`` refuses that.
            What the model raises.
        """
        books, remote, at = self._books, self.remote, self._books.clock()
        books.log.queue.check()
        await self._require(request)
        accounts = accounts_of(self._run(request), at, remote.vendor, remote.user, remote.caps)
        purpose = Purpose(remote.vendor, remote.model)
        reservation = await books.ledger.reserve(accounts, self.most(request), purpose)
        try:
            alone = replace(heard(self.inner, request), joint=1)  # turns drawn together share one count
            written = await self.inner.generate(alone)
        except BaseException as error:
            await self._failed(request, of, reservation, error)
            raise
        return await self._charge(request, of, reservation, written)

    async def note_hit(self, request: GenerateRequest, of: Try, kept: Priced) -> None:
        """Note an answer that came from the cache: it cost nothing, and saved what it had cost."""
        fields = answer_fields(kept.answer, self.remote)
        fields |= {"usage": Usage(), "tokens": TokenCounts(), "cost": 0, "cache": "hit", "saved": kept.cost or 0}

        async def stored(notes: Sequence[Recorded]) -> None:
            await self._books.log.append(notes, queued=True)

        await self._write_later(request, of, stored, kept.answer, fields)

    async def _failed(self, request: GenerateRequest, of: Try, reservation: Reservation, error: BaseException) -> None:
        ledger, kind, free = self._books.ledger, type(error).__name__, isinstance(error, FREE)
        purpose = Purpose(self.remote.vendor, self.remote.model, reason=kind)
        fields: CallFields = {
            "cost": 0 if free else reservation.amount,
            "call": reservation.call,
            "error": kind,
            "health": of.ended(error),
        }
        full = reservation.amount or 0
        end = (
            partial(ledger.refund, reservation, purpose) if free else partial(ledger.settle, reservation, full, purpose)
        )
        await self._write_later(request, of, end, None, fields)

    async def _charge(self, request: GenerateRequest, of: Try, reservation: Reservation, written: Generation) -> Priced:
        remote, ledger = self.remote, self._books.ledger
        tokens, price, purpose, error = self._cost(request, reservation, written)
        health = self._health(error, of.ended(None))
        cost, table = (None, "") if price is None else (price.amount, price.table)
        fields = answer_fields(written, remote)
        fields |= {"tokens": tokens, "call": reservation.call, "health": health, "cost": cost, "prices": table}
        fields |= await self._pinned(request, written, error)
        amount = (reservation.amount or 0) if price is None else price.amount
        await self._write_later(request, of, partial(ledger.settle, reservation, amount, purpose), written, fields)
        await self._require(request)
        return Priced(written, cost)

    def _health(self, error: str, health: Health = "") -> Health:
        """``health``, or that the model miscounts: said once a process."""
        if health or not error or self._miscounts:
            return health
        self._miscounts = True
        return "miscounts"

    def _cost(
        self, request: GenerateRequest | None, reservation: Reservation, written: Generation, batch: bool = False
    ) -> tuple[TokenCounts | None, Price | None, Purpose, str]:
        """Tokens by the vendor's count, None where it cannot be read or true; the price, None where nobody knows it;
        what the charge says; the error. ``request`` None: nobody knows any more what was asked."""
        remote, books = self.remote, self._books
        purpose = Purpose(remote.vendor, remote.model)
        try:
            tokens = read_usage(remote.usage[0], {"usage": written.counted}, remote.usage[1])
            require_possible(tokens, request, written.text or written.thinking)
            price = books.prices.of(remote.vendor, remote.model, tokens, books.clock(), batch)
            if price and reservation.amount is not None and price.amount > reservation.amount:
                raise _miscounted(
                    f"What it counts costs {dollars(price.amount)}, of {dollars(reservation.amount)} at most."
                )
        except UsageError as wrong:
            error = type(wrong).__name__
            full = None if reservation.amount is None else Price(reservation.amount, "")
            return None, full, replace(purpose, reason=f"{error}: {wrong.why}"), error
        details = {"reason": "nobody knows the price"} if price is None else {"prices": price.table}
        return tokens, price, replace(purpose, **details), ""

    async def _pinned(self, request: GenerateRequest, written: Generation, error: str) -> CallFields:
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

    def most(self, request: GenerateRequest, batch: bool = False) -> int | None:
        """The most that it may cost, as part of a batch or as a call of its own; None where nobody knows."""
        rates = self._books.prices.rates(self.remote.vendor, self.remote.model, self._books.clock(), batch)
        if rates is None:
            return None
        return most_cost(prompt_bytes(request), request.sampling.max_tokens, rates.read, rates.written, rates.fee)

    async def _write_later(
        self, request: GenerateRequest, of: Try, end: End, answer: Generation | None, fields: CallFields
    ) -> None:
        """Have ``end`` store the note on a call, once the prompt and answer that it names are on disk."""
        notes: list[Recorded] = []

        async def write() -> None:
            if not notes:
                files = await asyncio.to_thread(self._keep, request, answer)
                notes.append(self._books.stamp(self._run(request), self._note(request, of, *files, fields)))
            await end(notes)

        await self._books.log.queue.put(write)

    def _note(
        self, request: GenerateRequest, of: Try, prompt: Artifact | None, output: Artifact | None, fields: CallFields
    ) -> ModelCalled:
        remote = self.remote
        event_fields: CallFields = {"model": remote.model, "finish": "error", "usage": Usage(), "cache": of.cache}
        event_fields |= fields
        return ModelCalled(
            task=request.task or "-",
            attempt=request.attempt or "-",
            provider=remote.vendor,
            role=remote.role,
            requested_model=remote.model,
            retries=of.number,
            route=of.route,
            reason=of.reason,
            compressed=of.shortened.left,
            summaries=of.shortened.summaries,
            summarizer=of.shortened.summarizer,
            summary_calls=0 if of.number else of.shortened.calls,
            prompt=prompt,
            output=output,
            **event_fields,
        )

    def _keep(self, request: GenerateRequest, answer: Generation | None) -> tuple[Artifact, Artifact | None]:
        """Write prompt and answer to disk."""
        put = self._books.artifacts.put
        prompt = put(request_json(request).encode(errors="replace"), JSON)
        return prompt, put(answer_json(answer).encode(errors="replace"), JSON) if answer else None

    def _run(self, request: GenerateRequest) -> str:
        return request.group or self.remote.outside


def answer_fields(written: Generation, remote: Remote) -> CallFields:
    """Fields of the note on ``written`` that every answer has."""
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


def require_possible(tokens: TokenCounts, request: GenerateRequest | None, text: str) -> None:
    """A vendor's count is not believed where it is more than was reserved for, or nothing for a written answer.

    Raises:
        UsageError: it cannot be.
    """
    why = "It counts no token of an answer that has some." if text and not tokens.written else ""
    if request and tokens.written > request.sampling.max_tokens:
        why = f"It counts {tokens.written} tokens written, of {request.sampling.max_tokens} at most."
    if request and tokens.read > prompt_bytes(request):
        why = f"It counts {tokens.read} tokens read, of a prompt with {prompt_bytes(request)} bytes."
    if why:
        raise _miscounted(why)


def _miscounted(why: str) -> UsageError:
    fix = "The call is charged with all that was reserved for it. Ask the vendor."
    return UsageError("The token counts of a call cannot be.", why, fix)


def prompt_bytes(request: GenerateRequest) -> int:
    """Bytes of everything that a vendor may be sent for ``request``, and of what it may add."""
    parts = [turn.model_dump_json(exclude={"thinking"}) for turn in request.turns]
    parts += [json.dumps(asdict(tool), ensure_ascii=False) for tool in request.tools]
    parts += [json.dumps(request.schema or {}, ensure_ascii=False), request.prefill]
    return sum(len(part.encode()) for part in parts) + TEMPLATE_BYTES
