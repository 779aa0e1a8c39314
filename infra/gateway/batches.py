"""Answers that nobody waits for: asked of a vendor's batch API at its lower price, and kept in the cache of answers.

Whoever asks the same requests afterwards finds them there. The money of a whole batch is reserved before it is handed
in, and its id is an event: a process that goes on after a kill collects the batch, and hands nothing in again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agent0.errors import NotFoundError
from agent0.events.base import Recorded, sha256
from agent0.events.models import BatchEnded, BatchSubmitted, ModelCalled
from agent0.infra.gateway.billed import FREE, Billed, Books, CallFields, Remote, Try, answer_fields
from agent0.infra.gateway.cache import AnswerCache
from agent0.infra.gateway.ledger import Reservation, accounts_of
from agent0.infra.gateway.records import request_json
from agent0.infra.gateway.retries import Retries
from agent0.infra.models.calls.batch_api import BatchApi, BatchRefusedError, Failure
from agent0.ports.models import GenerateRequest, Generation, Model
from agent0.routing.budgets import Purpose

MOST = 500
"""Requests of one batch: their notes and its charge are one atomic batch of the log."""
EXPIRY_S = 26 * 3600.0
"""How long its money is held: vendors answer within 24 hours."""
PLACEHOLDER = GenerateRequest(())
"""Stands for a request that is not asked any more."""


@dataclass(frozen=True)
class Collected:
    """What a batch came to; ``cost`` in nano-dollars."""

    answered: int = 0
    failed: int = 0
    cost: int = 0

    def __add__(self, other: "Collected") -> "Collected":
        """Both."""
        return Collected(self.answered + other.answered, self.failed + other.failed, self.cost + other.cost)


Report = Callable[[str, int], None]
"""Called with the vendor's id of a batch that is waited for, and how many requests it has."""


class Batches(Billed):
    """The way to the batches of one model that costs money: charged, noted and kept as its calls are."""

    def __init__(
        self, api: BatchApi, inner: Model, remote: Remote, books: Books, cache: AnswerCache, retries: Retries
    ) -> None:
        super().__init__(inner, remote, books)
        self._api, self._cache, self._retries = api, cache, retries

    async def close(self) -> None:
        """Close the connections to the vendor."""
        await self._api.close()

    async def fetch(
        self, requests: Sequence[GenerateRequest], look_s: float, report: Report = lambda batch, count: None
    ) -> Collected:
        """Have the answers to ``requests`` in the cache, as far as the vendor gives them: those that are missing are
        handed in, and batches are looked at every ``look_s`` seconds. All requests are of one run.

        Raises:
            BudgetExhaustedError: a budget has not enough left; nothing more was handed in. What the vendor raises.
        """
        by_id, total = {id_of(request): request for request in requests}, Collected()
        run = self._run(requests[0]) if requests else self.remote.outside
        for stored in await self._pending(run):
            total += await self._collect(run, stored, by_id, look_s, report)
        missing = {name: request for name, request in by_id.items() if not self._kept(request)}
        names = list(missing)
        for at in range(0, len(names), MOST):
            part = {name: missing[name] for name in names[at : at + MOST]}
            total += await self._collect(run, await self._submit(run, part), by_id, look_s, report)
        return total

    def _kept(self, request: GenerateRequest) -> bool:
        moment = self._books.clock().timestamp()
        return self._cache.get(self.remote.owner, self.remote.model, request, moment) is not None

    async def _pending(self, run: str) -> list[Recorded]:
        """Batches of this model in ``run`` that were handed in and not collected."""
        pending: dict[str, Recorded] = {}
        names = (BatchSubmitted.__name__, BatchEnded.__name__)
        try:
            async with aclosing(self._books.log.read(run, names)) as events:  # type: ignore[type-var]
                async for stored in events:
                    match stored.event:
                        case BatchSubmitted() as event if self._is_mine(event):
                            pending[event.batch] = stored
                        case BatchEnded(batch=batch):
                            pending.pop(batch, None)
        except NotFoundError:
            pass
        return list(pending.values())

    def _is_mine(self, event: BatchSubmitted) -> bool:
        remote = self.remote
        return (event.provider, event.model, event.location) == (remote.vendor, remote.model, remote.location)

    async def _submit(self, run: str, part: Mapping[str, GenerateRequest]) -> Recorded:
        """Reserve for all of ``part``, hand it in, and store that it was."""
        books, remote, at = self._books, self.remote, self._books.clock()
        most = [self.most(request, batch=True) for request in part.values()]
        amount = None if None in most else sum(cost or 0 for cost in most)
        accounts = accounts_of(run, at, remote.vendor, remote.user, remote.caps)
        purpose = Purpose(remote.vendor, remote.model, reason=f"a batch of {len(part)} requests")
        reservation = await books.ledger.reserve(accounts, amount, purpose, expiry_s=EXPIRY_S)
        try:
            batch = await self._api.submit(part)  # once: a second one might be a second bill
        except BaseException as error:
            await self._given_up(reservation, purpose, error)
            raise
        event = BatchSubmitted(
            provider=remote.vendor,
            model=remote.model,
            role=remote.role,
            batch=batch,
            call=reservation.call,
            amount=amount,
            requests=len(part),
            location=remote.location,
            day=f"{at:%Y-%m-%d}",
            user=remote.user,
        )
        stored = books.stamp(run, event)
        await books.log.append([stored])
        return stored

    async def _given_up(self, reservation: Reservation, purpose: Purpose, error: BaseException) -> None:
        """Free what was held where nothing was taken; where that is not known, it stays held until it expires."""
        if isinstance(error, FREE):
            await self._books.ledger.refund(reservation, replace(purpose, reason=type(error).__name__))

    async def _collect(
        self, run: str, stored: Recorded, requests: Mapping[str, GenerateRequest], look_s: float, report: Report
    ) -> Collected:
        """Wait for a batch, keep its answers, then charge it and store that it has ended."""
        event = stored.event
        assert isinstance(event, BatchSubmitted)  # noqa: S101 - the callers'
        report(event.batch, event.requests)
        while not await self._retries.call(lambda _: self._api.ended(event.batch)):
            await asyncio.sleep(look_s)
        reservation = self._reserved(run, event, stored.time)
        try:
            notes, total = await self._results(run, event, reservation, requests)
        except BatchRefusedError:
            await self._end(run, event, reservation, Collected(failed=event.requests), [])
            raise
        await self._end(run, event, reservation, total, notes)
        return total

    def _reserved(self, run: str, event: BatchSubmitted, stored: datetime) -> Reservation:
        """What is held for the batch, in the budgets of the day and the user that handed it in."""
        remote, day = self.remote, datetime.fromisoformat(event.day) if event.day else stored
        accounts = accounts_of(run, day, remote.vendor, event.user or remote.user, remote.caps)
        return Reservation(event.call, event.amount, accounts)

    async def _results(
        self, run: str, event: BatchSubmitted, reservation: Reservation, requests: Mapping[str, GenerateRequest]
    ) -> tuple[list[Recorded], Collected]:
        """Keep the answers of a batch that has ended: a note on each, and what they cost, within what is reserved."""
        total, notes, names = Collected(), list[Recorded](), set[str]()
        async with aclosing(self._api.results(event.batch)) as results:
            async for name, came in results:
                if name in names or len(names) == event.requests:
                    continue  # each request has one answer
                names.add(name)
                note = await self._note_of(event, reservation, requests.get(name, PLACEHOLDER), came)
                notes.append(self._books.stamp(run, note))
                answered = isinstance(came, Generation)
                total += Collected(int(answered), int(not answered), note.cost or 0)
        cost = total.cost if event.amount is None else min(total.cost, event.amount)
        return notes, replace(total, failed=event.requests - total.answered, cost=cost)

    async def _end(
        self, run: str, event: BatchSubmitted, reservation: Reservation, total: Collected, notes: Sequence[Recorded]
    ) -> None:
        """Charge a batch, and store that it has ended."""
        ended = BatchEnded(
            batch=event.batch, call=event.call, answered=total.answered, failed=total.failed, cost=total.cost
        )
        purpose = Purpose(self.remote.vendor, self.remote.model, reason=f"batch {event.batch}")
        stamped = [*notes, self._books.stamp(run, ended)]
        await self._store(lambda: self._books.ledger.settle(reservation, total.cost, purpose, stamped))

    async def _store(self, write: Callable[[], Any]) -> None:
        """By the log's queue, and not before it is stored."""
        await self._books.log.queue.put(write)
        await self._books.log.queue.join()

    async def _note_of(
        self, event: BatchSubmitted, reservation: Reservation, request: GenerateRequest, came: Generation | Failure
    ) -> ModelCalled:
        """Keep an answer, and say what came of its request."""
        fields: CallFields = {"batch": event.batch, "call": event.call}
        has_request = request is not PLACEHOLDER
        files = await asyncio.to_thread(self._keep, request, came if isinstance(came, Generation) else None)
        prompt, output = (files[0] if has_request else None), files[1]
        if isinstance(came, Failure):
            fields |= {"cost": 0, "error": f"{came.kind} {came.why}".strip()}
            return self._note(request, Try(event.call), prompt, output, fields)
        share = None if reservation.amount is None else -(-reservation.amount // event.requests)
        single = replace(reservation, amount=self.most(request, batch=True) if has_request else share)
        tokens, price, _, error = self._cost(request if has_request else None, single, came, batch=True)
        cost, table = (None, "") if price is None else (price.amount, price.table)
        fields |= answer_fields(came, self.remote)
        fields |= {"tokens": tokens, "health": self._health(error), "cost": cost, "prices": table, "error": error}
        if has_request:
            fields |= await self._pinned(request, came, error)
            moment, remote = self._books.clock().timestamp(), self.remote
            self._cache.put(remote.owner, remote.model, request, came, cost, moment)
        return self._note(request, Try(event.call), prompt, output, fields)


def id_of(request: GenerateRequest) -> str:
    """The id of ``request`` in a batch: the same for the same request."""
    return f"a0-{sha256(request_json(request))[:32]}"
