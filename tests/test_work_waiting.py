"""What scalers are told: the work of runs under way, and nothing where the log does not answer."""

from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent0.assembly.runtime.prometheus import PendingWork
from agent0.assembly.runtime.read_models import live_path
from agent0.config.loading import load
from agent0.errors import DependencyError
from agent0.events.alarms import AlarmRaised
from agent0.events.base import Recorded, record
from agent0.events.runs import RunPaused
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import EVENTS, Topology, standing
from agent0.infra.storage.sqlite import connect
from agent0.projections import Views, tables
from agent0.projections.base import Row
from agent0.settings import HandlerSettings, NatsSettings, Settings
from tests.story import bodies, renumbered, whole_run

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Guard:
    name: str = "guard"
    events: tuple[str, ...] = ("AlarmRaised",)
    in_flight: int = 64


GUARD = Guard()


async def test_what_waits_is_counted_by_run(log: Log, nats_settings: NatsSettings) -> None:
    topology = Topology(nats_settings, HandlerSettings())
    await log.client.jsm().add_consumer(EVENTS, topology.durable(GUARD))
    for run, alarms in (("r1", 2), ("r2-long", 3)):
        await log.client.jsm().add_consumer(EVENTS, topology.run_consumer(GUARD, run))
        events = [
            record(AlarmRaised(alarm=f"a{n}", severity="info", message="m"), run=run, time=NOW) for n in range(alarms)
        ]
        await log.append(events)
    for runs, expected in ((None, 5), ({"r1"}, 2), ({"r2-long"}, 3), ({"r2"}, 0)):
        [row] = [row for row in await standing(log.client, topology, [GUARD], runs) if row.consumer == GUARD.name]
        assert (row.wait, row.in_hand) == (expected, 0), runs


def with_tables(tmp_path: Path, events: list[Recorded]) -> Settings:
    settings = load("scripted", {"home": str(tmp_path)}, {})
    projector = Views(live_path(settings).parent, connect, tables(), "stream").projector()
    projector.apply(bodies(renumbered(events)))
    projector.close()
    return settings


def test_work_of_runs_that_are_not_under_way_calls_nobody(tmp_path: Path) -> None:
    begun = whole_run(iterations=1, tasks=1, attempts=1)[:1]
    other = [event.model_copy(update={"run": "r2", "id": f"{event.id}-2"}) for event in begun]
    paused = record(RunPaused(reason="later"), run="r2", time=NOW, cause=other[0].id)
    settings, asked = with_tables(tmp_path, [*begun, *other, paused]), []

    def waiting(runs: Container[str]) -> list[Row]:
        asked.append(runs)
        return [{"consumer": "attempt_task", "wait": 7, "in_hand": None}]

    [family] = PendingWork(settings, waiting).collect()
    assert asked == [{begun[0].run}]
    assert {sample.labels["state"]: sample.value for sample in family.samples} == {"wait": 7, "in_hand": 0}


def test_a_log_that_does_not_answer_is_not_told_as_nothing_to_do(tmp_path: Path) -> None:
    def away(_: object) -> list[Row]:
        raise DependencyError("log")

    assert list(PendingWork(with_tables(tmp_path, []), away).collect()) == []
