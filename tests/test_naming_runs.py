"""How a user names a run and a place in it, who carries it, and what the tables know without the log's server."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent0.assembly.log.carriers import carried, carrier_line, carriers, carrying
from agent0.assembly.runtime import read_models
from agent0.config.loading import load
from agent0.events.tasks import TaskRequested
from agent0.settings import Settings
from tests import test_forking
from tests.kept_open import attached
from tests.story import benchmark_run, renumbered, whole_run
from tests.story_ends import failed_run
from tests.terminal import agent0 as call
from tests.test_report import told

SMALL = (
    *("--profile", "scripted", "--tasks", "3", "--attempts", "2", "--iterations", "2"),
    *("-s", "run.evaluation.validation=4", "-s", "run.evaluation.test=4", "-s", "sandbox.workers=1"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of three runs: ``story-one`` and ``story-two``, of one name, and ``r8``, which started last."""
    folder = tmp_path_factory.mktemp("named")
    events = [*whole_run("story-one")]
    for more in (whole_run("story-two"), failed_run(), benchmark_run()):
        events += renumbered(more, len(events))
    (folder / "tables").mkdir()
    told(events, folder / "tables" / "view.db").close()
    return folder


def run_of(home: Path, name: str) -> str:
    said = call("run", "show", name, "--json", home=home)
    assert said.code == 0, said.err
    return str(said.json["run"])


def test_a_run_is_named_by_id_beginning_name_or_age(home: Path) -> None:
    newest = [row["run"] for row in call("run", "list", "--json", home=home).json]
    for place, run in enumerate(newest):
        assert run_of(home, f"LAST~{place}") == run_of(home, run) == run
    assert run_of(home, "LAST") == newest[0]
    assert run_of(home, "story-t") == "story-two" == run_of(home, "story story-two")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("story-", "2 runs are called 'story-' or begin so. story-"),
        ("story-tow", "Did you mean story-two?"),
        ("LAST~9", "There are 3 runs: the oldest is LAST~2."),
        ("", "There is no run ''."),
        ("%", "There is no run '%'."),
    ],
)
@pytest.mark.parametrize("command", ["run show", "task list", "report", "run story", "curriculum show", "run diff r8"])
def test_a_name_that_is_none_or_of_several_is_refused_by_every_command(
    home: Path, command: str, name: str, said: str
) -> None:
    told = call(*command.split(), name, home=home)
    assert told.code == 1 and said in told.err and told.err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        "model list --run",
        "experiment list --run",
        "failures list --run",
        "events grep run --run",
        "task list",
        "report",
    ],
)
def test_every_command_that_takes_a_run_takes_a_beginning_of_its_id(home: Path, command: str) -> None:
    by_id, by_beginning = (call(*command.split(), name, "--json", home=home) for name in ("story-two", "story-t"))
    assert by_id.code == 0 and by_id.out == by_beginning.out


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run whose server has ended."""
    folder = tmp_path_factory.mktemp("lone")
    assert call("run", "start", *SMALL, "--name", "one", home=folder).code == 0
    return folder


@pytest.fixture
def served(lone: Path) -> Iterator[Path]:
    """The same folder; commands find a server there, and start none."""
    with attached(lone):
        yield lone


def test_a_place_in_a_run_is_told_by_count_or_iteration(served: Path) -> None:
    first = call("run", "show", "--at", "+0", "--json", home=served).json
    assert first["seq"] == call("events", "tail", "-t", "RunStarted", "--json", home=served).lines[0]["seq"]
    second = call("run", "show", "--at", "iteration:1", "--json", home=served).json
    assert second["tasks"] == 3 and second["iteration"] == 1
    asked = [e["seq"] for e in call("events", "tail", "-t", "TaskRequested", "-n", "99", "--json", home=served).lines]
    assert asked[2] < second["seq"] < asked[3]
    forked = call("run", "fork", "--at", "iteration:1", "--detach", "--json", home=served).json
    assert forked["parent_seq"] == second["seq"]
    assert call("run", "cancel", forked["run"], "--yes", home=served).code == 0


def test_iterations_of_a_fork_have_the_numbers_that_screens_show(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    events = test_forking.forked(test_forking.place(2))
    told([*events], tmp_path / "tables" / "view.db").close()
    asked = [e for e in events if isinstance(e.event, TaskRequested)]
    own = next(e for e in asked if e.run == "f1")
    assert own.event.iteration == 2, "it began in the middle of another"
    shown = call("events", "show", "iteration:2", "--run", "f1", "--json", home=tmp_path).json
    assert shown["run"] == "f1" and shown["seq"] == own.seq - 1
    past = call("events", "show", "iteration:0", "--run", "f1", home=tmp_path)
    assert past.code == 1 and f"It began in its parent r1, at event {asked[0].seq - 1}." in past.err
    beyond = call("events", "show", "iteration:9", "--run", "f1", home=tmp_path)
    assert beyond.code == 1 and "It has begun iteration:2 to iteration:2, within its events" in beyond.err


@pytest.mark.parametrize(
    ("at", "code", "said"),
    [
        ("iteration:2", 1, "iteration:0 to iteration:1, within its events 1 to "),
        ("+99999", 1, "It has +0 to +"),
        ("99999", 1, "It begins at event 1 and ends at event "),
        ("iteration:7", 1, "has no iteration:7"),
        ("next", 2, "iteration:N"),
        ("-1", 2, "iteration:N"),
    ],
)
def test_a_place_that_is_none_is_refused_with_the_range(lone: Path, at: str, code: int, said: str) -> None:
    told = call("run", "show", "one", f"--at={at}", home=lone)
    assert told.code == code and said in told.err


def test_an_event_is_shown_by_its_place_in_a_run_or_refused_with_the_range(lone: Path) -> None:
    begun = call("events", "show", "+0", "--run", "one", "--json", home=lone).json
    assert begun["type"] == "RunStarted" and begun["run"].startswith("one")
    assert call("events", "show", "iteration:1", "--run", "one", home=lone).code == 0
    beyond = call("events", "show", "+99999", home=lone)
    assert beyond.code == 1 and "It has +0 to +" in beyond.err
    nowhere = call("events", "show", "99999", home=lone)
    assert nowhere.code == 1 and "There are events 1 to " in nowhere.err


def test_the_newest_events_are_told_of_how_many(lone: Path) -> None:
    events = len(call("events", "tail", "--run", "one", "-n", "99999", "--json", home=lone).lines)
    few = call("events", "tail", "--run", "one", "-n", "3", home=lone)
    assert len(few.out.splitlines()) == 3 and f"3 of {events:,}; --limit shows more." in few.err
    assert "--limit" not in call("events", "tail", "--run", "one", "-n", "99999", home=lone).err
    assert "--limit" not in call("events", "tail", "--run", "one", "-n", "3", "--json", home=lone).err


# --- without the server ----------------------------------------------------------------------------------------------


def settings(home: Path, url: str = "") -> Settings:
    return load("scripted", {"home": str(home), "nats.url": url}, {})


def test_tables_that_hold_all_of_a_log_at_rest_are_read_without_its_server(
    lone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("run", "list", home=lone)  # carries the tables on
    assert read_models.tables_current(settings(lone))
    listed = call("events", "tail", "-n", "5", "--json", home=lone).lines

    def started(*_: object) -> None:
        raise AssertionError("the server is asked")

    monkeypatch.setattr("agent0.infra.log.nats_server.Server.start", started)
    assert call("run", "list", home=lone).code == call("task", "list", home=lone).code == 0
    assert call("events", "tail", "-n", "5", "--json", home=lone).lines == listed


def test_a_log_that_went_on_is_read_again(served: Path) -> None:
    call("run", "list", home=served)
    before = call("events", "tail", "-n", "1", "--json", home=served).lines[0]["seq"]
    begun = call("run", "start", *SMALL, "--detach", "--json", home=served).json["run"]
    assert not read_models.tables_current(settings(served))
    assert call("events", "tail", "-n", "1", "--json", home=served).lines[0]["seq"] > before
    assert begun in {row["run"] for row in call("run", "list", "--json", home=served).json}
    call("run", "cancel", begun, "--yes", home=served)


def test_tables_of_other_code_are_not_taken_for_current(lone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("run", "list", home=lone)
    monkeypatch.setattr(read_models, "_PROJECTIONS", Path(__file__).parent)
    assert not read_models.tables_current(settings(lone))


@contextmanager
def silent(*, accepts: bool) -> Iterator[str]:
    """A port on which nobody answers, or one that takes connections and says nothing."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if accepts:
            taken.listen()
        yield f"nats://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("command", ["run list", "run show one", "task list one", "events tail"])
def test_a_dead_server_delays_nothing_that_is_on_disk(
    lone: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not even asked for a log: a connection would be tried for ten seconds."""

    def connected(*_: object, **__: object) -> None:
        raise AssertionError("the log is asked for")

    monkeypatch.setattr("agent0.infra.log.event_log.Log.connect", connected)
    monkeypatch.setattr(read_models, "PATIENCE_S", 0.05)
    with silent(accepts=command == "events tail") as url:
        monkeypatch.setenv("AGENT0_NATS_URL", url)
        said = call(*command.split(), home=lone)
    assert said.code == 0 and said.out and "may be behind" in said.err


# --- who carries a run -----------------------------------------------------------------------------------------------


def test_a_run_is_carried_as_long_as_its_process_holds_a_lock(tmp_path: Path) -> None:
    held, rows = settings(tmp_path), [{"run": "r1", "status": "running"}, {"run": "r0", "status": "finished"}]
    assert carriers(held) == [] and [row["carried"] for row in carried(held, rows)] == [False, None]
    assert "No process executes run r1" in carrier_line(held, "r1") and "agent0 run resume r1" in carrier_line(
        held, "r1"
    )
    with carrying(held, 9):
        (one,) = carriers(held) or []
        assert (one.pid, one.handlers) == (os.getpid(), 9)
        assert [row["carried"] for row in carried(held, rows)] == [True, None]
        assert f"executed by process {os.getpid()}" in carrier_line(held, "r1")
        (note,) = (tmp_path / "carriers").iterdir()
        kept = note.read_text()
    assert carriers(held) == []
    note.write_text(kept)  # of a process that was killed: nobody holds it
    assert carriers(held) == [] and not note.exists()
    note.write_text(kept)
    with note.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert len(carriers(held) or []) == 1
    assert carriers(settings(tmp_path, "nats://elsewhere:4222")) is None


def test_a_run_that_nobody_carries_is_listed_as_stopped(served: Path) -> None:
    run = call("run", "start", *SMALL, "--detach", "--json", home=served).json["run"]
    row = next(row for row in call("run", "list", "--json", home=served).json if row["run"] == run)
    assert (row["status"], row["carried"]) == ("running", False)
    (line,) = (line for line in call("run", "list", home=served).out.splitlines() if line.startswith(run))
    assert line.split("\t")[1] == "stopped"
    assert f"agent0 run resume {run}" in call("run", "show", run, home=served).out
    call("run", "cancel", run, "--yes", home=served)
