"""A disk that fills while a run goes on: its handlers wait, every screen says so, and ``give_up_after`` ends it."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent0.assembly.runtime import execution, read_models
from agent0.errors import DependencyError
from agent0.infra.storage import files as disk
from agent0.infra.storage import sqlite
from tests.terminal import agent0 as call

ROOT = Path(__file__).parents[1]
SMALL = ("--profile", "scripted", "--tasks", "2", "--iterations", "1", "--set", "run.evaluation.validation=2")
SMALLER = (*SMALL, "--set", "run.evaluation.test=0", "--json")


class Disk:
    """How much is free, as every look at it finds."""

    def __init__(self) -> None:
        self.free = 1 << 40

    def usage(self, _: object) -> SimpleNamespace:
        return SimpleNamespace(total=1 << 41, used=1 << 40, free=self.free)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Disk]:
    made = Disk()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", made.usage)
    yield made


def test_less_than_the_reserve_is_no_room(held: Disk, tmp_path: Path) -> None:
    disk.require_room(tmp_path)
    held.free = disk.RESERVE - 1
    with pytest.raises(DependencyError, match="disk is full: 64 MiB are free"):
        disk.require_room(tmp_path)


def test_a_disk_that_fills_ends_a_run_that_gives_up_and_is_on_every_screen(
    held: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    real, after = execution.append_begin, []

    async def filled(*given: object) -> None:
        await real(*given)  # type: ignore[arg-type]
        held.free = held.free if after else 1 << 20
        after.append(True)

    monkeypatch.setattr(execution, "append_begin", filled)
    said = call("run", "start", *SMALLER, "--set", "run.give_up_after=0.2", home=home)
    assert after and said.code == 6, said.err
    assert "for disk space (run.give_up_after is 0.2)" in said.err
    for words in (("run", "show"), ("run", "why"), ("run", "list")):
        assert "disk" in call(*words, home=home).out, words
    held.free = 1 << 40
    assert call("run", "resume", "--json", home=home).code == 0, "what it has is gone on with"


def test_a_run_that_waits_for_space_says_so_where_its_log_cannot(held: Disk, tmp_path: Path) -> None:
    home = tmp_path / "home"
    call("run", "start", *SMALLER, "--detach", home=home)
    held.free = 1 << 20
    for words in (("run", "list"), ("run", "show"), ("run", "why"), ("status",)):
        said = call(*words, home=home)
        assert said.code == 0 and "disk is full" in said.out, (words, said.err)


def test_reading_needs_no_writing(held: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that cannot be carried on are shown as they are, and a database is read without its shared memory."""
    home = tmp_path / "home"
    call("run", "start", *SMALLER, "--detach", home=home)
    assert call("run", "list", home=home).code == 0
    (home / "tables" / "current.json").unlink(missing_ok=True)

    async def full(*_: object) -> str:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(read_models, "_carried_on", full)
    opened = sqlite._opened

    def without_room(path: Path, mode: str, *, alone: bool = False) -> sqlite3.Connection:
        if not alone:
            raise sqlite3.OperationalError("disk I/O error")
        return opened(path, mode, alone=alone)

    held.free = 0
    monkeypatch.setattr(sqlite, "_opened", without_room)
    said = call("run", "list", home=home)
    assert said.code == 0 and "as they were carried on last" in said.err
    assert "running" in said.out or "stopped" in said.out


async def test_an_execution_without_any_room_ends_after_give_up_after(
    held: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not even a failure can be stored."""
    from agent0.assembly.runtime.app import App, started
    from agent0.config.loading import load
    from agent0.errors import RunFailedError

    settings = load("scripted", {"home": str(tmp_path), "nats.url": "", "run.give_up_after": "3"}, {})
    begun = started(settings)

    class Log:
        async def read(self, *_: object) -> "object":
            yield begun

    looks: list[float] = []

    async def at_once(seconds: float) -> None:
        looks.append(seconds)

    monkeypatch.setattr(execution.asyncio, "sleep", at_once)
    held.free = 0
    with pytest.raises(RunFailedError, match="give_up_after is 3") as caught:
        await execution._end_without_room(App(settings, Log(), None, {}, {}), begun.run)  # type: ignore[arg-type]
    assert sum(looks) == 3 + execution.RECORD_S and "run resume" in str(caught.value)


def test_a_folder_that_cannot_be_written_to_can_be_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert call("run", "start", *SMALLER, home=home).code == 0
    (home / "tables" / "current.json").unlink()  # so that they would be carried on
    bound = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", str(home), str(home))
    bound += ("--setenv", "AGENT0_HOME", str(home))
    for words, word in ((("run", "list"), "finished"), (("run", "why", "LAST"), "First bad step")):
        command = ("bwrap", *bound, sys.executable, "-m", "agent0", *words)
        found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        assert found.returncode == 0 and "cannot be written to" in found.stderr, found.stderr
        assert word in found.stdout, found.stdout
