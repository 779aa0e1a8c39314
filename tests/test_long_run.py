"""Long tasks through the real loop: real log, real sandbox, real processes, scripted models."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import recorded
from agent0.config.loading import load as load_settings
from agent0.events import tasks
from agent0.events.base import Recorded
from agent0.events.runs import RunPaused, RunResumed, RunStarted
from agent0.events.values import Artifact
from agent0.infra.log.event_log import Log
from agent0.infra.log.streams import EVENTS
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.rollout.claim_check import get_progress
from agent0.tools.snapshots import load
from tests.kept_open import attached
from tests.patience import until
from tests.processes import KINDS, Crew
from tests.terminal import Said, agent0
from tests.test_long_attempts import LONG, STORY, World, asked
from tests.world import small


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where a run of the profile ``long`` was finished."""
    fewer = ("run.evaluation.validation=2", "run.evaluation.test=0", "sandbox.workers=1")
    with attached(tmp_path_factory.mktemp("long")) as home:
        said = agent0("run", "start", "--profile", "long", *(f"--set={one}" for one in fewer), home=home)
        assert said.code == 0, said.err
        yield home


def of_home(home: Path, *arguments: str) -> Said:
    said = agent0(*arguments, home=home)
    assert said.code == 0, said.err
    return said


@pytest.fixture(scope="module")
def attempts(home: Path) -> list[dict[str, Any]]:
    """Every attempt of the run as ``trajectory show --json`` has it."""
    listed = of_home(home, "trajectory", "list", "LAST", "--json").json
    return [of_home(home, "trajectory", "show", row["attempt"], "LAST", "--json").json for row in listed]


def rollbacks(attempt: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for call in attempt["calls"] if call["tool"] == "rollback" and call["state"] == "ok"]


def whole(attempt: dict[str, Any]) -> bool:
    """Right, and right in every step."""
    return bool(attempt["correct"]) and attempt["credit"] == 1.0 and bool(attempt["calls"])


def test_a_long_task_is_solved_with_files_kept_and_a_mistake_undone(home: Path, attempts: list[dict[str, Any]]) -> None:
    solved = [attempt for attempt in attempts if whole(attempt)]
    assert solved
    store = FileArtifacts(home)
    for attempt in solved:
        assert attempt["turns"] >= 6
        (back,) = rollbacks(attempt)
        folders = [call["work"] for call in attempt["calls"]]
        assert all(folders) and len(set(folders)) >= 3
        assert back["work"] in folders[: back["number"] - 1] and back["work"] != folders[back["number"] - 1]
        called = {call["call"]: call["work"] for call in attempt["calls"]}
        assert back["work"] == called[str(back["arguments"]["call"])], "one numbering"
        kept = [load(Artifact(sha256=digest, size=0), store) for digest in folders]
        assert [len(files) for files in kept] == [call["files"] for call in attempt["calls"]]
        assert attempt["work"] == folders[-1]
        (verdict,) = attempt["verdicts"]
        assert verdict["subgoals"] == [True] * len(attempt["wanted"]) and len(attempt["subgoals"]) >= 3
        roles = [turn["role"] for turn in attempt["transcript"]]
        assert roles.count("assistant") == attempt["turns"] and roles.count("tool") == len(attempt["calls"])


def test_every_turn_but_the_last_is_an_event_and_an_artifact(home: Path, attempts: list[dict[str, Any]]) -> None:
    query = "SELECT attempt, body FROM events WHERE type = 'TurnCompleted' ORDER BY seq"
    stored = of_home(home, "projections", "query", query, "--json").json
    by_attempt = defaultdict(list)
    for row in stored:
        by_attempt[row["attempt"]].append(tasks.TurnCompleted.model_validate(json.loads(row["body"])["data"]))
    for attempt in attempts:
        turns = by_attempt.pop(attempt["attempt"], [])
        assert [turn.turn for turn in turns] == list(range(1, attempt["turns"]))
        if turns:
            now = asyncio.run(get_progress(turns[-1].progress, FileArtifacts(home)))
            said = [turn.content for turn in now.transcript]
            assert said == [turn["content"] for turn in attempt["transcript"]][: len(said)]
    assert not by_attempt


def test_a_person_can_read_it(home: Path, attempts: list[dict[str, Any]]) -> None:
    best = next(attempt for attempt in attempts if whole(attempt))
    text = of_home(home, "trajectory", "show", best["attempt"]).out
    for number in range(1, best["turns"] + 1):
        assert f"[assistant, turn {number}]" in text
    assert "[tool rollback: ok, rolled back, 1 file, " in text
    assert [call["call"] for call in best["calls"]] == [str(n) for n, _ in enumerate(best["calls"], 1)]
    assert best["calls"][0]["work"][:12] in text and best["work"] in text
    assert "subgoals" in text and all(wanted in text for wanted in best["wanted"])


def test_an_attempt_that_goes_on_can_be_read_too(tmp_path: Path) -> None:
    """As a killed student left it: what was said so far comes from the progress that was stored."""
    world = World(STORY, {"long_factor": 5}, FileArtifacts(tmp_path))

    async def told() -> None:
        out = await world.react(asked())
        while len([event for event in out if isinstance(event, tasks.TurnCompleted)]) < 4:
            out += await world.react(out[-1])
        run = small()
        begun = RunStarted(name="x", profile="scripted", seed=0, config=run.model_dump(mode="json"), config_sha="")
        async with open_log(load_settings("scripted", {"home": str(tmp_path)}, {}), make=True) as log:
            await log.append([recorded("r1", event) for event in (begun, asked(), *out)])

    asyncio.run(told())
    (row,) = of_home(tmp_path, "trajectory", "list", "r1", "--json").json
    assert (row["status"], row["turns"], row["answer"]) == ("working", 4, None)
    one = of_home(tmp_path, "trajectory", "show", "t0-000-a0", "r1", "--json").json
    assert [turn["role"] for turn in one["transcript"]].count("assistant") == 4
    assert (one["subgoals"], one["wanted"]) == (["2", None, None], list(LONG.subgoals))
    text = of_home(tmp_path, "trajectory", "show", "t0-000-a0", "r1").out
    assert "[assistant, turn 4]" in text and "rolled back, 1 file, 1 byte," in text and "keep b" in text


SIZES = {
    "PROFILE": "long",
    "RUN__ITERATIONS": "1",
    "RUN__TASKS": "4",
    "RUN__ATTEMPTS": "4",
    "RUN__EVALUATION__VALIDATION": "1",
    "RUN__EVALUATION__TEST": "0",
    "RUN__EVALUATION__FORCED_TOOL": "false",
    "RUN__STUDENT__MODEL": "latency=0.1",
    "HANDLERS__ACK_WAIT_S": "1",
    "HANDLERS__IN_FLIGHT": "2",
}
"""Two turns at a time, so that there is a middle to be killed in."""
STUDENT = KINDS["student"]
OTHERS = ("handlers", "run", *(name for kind, words in KINDS.items() for name in words[2:] if kind != "student"))


class Watch:
    """What the log says, and who is in the middle of a long attempt."""

    def __init__(self) -> None:
        self.told: list[Recorded] = []

    def count(self, kind: str) -> int:
        return sum(recorded.type == kind for recorded in self.told)

    def amid(self, more_than: int) -> bool:
        """Another turn was taken, and that attempt goes on."""
        turns = [r.attempt for r in self.told if r.type == "TurnCompleted"]
        ended = {r.attempt for r in self.told if r.type == "TaskAttempted"}
        return self.over or (len(turns) > more_than and turns[-1] not in ended)

    @property
    def over(self) -> bool:
        return self.count("RunFinished") > 0


@asynccontextmanager
async def watching(crew: Crew, run: str) -> AsyncIterator[Watch]:
    watch = Watch()

    async def read() -> None:
        async with open_log(crew.settings, "reader") as log:
            async for recorded in log.tail(0, run):
                watch.told.append(recorded)

    task = asyncio.create_task(read())
    try:
        yield watch
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def pause_and_resume(log: Log, run: str) -> None:
    """In between, what is in hand is finished, and what follows from it is delivered and left alone."""
    await log.append([recorded(run, RunPaused())])
    await log.append([recorded(run, RunResumed())] if await _quiet(log) else [])


async def _quiet(log: Log) -> bool:
    for _ in range(3000):
        info = await log.client.jsm().consumer_info(EVENTS, "continue_attempt")
        if not (info.num_pending or info.num_ack_pending):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_a_student_killed_amid_long_attempts_loses_one_turn(tmp_path: Path) -> None:
    with Crew(tmp_path, **SIZES) as crew:
        crew.tell("log", "init")
        crew.start("others", *OTHERS)
        crew.start("student", *STUDENT)
        run = crew.tell("run", "start", "--detach", "--json")["run"]
        async with watching(crew, run) as watch, open_log(crew.settings) as log:
            await until(partial(watch.amid, 2), "a long attempt to go on")
            assert not watch.over
            crew.kill("student")
            seen = watch.count("TurnCompleted")
            crew.start("student", *STUDENT)
            await until(partial(watch.amid, seen), "the student to be back")
            await pause_and_resume(log, run)
            assert not watch.over
            await until(lambda: watch.over, "the run to be finished")
        told = await crew.facts(run)
    _sound(told, FileArtifacts(tmp_path))


def _sound(told: list[Recorded], store: FileArtifacts) -> None:
    """Every attempt is told once, turn after turn without a gap, and its transcript holds all of it."""
    events: dict[str, list[Any]] = defaultdict(list)
    for one in told:
        if isinstance(one.event, tasks.ToolCalled | tasks.TurnCompleted | tasks.TaskAttempted):
            events[one.attempt].append(one.event)
    assert len({r.id for r in told}) == len(told)
    assert sorted(events) == sorted(r.attempt for r in told if r.type == "AttemptRequested")
    for of_one in events.values():
        calls, turns = ([e for e in of_one if isinstance(e, kind)] for kind in (tasks.ToolCalled, tasks.TurnCompleted))
        (last,) = [e for e in of_one if isinstance(e, tasks.TaskAttempted)]
        assert of_one[-1] is last
        assert [turn.turn for turn in turns] == list(range(1, last.turns))
        assert [call.number for call in calls] == list(range(last.tool_calls))
        said = [turn for turn in last.transcript if turn.role == "assistant"]
        assert len(said) == last.turns
        heard = [turn.content for turn in last.transcript if turn.role == "tool"]
        assert heard == [call.result.output for call in calls if not call.inner]
        for call in calls:
            files = load(call.result.work, store)
            assert (len(files), sum(map(len, files.values()))) == (call.result.files, call.result.file_bytes)
    assert any(isinstance(e, tasks.TurnCompleted) for of_one in events.values() for e in of_one)
