"""A scripted run through the command line: started, looked at, stopped, resumed, paused, cancelled."""

import asyncio
import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.progress import Progress, frontier
from agent0.assembly.runtime.stamping import recorded
from agent0.cli.models.partner import partner
from agent0.config.loading import load
from agent0.events.alarms import AlarmRaised, AlarmResolved, ReactionFailed
from agent0.events.base import Event
from agent0.events.tasks import TaskProposed
from tests.kept_open import attached
from tests.terminal import Said
from tests.terminal import agent0 as call

SMALL = (
    *("--profile", "scripted", "--tasks", "4", "--attempts", "2"),
    *("-s", "run.evaluation.validation=4", "-s", "run.evaluation.test=4", "-s", "sandbox.workers=1"),
)
HOSTILE = "\x1b]0;owned\x07\x1b[2J plain"


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Iterator[tuple[Path, Said]]:
    """A data folder with one finished run, and what was said meanwhile. Only the command itself named the folder."""
    with attached(tmp_path_factory.mktemp("finished")) as home:
        there = ("--set", f"home={home}")
        yield home, call("run", "start", *SMALL, *there, "--name", "first run", home=home / "elsewhere")


@pytest.fixture
def home(finished) -> Path:
    return finished[0]


@pytest.fixture
def begun(tmp_path) -> Iterator[tuple[Path, str]]:
    """A run that nobody carries."""
    with attached(tmp_path) as home:
        yield home, call("run", "start", *SMALL, "--detach", "--json", home=home).json["run"]


def test_a_folder_that_only_the_command_names_is_the_one_that_is_read(finished):
    home, said = finished
    again = call("run", "resume", "LAST", "--set", f"home={home}", home=home / "elsewhere")
    for one in (said, again):
        assert one.code == 0 and "Learning curve" in one.out, one.err
        assert f"Next: AGENT0_HOME={home} agent0 run show" in one.err


def test_a_checkpoint_can_be_talked_to_as_its_run_had_it(home):
    """With its adapter: the scripted student's skill is in that. The chat itself leaves no trace."""
    before = call("events", "stats", "--json", home=home).json
    said = call("chat", "LAST/student-1", "--once", "What is 12+30?", "--temperature", "0", "--json", home=home)
    assert said.code == 0 and said.json["calls"][0]["output"] == "42" and said.json["answer"] == "42", said.err
    without = call("chat", "LAST", "--once", "What is 12+30?", "--no-tools", "--json", home=home).json["calls"]
    assert {made["state"] for made in without} <= {"error"}, "it may write calls, which nothing carries out"
    assert call("chat", "LAST/student-9", "--once", "hm", home=home).code == 1
    assert call("events", "stats", "--json", home=home).json == before
    run = call("run", "show", "LAST", "--json", home=home).json["run"]
    assert partner("LAST/student-1", None, None, {"home": str(home)})[2] == f"{run}/student-1"


def append(home: Path, run: str, *events: Event) -> None:
    async def work() -> None:
        async with open_log(load("scripted", {"home": str(home)}, {})) as log:
            await log.append([recorded(run, event) for event in events])

    asyncio.run(work())


def test_a_run_tells_how_it_goes_and_what_it_came_to(finished):
    _, said = finished
    assert said.code == 0, said.err
    for words in (
        "Run first-run-",
        "untrained",
        "iteration 0 of 0-1",
        "iteration 1 of 0-1",
        "events",
        "agent0 run story",
    ):
        assert words in said.err
    for words in (
        "finished",
        "untrained with its tool forced",
        "Not to be claimed",
        "Learning curve",
    ):
        assert words in said.out
    assert Path(said.out.rpartition("Learning curve: ")[2].strip()).read_bytes().startswith(b"\x89PNG")


def test_run_show_holds_what_others_read(home):
    found = call("run", "show", "LAST", "--json", home=home).json
    assert found["status"] == "finished"
    assert (found["profile"], found["name"], found["seed"]) == ("scripted", "first run", 0)
    assert [point["iteration"] for point in found["validation"]] == [-1, 0, 1]
    assert 0 <= found["heldout_first"] <= 1
    assert 0 <= found["heldout_last"] <= 1
    assert found["forced_tool"] == 1.0
    assert found["tasks"] == found["iterations"] * 4
    assert found["wall_s"] > 0
    assert len(found["targets"]) == 10, "one of them for the student's tools"
    listed = call("run", "list", "--json", home=home).json
    assert [row["run"] for row in listed] == [found["run"]]
    assert call("run", "show", found["run"], home=home).code == 0


def test_the_diet_of_a_scripted_run_says_who_wrote_it(home):
    said = call("run", "diet", "LAST", home=home)
    assert said.code == 0, said.err
    assert "tokens learned" in said.err and "Its model is scripted" in said.err


def test_a_student_without_tools_has_no_target_for_them(tmp_path):
    plain = (
        "--set",
        "run.student.tools=[]",
        "--set",
        "run.student.max_calls=0",
        "--set",
        "run.evaluation.forced_tool=false",
    )
    assert call("run", "start", *SMALL, *plain, "--detach", home=tmp_path).code == 0
    told = [target["target"] for target in call("run", "show", "--json", home=tmp_path).json["targets"]]
    assert len(told) == 9 and "tasks solved with a tool" not in told


def test_alarms_that_stand_are_told_at_the_end(begun):
    home, run = begun
    assert "Alarms" not in call("run", "show", run, home=home).out
    append(home, run, AlarmRaised(alarm="training-student", severity="warning", message="8 of 9 steps were no numbers"))
    assert "8 of 9 steps were no numbers" in call("run", "show", run, home=home).out
    assert [alarm["alarm"] for alarm in call("run", "show", run, "--json", home=home).json["alarms"]] == [
        "training-student"
    ]
    append(home, run, AlarmResolved(alarm="training-student"))
    assert "Alarms" not in call("run", "show", run, home=home).out


def test_the_curriculum_is_drawn_as_what_its_file_says(home, tmp_path):
    refused = call("curriculum", "draw", "--out", str(tmp_path / "x.png"), home=home)
    assert refused.code == 2 and ".svg" in refused.err and not list(tmp_path.iterdir())
    assert call("curriculum", "draw", "--out", str(tmp_path / "x.svg"), home=home).code == 0
    assert (tmp_path / "x.svg").read_text().lstrip().startswith("<svg")


def test_every_event_is_in_the_table_and_counted(home):
    run = call("run", "show", "--json", home=home).json
    tail = call("events", "tail", "-n", "100000", "--json", home=home).lines
    assert [event["seq"] for event in tail] == list(range(1, len(tail) + 1))
    assert run["events"] == sum(event["run"] == run["run"] for event in tail)
    assert {event["type"] for event in tail if event["run"] == "log"} == {"LogSealed"}
    assert sum(row["events"] for row in call("events", "stats", "--json", home=home).json) == len(tail)
    counted = call("projections", "query", "SELECT count(*) AS n FROM events", "--json", home=home).json
    assert counted == [{"n": len(tail)}]
    assert call("projections", "lag", "--json", home=home).json == {"log": len(tail), "tables": len(tail), "lag": 0}


def test_the_story_is_an_unbroken_chain(home):
    steps = call("run", "story", "LAST", "--json", home=home).json
    types = [step["type"] for step in steps]
    assert (types[0], types[-1]) == ("RunStarted", "RunFinished")
    assert "CheckpointTrained" in types
    assert all(step["cause"] == before["id"] for before, step in pairwise(steps))
    assert "RunFinished" in call("run", "story", home=home).out


def test_a_broken_chain_is_an_error(begun):
    home, run = begun
    call("run", "show", home=home)
    with sqlite3.connect(home / "tables" / "view.db") as db:
        db.execute("UPDATE events SET type = 'RunPaused', cause = 'gone' WHERE type = 'RunStarted'")
    assert call("run", "story", run, home=home).code == 1


def test_progress_read_from_the_log_agrees_with_the_tables(home):
    async def replay() -> tuple[Progress, list[object]]:
        progress, made = Progress(), []
        async with open_log(load("scripted", {"home": str(home)}, {}), "reader") as log:
            async for one in log.read():
                made.append(progress.feed(one))
        return progress, [m for m in made if m]

    progress, milestones = asyncio.run(replay())
    curve = call("run", "show", "--json", home=home).json["validation"]
    assert progress.over
    assert progress.state is not None
    assert frontier(progress.state) is not None
    assert [m.iteration for m in milestones] == [point["iteration"] for point in curve]
    assert [m.accuracy for m in milestones] == [point["validation"] for point in curve]
    assert [m.reward for m in milestones[1:]] == pytest.approx([point["reward"] for point in curve[1:]])
    assert [m.frontier for m in milestones[1:]] == pytest.approx([point["frontier"] for point in curve[1:]])
    assert sum(m.events for m in milestones) <= progress.events


def test_tasks_and_trajectories_are_shown_and_exported(home):
    tasks = call("task", "list", "--json", home=home).json
    shown = call("task", "show", tasks[0]["task"], "--json", home=home).json
    assert shown["task"] == tasks[0]["task"]
    tried = call("trajectory", "list", "--json", home=home).json
    attempt = call("trajectory", "show", tried[0]["attempt"], "--json", home=home).json
    assert attempt["transcript"][-1]["role"] == "assistant"
    assert attempt["receipts"]
    assert tried[0]["attempt"] in call("trajectory", "show", tried[0]["attempt"], home=home).out
    exported = call("trajectory", "export", home=home).lines
    assert [row["attempt"] for row in exported] == [row["attempt"] for row in tried]
    for row in call("trajectory", "export", "--format", "trl", home=home).lines:
        assert row["prompt"]
        assert row["completion"][0]["role"] == "assistant"
    assert call("task", "show", "t9-999", home=home).code == 1


def test_events_are_found_by_number_id_and_words(home):
    first = call("events", "show", "1", "--json", home=home).json
    assert first["type"] == "RunStarted"
    assert first["effects"]
    assert call("events", "show", first["id"], "--json", home=home).json["seq"] == 1
    found = call("events", "grep", "run", "finished", "--run", "LAST", "--json", home=home).json
    assert "RunFinished" in {row["type"] for row in found}
    assert call("events", "grep", "zzzzzz", "--json", home=home).json == []
    one = call("events", "tail", "-t", "RunFinished", home=home).out
    assert one.count("\n") == 1


def test_a_query_can_only_read(home):
    assert call("projections", "query", "-", "--json", home=home, stdin="SELECT 1 AS x").json == [{"x": 1}]
    for evil in ("DELETE FROM runs", "ATTACH '/tmp/x' AS y", "PRAGMA journal_mode=DELETE", "SELECT 1; SELECT 2"):
        assert call("projections", "query", evil, home=home).code == 2
    slow = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT max(x) FROM c"
    assert call("projections", "query", slow, "--timeout", "0.1", home=home).code == 1


def test_tables_are_verified_rebuilt_and_rolled_back(home):
    good = call("projections", "rebuild", "--verify", "--json", home=home)
    assert good.code == 0
    assert len(good.json["sha256"]) == len(call("projections", "list", "--json", home=home).json)
    with sqlite3.connect(home / "tables" / "view.db") as db:
        attempt = db.execute("SELECT attempt FROM attempts LIMIT 1").fetchone()[0]
        db.execute("UPDATE attempts SET answer = 'edited' WHERE attempt = ?", (attempt,))
    bad = call("projections", "rebuild", "--verify", home=home)
    assert bad.code == 1
    assert "attempts" in bad.err
    assert attempt in bad.err
    assert call("projections", "rebuild", home=home).code == 0
    assert call("projections", "rebuild", "--verify", home=home).code == 0
    assert call("projections", "rollback", home=home).code == 0
    assert call("run", "show", home=home).code == 0


def test_damaged_tables_are_told_and_mended(begun):
    home, _ = begun
    call("run", "show", home=home)
    (home / "tables" / "view.db").resolve().write_bytes(b"no database at all" * 100)
    told = call("run", "show", home=home)
    assert told.code == 1
    assert "projections rebuild" in told.err
    assert call("projections", "rebuild", home=home).code == 0
    assert call("run", "show", home=home).code == 0


def test_a_finished_run_cannot_be_changed(home):
    for verb in (("pause",), ("cancel", "--yes")):
        told = call("run", *verb, "LAST", home=home)
        assert told.code == 1
        assert "is finished" in told.err
    before = call("projections", "lag", "--json", home=home).json["log"]
    again = call("run", "resume", "LAST", home=home)
    assert again.code == 0
    assert "is finished" in again.err
    assert call("projections", "lag", "--json", home=home).json["log"] == before


def test_a_run_has_the_priority_that_was_given_last_until_it_is_over(begun):
    home, run = begun
    for number in ("0", "101", "high"):
        refused = call("run", "priority", "LAST", number, home=home)
        assert refused.code == 2
        assert len(refused.err.splitlines()) < 12
    assert call("run", "priority", run, "40", "--json", home=home).json == {"run": run, "event": "PriorityChanged"}
    assert call("run", "cancel", "--yes", home=home).code == 0
    late = call("run", "priority", "LAST", "40", home=home)
    assert late.code == 1
    assert "is cancelled" in late.err


def test_a_run_is_paused_resumed_and_cancelled(begun):
    home, run = begun
    assert call("run", "show", run, "--json", home=home).json["status"] == "running"
    assert call("run", "pause", "LAST", "--reason", "lunch", home=home).code == 0
    assert call("run", "show", "--json", home=home).json["status"] == "paused"
    again = call("run", "pause", home=home)
    assert again.code == 0
    assert "is paused already" in again.err
    assert call("run", "resume", "--detach", "--json", home=home).json == {"run": run, "status": "running"}
    assert call("run", "cancel", home=home, stdin="n\n").code == 1
    assert call("run", "show", "--json", home=home).json["status"] == "running"
    assert call("run", "cancel", "--yes", home=home).code == 0
    assert call("run", "resume", home=home).code == 1
    types = [e["type"] for e in call("events", "tail", "--run", run, "--json", home=home).lines]
    assert types == ["RunStarted", "RunPaused", "RunResumed", "RunCancelled"]
    watched = call("run", "watch", run, home=home)
    assert watched.code == 1
    assert "cancelled" in watched.err


def test_failures_are_shown_retried_and_dropped(begun):
    home, run = begun
    cause = call("events", "show", "1", "--json", home=home).json["id"]
    facts = {"cause_id": cause, "cause_seq": 1, "cause_type": "RunStarted", "failed_handler": "advance_run"}
    told = {**facts, "error": "ValueError", "message": HOSTILE, "traceback": "Traceback…", "deliveries": 3}
    append(home, run, ReactionFailed(failure="f-one", **told), ReactionFailed(failure="f-two", **told))
    assert {row["failure"] for row in call("failures", "list", "--json", home=home).json} == {"f-one", "f-two"}
    assert call("failures", "show", "f-o", "--json", home=home).json["cause"]["type"] == "RunStarted"
    assert call("failures", "show", "f-", home=home).code == 1
    assert call("failures", "retry", "f-one", home=home).code == 0
    assert call("failures", "retry", "f-one", home=home).code == 1
    assert call("failures", "drop", "f-two", "--reason", "no use", home=home).code == 0
    assert [row["failure"] for row in call("failures", "list", "--json", home=home).json] == ["f-two"]
    assert call("failures", "list", "--status", "open", "--json", home=home).json == []
    shown = call("run", "show", run, home=home)
    assert "f-two (dropped): advance_run at RunStarted: ValueError" in shown.out
    assert "went on without it (no use)" in shown.out
    assert "f-one" not in shown.out
    assert [row["failure"] for row in call("run", "show", run, "--json", home=home).json["failures"]] == ["f-two"]
    statuses = {
        row["failure"]: row["status"] for row in call("failures", "list", "--status", "all", "--json", home=home).json
    }
    assert statuses == {"f-one": "retried", "f-two": "dropped"}


def test_text_of_a_model_cannot_drive_the_terminal(begun):
    home, run = begun
    where = {"task": "t0-000", "iteration": 0, "slot": 0, "teacher": "base", "prompt": "p"}
    append(home, run, TaskProposed(**where, text=HOSTILE, proposal=None, problem=HOSTILE))
    looks = [
        ("events", "tail"),
        ("events", "show", "2"),
        ("events", "grep", "plain"),
        ("task", "list"),
        ("run", "story"),
    ]
    looks += [
        ("task", "show", "t0-000"),
        ("projections", "query", "SELECT body FROM events"),
        ("events", "tail", "--json"),
    ]
    for look in looks:
        said = call(*look, home=home)
        assert said.code == 0, said.err
        assert "\x1b" not in said.out + said.err
        assert "\x07" not in said.out + said.err


def test_a_log_that_drifted_is_refused_by_name(tmp_path):
    assert call("log", "init", home=tmp_path).code == 0
    assert call("log", "init", home=tmp_path).code == 0
    assert call("log", "check", "--json", home=tmp_path).json["state"] == "ok"
    told = call("log", "check", "-s", "nats.duplicate_window_s=77", home=tmp_path)
    assert told.code == 1
    assert "duplicate_window" in told.err
    told = call("run", "start", *SMALL, "-s", "handlers.ack_wait_s=3", home=tmp_path)
    assert told.code == 1
    assert "agent0 log init" in told.err
    assert call("run", "list", "--json", home=tmp_path).json == []


@pytest.fixture
def away(monkeypatch) -> None:
    """The server is elsewhere and does not answer."""
    monkeypatch.setenv("AGENT0_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setattr("agent0.infra.log.connection.CONNECT_S", 0.3)


def test_an_unreachable_server_is_exit_5(tmp_path, away):
    told = call("run", "start", *SMALL, home=tmp_path)
    assert told.code == 5
    assert "127.0.0.1:1" in told.err


def test_tables_can_be_read_while_the_server_is_away(finished, away):
    told = call("run", "show", home=finished[0])
    assert told.code == 0
    assert "may be behind" in told.err
