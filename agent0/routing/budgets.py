"""The rules of a budget: what is reserved and charged together never exceeds the cap when a reservation is made.

Pure: each function makes the next entry from a balance, and whoever appends it must find that the balance was still the
newest. An amount is in nano-dollars.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from math import ceil
from typing import Literal

from agent0.errors import BudgetExhaustedError, ConfigError, UnknownPriceError
from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.base import TOKEN, sha256
from agent0.events.budgets import DOLLAR, PREFIX, BudgetChanged, BudgetKind, BudgetLevel, BudgetScope, BudgetState
from agent0.events.values import OpenReservation

NEAR_PERCENT = 80
"""Percent of the cap from which a budget is ``near`` its end."""

MOST_OPEN = 512
"""Open reservations of one budget: an entry names them all, and stays below the 64 KiB of an inline value."""


@dataclass(frozen=True)
class Purpose:
    """What an entry says of the call besides its amount."""

    provider: str = ""
    model: str = ""
    prices: str = ""
    reason: str = ""


NOTHING = Purpose()


@dataclass(frozen=True)
class Balance:
    """What a budget's newest entry says; a budget without entries is uncapped and unspent."""

    scope: BudgetScope
    name: str
    cap: int | None = None
    spent: int = 0
    open: tuple[OpenReservation, ...] = ()
    level: BudgetLevel = ""
    configured: int | None = None

    @property
    def reserved(self) -> int:
        """The sum of all open reservations."""
        return sum(reservation.amount for reservation in self.open)

    @property
    def free(self) -> int | None:
        """What may still be reserved, never below 0; None where there is no cap."""
        return None if self.cap is None else max(0, self.cap - self.spent - self.reserved)

    def reservation_of(self, call: str) -> OpenReservation | None:
        """The open reservation of ``call``, None where there is none."""
        return next((reservation for reservation in self.open if reservation.call == call), None)

    def overdue(self, moment: datetime) -> tuple[OpenReservation, ...]:
        """Open reservations whose time is over at ``moment``."""
        return tuple(reservation for reservation in self.open if reservation.expires <= moment.timestamp())


def balance_of(entry: BudgetChanged) -> Balance:
    """The balance of a budget after its newest ``entry``."""
    return Balance(entry.scope, entry.name, entry.cap, entry.spent, entry.open, entry.level, entry.configured)


def state_of(entry: BudgetChanged) -> BudgetState:
    """The balance after ``entry``, as an entry of another budget names it."""
    return BudgetState(**vars(balance_of(entry)))


def token_of(scope: BudgetScope, name: str) -> str:
    """The run token that the budget's entries stand under: a run's own id, else ``budget-<scope>-<name>``, with a
    digest in place of a name that may not be part of a subject."""
    if scope == "run":
        return name
    plain = f"{PREFIX}{scope}-{name}"
    return plain if TOKEN.fullmatch(plain) else f"{PREFIX}{scope}-{sha256(name)[:32]}"


def set_cap(balance: Balance, cap: int | None, purpose: Purpose = NOTHING) -> BudgetChanged:
    """Raise, lower or remove (None) the cap. What is spent or reserved beyond a lower one stays; nothing more fits.

    Raises:
        ConfigError: it is below zero.
    """
    if cap is not None and cap < 0:
        raise ConfigError("A budget's cap is below zero.", f"It is {dollars(cap)}.", "Give 0 or more US dollars.")
    return _entry(balance, replace(balance, cap=cap, level=_level(cap, balance.spent)), "cap", purpose)


def configure(balance: Balance, cap: int | None) -> BudgetChanged | None:
    """Apply the cap that the settings name; None where they name none, or the one that they named when it was applied
    last, so that a cap set by a user since then holds. Where none was applied yet, a lower one that a user set holds,
    too."""
    if cap is None or cap == balance.configured:
        return None
    by = Purpose(reason=f"setting router.caps.{balance.scope}")
    lower = cap if balance.configured is not None or balance.cap is None else min(cap, balance.cap)
    return set_cap(balance, lower, by).model_copy(update={"configured": cap})


def reserve(
    balance: Balance, call: str, amount: int | None, expires: datetime, purpose: Purpose = NOTHING
) -> BudgetChanged:
    """Hold ``amount`` for ``call`` until ``expires``; None where nobody knows what it may cost: then nothing is held.

    Raises:
        BudgetExhaustedError: it does not fit, or too many reservations are open.
        UnknownPriceError: nobody knows what it may cost, and there is a cap.
        ValueError: a negative amount, or ``call`` holds a reservation already.
    """
    if amount is None and balance.cap is not None:
        raise _unknown(balance, purpose)
    amount = amount or 0
    if amount < 0 or balance.reservation_of(call):
        raise ValueError(f"{call} cannot reserve {amount}")
    if balance.cap is not None and balance.spent + balance.reserved + amount > balance.cap:
        raise _exhausted(balance, amount)
    if len(balance.open) >= MOST_OPEN:
        why = f"{MOST_OPEN} calls are under way, the most that a budget keeps."
        raise BudgetExhaustedError(title(balance), why, "It goes on by itself as they end.")
    reservation = OpenReservation(call=call, amount=amount, expires=ceil(expires.timestamp()))
    return _entry(balance, replace(balance, open=(*balance.open, reservation)), "reserve", purpose, call, amount)


def settle(balance: Balance, call: str, cost: int, purpose: Purpose = NOTHING) -> BudgetChanged:
    """Charge ``cost`` for ``call`` and free what it held beyond that. A cost above it is charged in full, since the
    vendor asks for it.

    Raises:
        KeyError: nothing is open for ``call``. ValueError: a negative cost.
    """
    if cost < 0:
        raise ValueError(f"{call} cost {cost}")
    return _close(balance, "settle", call, cost, cost, purpose)


def refund(balance: Balance, call: str, purpose: Purpose = NOTHING) -> BudgetChanged:
    """Free all that ``call`` held: nothing was sent.

    Raises:
        KeyError: nothing is open for ``call``.
    """
    return _close(balance, "refund", call, 0, None, purpose)


def expire(balance: Balance, call: str, purpose: Purpose = NOTHING) -> BudgetChanged:
    """Charge all that ``call`` held: nobody ended it in time, and the money may have been spent.

    Raises:
        KeyError: nothing is open for ``call``.
    """
    return _close(balance, "expire", call, None, None, purpose)


def correct(balance: Balance, call: str, charged: int, cost: int, purpose: Purpose = NOTHING) -> BudgetChanged:
    """Charge ``cost`` for ``call`` where ``charged`` was charged when it expired."""
    spent = balance.spent + cost - charged
    level = _higher(balance.level, _level(balance.cap, spent))
    return _entry(
        balance, replace(balance, spent=spent, level=level), "correct", purpose, call, cost - charged, charged
    )


def refuse(balance: Balance, call: str, amount: int, purpose: Purpose = NOTHING) -> BudgetChanged | None:
    """Note that ``amount`` no longer fits, even if nothing of what is open were charged; None where it may fit later,
    or where that is noted already."""
    if balance.cap is None or balance.spent + amount <= balance.cap or balance.level == "exhausted":
        return None
    return _entry(balance, replace(balance, level="exhausted"), "refuse", purpose, call, amount)


def carry(balance: Balance) -> BudgetChanged:
    """Continue the budget in a fresh log, with the balance it has."""
    return _entry(balance, balance, "carry", NOTHING)


def level_alarms(entry: BudgetChanged) -> Iterator[AlarmRaised | AlarmResolved]:
    """Raise and resolve the alarms of a budget whose level ``entry`` changed: one from 80 % on, one at the end."""
    order: tuple[BudgetLevel, ...] = ("", "near", "exhausted")
    before, after = order.index(entry.former), order.index(entry.level)
    balance, token = balance_of(entry), token_of(entry.scope, entry.name)
    for number, level in enumerate(order[1:], 1):
        alarm = f"budget-{level}-{token}"
        if before < number <= after:
            facts = {"scope": entry.scope, "name": entry.name, "cap": entry.cap, "spent": entry.spent}
            text = _message(balance, level, entry)
            yield AlarmRaised(alarm=alarm, severity=_SEVERITY[level], message=text, facts=facts)
        elif after < number <= before:
            cap = "no cap" if entry.cap is None else f"a cap of {dollars(entry.cap)}"
            yield AlarmResolved(alarm=alarm, message=f"The {title(balance)} has {cap} now.")


_SEVERITY: Mapping[BudgetLevel, Literal["warning", "critical"]] = {"near": "warning", "exhausted": "critical"}


def _message(balance: Balance, level: BudgetLevel, entry: BudgetChanged) -> str:
    used = f"{dollars(balance.spent)} of {dollars(balance.cap or 0)} are spent"
    if level == "near":
        return f"{used}: the {title(balance)} is near its end."
    refused = f"; a call that may cost {dollars(entry.amount)} was refused" if entry.kind == "refuse" else ""
    return f"{used}{refused}: calls wait until the {title(balance)} is raised."


def most_cost(
    prompt_bytes: int, max_tokens: int, dearest_read: Decimal, dearest_written: Decimal, fee: Decimal = Decimal(0)
) -> int:
    """The most that a call may cost: a token holds at least one byte of the prompt.

    Args:
        prompt_bytes: of everything that is sent: turns, tools, schema.
        max_tokens: that may be written, reasoning included.
        dearest_read, dearest_written: nano-dollars of a token at the dearest rate of its direction.
        fee: nano-dollars of a request, whatever it reads or writes.
    """
    return nano(prompt_bytes * dearest_read + max_tokens * dearest_written + fee)


def nano(amount: Decimal) -> int:
    """``amount`` in whole nano-dollars; a part of one counts as one."""
    return int(amount.to_integral_value(ROUND_CEILING))


def in_nano(usd: float | Decimal) -> int:
    """US dollars as nano-dollars; a part of one is dropped, so that a cap is never exceeded by it."""
    return int(Decimal(str(usd)) * DOLLAR)


def dollars(amount: int) -> str:
    """Format nano-dollars: at least cents, and as many digits as there are."""
    whole, rest = divmod(abs(amount), DOLLAR)
    digits = f"{rest:09d}".rstrip("0")
    return f"{'-' if amount < 0 else ''}${whole:,}.{digits:0<2}"


def title(balance: Balance) -> str:
    """Name a budget as a sentence does: whose it is."""
    return f"budget of {balance.scope} {balance.name}"


def _exhausted(balance: Balance, amount: int) -> BudgetExhaustedError:
    cap, spent, reserved = (dollars(n) for n in (balance.cap or 0, balance.spent, balance.reserved))
    why = f"A call may cost {dollars(amount)}; of {cap}, {spent} are spent and {reserved} reserved for calls under way."
    fix = f"Raise it: agent0 router budget set {balance.scope} {balance.name} --cap USD"
    return BudgetExhaustedError(title(balance), why, f"{fix} (the setting is router.caps.{balance.scope}).")


def _unknown(balance: Balance, purpose: Purpose) -> UnknownPriceError:
    model = f"{purpose.provider}/{purpose.model}"
    why = (
        f"The {title(balance)} is capped at {dollars(balance.cap or 0)}, and the price table does not have this model."
    )
    fix = f'Name its prices by the setting router.prices."{model}" (input, output: US dollars a million tokens).'
    return UnknownPriceError(f"Nobody knows what a call to {model} costs.", why, fix)


def _close(
    balance: Balance, kind: BudgetKind, call: str, charge: int | None, amount: int | None, purpose: Purpose
) -> BudgetChanged:
    """End a reservation. ``charge`` and ``amount`` None: what was held."""
    reservation = balance.reservation_of(call)
    if reservation is None:
        raise KeyError(call)
    spent = balance.spent + (reservation.amount if charge is None else charge)
    others = tuple(other for other in balance.open if other.call != call)
    after = replace(balance, spent=spent, open=others, level=_higher(balance.level, _level(balance.cap, spent)))
    amount = reservation.amount if amount is None else amount
    return _entry(balance, after, kind, purpose, call, amount, reservation.amount)


def _entry(
    before: Balance, after: Balance, kind: BudgetKind, purpose: Purpose, call: str = "", amount: int = 0, freed: int = 0
) -> BudgetChanged:
    """``freed``: what was reserved for the call that this entry ends."""
    parts = {**vars(purpose), **vars(after)}
    return BudgetChanged(kind=kind, former=before.level, call=call, amount=amount, reserved=freed, **parts)


def _level(cap: int | None, spent: int) -> BudgetLevel:
    if cap is None:
        return ""
    if spent >= cap:
        return "exhausted"
    return "near" if spent * 100 >= cap * NEAR_PERCENT else ""


def _higher(level: BudgetLevel, other: BudgetLevel) -> BudgetLevel:
    """Of two levels the one nearer to the end: what was raised stays until the cap changes."""
    order: tuple[BudgetLevel, ...] = ("", "near", "exhausted")
    return max(level, other, key=order.index)
