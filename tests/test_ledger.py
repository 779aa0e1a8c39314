"""Budgets in the log: whoever reserves at once and dies when, they are never overrun, and nothing stays open."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent0.assembly.runtime.stamping import recorded
from agent0.errors import BudgetExhaustedError, DependencyError
from agent0.events.alarms import AlarmRaised
from agent0.events.base import Recorded, record
from agent0.events.budgets import BudgetChanged
from agent0.infra.gateway.ledger import Account, Ledger, accounts_of
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.routing.budgets import Balance, balance_of
from tests import ledger_calls

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY, USER = Account("day", "2026-01-01", 100), Account("user", "someone", 50)


class Clock:
    """Says what it is told."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


def opened(log: Log, clock: Clock | None = None, expiry_s: float = 60) -> Ledger:
    return Ledger(log, recorded, clock or Clock(), expiry_s)


async def entries_of(log: Log, account: Account) -> list[BudgetChanged]:
    read = [r.event async for r in log.read(types=("BudgetChanged",))]
    found = [entry for event in read if isinstance(event, BudgetChanged) for entry in event.entries()]
    return [entry for entry in found if (entry.scope, entry.name) == (account.scope, account.name)]


def kinds(entries: Sequence[BudgetChanged]) -> list[str]:
    return [entry.kind for entry in entries]


def check_bill(entries: Sequence[BudgetChanged]) -> Balance:
    """Each entry follows from the one before it, no reservation goes over the cap, and each call ends once."""
    spent, held = 0, dict[str, int]()
    for entry in entries:
        if entry.kind == "reserve":
            assert entry.call not in held
            held[entry.call] = entry.amount
            assert entry.cap is None or spent + sum(held.values()) <= entry.cap
        elif entry.kind in ("settle", "expire", "refund"):
            assert held.pop(entry.call) == entry.reserved
            spent += entry.amount if entry.kind != "refund" else 0
        elif entry.kind == "correct":
            spent += entry.amount
        assert (entry.spent, {one.call: one.amount for one in entry.open}) == (spent, held)
    ends = [entry.call for entry in entries if entry.kind in ("settle", "expire", "refund")]
    assert len(ends) == len(set(ends))
    return balance_of(entries[-1])


async def test_all_budgets_of_a_call_change_together(log: Log) -> None:
    ledger = opened(log)
    held = await ledger.reserve((USER, DAY), 30)
    with pytest.raises(BudgetExhaustedError, match="budget of user someone is used up"):
        await ledger.reserve((DAY, USER), 30)
    await ledger.settle(held, 21)
    for account in (DAY, USER):
        entries = await entries_of(log, account)
        assert kinds(entries) == ["cap", "reserve", "settle"]
        assert (check_bill(entries).spent, entries[-1].amount, entries[-1].reserved) == (21, 21, 30)


async def test_what_a_call_reserves_is_one_message_once_its_budgets_have_begun(log: Log) -> None:
    ledger, run = opened(log), Account("run", "r1")
    for expected in (3, 1):
        before = await log.last_seq()
        held = await ledger.reserve((run, DAY, Account("provider", "openai")), 10)
        kinds_of = [r.event.kind async for r in log.read(types=("BudgetChanged",), after=before)]  # type: ignore[attr-defined]
        assert kinds_of.count("reserve") == expected
        await ledger.settle(held, 4)
    for account in (run, DAY, Account("provider", "openai")):
        assert kinds(await entries_of(log, account))[-4:] == ["reserve", "settle"] * 2
        assert check_bill(await entries_of(log, account)).spent == 8


@pytest.mark.parametrize("steps", [0, 32])
async def test_a_process_that_begins_finds_what_other_messages_hold(
    log: Log, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr("agent0.infra.gateway.ledger.STEPS", steps)
    ledger, cents = opened(log), Account("run", "r1")
    await ledger.settle(await ledger.reserve((cents, DAY), 10), 10)
    await ledger.reserve((cents, DAY), 60)
    await ledger.settle(await ledger.reserve((cents, USER), 5), 5)
    balance = await opened(log).balance(DAY)
    assert (balance.spent, balance.reserved, balance.cap) == (10, 60, 100)
    with pytest.raises(BudgetExhaustedError):
        await opened(log).reserve((Account("run", "r2"), DAY), 31)
    assert (await opened(log).reserve((Account("run", "r2"), DAY), 30)).amount == 30


async def test_runs_of_two_processes_share_a_day_and_nothing_else(log: Log, nats_server: Server) -> None:
    """Conditions of entries reach over budgets: who has other ones neither blocks nor is forgotten."""
    async with await Log.connect(nats_server) as other:
        ledgers = [opened(log), opened(other)]

        async def call(number: int) -> int:
            ledger = ledgers[number % 2]
            run, user = Account("run", f"r{number % 3}"), Account("user", f"u{number % 2}")
            accounts = (run, user, DAY) if number % 4 else (run, user)
            try:
                held = await ledger.reserve(accounts, 10)
            except BudgetExhaustedError:
                return 0
            await asyncio.sleep(0)
            await ledger.settle(held, number % 7)
            return number % 7

        spent = sum(await asyncio.gather(*map(call, range(48))))
    runs = [Account("run", f"r{number}") for number in range(3)]
    assert sum([check_bill(await entries_of(log, run)).spent for run in runs]) == spent
    assert check_bill(await entries_of(log, DAY)).spent <= 100


async def test_a_call_that_never_fits_is_noted_once(log: Log) -> None:
    ledger = opened(log)
    for _ in range(3):
        with pytest.raises(BudgetExhaustedError):
            await ledger.reserve((DAY, USER), 51)
    assert kinds(await entries_of(log, USER)) == ["cap", "refuse"]
    assert kinds(await entries_of(log, DAY)) == ["cap"]
    assert (await ledger.set_cap(USER, 60)).level == ""
    assert (await ledger.reserve((DAY, USER), 51)).amount == 51


async def test_what_dies_is_charged_in_full_and_what_returns_late_is_corrected(log: Log) -> None:
    clock = Clock()
    ledger = opened(log, clock)
    lost, slow = [await ledger.reserve((DAY,), 30) for _ in range(2)]
    clock.now += timedelta(seconds=61)
    held = await opened(log, clock).reserve((DAY,), 30)
    entries = await entries_of(log, DAY)
    assert kinds(entries) == ["cap", "reserve", "reserve", "expire", "expire", "reserve"]
    assert check_bill(entries).spent == 60
    await ledger.settle(slow, 12)
    await ledger.settle(slow, 12)
    await ledger.refund(held)
    await ledger.settle(lost, lost.amount or 0)
    entries = await entries_of(log, DAY)
    assert kinds(entries)[6:] == ["correct", "refund"]
    assert check_bill(entries).spent == 42


async def test_two_processes_take_turns(log: Log, nats_server: Server) -> None:
    async with await Log.connect(nats_server) as other:
        ledgers = [opened(log), opened(other)]
        held = [await ledgers[n % 2].reserve((DAY, USER), 5) for n in range(8)]
        await asyncio.gather(*(ledgers[n % 2].settle(one, 5) for n, one in enumerate(held)))
        await ledgers[0].set_cap(USER, 45)
        assert (await ledgers[1].reserve((DAY, USER), 5)).amount == 5
        with pytest.raises(BudgetExhaustedError):
            await ledgers[1].reserve((DAY, USER), 5)
        await ledgers[0].set_cap(USER, 50)
        await ledgers[1].reserve((DAY, USER), 5)
    assert check_bill(await entries_of(log, USER)).spent == 40


async def test_a_setting_counts_where_it_changed(log: Log) -> None:
    first = opened(log)
    await first.reserve((DAY,), 1)
    await first.set_cap(DAY, 500)
    assert (await opened(log).reserve((DAY,), 400)).amount == 400
    with pytest.raises(BudgetExhaustedError):
        await opened(log).reserve((Account("day", "2026-01-01", 401),), 1)
    assert [e.cap for e in await entries_of(log, DAY) if e.kind == "cap"] == [100, 500, 401]


class Deaf:
    """A log whose answers are lost after some were stored."""

    def __init__(self, log: Log, lost: int) -> None:
        self._log, self._lost, self.wrote = log, lost, False

    async def append_behind(self, events: Sequence[Recorded], last: int, among: str) -> int:
        stored = await self._log.append_behind(events, last, among)
        self._lost -= 1
        if self._lost >= 0:
            raise DependencyError("log")
        return stored

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


async def test_a_lost_answer_changes_nothing(log: Log) -> None:
    ledger = opened(log)
    await ledger.balance(DAY)
    for change in (1, 2):
        deaf = opened(Deaf(log, change))  # type: ignore[arg-type]
        await deaf.settle(await deaf.reserve((DAY,), 10), 4)
        ended = await ledger.reserve((DAY,), 10)
        await opened(Deaf(log, change)).settle(ended, 4)  # type: ignore[arg-type]
    assert check_bill(await entries_of(log, DAY)).spent == 16


async def test_a_lost_answer_corrects_nothing_twice(log: Log) -> None:
    clock = Clock()
    late = await opened(log, clock).reserve((DAY,), 10)
    clock.now += timedelta(seconds=61)
    await opened(log, clock).set_cap(DAY, 90)
    await opened(Deaf(log, 1), clock).settle(late, 4)  # type: ignore[arg-type]
    assert check_bill(await entries_of(log, DAY)).spent == 4


async def test_several_subjects_or_none(log: Log) -> None:
    def event(run: str) -> Recorded:
        return record(AlarmRaised(alarm="a", severity="info", message=run), run=run, time=NOON)

    every = event("a").subject.replace(".a.", ".*.")
    assert await log.append_behind([event("a"), event("b")], 0, every) == 2
    assert await log.append_behind([event("a"), event("b")], 1, every) == 0
    assert await log.append_behind([event("a")], 1, event("a").subject) == 3
    again = event("a")
    assert await log.append_behind([again, event("b")], 3, every) == 5
    assert await log.append_behind([again, event("b")], 5, every) == 0
    assert await log.append_behind([again], 5, every) == 0
    assert await log.last_seq() == 5


def test_names_of_budgets() -> None:
    found = accounts_of("r1", NOON, "openai", "", {"day": 7})
    assert [(a.token, a.configured) for a in found] == [
        ("r1", None),
        ("budget-day-2026-01-01", 7),
        ("budget-provider-openai", None),
    ]


async def killed(log: Log, home: Path, processes: int, calls: int, kills: int, cap: int) -> list[BudgetChanged]:
    """The entries of one round: ``kills`` of the processes die while they call."""
    start = await log.last_seq()
    command = (sys.executable, "-m", "tests.ledger_calls", str(home), str(processes), str(calls), str(cap))
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert child.stdout
    pids = list(map(int, (await child.stdout.readline()).split()))
    seen = 0
    async with asyncio.timeout(300), aclosing(log.tail(start, types=("BudgetChanged",))) as entries:
        async for _ in entries:
            seen += 1
            if seen % 10 == 0:
                os.kill(pids[seen // 10 - 1], signal.SIGKILL)
                if seen // 10 == kills:
                    break
    *made, last = (await child.stdout.read()).decode().splitlines()
    ended = list(map(int, last.split()))
    assert await child.wait() == 0
    assert sorted(map(os.waitstatus_to_exitcode, ended)) == [-9] * kills + [0] * (processes - kills)
    day, user = ledger_calls.accounts(cap)
    clock = Clock()
    clock.now = datetime.now(UTC) + timedelta(seconds=ledger_calls.EXPIRY_S + 5)
    after = Ledger(log, recorded, clock, 1)
    await after.set_cap(day, cap)  # charges what is overdue, as every look at a budget to change it does
    await after.set_cap(user, None)
    assert check_bill(await entries_of(log, user)).open == ()
    for account in (day, user):  # who was told that it may call holds a reservation
        assert set(made) <= {e.call for e in await entries_of(log, account) if e.kind == "reserve"}
    return await entries_of(log, day)


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
async def test_killed_processes_neither_overrun_nor_block(log: Log, tmp_path: Path, rounds: int) -> None:
    cap = 0
    for _ in range(rounds):
        cap += 400  # forty calls of two hundred: more than two processes can take before they are killed
        found = await killed(log, tmp_path, 4, 50, 2, cap)
        left = check_bill(found)
        assert left.open == () and left.spent <= cap
        cap = left.spent
    assert {"reserve", "settle", "refund", "expire"} <= set(kinds(found))
