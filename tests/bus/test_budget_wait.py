"""A run whose budget is used up waits as for any dependency that is away, and goes on when the cap is raised."""

from typing import Any

from agent0.assembly.runtime.stamping import recorded
from events.alarms import AlarmResolved, DependencyLost
from events.base import Event, Recorded
from infra.gateway.ledger import Ledger
from tests.bus.toys import STARTED, Toy, World, event, raised
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
