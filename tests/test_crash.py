"""kill -9 in the middle of everything: the run is finished, and it is the run that would have been told anyway."""

import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import ConnectionClosedError

from agent0.assembly.runtime.read_models import live_path
from agent0.errors import DependencyError
from agent0.events.tasks import TaskRequested
from agent0.infra.bus.bus import Bus
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.infra.log.streams import Topology, init
from agent0.infra.storage import sqlite
from agent0.projections import Projector, Views, select, tables
from agent0.settings import Settings
from tests.crashing import BROKER, SIZES, crash, past_of, watching
from tests.processes import KINDS, ROOT, Crew

KILLS = {"student": 1, BROKER: 1}
"""Every role on its own, and more often, by ``make crash``."""
ALL = [name for kind, words in KINDS.items() if kind != "projector" for name in words[2:]]


@pytest.mark.timeout(1500)
async def test_nothing_is_lost_whoever_is_killed(tmp_path: Path) -> None:
    seed = time.time_ns() % 10**6
    print("seed", seed)  # noqa: T201 - to be seen where this fails
    with Crew(tmp_path, **SIZES, RUN__ITERATIONS="1", RUN__TASKS="4", RUN__REFILL="1.75") as crew:
        run = crew.tell("run", "start", "--detach", "--json")["run"]  # makes the log, too
        crew.start("student", "handlers", "run", *ALL)
        crew.start("projector")
        async with watching(crew, run) as watch:
            kills = await crash(crew, watch, KILLS, str(seed))
        past = await past_of(crew, run, watch)
        rebuilt = crew.tell("projections", "rebuild", "--verify", "--json")
        with sqlite.reading(live_path(crew.settings)) as db:
            (rows,) = select(db, "SELECT count(*) AS n FROM events WHERE run = ?", (run,))
    assert Counter(kill.role for kill in kills) == KILLS
    assert (past.finished, past.lost, past.lost_attempts, past.duplicates) == (True, [], 0, [])
    assert [r.seq for r in past.told] == sorted(r.seq for r in past.told)
    assert rebuilt["verified"] is True
    assert rows["n"] == len(past.told)
    assert past.same
    slots = [recorded.event.slot for recorded in past.told if isinstance(recorded.event, TaskRequested)]
    assert sorted(slots) == [*range(len(slots))] and 4 < len(slots) <= 7, "others were asked for, each once"


@pytest.mark.slow  # part of make crash
@pytest.mark.timeout(1500)
async def test_nothing_is_lost_where_tasks_are_attempted_beside_a_training(tmp_path: Path) -> None:
    """Who attempted what depends on when a training ended; each decision follows from the log all the same."""
    plan = {"TRAINING__STEPS_OFF_POLICY": "1", "TRAINING__SCHEDULE": "student", "ITERATIONS": "3", "TASKS": "4"}
    with Crew(tmp_path, **SIZES, **{f"RUN__{name}": value for name, value in plan.items()}) as crew:
        run = crew.tell("run", "start", "--detach", "--json")["run"]
        crew.start("student", "handlers", "run", *ALL)
        crew.start("projector")
        async with watching(crew, run) as watch:
            kills = await crash(crew, watch, {"student": 3, BROKER: 1}, str(time.time_ns() % 10**6))
        past = await past_of(crew, run, watch)
        rebuilt = crew.tell("projections", "rebuild", "--verify", "--json")
        checked = crew.tell("run", "check", run, "--json")
    assert len(kills) == 4
    assert (past.finished, past.lost, past.lost_attempts, past.duplicates) == (True, [], 0, [])
    assert rebuilt["verified"] is True and checked["decisions"] and not checked.get("first"), checked
    order = [recorded.type for recorded in past.told if getattr(recorded.event, "iteration", 0) == 1]
    trained = next(n for n, one in enumerate(past.told) if one.type == "CheckpointTrained")
    asked = next(n for n, one in enumerate(past.told) if one.type == "TaskRequested" and one.task == "t1-000")
    assert order and asked < trained


async def test_handlers_whose_log_goes_away_as_they_begin_say_so(
    log: Log, nats_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a dependency that is away, which whoever started them starts them again for: it is no defect."""
    settings = Settings()
    await init(nats_server, Topology(settings.nats, settings.handlers), ())

    async def gone(*_: Any, **__: Any) -> Any:
        raise ConnectionClosedError  # it was there to be looked at, and is not there to be subscribed to

    monkeypatch.setattr(Client, "subscribe", gone)
    bus = Bus(log, (), {}, lambda state, _: state, settings)
    try:
        with pytest.raises(DependencyError, match="went away while the handlers began"):
            await bus.start()
    finally:
        await bus.stop(0)


def test_tables_are_made_whole_or_not_at_all(tmp_path: Path) -> None:
    """Whoever is killed while making them leaves nothing that the next could stumble over."""
    script = """
import os, sys
from pathlib import Path
from agent0.errors import DependencyError
from agent0.settings import Settings
from agent0.infra.storage import sqlite
from agent0.infra.bus.bus import Bus
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.infra.log.streams import Topology, init
from agent0.projections import projector, tables
projector.fingerprint = lambda known: os._exit(9)  # the last thing that making needs
projector.Projector(Path(sys.argv[1]), sqlite.connect, tables(), "stream")
"""
    file = tmp_path / "x.db"
    killed = subprocess.run([sys.executable, "-c", script, str(file)], env={"PYTHONPATH": str(ROOT)}, check=False)
    assert killed.returncode == 9 and file.exists()
    Projector(file, sqlite.connect, tables(), "stream").close()


def test_several_may_make_the_tables_at_once(tmp_path: Path) -> None:
    views = Views(tmp_path, sqlite.connect, tables(), "stream")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: views.projector(), range(8)))
    assert {one.position.seq for one in made} == {0}
    for one in made:
        one.close()
