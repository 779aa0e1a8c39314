"""Who carries a run through the command line: stops, second stops, failed starts, runs that nobody carries."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime import execution
from agent0.assembly.runtime.app import App, open_app, run_handlers
from agent0.assembly.runtime.progress import Progress
from agent0.assembly.runtime.read_models import catch_up
from agent0.config.loading import load
from agent0.infra.log.event_log import Log
from agent0.projections import Projector
from tests.patience import PATIENCE_S
from tests.terminal import agent0 as call
from tests.test_cli_run import SMALL


class Silent:
    """Sees nothing."""

    def say(self, text: str, *, warning: bool = False) -> None:
        pass

    async def follow(self, log: Log, run: str) -> Progress:
        raise AssertionError("nothing is followed here")


@pytest.fixture
def begun(tmp_path) -> tuple[Path, str]:
    """A run that nobody carries."""
    return tmp_path, call("run", "start", *SMALL, "--detach", "--json", home=tmp_path).json["run"]


def test_a_run_that_nobody_carries_is_said_to_be_stopped(begun: tuple[Path, str]) -> None:
    home, run = begun
    first = f"{run}: the run is stopped: no process executes it"
    for command in ("why", "show"):
        said = call("run", command, run, home=home).out
        assert said.startswith(first), said
        assert f"To mend it: agent0 run resume {run}" in said
    assert "is running" not in said and "is stopped, no process executes it: not begun" in said
    assert call("report", run, home=home).out.startswith(first)


async def test_a_stop_while_starting_is_obeyed(tmp_path, monkeypatch):
    from agent0.infra.bus.bus import Bus

    begun, start = asyncio.Event(), Bus.start

    async def announced(self: Bus) -> None:
        begun.set()
        await start(self)

    monkeypatch.setattr(Bus, "start", announced)
    async with open_app(load("scripted", {"home": str(tmp_path)}, {}), ["advance_run", "raise_alarm"]) as world:
        for turns in (0, 1, 2, 5, 20):
            work = asyncio.create_task(run_handlers(world))
            await begun.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            work.cancel()
            done, _ = await asyncio.wait([work], timeout=PATIENCE_S)
            assert done, "it goes on as if nothing had been said"
            begun.clear()


async def test_a_run_that_is_over_before_its_projector_has_begun_is_left(begun, monkeypatch):
    """Another process carried it to its end meanwhile: whatever the projector asks the server just then, it ends."""
    home, run = begun
    held = load("scripted", {"home": str(home)}, {})
    request, project = Client.request, Projector.follow
    over, following, asked = asyncio.Event(), asyncio.Event(), count(1)
    at = 0

    async def answered(self: Client, *arguments: Any, **more: Any) -> Any:
        answer = asyncio.ensure_future(request(self, *arguments, **more))
        if next(asked) == at:
            answer.add_done_callback(lambda _: over.set())
        return await asyncio.wait_for(answer, 60)  # as the client itself waits

    async def idle(_: App) -> None:
        await asyncio.Event().wait()

    class Waiting(Silent):
        async def follow(self, log: Log, run: str) -> Progress:
            await over.wait()
            return Progress()

    async def begins(self: Projector, read: Any, decode: Any = None) -> int:
        following.set()
        over.set()  # everything was asked before
        return await project(self, read, decode)

    monkeypatch.setattr("agent0.assembly.runtime.execution.run_handlers", idle)
    monkeypatch.setattr(Projector, "follow", begins)
    async with open_log(held) as log:
        await catch_up(held, log)  # so that there is a position to be looked at
        monkeypatch.setattr(Client, "request", answered)
        while not following.is_set():
            at, asked = at + 1, count(1)
            over.clear()
            work = asyncio.create_task(execution._execute(App(held, log, None, {}, {}), run, Waiting()))  # type: ignore[arg-type]
            done, _ = await asyncio.wait([work], timeout=PATIENCE_S)
            assert done, f"it goes on though it was to end at its request {at}"
    assert at > 5


def test_ctrl_c_stops_cleanly_and_resume_finishes(tmp_path):
    """A closed terminal: below."""
    slow = [*SMALL, "--iterations", "1", "-s", "run.student.model=latency=0.1", "--name", "slow"]
    command = [sys.executable, "-m", "agent0", "run", "start", *slow]
    environment = {**os.environ, "AGENT0_HOME": str(tmp_path)}
    root = Path(__file__).parents[1]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=root
    ) as process:
        assert process.stderr is not None
        _wait_for("untrained", process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "nothing is lost" in err
    run = err.rpartition("agent0 run resume ")[2].strip()
    assert call("run", "show", run, "--json", home=tmp_path).json["status"] == "paused"
    resumed = call("run", "resume", run, home=tmp_path)
    assert resumed.code == 0, resumed.err
    found = call("run", "show", "--json", home=tmp_path).json
    assert (found["run"], found["status"]) == (run, "finished")
    assert found["tasks"] == 4
    ids = call(
        "projections", "query", "SELECT count(*) - count(DISTINCT id) AS twice FROM events", "--json", home=tmp_path
    )
    assert ids.json == [{"twice": 0}]


STUBBORN = """
import asyncio
from agent0.cli.console import run_async, say

async def work():
    say("at work")
    try:
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(600)

run_async(work, "first words", "last words")
"""


def test_a_second_ctrl_c_leaves_at_once_and_says_so():
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stderr=subprocess.PIPE, text=True) as process:
        for words in ("at work", "first words"):
            _wait_for(words, process)
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (130, "last words\n")


DRAINS = """
import asyncio, pathlib, sys
import typer
from agent0 import cli
from agent0.cli.console import run_async, say

async def work():
    print("at work", flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        say("words that no terminal takes")
        pathlib.Path(path).touch()

app = typer.Typer()
app.command()(lambda: run_async(work, "stopping"))
cli.build, path = lambda *_: app, sys.argv.pop()
sys.argv.append("--")
cli.main()
"""


@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_is_closed_ends_work_cleanly_unless_it_is_not_to_hear_of_it(tmp_path, ignored):
    """As the kernel does it: a signal, and from then on an error for each byte written."""
    ours, theirs = os.openpty()

    def attach() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    command = [sys.executable, "-c", DRAINS, str(tmp_path / "drained")]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, preexec_fn=attach
    )
    os.close(theirs)
    heard = b""
    while b"\n" not in heard:
        heard += os.read(ours, 4096)
    os.close(ours)
    if ignored:
        process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + (signal.SIGTERM if ignored else signal.SIGHUP)
    assert (tmp_path / "drained").exists()


@pytest.mark.parametrize("look", ["run show", "events tail", "projections lag", "projections rebuild"])
def test_a_log_that_was_never_made_is_nothing_to_show(tmp_path, look):
    assert call("log", "check", home=tmp_path).err == (
        "error: There is no log yet. Run `agent0 log init`, or start a run: agent0 run start.\n"
    )
    told = call(*look.split(), home=tmp_path)
    assert told.code == 1
    assert "There is nothing to show yet." in told.err
    assert "agent0 run start" in told.err


def test_a_run_that_nobody_carries_does_not_ride_along(begun):
    home, ghost = begun
    told = call("run", "start", *SMALL, "--iterations", "1", home=home)
    assert told.code == 0, told.err
    assert f"agent0 run resume {ghost}\n" in told.err
    listed = call("run", "list", "--json", home=home).json
    assert {row["run"]: row["status"] for row in listed}[ghost] == "paused"
    assert sorted(row["status"] for row in listed) == ["finished", "paused"]
    assert [row["events"] for row in listed if row["run"] == ghost] == [2]


def test_a_run_is_left_alone_while_others_may_carry_it(begun):
    home, ghost = begun

    async def work() -> list[str]:
        async with (
            open_log(load("scripted", {"home": str(home)}, {})) as log,
            open_log(load("scripted", {"home": str(home)}, {})) as other,
        ):
            await execution.pause_abandoned(load("scripted", {"home": str(home)}, {}), log, "mine", Silent())
            return [r.type async for r in other.read(ghost)]

    call("run", "list", home=home)
    assert asyncio.run(work()) == ["RunStarted"]


def test_nothing_is_begun_where_the_tables_cannot_be_kept(begun):
    home, _ = begun
    call("run", "show", home=home)
    (home / "tables" / "view.db").resolve().write_bytes(b"no database at all" * 100)
    told = call("run", "start", *SMALL, home=home)
    assert told.code == 1
    assert "projections rebuild" in told.err
    assert "profile scripted" not in told.err
    assert call("projections", "rebuild", home=home).code == 0
    assert len(call("run", "list", "--json", home=home).json) == 1


def test_a_run_whose_process_fails_is_paused(tmp_path, monkeypatch):
    async def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agent0.assembly.runtime.execution.run_projector", broken)
    told = call("run", "start", *SMALL, home=tmp_path)
    assert told.code == 5
    assert told.err.index("profile scripted") < told.err.index("agent0 run resume ")
    assert [row["status"] for row in call("run", "list", "--json", home=tmp_path).json] == ["paused"]


def _wait_for(words: str, process: "subprocess.Popen[str]", patience_s: float = PATIENCE_S) -> None:
    assert process.stderr is not None
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        line = process.stderr.readline()
        assert line, "it ended"
        if words in line:
            return
    raise AssertionError(f"{words!r} was never said")
