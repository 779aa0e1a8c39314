"""Budgets of model calls: what may be spent, what is reserved for calls under way, what was charged. The entries of a
budget are its invoice, and the newest of them alone holds its state.

Amounts are whole nano-dollars (1e-9 US dollars), so that sums are exact: a token of the cheapest model costs some of
them.
"""

from collections.abc import Iterator
from typing import Literal

from agent0.events.base import Event, Value
from agent0.events.values import OpenReservation

DOLLAR = 1_000_000_000
"""Nano-dollars of a US dollar."""

PREFIX = "budget-"
"""Begins the run token of every budget but a run's own, which stands under the run's id."""

BudgetScope = Literal["run", "day", "provider", "user"]
BudgetKind = Literal["cap", "reserve", "settle", "refund", "expire", "correct", "refuse", "carry"]
BudgetLevel = Literal["", "near", "exhausted"]


class BudgetState(Value):
    """A budget after an entry; fields as in ``BudgetChanged``."""

    scope: BudgetScope
    name: str
    cap: int | None = None
    spent: int = 0
    open: tuple[OpenReservation, ...] = ()
    level: BudgetLevel = ""
    configured: int | None = None


class BudgetChanged(Event):
    """An entry of a budget, with the balance after it; of other budgets too, where ``also`` names them.

    ``kind``: ``cap`` sets what may be spent; ``reserve`` holds the most that a call may cost; ``settle`` charges what
    it did cost and frees the rest; ``refund`` frees all, since nothing was sent; ``expire`` charges all, since nobody
    settled it in time; ``correct`` adds to such a charge what it was wrong by; ``refuse`` notes that a call no longer
    fits, even if nothing of what is open were charged; ``carry`` continues the budget in a fresh log.
    """

    scope: BudgetScope
    name: str
    """Of what it is the budget: a run's id, a date (UTC), a provider, a user."""
    kind: BudgetKind
    call: str = ""
    """Id of the reservation."""
    amount: int = 0
    """Reserved, freed or charged by this entry, in nano-dollars; of ``correct`` it may be negative."""
    reserved: int = 0
    """What was reserved for the call that this entry ends. A vendor may charge more."""
    cap: int | None = None
    """What may be spent; None: any amount."""
    spent: int = 0
    open: tuple[OpenReservation, ...] = ()
    level: BudgetLevel = ""
    """``near``: 80 % of the cap are spent; ``exhausted``: all is, or a call was refused. Only a cap takes it back."""
    former: BudgetLevel = ""
    """Level before this entry."""
    configured: int | None = None
    """The cap that the settings named when they were last applied: another value there is applied once."""
    provider: str = ""
    model: str = ""
    prices: str = ""
    """Version of the price table that the charge follows from."""
    reason: str = ""
    also: tuple[BudgetState, ...] = ()
    """Other budgets in which the same call is reserved by this message, each after it. Their levels stay."""

    def entries(self) -> "Iterator[BudgetChanged]":
        """The entry itself, then that of each other budget that it stands for."""
        yield self
        for entry in self.also:
            yield self.model_copy(update={**vars(entry), "former": entry.level, "also": ()})
