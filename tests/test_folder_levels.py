"""A run over a folder of tasks with levels asks for those around what its student solves."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.validate.questions import with_questions
from agent0.events.tasks import TaskProposed, TaskRequested
from agent0.events.values import QUESTIONS, REPAIR, Artifact, Repository, SourceRow, Task
from agent0.handlers import propose_task
from agent0.infra.storage.datasets import LocalQuestions
from agent0.run.lifecycle import evolve
from agent0.state.run_state import RunState, TaskState, task_id
from agent0.tasks.curriculum.sampler import remember, row_levels
from tests.memory import MemoryArtifacts
from tests.mined import mined_folder
from tests.world import small, started

LEVELS = (1, 2, 3, 4)
FILE = Artifact(sha256="0" * 64, size=1)
Rate = Callable[[int, random.Random], float]


def state(questions: Mapping[str, str], **changes: Any) -> RunState:
    config = small(**{"questions": questions, "tasks": 8} | changes)
    begun = evolve(None, started(with_questions(config) if questions.get("file") else config))
    assert begun is not None
    return replace(begun, iteration=0)


def asked(run: RunState, level: int, slot: int, rate: float) -> TaskState:
    """A task of a folder that is done."""
    row = SourceRow(id=f"{slot}", answer="", repository=Repository(package="p", tree=FILE, hidden=FILE))
    task = Task(question="q", domain=REPAIR, family=QUESTIONS, level=level, canonical="q", kind="long", row=row)
    return TaskState(slot, REPAIR, QUESTIONS, 0, proposal=task, closed=True, paid=True, solve_rate=rate)


def iterations(run: RunState, rate: Rate, count: int) -> list[list[int]]:
    """The levels of each iteration, of a student that solves ``rate`` of a level's attempts."""
    levels, rng = list[list[int]](), random.Random(run.config.seed)
    for number in range(count):
        run = replace(run, iteration=number)
        levels.append(row_levels(run, LEVELS, 8))
        tasks = {task_id(number, at): asked(run, level, at, rate(level, rng)) for at, level in enumerate(levels[-1])}
        run = replace(run, tasks=tasks)
        run = replace(run, arms=remember(run))
    return levels


def sometimes(level: int, rng: random.Random) -> float:
    """Level 1 always, 3 and 4 never."""
    return {1: 1.0, 2: rng.choice((0.25, 0.5, 0.75))}.get(level, 0.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_level_between_always_and_never_is_asked_for_most(seed: int) -> None:
    levels = iterations(state({"domain": REPAIR}, seed=seed), sometimes, 25)
    counts = Counter(level for chosen in levels[5:] for level in chosen)
    assert counts[2] > 80 and counts[2] > 3 * max(counts[level] for level in (1, 3, 4)), "of 160"
    assert all(counts[level] for level in LEVELS), "exploration goes on"


def test_a_student_that_climbs_is_followed() -> None:
    def above(level: int, rng: random.Random) -> float:
        return {1: 1.0, 2: 1.0, 3: rng.choice((0.25, 0.5, 0.75))}.get(level, 0.0)

    run = state({"domain": REPAIR})
    counts = Counter(level for chosen in iterations(run, above, 25)[5:] for level in chosen)
    assert counts[3] > 80
    frontier = state({"domain": REPAIR}, curriculum={"kind": "frontier", "ahead": 1})
    assert {level for chosen in iterations(frontier, above, 6)[4:] for level in chosen} == {2, 3, 4}


def test_other_curricula_draw_no_levels_and_more_rows_change_no_earlier_one() -> None:
    run = state({"domain": REPAIR})
    assert row_levels(run, (2,), 4) == [] and row_levels(run, LEVELS, 9)[:4] == row_levels(run, LEVELS, 4)
    for kind in ("uniform", "rising"):
        assert row_levels(state({"domain": REPAIR}, curriculum={"kind": kind}), LEVELS, 4) == []


async def test_rows_of_a_folder_are_those_of_the_levels_drawn_and_none_comes_twice(tmp_path: Path) -> None:
    folder = mined_folder(tmp_path / "tasks", ("adds", "sums"), 24, levels=3)
    run = state({"file": str(folder)}, evaluation={"validation": 1, "test": 0})
    proposals: list[Task] = []
    for slot in range(8):
        name = task_id(0, slot)
        request = TaskRequested(
            task=name,
            iteration=0,
            slot=slot,
            domain=run.config.questions.domain,
            family=QUESTIONS,
            level=0,
            seed=slot,
            teacher="base",
            state_sha="",
        )
        tasks = {**run.tasks, name: TaskState(slot, request.domain, QUESTIONS, 0)}
        run = replace(run, tasks=tasks)
        (event,) = await propose_task.propose_task(request, run, None, MemoryArtifacts(), LocalQuestions())  # type: ignore[arg-type]
        assert isinstance(event, TaskProposed) and event.proposal
        proposals.append(event.proposal)
    assert [task.level for task in proposals] == row_levels(run, (1, 2, 3), 8)
    assert len({task.canonical for task in proposals}) == 8
