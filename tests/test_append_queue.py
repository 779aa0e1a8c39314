"""What nobody waits for is stored all the same: in order, once, and before anything that follows from it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent0.assembly.runtime.stamping import recorded
from agent0.errors import DependencyError, LogError
from agent0.events.budgets import BudgetChanged
from agent0.events.models import ModelCalled
from agent0.events.runs import RunPaused
from agent0.infra.gateway.ledger import Ledger, accounts_of
from agent0.infra.log.event_log import Log
from agent0.infra.log.publishing import AppendQueue
from agent0.ports.models import GenerateRequest, Generation
from tests.test_gateway import ASKED, AT, RUN, Vendor, called, gateway, most, spent

COST = 3_500_000


class Held:
    """A job that ends when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self) -> None:
        await self.go.wait()


async def kinds(log: Log) -> list[str]:
    found = [r.event async for r in log.read("r1", ("BudgetChanged", "ModelCalled", "RunPaused"))]
    return [event.kind if isinstance(event, BudgetChanged) else type(event).__name__ for event in found]


async def test_an_answer_waits_for_its_reservation_alone(log: Log) -> None:
    before: list[str] = []

    class Looking(Vendor):
        async def generate(self, request: GenerateRequest) -> Generation:
            before.extend(await kinds(log))
            return await super().generate(request)

    busy = Held()
    await log.queue.put(busy)
    assert (await gateway(log, Looking()).generate(ASKED)).text == "4"
    assert before == await kinds(log) == ["reserve"]
    busy.go.set()
    assert await spent(log) == COST
    assert await kinds(log) == ["reserve", "settle", "ModelCalled"]


async def test_what_follows_from_an_answer_stands_behind_its_charge(log: Log) -> None:
    await gateway(log, Vendor()).generate(ASKED)
    await log.append([recorded("r1", RunPaused(reason="what was answered"))])
    assert await kinds(log) == ["reserve", "settle", "ModelCalled", "RunPaused"]


async def test_calls_that_fit_one_after_another_do_fit(log: Log) -> None:
    gate = gateway(log, Vendor(), most() + COST)
    for _ in range(2):
        await gate.generate(ASKED)
    assert await spent(log) == 2 * COST


async def test_a_process_that_dies_before_the_charge_is_charged_in_full(log: Log) -> None:
    await log.queue.put(Held())
    await gateway(log, Vendor()).generate(ASKED)
    await log.queue.close(0)  # as kill -9 does
    later = Ledger(log, recorded, lambda: AT + timedelta(seconds=61), 60)
    held = await later.reserve((RUN,), 1)
    await later.refund(held)
    assert await spent(log) == most()


@pytest.mark.parametrize("lost", [False, True])
async def test_a_charge_and_its_note_are_stored_once(log: Log, monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
    """Where another process comes between, and where the answer of the log is lost."""
    append, tries = log.append_behind, 0

    async def disturbed(*given: Any) -> int:
        nonlocal tries
        tries += 1
        if tries == 2:  # the first was the reservation
            if lost:
                await append(*given)
                raise DependencyError("log", "no answer")
            monkeypatch.setattr(log, "append_behind", append)
            await Ledger(log, recorded, lambda: AT, 60).set_cap(RUN, 10**9)
        return await append(*given)

    monkeypatch.setattr(log, "append_behind", disturbed)
    await gateway(log, Vendor()).generate(ASKED)
    assert len(await called(log)) == 1 and await spent(log) == COST
    assert sorted(await kinds(log)) == sorted(["reserve", "settle", "ModelCalled"] + ([] if lost else ["cap"]))


async def test_a_note_outlives_its_reservation(log: Log) -> None:
    """Where it expired before the charge was stored, the charge is corrected and the note is kept."""
    busy = Held()
    await log.queue.put(busy)
    await gateway(log, Vendor()).generate(ASKED)
    later = Ledger(log, recorded, lambda: AT + timedelta(seconds=61), 60)
    accounts = accounts_of("r1", AT, "openai", "someone", {})
    await later.refund(await later.reserve(accounts, 1))
    busy.go.set()
    assert await spent(log) == COST
    [event] = await called(log)
    assert isinstance(event, ModelCalled) and event.cost == COST


async def test_jobs_keep_their_order_and_are_done_until_they_succeed() -> None:
    done: list[int] = []
    away = [DependencyError("log"), DependencyError("log")]

    async def first() -> None:
        if away:
            raise away.pop()
        done.append(1)

    async def second() -> None:
        done.append(2)

    queue = AppendQueue(most=1, retry_s=0)
    for job in (first, second):
        await queue.put(job)
    await queue.join()
    assert done == [1, 2]
    queue.check()


async def test_a_failure_for_good_is_raised_once_and_the_next_job_is_done() -> None:
    done: list[datetime] = []

    async def refused() -> None:
        raise LogError("It is too large.")

    async def after() -> None:
        done.append(datetime.now(UTC))

    queue = AppendQueue()
    await queue.put(refused)
    await queue.put(after)
    await queue.join()
    with pytest.raises(LogError):
        queue.check()
    queue.check()
    assert len(done) == 1
