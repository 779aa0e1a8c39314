"""Answers of every evaluation are stored, named by its event, and judged again from the log."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.models.protocol import evaluate_protocols
from agent0.assembly.runtime.stamping import recorded
from agent0.config.loading import load
from agent0.errors import LogError
from agent0.evaluation.protocol import EvaluationProtocol
from agent0.events.checkpoints import CheckpointEvaluated, StudentExamined
from agent0.experiments.stored_verdicts import stored
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.settings import Settings
from tests.kept_open import attached, one_sandbox
from tests.terminal import agent0

SIZES = {
    **{"run.tasks": "2", "run.attempts": "2", "run.iterations": "1", "sandbox.workers": "1"},
    **{"run.evaluation.validation": "6", "run.evaluation.test": "0", "run.evaluation.forced_tool": "false"},
    **{"run.curriculum.families": '["countdown", "linear"]', "run.curriculum.domains": '["math"]'},
    **{"run.evaluation.checked": "3"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pairs = [f"--set={key}={value}" for key, value in SIZES.items()]
    with attached(tmp_path_factory.mktemp("rejudge")) as folder, one_sandbox():
        made = agent0("run", "start", "--profile", "scripted", *pairs, home=folder)
        assert made.code == 0, made.err
        exams = [EvaluationProtocol(6, 5, 4, 1.0), EvaluationProtocol(4, 6)]
        asyncio.run(evaluate_protocols(held(folder), {f"{run_of(folder)}/base": exams}))
        yield folder


def held(folder: Path) -> Settings:
    return load("scripted", {**SIZES, "home": str(folder)}, {})


def run_of(home: Path) -> str:
    return str(agent0("run", "list", "--json", home=home).json[0]["run"])


def told(home: Path, kind: type) -> list[Any]:
    run = run_of(home)

    async def read() -> list[Any]:
        async with open_log(held(home)) as log:
            return [one.event async for one in log.read(run, (kind.__name__,))]

    return asyncio.run(read())


def test_every_answer_is_stored_beside_its_verdict(home: Path) -> None:
    first, second = told(home, StudentExamined)
    for event in (first, second):
        assert event.answers is not None
        rows = [json.loads(line) for line in FileArtifacts(home).get(event.answers).splitlines()]
        assert [len(row["answers"]) for row in rows] == [event.attempts] * len(event.right)
        assert tuple(row["correct"].count(True) for row in rows) == event.right
        assert "".join({True: "1", False: "0", None: "?"}[row["most_correct"]] for row in rows) == event.majority
        assert all(row["question"] and row["task"].startswith(row["family"]) for row in rows)


def test_sampled_attempts_of_an_evaluation_are_stored_too(home: Path) -> None:
    for event in told(home, CheckpointEvaluated):
        rows = [json.loads(line) for line in FileArtifacts(home).get(event.items).splitlines()]
        tried = [row for row in rows if "tried" in row]
        assert tried and all(len(row["tried"]) == row["tries"] for row in tried)


def test_today_everything_is_judged_as_it_was(home: Path) -> None:
    said = agent0("model", "rejudge", "LAST", "--json", home=home)
    assert said.code == 0 and said.json["differences"] == []
    rows = said.json["evaluations"]
    assert {row["checkpoint"] for row in rows} > {"base"} and all(row["answers"] for row in rows)
    only = agent0("model", "rejudge", f"{run_of(home)}/base", "--json", home=home).json["evaluations"]
    assert {row["checkpoint"] for row in only} == {"base"} and len(only) < len(rows)
    assert agent0("model", "rejudge", "LAST/student-9", home=home).code == 1


def test_answers_travel_with_the_log_and_are_judged_there(home: Path, tmp_path: Path) -> None:
    assert agent0("events", "export", str(tmp_path / "a.tar"), home=home).code == 0
    other = tmp_path / "other"
    assert agent0("events", "import", str(tmp_path / "a.tar"), home=other).code == 0
    for event in told(other, StudentExamined):
        assert not FileArtifacts(other).verify(event.answers)
    assert agent0("model", "rejudge", "LAST", home=other).code == 0
    kept = {event.answers.sha256 for event in told(other, StudentExamined)}
    assert agent0("artifacts", "gc", "--older-than", "0", home=other).code in (0, 2)
    assert {one.sha256 for one, _ in FileArtifacts(other).stored()} >= kept


def test_a_verdict_that_was_another_is_named(home: Path) -> None:
    """As a log written under a verifier with a fault: one right answer stored as wrong, one wrong as right."""
    first = told(home, StudentExamined)[0]
    store = FileArtifacts(home)
    rows = [json.loads(line) for line in store.get(first.answers).splitlines()]
    for row in rows[:2]:
        row["correct"][0] = not row["correct"][0]
    forged = store.put("\n".join(map(json.dumps, rows)).encode(), "application/jsonl")
    older = first.model_copy(update={"checkpoint": "student-old", "answers": forged})
    silent = first.model_copy(update={"checkpoint": "student-silent", "answers": None})

    run = run_of(home)

    async def tell() -> None:
        async with open_log(held(home)) as log:
            await log.append([recorded(run, event) for event in (older, silent)])

    asyncio.run(tell())
    said = agent0("model", "rejudge", "LAST/student-old", "--json", home=home)
    assert said.code == 1
    found = [
        (difference["task"], difference["attempt"], difference["was"], difference["rejudged"])
        for difference in said.json["differences"]
    ]
    assert found == [(row["task"], "0", row["correct"][0], not row["correct"][0]) for row in rows[:2]]
    quiet = agent0("model", "rejudge", "LAST/student-silent", home=home)
    assert quiet.code == 0 and "not stored" in quiet.out


@pytest.mark.parametrize(
    "content", [b"\xff", b"{", b"[]", b'{"task": "x"}', b'{"domain":"math","task":"t","question":"q"}']
)
def test_what_is_no_list_of_answers_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(LogError, match="stored answers cannot be read"):
        stored(content)
