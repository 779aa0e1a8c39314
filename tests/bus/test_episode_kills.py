"""kill -9 in the middle of an episode, of its environment and of the run: both go on, no step is in the log twice, and
what was lost is never a reward."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.environments import programs as adding
from agent0.assembly.environments.openenv import add_openenv
from agent0.assembly.environments.programs import add_program
from agent0.assembly.validate.questions import with_questions
from agent0.chat_format import format_call
from agent0.events.alarms import DependencyLost, DependencyRestored
from agent0.events.base import Recorded
from agent0.events.episodes import Episode
from agent0.events.tasks import ResultVerified, TaskProposed, ToolCalled
from agent0.handlers import handlers
from agent0.infra.bus.bus import Bus
from agent0.infra.environments import process
from agent0.infra.environments.by_kind import EnvironmentsByKind
from agent0.infra.environments.programs import EnvironmentProgram
from agent0.infra.models import scripted
from agent0.provenance.fork_history import Branches
from agent0.run.lifecycle import evolve
from agent0.settings import Settings
from tests.bus.toys import World
from tests.processes import ROOT, Crew
from tests.test_environment_programs import install
from tests.test_episodes import SERVERS, counting
from tests.world import ports, small, started

SIZES: dict[str, Any] = {"iterations": 1, "tasks": 3, "attempts": 2, "evaluation": {"validation": 1, "test": 0}}


def once_each(told: Sequence[Recorded]) -> dict[str, list[ToolCalled]]:
    """The steps of each attempt: none is there twice, none is missing, and none follows the last."""
    steps: dict[str, list[ToolCalled]] = {}
    for recorded in told:
        if isinstance(recorded.event, ToolCalled):
            steps.setdefault(recorded.event.attempt, []).append(recorded.event)
    for made in steps.values():
        assert [step.number for step in made] == [*range(len(made))]
        assert [step.result.step.done for step in made if step.result.step] == [False] * (len(made) - 1) + [True]
    return steps


async def test_an_environment_that_is_killed_is_waited_for_and_asked_again(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "_install", install)
    monkeypatch.setattr(process, "STOP_S", 0.2)
    program, like = EnvironmentProgram(kind="gym", name="Line-v1"), Episode(url="", seed=0, question="", action="")
    path, _ = await add_program(Settings(home=tmp_path), program, "line", 20, like, (), lambda _: None)
    environments, killed = EnvironmentsByKind(path.parent), list[int]()

    def walk(request, skill, rng):  # type: ignore[no-untyped-def]
        """Walks to the end; at three steps, each one later, what serves them all is killed."""
        results = sum(turn.role == "tool" for turn in request.turns)
        pid = environments._programs._process("line").pid
        if len(killed) < 3 and results == len(killed) and pid and pid not in killed:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return format_call("act", {"action": 1})

    monkeypatch.setattr(scripted, "_say", walk)
    chosen = [*handlers().values()]
    await world.provision(*chosen)  # type: ignore[arg-type]
    await world.put(started(with_questions(small(**SIZES, questions={"file": str(path)}))))
    played = ports() | {"environments": environments, "history": Branches(world.log)}
    bus = Bus(world.log, chosen, played, evolve, world.settings, "rev", fatal=world.deaths.append)
    world.buses.append(bus)
    try:
        await bus.start()
        await world.until(1, "RunFinished")
        await world.stop(bus)
    finally:
        await environments.close()
    told = [recorded async for recorded in world.log.read("r1")]
    kinds = Counter(recorded.type for recorded in told)
    lost = [recorded.event for recorded in told if isinstance(recorded.event, DependencyLost)]
    assert len(killed) == 3 and lost and {event.dependency for event in lost} == {"The environment line"}
    assert kinds["DependencyRestored"] == len(lost) and not kinds["ReactionFailed"]
    verdicts = [recorded.event for recorded in told if isinstance(recorded.event, ResultVerified)]
    assert [(event.correct, event.reason) for event in verdicts] == [(True, "reward 1")] * 6
    assert len(once_each(told)) == 6


STUDENT = """
from agent0.infra.models import scripted
from tests.test_episodes import say
scripted._say = say
from agent0.cli import main
main()
"""
PLAN = {"ITERATIONS": "1", "TASKS": "3", "ATTEMPTS": "2", "EVALUATION__VALIDATION": "1", "EVALUATION__TEST": "0"}


@pytest.mark.slow  # part of make crash
async def test_a_run_that_is_killed_in_the_middle_of_an_episode_goes_on(tmp_path: Path) -> None:
    """Twice, then its server cuts a socket and goes away; the run is resumed and comes to what its steps say."""
    running: list[asyncio.subprocess.Process] = []
    left = ["kill", "kill", "cut"]

    def disturbed(data: dict[str, Any], step: int) -> dict[str, Any] | None:
        if step < 2 or not left or not running:
            return data
        if left.pop(0) == "cut":
            return None
        running.pop().kill()
        return data

    sizes = {f"RUN__{name}": value for name, value in PLAN.items()}
    with Crew(tmp_path / "home", HANDLERS__ACK_WAIT_S="1", **sizes) as crew:

        async def agent0(*arguments: str) -> int:
            command = (sys.executable, "-c", STUDENT, "run", *arguments)
            with (tmp_path / "told").open("ab") as told:
                child = await asyncio.create_subprocess_exec(*command, env=crew.env, cwd=ROOT, stdout=told, stderr=told)
            running[:] = [child]
            return await child.wait()

        async with counting(disturbed) as url:
            settings = Settings(home=crew.home)
            path, _ = await add_openenv(settings, url, "", 40, "question", SERVERS, steps=True)
            assert await agent0("start", "--name", "hit", "--questions", str(path)) == -signal.SIGKILL
            assert await agent0("resume", "LAST") == -signal.SIGKILL
            assert await agent0("resume", "LAST") == 0, (tmp_path / "told").read_text()
        (row,) = crew.tell("run", "list", "--json")
        told = await crew.facts(row["run"])
    assert not left
    lost = [recorded.event for recorded in told if isinstance(recorded.event, DependencyLost)]
    assert [(event.dependency, "It was lost" in event.message) for event in lost] == [
        (f"The environment at {url}", True)
    ]
    assert sum(isinstance(recorded.event, DependencyRestored) for recorded in told) == 1
    questions = {
        recorded.event.task: recorded.event.proposal.question
        for recorded in told
        if isinstance(recorded.event, TaskProposed) and recorded.event.proposal
    }
    verdicts = [recorded.event for recorded in told if isinstance(recorded.event, ResultVerified)]
    assert len(verdicts) == 6 == len(once_each(told))
    for verdict in verdicts:
        assert verdict.correct is (int(questions[verdict.task].split()[1][:-1]) % 2 == 1)
