"""Budgets that several processes change at once: each comes to its turn, sees what others did, and charges once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from agent0.errors import DependencyError
from agent0.events.base import Recorded
from agent0.infra.gateway.ledger import Account
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from tests.test_ledger import DAY, Clock, check_bill, entries_of, kinds, opened

WIDE = Account("day", "2026-01-01", 10**9)
RUN = Account("run", "r1")


class Wrapped:
    """A log that does something else where it appends."""

    def __init__(self, log: Log) -> None:
        self._log, self.wrote = log, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def test_a_busy_process_leaves_room_for_another(log: Log, nats_server: Server) -> None:
    async with await Log.connect(nats_server) as other:
        busy, late = opened(log), opened(other)

        async def without_end(number: int) -> None:
            while True:
                await busy.settle(await busy.reserve((Account("run", f"r{number}"), WIDE), 1), 1)

        callers = [asyncio.create_task(without_end(number)) for number in range(8)]
        await asyncio.sleep(0.3)
        try:
            async with asyncio.timeout(10):
                for _ in range(8):
                    await late.settle(await late.reserve((Account("run", "late"), WIDE), 1), 1)
        finally:
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)


async def test_a_cap_that_another_process_took_away_refuses_no_unknown_price(log: Log, nats_server: Server) -> None:
    async with await Log.connect(nats_server) as other:
        ledger = opened(log)
        await ledger.reserve((DAY,), 1)
        await opened(other).set_cap(DAY, None)
        assert (await ledger.reserve((DAY,), None)).amount is None


async def test_a_process_settles_what_another_reserved(log: Log, nats_server: Server) -> None:
    async with await Log.connect(nats_server) as other:
        reserving, settling = opened(log), opened(other)
        await settling.balance(DAY)
        await settling.balance(RUN)
        held = await reserving.reserve((RUN, DAY), 10)
        await settling.settle(held, 4)
        for account in (RUN, DAY):
            assert check_bill(await entries_of(log, account)).spent == 4


async def test_a_correction_that_arrives_late_is_made_once(log: Log) -> None:
    class Late(Wrapped):
        """The first correction is stored after its sender gave it up and had read the entries again."""

        held: tuple[Any, ...] = ()
        lost = False

        async def append_behind(self, events: Sequence[Recorded], last: int, among: str) -> int:
            if "correct" not in events[0].event.model_dump().values() or self.lost:
                return await self._log.append_behind(events, last, among)
            self.held, self.lost = (events, last, among), True
            raise DependencyError("log")

        async def read(self, *which: Any) -> AsyncIterator[Recorded]:
            async for one in self._log.read(*which):
                yield one
            if self.held:
                held, self.held = self.held, ()
                assert await self._log.append_behind(*held)

    clock = Clock()
    late = await opened(log, clock).reserve((DAY,), 10)
    clock.now += timedelta(seconds=61)
    await opened(log, clock).set_cap(DAY, 90)
    await opened(Late(log), clock).settle(late, 4)  # type: ignore[arg-type]
    assert kinds(await entries_of(log, DAY))[-1] == "correct"
    assert check_bill(await entries_of(log, DAY)).spent == 4


async def test_entries_that_are_gone_are_not_waited_for(log: Log) -> None:
    ledger = opened(log)
    await ledger.reserve((DAY,), 1)
    ledger._seen += 5
    async with asyncio.timeout(10):
        await ledger.reserve((DAY,), 1)


@pytest.mark.parametrize("stored", [True, False])
async def test_a_call_that_is_cancelled_before_it_is_sent_costs_nothing(log: Log, stored: bool) -> None:
    class Hanging(Wrapped):
        """The answer to a reservation does not come."""

        reached = asyncio.Event()

        async def append_behind(self, events: Sequence[Recorded], last: int, among: str) -> int:
            if "reserve" not in events[0].event.model_dump().values():
                return await self._log.append_behind(events, last, among)
            if stored:
                await self._log.append_behind(events, last, among)
            self.reached.set()
            await asyncio.Event().wait()
            return 0

    hanging = Hanging(log)
    call = asyncio.create_task(opened(hanging).reserve((RUN, DAY), 10))  # type: ignore[arg-type]
    await hanging.reached.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await log.queue.join()
    left = check_bill(await entries_of(log, DAY))
    assert (left.spent, left.reserved) == (0, 0)
    assert ("refund" in kinds(await entries_of(log, DAY))) is stored
