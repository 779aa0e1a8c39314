"""One process or several: the same run is told, with the same payloads."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.events.base import Recorded
from tests.crashing import VOLATILE, payloads
from tests.patience import until
from tests.plugin_files import REWARD
from tests.processes import KINDS, Crew

pytestmark = pytest.mark.slow

SIZES = {
    "RUN__ITERATIONS": "2",
    "RUN__TASKS": "4",
    "RUN__ATTEMPTS": "3",
    "RUN__EVALUATION__VALIDATION": "3",
    "RUN__EVALUATION__TEST": "3",
    "RUN__STUDENT__TOOLS": '["python"]',
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Recorded]:
    with Crew(tmp_path_factory.mktemp("alone"), **SIZES) as crew:
        found = crew.tell("run", "start", "--json", "--name", "twin")
        assert found["status"] == "finished"
        return asyncio.run(crew.facts(found["run"]))


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> list[Recorded]:
    with Crew(tmp_path_factory.mktemp("apart"), **SIZES) as crew:
        crew.tell("log", "init")
        for kind in KINDS:
            crew.start(kind)
        found = crew.tell("run", "start", "--no-handlers", "--json", "--name", "twin")
        assert found["status"] == "finished"
        assert not [kind for kind, process in crew.running.items() if process.poll() is not None]
        return asyncio.run(crew.facts(found["run"]))


def test_several_processes_tell_what_one_tells(alone: list[Recorded], apart: list[Recorded]) -> None:
    assert len(KINDS) >= 4
    names = [Counter((r.type, r.task, r.attempt) for r in told) for told in (alone, apart)]
    assert names[0] == names[1]
    assert payloads(apart) - payloads(alone) == Counter()
    assert len({r.id for r in apart}) == len(apart)


def test_the_named_fields_are_all_that_differs(alone: list[Recorded]) -> None:
    """A list of exceptions that names what is not there would hide something some day."""
    there = {key for r in alone for key in _keys(r.event.model_dump(mode="json"))}
    assert set(VOLATILE) <= there


async def test_a_run_of_a_plugin_goes_to_a_process_that_has_it(tmp_path: Path) -> None:
    """Beside a process without it: where it is alone, the run says so; the run ends once another has it."""
    (tmp_path / "my_reward.py").write_text(REWARD)
    plugin = ("--plugin", str(tmp_path / "my_reward.py"))
    with Crew(tmp_path / "data", **{**SIZES, "RUN__ITERATIONS": "1"}) as crew:
        crew.start("up", "up", "--port", "0")
        await until(lambda: "http://" in crew.said("up"), "the server")
        begun = crew.tell("run", "start", "--detach", "--json", *plugin, "--set", "run.rewards.weights.brevity=0.2")
        async with open_log(crew.settings, "reader") as log:
            lost = await anext(log.tail(0, begun["run"], ["DependencyLost"]))
            assert "No process has the plugin my_reward" in str(lost.event) and str(crew.running["up"].pid) in str(lost)
            crew.start("having", "handlers", "run", *plugin)
            await anext(log.tail(0, begun["run"], ["RunFinished"]))
        beside = crew.tell("run", "start", "--json", *plugin, "--set", "run.rewards.weights.brevity=0.2")
        assert beside["status"] == "finished"
        assert not [r for r in await crew.facts(beside["run"]) if r.type == "DependencyLost"]


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for inner in value.values() for key in _keys(inner)}
    return {key for inner in value for key in _keys(inner)} if isinstance(value, list) else set()
