"""A run whose budget is used up waits as for any dependency that is away, and goes on when the cap is raised."""

import asyncio
from typing import Any

import pytest

from agent0.assembly.runtime.stamping import recorded
from agent0.events.alarms import AlarmResolved, DependencyLost
from agent0.events.base import Event, Recorded
from agent0.infra.bus import run_views
from agent0.infra.bus.run_views import Views
from agent0.infra.gateway.ledger import Ledger
from tests.bus.toys import STARTED, Toy, World, event, evolve, raised
from tests.test_gateway import ASKED, AT, RUN, Vendor, gateway, most


async def test_work_waits_for_a_higher_cap_and_is_done_once(world: World) -> None:
    vendor = Vendor()
    gate = gateway(world.log, vendor, most() - 1)

    async def ask(cause: Recorded, run: Any) -> list[Event]:
        await gate.generate(ASKED)
        return [AlarmResolved(alarm=cause.event.alarm)]  # type: ignore[attr-defined]

    await world.bus(Toy(ask))
    await world.put(event(STARTED), raised("one"))
    [lost] = await world.until(1, "DependencyLost")
    assert isinstance(lost.event, DependencyLost)
    assert lost.event.dependency == "budget of run r1" and "router budget set run r1" in lost.event.message
    assert vendor.asked == []
    balance = await Ledger(world.log, recorded, lambda: AT, 60).set_cap(RUN, 2 * most())
    assert balance.open == ()
    await world.until(1)
    await world.until(1, "DependencyRestored")
    assert len(vendor.asked) == 1
    assert [entry.event.kind for entry in await world.stored("BudgetChanged")] == [  # type: ignore[attr-defined]
        "cap",
        "refuse",
        "cap",
        "reserve",
        "settle",
    ]


async def test_days_that_were_looked_at_are_not_followed_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_views, "IDLE_VIEWS", 1)
    views = Views(world.log, lambda state, recorded: evolve(state, recorded) if recorded.run == "r1" else None)
    await world.put(event(STARTED))
    for token in ("r1", *(f"budget-day-2026-01-0{day}" for day in range(1, 7))):
        await world.put(event(STARTED, token))
        await views.get(token)
    followed = {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("view of")}
    assert followed == {"view of r1", "view of budget-day-2026-01-05", "view of budget-day-2026-01-06"}
    await views.close()
