"""What a process lacks goes to one that has it, and where none has it the log says what is missing and who is there."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.runtime.app import lacks
from agent0.errors import DependencyError
from agent0.events.alarms import AlarmResolved, DependencyLost
from agent0.events.base import Event, Recorded
from agent0.events.submissions import TaskSubmitted
from agent0.events.values import Task
from agent0.handlers import handlers
from agent0.infra.bus import dispatch, processes, run_consumers
from agent0.infra.bus.run_consumers import Lacks
from agent0.registry import LOADED
from agent0.run.lifecycle import evolve
from tests.bus.toys import Toy, World, event, raised, resolve
from tests.world import small, started

DIGEST = "ab" * 32
NEEDS: dict[str, dict[str, Any]] = {
    "plugin": {"plugins": {"mine": DIGEST}},
    "changed plugin": {"plugins": {"mine": DIGEST}},
    "package": {"student": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m"}},
    "key": {"student": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m", "key_env": "THE_KEY"}},
    "card": {"student": {"provider": "tiny", "device": "cuda"}},
}
SAYS = {
    "plugin": ("the plugin mine", "--plugin PATH/mine.py"),
    "changed plugin": ("the plugin mine", f"The run began with sha256 {DIGEST[:12]}"),
    "package": ("The package that talks to such servers", "Not installed: openai."),
    "key": ("a key of a vendor", "export THE_KEY="),
    "card": ("a graphics card", "The run names the device cuda."),
}


@contextmanager
def surroundings(kind: str, there: bool, path: Path) -> Iterator[None]:
    """A machine on which what runs of ``kind`` need is there, or is not."""
    with pytest.MonkeyPatch.context() as patch:
        match kind:
            case "plugin" if there:
                patch.setitem(LOADED, "mine", DIGEST)
            case "changed plugin":
                patch.setitem(LOADED, "mine", DIGEST if there else DIGEST[::-1])
            case "package" if not there:
                patch.setitem(sys.modules, "openai", None)
            case "key" if there:
                patch.setenv("THE_KEY", "secret")
            case "card":
                patch.setenv("PATH", str(path))
                listing = "echo 'GPU 0: NVIDIA H100 80GB HBM3'" if there else "echo 'No devices were found'; exit 6"
                (path / "nvidia-smi").write_text(f"#!/bin/sh\n{listing}\n")
                (path / "nvidia-smi").chmod(0o755)
        yield


class Machines:
    """Processes in surroundings of their own, one after another: they share this one's."""

    def __init__(self, world: World, kind: str, path: Path) -> None:
        self._world, self._kind, self._path = world, kind, path
        self._alone = asyncio.Lock()

    def _lacks(self, there: bool) -> Lacks:
        async def lacks_there(handler: Any, basis: Any) -> DependencyError | None:
            async with self._alone:
                with surroundings(self._kind, there, self._path):
                    return await lacks(handlers(), handler, basis)

        return lacks_there

    async def process(self, toy: Toy, there: bool) -> None:
        """Begin one that has what runs of the kind need, or has not."""
        await self._world.bus(toy, evolve=evolve, lacks=self._lacks(there))


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_consumers, "LOOK_S", 0.1)
    monkeypatch.setattr(processes, "PATIENCE_S", 0.3)
    monkeypatch.setattr(dispatch, "HAND_BACK_S", 0.1)


def said(kind: str, lost: Recorded, handler: str) -> bool:
    """Whether the log names what is missing, what mends it, and both processes."""
    assert isinstance(lost.event, DependencyLost)
    what, mend = SAYS[kind]
    text = lost.event.message
    return (lost.event.dependency, lost.event.waiting) == (what, handler) and mend in text and text.count(" on ") >= 2


@pytest.mark.parametrize("kind", NEEDS)
async def test_a_message_goes_to_a_process_that_has_what_it_needs_and_never_to_another(
    world: World, tmp_path: Path, kind: str
) -> None:
    machines, toys = Machines(world, kind, tmp_path), [Toy(resolve, "attempt_task") for _ in range(3)]
    for toy in toys[:2]:
        await machines.process(toy, there=False)
    await world.put(started(small(**NEEDS[kind])), raised("a"))
    [lost] = await world.until(1, "DependencyLost")
    assert said(kind, lost, "attempt_task"), lost.event
    await machines.process(toys[2], there=True)
    await world.until(1)
    await world.until(1, "DependencyRestored")
    await world.put(*(raised(f"b{n}") for n in range(20)))
    await world.until(21)
    await world.put(started(small(), "r2"), *(raised(f"c{n}", "r2") for n in range(3)))
    await world.until(3, run="r2")
    assert not {name for toy in toys[:2] for name in toy.calls if name[0] != "c"}


async def solve(cause: Recorded, run: Any) -> list[Event]:
    return [AlarmResolved(alarm=cause.run)]


def submitted(run: str, kind: str) -> Recorded:
    task = Task(question="What is 7 * 8?", domain="math", family="open", level=1, canonical="7 * 8")
    config = small(**NEEDS[kind]).model_dump(mode="json")
    return event(
        TaskSubmitted(task="t0", attempt="t0-a0", source="r1", student="s", proposal=task, config=config, seed=0), run
    )


@pytest.mark.parametrize("kind", ["plugin", "key"])
async def test_a_submitted_task_goes_to_a_process_that_has_what_it_needs_and_never_to_another(
    world: World, tmp_path: Path, kind: str
) -> None:
    machines = Machines(world, kind, tmp_path)
    toys = [Toy(solve, "solve_submission", ("TaskSubmitted",)) for _ in range(3)]
    for toy in toys[:2]:
        await machines.process(toy, there=False)
    await world.log.append([submitted("submission-1", kind)])
    [lost] = await world.until(1, "DependencyLost", "submission-1")
    assert said(kind, lost, "solve_submission"), lost.event
    await machines.process(toys[2], there=True)
    await world.until(1, run="submission-1")
    await world.until(1, "DependencyRestored", "submission-1")
    await world.log.append([submitted("submission-2", kind)])
    await world.until(1, run="submission-2")
    assert [toy.calls for toy in toys] == [[], [], ["TaskSubmitted"] * 2]


async def test_what_a_process_left_behind_that_had_what_it_needs_is_missed_too(world: World, tmp_path: Path) -> None:
    """It was delivered once, and nobody has it in hand any more."""

    async def stand(cause: Recorded, run: Any) -> list[Event]:
        await asyncio.Event().wait()
        return []

    machines, having = Machines(world, "plugin", tmp_path), Toy(stand, "attempt_task")
    await machines.process(having, there=True)
    await world.put(started(small(**NEEDS["plugin"])), raised("a"))
    async with asyncio.timeout(60):
        while not having.calls:
            await asyncio.sleep(0.02)
    await world.stop(world.buses[0], grace_s=0)
    await machines.process(Toy(resolve, "attempt_task"), there=False)
    await world.until(1, "DependencyLost")


async def test_a_model_that_is_not_on_this_host_is_named(tmp_path: Path) -> None:
    state = evolve(None, started(small(student={"provider": "transformers", "model": str(tmp_path / "no-model")})))
    known = handlers()
    lacking = await lacks(known, known["attempt_task"], state)
    assert lacking and str(tmp_path / "no-model") in str(lacking)
    assert await lacks(known, known["verify_result"], state) is None
