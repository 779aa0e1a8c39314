"""Repositories to review: a defect counts where line and call are right, false alarms cost, what is right is passed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.runtime import port_openers
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.values import REVIEWING
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import QuestionsConfig
from agent0.tools.snapshots import load
from agent0.verification.repositories.mined_task import MinedSolution, MinedTask, hidden_tests_of
from agent0.verification.repositories.seeded_defects import CLEAN, LARGEST, REVIEW, SeededDefects
from tests.kept_open import one_sandbox
from tests.terminal import agent0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("reviews")
    arguments = ("--kind", "review", "--out", str(path), "--count", "2", "--level", "1", "--level", "4", "--json")
    with one_sandbox():
        done = agent0("task", "generate", *arguments, home=path / "home")
        assert done.code == 0, done.err
        yield path


def read(folder: Path) -> list[tuple[MinedTask, SeededDefects, str]]:
    """Each task with what decides about it and the perfect student's review, right ones first."""
    artifacts, entries = FileArtifacts(folder), []
    for path in sorted((folder / "tasks").glob("*.json")):
        task = MinedTask.model_validate_json(path.read_text())
        solution = MinedSolution.model_validate_json((folder / "solutions" / path.name).read_text())
        hidden = hidden_tests_of(solution, artifacts)
        assert isinstance(hidden, SeededDefects)
        tree = load(task.tree, artifacts)
        assert not any("test" in name or "json" in name for name in tree), "nothing shows where to look"
        entries.append((task, hidden, load(solution.code, artifacts)[REVIEW].decode()))
    assert {len(hidden.tests) for _, hidden, _ in entries} == {0, 1, 2}
    return sorted(entries, key=lambda entry: len(entry[1].tests))


def test_reviews_are_paid_by_what_execution_confirms(folder: Path) -> None:
    asyncio.run(_paid(folder))
    rows = questions(LocalQuestions(), QuestionsConfig(file=str(folder))).rows.tasks
    assert {entry.task.domain for entry in rows} == {REVIEWING}


async def _paid(folder: Path) -> None:
    sandbox = await port_openers.open_sandbox()

    async def grade(hidden: SeededDefects, text: str) -> Any:
        return await hidden.grade({REVIEW: text.encode()}, sandbox)

    for _, hidden, review in read(folder):
        assert (await grade(hidden, review))[::2] == (True, 1.0)
        function = next(name for module in hidden.hidden.modules for name in module.functions if name != "after")
        alarm = f"series.py:999: {function}([1])\n"
        alarmed = await grade(hidden, alarm if review.strip() == CLEAN else review + alarm)
        assert alarmed[0] is False and alarmed[2] == max(0.0, 1 - 0.5 / max(1, len(hidden.tests))) * bool(hidden.tests)
        if hidden.tests:
            assert (await grade(hidden, CLEAN))[::2] == (False, 0.0)
    first = review.splitlines()[0]
    assert (await grade(hidden, first))[::2] == (False, 0.5), "one of two"
    assert (await grade(hidden, f"{first}\n{first}"))[::2] == (False, 0.25), "named twice is a false alarm"
    place, _, call = first.partition(": ")
    module, _, line = place.partition(":")
    assert (await grade(hidden, f"{module}:{int(line) + 3}: {call}"))[::2] == (False, 0.0), "another line"
    same = next(name for module in hidden.hidden.modules for name in module.functions if name != "after")
    assert (await grade(hidden, f"{place}: {same}()"))[::2] == (False, 0.0), "the call gives the same: an error"
    every = "\n".join(f"series.py:{number}: {call}" for number in range(1, 11))
    assert (await grade(hidden, every))[::2] == (False, 0.0), "naming lines one after the other does not pay"


NO_REVIEWS = [
    "",
    "it is fine",
    f"{CLEAN}\nseries.py:1: clip([1])",
    "series.py:1",
    "series.py:x: clip([1])",
    "../series.py:1: clip([1])",
    "series.py:1: __import__('os').getcwd()",
    "series.py:1: unknown([1])",
    "series.py:1: open('/etc/passwd')",
    "series.py:1: (lambda: 1)()",
    "\n".join(["series.py:1: unknown([1])"] * 11),
    "x" * (LARGEST + 1),
]


@pytest.mark.parametrize("text", NO_REVIEWS)
async def test_what_is_no_review_is_never_run_and_earns_nothing(folder: Path, text: str) -> None:
    class Unused:
        async def call(self, call: object) -> None:
            raise AssertionError("it was run")

    for _, hidden, _ in read(folder):
        accepted, why, credit = await hidden.grade({REVIEW: text.encode()}, Unused())  # type: ignore[arg-type]
        assert (accepted, credit) == (False, 0.0) and why and "\n" not in why
