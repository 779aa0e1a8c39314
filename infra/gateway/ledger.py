"""Budgets in the log: an entry is appended only where no budget has changed since the balance that it follows from.

What a call reserves in all of its budgets is one message, what it is charged one atomic batch. So either all of them
have it or none, whatever dies when, and nothing is decided from a table.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic
from uuid import uuid4

from agent0.errors import BudgetExhaustedError, DependencyError, NotFoundError, UnknownPriceError
from agent0.events.base import Event, Recorded, decode
from agent0.events.budgets import BudgetChanged, BudgetScope
from agent0.infra.gateway.records import Turns
from agent0.infra.log.event_log import Log
from agent0.routing import budgets
from agent0.routing.budgets import NOTHING, Balance, Purpose, balance_of, token_of

PATIENCE_S = 15.0
"""How long an entry is tried again where the log gives no answer."""
PAUSE_S = 0.005
"""Longest pause after another process came first; it doubles up to four times as long."""

STEPS = 32
"""Entries that are read one by one."""

Stamp = Callable[[str, Event], Recorded]
"""(run token, event) -> the event as it is to be stored."""
Clock = Callable[[], datetime]


def subject_of(token: str) -> str:
    """The subject of the entries of the budget that stands under the run token ``token``, but those that another
    budget's entry stands for (``BudgetChanged.also``)."""
    return f"a0.ev.{token}.-.-.{BudgetChanged.__name__}"


ALL = subject_of("*")
"""The subjects of all budgets."""


@dataclass(frozen=True)
class Account:
    """A budget that calls are charged to, with the cap that the settings name (nano-dollars, None: none)."""

    scope: BudgetScope
    name: str
    configured: int | None = None

    @property
    def token(self) -> str:
        """The run token that its entries stand under."""
        return token_of(self.scope, self.name)


@dataclass(frozen=True)
class Reservation:
    """Money held for one call in each of its budgets."""

    call: str
    amount: int | None
    accounts: tuple[Account, ...]


@dataclass(frozen=True)
class _Head:
    """Where a budget stands, and whether it has an entry of its own."""

    balance: Balance
    begun: bool


Change = Callable[[Balance], BudgetChanged | None]
"""A balance to its next entry; None where there is none to make."""


class Ledger:
    """Reserves, settles and refunds in the budgets of a log. Safe for any number of callers and processes."""

    def __init__(self, log: Log, stamp: Stamp, clock: Clock, expiry_s: float) -> None:
        self._log, self._stamp, self._clock, self._expiry_s = log, stamp, clock, expiry_s
        self._heads: dict[str, _Head] = {}
        self._seen = -1
        """Where the newest of all entries stood that ``_heads`` are as of; -1: not known."""
        self._configured: set[str] = set()
        self._turns = Turns()

    async def balance(self, account: Account) -> Balance:
        """The balance of ``account`` as the log has it now."""
        await self._catch_up()
        return (await self._head(account)).balance

    async def reserve(
        self,
        accounts: Sequence[Account],
        amount: int | None,
        purpose: Purpose = NOTHING,
        call: str = "",
        expiry_s: float = 0.0,
    ) -> Reservation:
        """Hold ``amount`` nano-dollars in all of ``accounts``, or in none. ``amount`` None: unknown the price.

        Reservations whose time is over are charged first. ``call`` is the id of the reservation; empty: a new one.
        ``expiry_s``: how long it is held; 0: as long as the ledger holds one.

        Raises:
            BudgetExhaustedError: it does not fit into one of them.
            UnknownPriceError: nobody knows the price, and one of them is capped.
            DependencyError: the log does not answer. What may be reserved then expires.
        """
        reservation = Reservation(call or uuid4().hex, amount, tuple(sorted(accounts, key=lambda a: a.token)))
        try:
            await self._reserve(reservation, purpose, expiry_s)
        except asyncio.CancelledError:  # nothing is sent; the entry may be stored all the same
            unsent = replace(purpose, reason="cancelled before it was sent")
            await self._log.queue.put(lambda: self._drop(reservation, unsent))
            raise
        return reservation

    async def _reserve(self, reservation: Reservation, purpose: Purpose, expiry_s: float) -> None:
        with suppress(BudgetExhaustedError, UnknownPriceError):
            async with self._alone(reservation.accounts):
                await self._bring_all_up_to_date(reservation.accounts)
                return await self._hold(reservation, purpose, expiry_s)
        await self._log.queue.join()  # charges that nobody waited for may leave room, and so may other processes
        async with self._alone(reservation.accounts):
            await self._catch_up()
            await self._bring_all_up_to_date(reservation.accounts)
            await self._hold_or_note(reservation, purpose, expiry_s)

    async def settle(
        self, reservation: Reservation, cost: int, purpose: Purpose = NOTHING, notes: Sequence[Recorded] = ()
    ) -> None:
        """Charge ``cost`` for a reserved call, once. Where it expired meanwhile, the charge is corrected. ``notes`` on
        the call are stored in the same batch: it is a job of the log's queue then."""
        call = reservation.call
        await self._end(reservation, lambda b: budgets.settle(b, call, cost, purpose), cost, purpose, notes)

    async def refund(
        self, reservation: Reservation, purpose: Purpose = NOTHING, notes: Sequence[Recorded] = ()
    ) -> None:
        """Free what a call held, of which nothing was sent; else as ``settle``."""
        call = reservation.call
        await self._end(reservation, lambda b: budgets.refund(b, call, purpose), 0, purpose, notes)

    async def set_cap(self, account: Account, cap: int | None, purpose: Purpose = NOTHING) -> Balance:
        """Raise, lower or remove the cap of ``account``; the balance after it."""
        async with self._alone((account,)):
            await self._bring_up_to_date(account)
            await self._change((account,), lambda b: budgets.set_cap(b, cap, purpose))
            return self._heads[account.token].balance

    # --- one call -------------------------------------------------------------------------------------------------

    async def _hold(self, reservation: Reservation, purpose: Purpose, expiry_s: float) -> None:
        expires = self._clock() + timedelta(seconds=expiry_s or self._expiry_s)

        def reserved(balance: Balance) -> BudgetChanged | None:
            if balance.reservation_of(reservation.call):
                return None  # stored by a try whose answer was lost
            return budgets.reserve(balance, reservation.call, reservation.amount, expires, purpose)

        await self._change(reservation.accounts, reserved)

    async def _hold_or_note(self, reservation: Reservation, purpose: Purpose, expiry_s: float) -> None:
        try:
            await self._hold(reservation, purpose, expiry_s)
        except BudgetExhaustedError:
            call, amount = reservation.call, reservation.amount or 0
            for account in reservation.accounts:
                await self._change((account,), lambda b: budgets.refuse(b, call, amount, purpose))
            raise

    async def _drop(self, hold: Reservation, purpose: Purpose) -> None:
        """Free what is held for a call of a moment ago, if anything is."""
        async with self._alone(hold.accounts):
            await self._know(hold)
            await self._change(
                hold.accounts, lambda b: budgets.refund(b, hold.call, purpose) if b.reservation_of(hold.call) else None
            )

    async def _end(
        self, reservation: Reservation, change: Change, cost: int, purpose: Purpose, notes: Sequence[Recorded]
    ) -> None:
        """End ``reservation`` where it is open; where it is not, see to it that ``cost`` is what it was charged."""
        late: set[str] = set()

        async with self._alone(reservation.accounts):
            await self._know(reservation)

            def ended(balance: Balance) -> BudgetChanged | None:
                if balance.reservation_of(reservation.call) is None:
                    late.add(token_of(balance.scope, balance.name))
                    return None
                return change(balance)

            await self._change(reservation.accounts, ended, notes)
            for account in reservation.accounts:
                if account.token in late:
                    await self._correct(account, reservation.call, cost, purpose)
        if late and notes:  # perhaps no entry was left to store them with; storing them again changes nothing
            await self._log.append(notes, queued=True)

    async def _know(self, reservation: Reservation) -> None:
        """Look for what others have stored where it is not known to be open: another process may have reserved it."""
        for account in reservation.accounts:
            if (await self._head(account)).balance.reservation_of(reservation.call) is None:
                return await self._catch_up()

    async def _correct(self, account: Account, call: str, cost: int, purpose: Purpose) -> None:
        """Nothing is open for ``call``: it expired, or it was ended by a try whose answer was lost. The entries say."""

        async def corrected() -> bool:
            await self._head(account)
            last_seq = self._seen  # an entry that is stored after the entries are read makes the correction void
            charged = await self._expired(account, call)
            if charged is None or charged == cost:
                return True
            return await self._try((account,), lambda b: budgets.correct(b, call, charged, cost, purpose), seq=last_seq)

        await self._repeat(corrected)

    async def _expired(self, account: Account, call: str) -> int | None:
        """What was charged for ``call`` when it expired; None where another entry was its last."""
        charged = None
        with suppress(NotFoundError):  # in an archive: what was charged stays
            async with aclosing(self._log.read(account.token, (BudgetChanged.__name__,))) as entries:  # type: ignore[type-var]
                async for recorded in entries:
                    entry = recorded.event
                    if isinstance(entry, BudgetChanged) and entry.call == call:
                        charged = entry.amount if entry.kind == "expire" else None
        return charged

    # --- one budget -----------------------------------------------------------------------------------------------

    async def _bring_all_up_to_date(self, accounts: Sequence[Account]) -> None:
        for account in accounts:
            await self._bring_up_to_date(account)

    async def _bring_up_to_date(self, account: Account) -> None:
        """Apply the settings' cap, once a process, and charge what is overdue."""
        if account.token not in self._configured:
            await self._change((account,), lambda b: budgets.configure(b, account.configured))
            self._configured.add(account.token)
        head = await self._head(account)
        for reservation in head.balance.overdue(self._clock()):
            call = reservation.call

            def expired(balance: Balance, call: str = call) -> BudgetChanged | None:
                why = Purpose(reason="nobody settled it in time")
                return budgets.expire(balance, call, why) if balance.reservation_of(call) else None

            await self._change((account,), expired)

    async def _head(self, account: Account) -> _Head:
        while (head := self._heads.get(account.token)) is None:
            if self._seen < 0:
                seq, _ = await self._log.newest(ALL)
                self._seen = seq if self._seen < 0 else self._seen  # heads of another caller may be as of it
            last_seq, entry = self._seen, await newest_entry(self._log, account.token)
            if self._seen == last_seq:  # else another caller learned meanwhile that there is more
                fresh = Balance(account.scope, account.name)
                self._heads[account.token] = _Head(balance_of(entry) if entry else fresh, entry is not None)
        return head

    async def _catch_up(self) -> None:
        """Read the entries that others have appended since."""
        for _ in range(STEPS):
            seq, body = await self._log.next(ALL, self._seen) if self._seen >= 0 else (0, b"")
            if not seq:
                return
            if seq > self._seen:
                self._take(_entries(decode(body, seq)), seq)
        self._forget()

    def _take(self, entries: Iterable[BudgetChanged], seq: int) -> None:
        """The newest entries stand at ``seq`` now."""
        self._seen = seq
        for entry in entries:
            self._heads[token_of(entry.scope, entry.name)] = _Head(balance_of(entry), True)

    def _forget(self) -> None:
        """Nobody knows what was stored."""
        self._heads.clear()
        self._seen = -1

    # --- the log --------------------------------------------------------------------------------------------------

    async def _change(self, accounts: Sequence[Account], change: Change, notes: Sequence[Recorded] = ()) -> None:
        """Append the next entry of each of ``accounts`` that ``change`` makes one for and ``notes``, all or none.

        Raises:
            DependencyError: the log does not answer. What ``change`` raises.
        """
        await self._repeat(lambda: self._try(accounts, change, notes))

    async def _repeat(self, tried: Callable[[], Awaitable[bool]]) -> None:
        """Try until it is done: again where another process came first, or where an answer was lost."""
        pause, deadline = PAUSE_S, monotonic() + PATIENCE_S
        while True:
            last_seq = self._seen
            try:
                if await tried():
                    return
                await asyncio.sleep(random.random() * pause)  # before the look: what is seen is as new as can be
                await self._catch_up()
                if self._seen == last_seq:  # no other process appended: the entry to follow is gone
                    self._forget()
            except BudgetExhaustedError:
                raise
            except DependencyError:  # it may have been stored: look
                self._forget()
                if monotonic() > deadline:
                    raise
                await asyncio.sleep(random.random() * pause)
            pause = min(pause * 2, PAUSE_S * 4)

    async def _try(
        self, accounts: Sequence[Account], change: Change, notes: Sequence[Recorded] = (), seq: int = -1
    ) -> bool:
        """Whether the entries were stored, right behind all that they follow from, or there is none to make.
        ``seq``: where the newest of all entries must have stood."""
        for account in accounts:
            await self._head(account)
        if any(account.token not in self._heads for account in accounts):
            return False  # another caller forgot them meanwhile
        at, heads = self._seen, {account: self._heads[account.token] for account in accounts}
        if seq not in (-1, at):
            return False
        entries = {account: entry for account, head in heads.items() if (entry := change(head.balance))}
        if not entries:
            return True
        self._log.wrote, began = True, monotonic()
        sent = [self._stamp(*message) for message in _messages(entries, all(heads[a].begun for a in entries))]
        last = await self._log.append_behind([*sent, *notes], at, ALL)
        if last and self._seen == at:
            self._take(entries.values(), last - len(notes))
        elif last > self._seen:  # others were learned of meanwhile, but not of this
            self._forget()
        if last:
            await self._turns.leave_room(began)
        return bool(last)

    def _alone(self, accounts: Iterable[Account]) -> AbstractAsyncContextManager[None]:
        return self._turns.alone(account.token for account in accounts)


def _messages(entries: Mapping[Account, BudgetChanged], begun: bool) -> list[tuple[str, BudgetChanged]]:
    """What is appended, each with its run token: an entry a message, or one that stands for all where they reserve the
    same. An atomic batch is six syncs of the server's disk, one message is one."""
    first, *others = sorted(entries.items(), key=lambda item: item[0].scope != "run")
    size = sum(len(entry.open) for entry in entries.values())
    if not (others and begun and first[1].kind == "reserve" and size <= budgets.MOST_OPEN):
        return [(account.token, entry) for account, entry in entries.items()]
    also = tuple(budgets.state_of(entry) for _, entry in others)
    return [(first[0].token, first[1].model_copy(update={"also": also}))]


async def newest_entry(log: Log, token: str) -> BudgetChanged | None:
    """The newest entry of the budget under the run token ``token``; None where there is none. Its first one is always a
    message of its own; of later ones another budget's message may stand for it."""
    seq, body = await log.newest(subject_of(token))
    newest = decode(body, seq).event if seq else None
    if not isinstance(newest, BudgetChanged) or newest.scope == "run":
        return newest if isinstance(newest, BudgetChanged) else None
    async with aclosing(_entries_after(log, seq)) as later:
        async for entry in later:
            newest = entry if token_of(entry.scope, entry.name) == token else newest
    return newest


async def _entries_after(log: Log, seq: int) -> AsyncGenerator[BudgetChanged]:
    """Entries of all budgets after ``seq``. A few are read one by one: a log has only so many consumers."""
    for _ in range(STEPS):
        seq, body = await log.next(ALL, seq)
        if not seq:
            return
        for entry in _entries(decode(body, seq)):
            yield entry
    async with aclosing(log.read(types=(BudgetChanged.__name__,), after=seq)) as later:  # type: ignore[type-var]
        async for recorded in later:
            for entry in _entries(recorded):
                yield entry


def _entries(recorded: Recorded) -> Iterable[BudgetChanged]:
    return recorded.event.entries() if isinstance(recorded.event, BudgetChanged) else ()


def accounts_of(
    run: str, day: datetime, provider: str, user: str, caps: Mapping[BudgetScope, int | None]
) -> tuple[Account, ...]:
    """The budgets that a call of ``run`` to ``provider`` is charged to; ``caps`` as the settings name them."""
    names: dict[BudgetScope, str] = {"run": run, "day": f"{day:%Y-%m-%d}", "provider": provider, "user": user}
    return tuple(Account(scope, name, caps.get(scope)) for scope, name in names.items() if name)
