"""Sets of held-out tasks that are called fresh share no task with any set that was drawn before them."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agent0.assembly.ablations.study import StudyRequest, run_study
from agent0.assembly.models.protocol import check_fresh, tasks_of
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.evaluation.protocol import DRAWN, SOLVED, TaskSet, canonical_forms, canonical_forms_of, earlier_sets
from agent0.experiments.ablations import ablation_studies
from agent0.tasks.splits import split_of_task

PLAN = load("search", {}, {}).run
SHIPPED = {f"{entry.name} {one.name}": one for entry in ablation_studies().values() for one in entry.sets}


@pytest.mark.parametrize("tasks", SHIPPED.values(), ids=list(SHIPPED))
def test_a_set_that_ships_shares_no_task_with_any_earlier_one(tasks: TaskSet) -> None:
    found = tasks_of(tasks.protocol(), PLAN)
    own = {task.canonical for task in found}
    assert len(own) == tasks.n and {split_of_task(task) for task in found} == {"test"}
    assert "search" in earlier_sets(tasks), "it is in the list, after what was drawn before"
    assert own.isdisjoint(canonical_forms_of((SOLVED, *earlier_sets(tasks))))
    (name,) = (name for name, one in DRAWN.items() if (one.seed, one.levels) == (tasks.seed, tasks.levels))
    assert own == canonical_forms(name), "what is listed is what is drawn"
    check_fresh([tasks], PLAN)


@pytest.mark.parametrize("seed", [20270101, 20270303])
def test_a_set_that_overlaps_an_earlier_one_is_refused(seed: int) -> None:
    again = TaskSet("fresh", "not new", 150, seed, (2, 3))
    with pytest.raises(ConfigError, match=r"of the 150 tasks of the set fresh were drawn before, for .*countdown"):
        check_fresh([again], PLAN)


def test_the_experiment_refuses_it_before_anything_is_begun(tmp_path: Path) -> None:
    entry = ablation_studies()["skill"]
    fresh = next(one for one in entry.sets if one.name == "fresh")
    overlapping = replace(entry, sets=(replace(fresh, seed=1, excluded=()),), protocols=(), base_protocols=())
    with pytest.raises(ConfigError, match="were drawn before"):
        asyncio.run(
            run_study(load("search", {"home": str(tmp_path)}, {}), StudyRequest(overlapping, "x", "search", (0,)))
        )
    assert not list(tmp_path.iterdir())


def test_what_is_excluded_is_not_drawn_and_the_rest_is() -> None:
    plain = TaskSet("a", "", 60, 5, (2, 3))
    first = {task.canonical for task in tasks_of(plain.protocol(), PLAN)}
    again = {task.canonical for task in tasks_of(replace(plain, excluded=("search",)).protocol(), PLAN)}
    assert first & canonical_forms("search") and not again & canonical_forms("search")
    assert len(again) == 60 and again & first


def test_an_exam_of_the_same_seed_without_the_exclusion_is_another_exam() -> None:
    tasks = TaskSet("a", "", 60, 5, (2, 3), excluded=("search",))
    assert tasks.protocol() != replace(tasks, excluded=()).protocol()
