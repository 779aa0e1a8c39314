"""Raises alarms where a budget comes near its end, and resolves them where its cap was raised."""

from agent0.events.base import Event
from agent0.events.budgets import BudgetChanged
from agent0.handlers import on
from agent0.routing.budgets import level_alarms


@on(BudgetChanged, in_flight=1)
async def watch_budget(event: BudgetChanged) -> list[Event]:
    """One alarm at 80 %, one at the end. The entry has the level before it: many a budget belongs to no run."""
    return [*level_alarms(event)]
