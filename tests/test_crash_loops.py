"""A reaction during which its process ends: killed from outside it is done in the end, and one that ends every process
itself waits for a person, while everything else goes on."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent0.errors import ErrorKind
from agent0.events.base import Recorded
from agent0.infra.bus.deliveries import SUSPECT
from tests.crashing import facts
from tests.patience import PATIENCE_S
from tests.play import play
from tests.processes import KINDS, Crew
from tests.world import ports

pytestmark = pytest.mark.slow

SIZES = {
    "RUN__ITERATIONS": "1",
    "RUN__TASKS": "4",
    "RUN__ATTEMPTS": "2",
    "RUN__EVALUATION__VALIDATION": "3",
    "RUN__EVALUATION__TEST": "3",
    "HANDLERS__ACK_WAIT_S": "1",
}
REWARD, AT = "assign_reward", "t0-000-a0"
"""A handler whose processes begin fast, and the attempt that it is given."""
SCRIPT = """
import asyncio, os, sys
from pathlib import Path
from agent0.cli import main
from agent0.handlers import Handler

reacts = Handler.__call__

async def ended(self, cause, run, ports):
    if self.name == {name!r} and cause.attempt == {at!r}:
        {end}
    return await reacts(self, cause, run, ports)

Handler.__call__ = ended
sys.argv = ["agent0", "handlers", "run", {name!r}]
main()
"""


@contextmanager
def begun(crew: Crew, name: str, end: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the handler ``name`` that does ``end`` where it reacts to the attempt ``AT``; killed afterwards."""
    script = SCRIPT.format(name=name, at=AT, end=end)
    with (crew.home / f"{name}.log").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", script], env=crew.env, cwd=crew.home, stdout=output, stderr=output
        )
    try:
        yield process
        assert process.poll() in (None, 9, ErrorKind.DEPENDENCY.exit_code), crew.said(name)
    finally:
        process.kill()
        process.wait()


def start(crew: Crew, name: str) -> str:
    """A run whose handler ``name`` runs nowhere yet."""
    run: str = crew.tell("run", "start", "--detach", "--json")["run"]
    crew.start("others", "handlers", "run", *(one for words in KINDS.values() for one in words[2:] if one != name))
    return run


async def heard(crew: Crew, run: str, holds: Callable[[list[Recorded]], bool]) -> list[Recorded]:
    """Everything of ``run``, once ``holds``; what could not begin because the log did not answer is begun again."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(found := await crew.facts(run)):
            crew.revive()
            await asyncio.sleep(0.2)
    return found


def of(found: list[Recorded], kind: str) -> list[Recorded]:
    return [r for r in found if r.type == kind]


def rewarded(found: list[Recorded]) -> set[str]:
    """Attempts that have their reward."""
    return {r.attempt for r in of(found, "RewardAssigned")} - {"-"}


@pytest.mark.timeout(1500)
async def test_thirteen_kills_during_one_reaction_lose_nothing(tmp_path: Path) -> None:
    with Crew(tmp_path, **SIZES) as crew:
        run = start(crew, REWARD)
        mark = tmp_path / "begun"
        kills = 0
        while kills < 13:
            with begun(crew, REWARD, f"Path({str(mark)!r}).touch(); await asyncio.Event().wait()") as process:
                await heard(crew, run, lambda _: mark.exists() or process.poll() is not None)
            kills += mark.exists()
            mark.unlink(missing_ok=True)
        crew.start("rewarder")
        found = await heard(crew, run, lambda seen: bool(of(seen, "RunFinished")))
        missing = crew.tell("failures", "list", "--json")
    assert not of(found, "ReactionFailed") and not of(found, "ReactionDropped") and missing == []
    assert facts(found) == facts(await play(found[0], ports()))


@pytest.mark.timeout(1500)
async def test_what_ends_every_process_waits_for_a_person_and_the_rest_goes_on(tmp_path: Path) -> None:
    with Crew(tmp_path, **SIZES, HANDLERS__MAX_CRASHES="2") as crew:
        run = start(crew, REWARD)
        deaths, found = 0, list[Recorded]()
        while not of(found, "ReactionFailed"):
            with begun(crew, REWARD, "os._exit(9)") as process:
                found = await heard(
                    crew, run, lambda seen: bool(of(seen, "ReactionFailed")) or process.poll() is not None
                )
                deaths += process.poll() == 9
                if of(found, "ReactionFailed"):
                    found = await heard(crew, run, lambda seen: len(rewarded(seen)) == 3)
                    assert process.poll() is None, "it goes on with the rest"
        assert 2 <= deaths <= SUSPECT + 2  # a delivery that comes again to a slow process counts, too
        assert AT not in rewarded(found) and not of(found, "ReactionDropped")
        (failed,) = of(found, "ReactionFailed")
        (named,) = crew.tell("failures", "list", "--json")
        shown = crew.tell("run", "show", run)
        crew.start("rewarder")
        crew.tell("failures", "retry", named["failure"])
        found = await heard(crew, run, lambda seen: bool(of(seen, "RunFinished")))
    assert (named["failure"], named["status"], named["error"]) == (failed.event.failure, "open", "CrashLoop")  # type: ignore[attr-defined]
    assert f"last 2 tries of assign_reward at ResultVerified of {AT}" in named["message"]
    assert f"{named['failure']} (open): assign_reward at ResultVerified of {AT}: CrashLoop" in shown
    assert f"agent0 failures retry {named['failure']}" in shown
    assert rewarded(found) == {r.attempt for r in of(found, "TaskAttempted")}
    quiet = ("ReactionFailed", "ReactionRetried")
    assert facts([r for r in found if r.type not in quiet]) == facts(await play(found[0], ports()))
