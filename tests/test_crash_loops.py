"""A reaction during which its process ends: killed from outside it is done in the end, and one that ends every process
itself waits for a person, while everything else goes on."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from events.base import Recorded
from handlers.play import play
from infra.bus_work import SUSPECT
from tests.crashing import facts
from tests.processes import KINDS, Crew, until
from tests.world import ports

PATIENCE_S = 240.0

SIZES = {
    "RUN__ITERATIONS": "1",
    "RUN__TASKS": "4",
    "RUN__ATTEMPTS": "2",
    "RUN__EVALUATION__VALIDATION": "3",
    "RUN__EVALUATION__TEST": "3",
    "HANDLERS__ACK_WAIT_S": "1",
}
AT = "t0-000-a0"
SCRIPT = """
import asyncio, os, sys
from pathlib import Path
from agent0.cli import main
from handlers import Handler

reacts = Handler.__call__

async def ended(self, cause, run, ports):
    if self.name == {name!r} and cause.attempt == {at!r}:
        {end}
    return await reacts(self, cause, run, ports)

Handler.__call__ = ended
sys.argv = ["agent0", "handlers", "run", {name!r}]
main()
"""


def begin(crew: Crew, name: str, end: str) -> "subprocess.Popen[bytes]":
    """A process of the handler ``name`` that does ``end`` where it reacts to the attempt ``AT``."""
    script = SCRIPT.format(name=name, at=AT, end=end)
    with (crew.home / f"{name}.log").open("ab") as told:
        return subprocess.Popen([sys.executable, "-c", script], env=crew.env, cwd=crew.home, stdout=told, stderr=told)


def start(crew: Crew, name: str) -> str:
    """A run whose handler ``name`` runs nowhere yet."""
    run: str = crew.tell("run", "start", "--detach", "--json")["run"]
    crew.start("others", "handlers", "run", *(one for words in KINDS.values() for one in words[2:] if one != name))
    return run


async def heard(crew: Crew, run: str, holds: Callable[[list[Recorded]], bool]) -> list[Recorded]:
    """Everything of ``run``, once ``holds``."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(told := await crew.facts(run)):
            await asyncio.sleep(0.2)
    return told


def of(told: list[Recorded], kind: str) -> list[Recorded]:
    return [r for r in told if r.type == kind]


@pytest.mark.timeout(600)
async def test_thirteen_kills_during_one_reaction_lose_nothing(tmp_path: Path) -> None:
    with Crew(tmp_path, **SIZES) as crew:
        run = start(crew, "attempt_task")
        mark = tmp_path / "begun"
        for _ in range(13):
            process = begin(crew, "attempt_task", f"Path({str(mark)!r}).touch(); await asyncio.Event().wait()")
            try:
                await until(lambda: mark.exists() or process.poll() is not None, "the attempt to begin", PATIENCE_S)  # noqa: B023
                assert process.poll() is None, "it ended by itself"
            finally:
                process.kill()
                process.wait()
            mark.unlink()
        crew.start("student", "handlers", "run", "attempt_task")
        told = await heard(crew, run, lambda told: bool(of(told, "RunFinished")))
        missing = crew.tell("failures", "list", "--json")
    assert not of(told, "ReactionFailed") and not of(told, "ReactionDropped") and missing == []
    assert facts(told) == facts(await play(told[0], ports()))


@pytest.mark.timeout(600)
async def test_what_ends_every_process_waits_for_a_person_and_the_rest_goes_on(tmp_path: Path) -> None:
    with Crew(tmp_path, **SIZES, HANDLERS__MAX_CRASHES="2") as crew:
        run = start(crew, "verify_result")
        deaths, told = 0, list[Recorded]()
        while not of(told, "ReactionFailed"):
            process = begin(crew, "verify_result", "os._exit(9)")
            told = await heard(crew, run, lambda told: bool(of(told, "ReactionFailed")) or process.poll() is not None)  # noqa: B023
            deaths += process.poll() is not None
            assert process.poll() in (None, 9)
        assert deaths == SUSPECT + 2
        others = await heard(
            crew, run, lambda told: len(of(told, "ResultVerified")) == len(of(told, "TaskAttempted")) - 1
        )
        assert len(of(others, "TaskAttempted")) == 4 and not of(others, "ReactionDropped")
        assert process.poll() is None, "it goes on with the rest"
        (failed,) = of(told, "ReactionFailed")
        (named,) = crew.tell("failures", "list", "--json")
        shown = crew.tell("run", "show", run)
        process.terminate()
        process.wait()
        crew.start("verifier")
        crew.tell("failures", "retry", named["failure"])
        told = await heard(crew, run, lambda told: bool(of(told, "RunFinished")))
    assert (named["failure"], named["status"], named["error"]) == (failed.event.failure, "open", "CrashLoop")  # type: ignore[attr-defined]
    assert f"last 2 tries of verify_result at TaskAttempted of {AT}" in named["message"]
    assert f"{named['failure']} (open): verify_result at TaskAttempted of {AT}: CrashLoop" in shown
    assert f"agent0 failures retry {named['failure']}" in shown
    assert len(of(told, "ResultVerified")) == len(of(told, "TaskAttempted"))
    quiet = ("ReactionFailed", "ReactionRetried")
    assert facts([r for r in told if r.type not in quiet]) == facts(await play(told[0], ports()))
