"""Part of the rim: budgets that go on where a log goes on in a fresh stream."""

from collections.abc import Iterable, Iterator

from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.events.base import Recorded, decode
from agent0.events.budgets import PREFIX, BudgetChanged
from agent0.infra.gateway.ledger import newest_entry
from agent0.infra.log.event_log import Log
from agent0.routing.budgets import balance_of, carry


async def entries_to_carry(log: Log, runs: Iterable[str]) -> tuple[str, ...]:
    """The newest entry, as it would be stored, of each budget among the run tokens ``runs`` that goes on: all but those
    of runs, which are over, and of days that are."""
    entries = [(run, await newest_entry(log, run)) for run in runs if run.startswith(PREFIX)]
    return tuple(recorded(run, entry).to_json().decode() for run, entry in entries if entry and _goes_on(entry))


def carried(bodies: Iterable[str]) -> Iterator[Recorded]:
    """An entry that continues each of those budgets in a fresh log."""
    for recorded_before in map(decode, bodies):
        if isinstance(recorded_before.event, BudgetChanged):
            yield recorded(recorded_before.run, carry(balance_of(recorded_before.event)))


def _goes_on(entry: BudgetChanged) -> bool:
    return entry.scope != "day" or bool(entry.open) or entry.name >= f"{utc_now():%Y-%m-%d}"
