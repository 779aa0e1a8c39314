"""What it costs to reach a level, what sampling the base comes to there, on which tasks, and what chance gives."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent0.assembly.ablations.ablation_run import RESULT, RunPlan, read_result
from agent0.assembly.ablations.chance_controls import chance_by_level
from agent0.assembly.models.protocol import tasks_of
from agent0.evaluation.protocol import OWN_SETS
from agent0.events.base import record
from agent0.events.checkpoints import StudentExamined
from agent0.events.tasks import TaskAttempted
from agent0.events.values import Usage
from agent0.experiments.ablation_results import Outcome, as_json, cost_rows, outcome_of
from agent0.experiments.ablation_runs import AblationRun
from agent0.experiments.ladder_rows import better_on_every_seed, known_columns, ladder_rows
from agent0.experiments.ladders.costs import TASKS, base_samples, cost_to_reach, sampling_rows, student_answers
from agent0.report.markdown.ablation import page
from agent0.settings import RunConfig
from agent0.tasks.splits import heldout, split_of_task
from tests.test_arms_page import found_of
from tests.test_climb import CLIMB
from tests.test_ladder_rows import scored

LEVELS = {str(level): 0.0 for level in range(4, 31)}


def validated(iteration: int, **by_level: float) -> Any:
    held = {**LEVELS, **{name.removeprefix("at"): share for name, share in by_level.items()}}
    return scored(f"student-{iteration}", held, split="validation").model_copy(update={"iteration": iteration})


def ours(seed: int = 0, **more: Any) -> Outcome:
    scores = (
        scored("base", {**LEVELS, "4": 1.0, "5": 1.0, "6": 0.5}),
        validated(-1, at4=1.0, at6=0.5),
        validated(0, at8=0.6),
        validated(1, at10=0.5, at9=0.2),
        scored("student-1", {**LEVELS, "4": 0.9, "5": 1.0, "6": 0.5, "10": 0.95, "11": 0.5}),
    )
    spent = tuple({"iteration": n - 1, "attempts": 512 * n, "tokens": 9000 * n, "seconds": 20.0 * n} for n in range(3))
    return replace(Outcome("ours", seed, "r", "student-1", 2, scores, spent=spent), **more)


def test_a_level_is_reached_by_the_first_student_that_stands_on_it_or_higher() -> None:
    rows = {row["level"]: row for row in cost_to_reach([ours(), ours(1, spent=())])}
    assert set(rows) == {8, 10}, "the base stood on the others, at no cost"
    assert (rows[8]["attempts"], rows[8]["tokens"], rows[8]["seconds"]) == (512, 9000, 20.0)
    assert (rows[10]["attempts"], rows[10]["seeds"], rows[10]["of"]) == (1024, 1, 2)
    assert cost_to_reach([ours(spent=())]) == []


def test_what_was_spent_is_read_from_the_log() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    tried = TaskAttempted.model_construct(usage=Usage(prompt_tokens=10, completion_tokens=5), attempt="a", task="t")
    told = [tried, validated(-1), tried, tried, validated(0)]
    events = [
        record(event, run="r", time=begin + timedelta(seconds=n)).model_copy(update={"seq": n + 1})
        for n, event in enumerate(told)
    ]
    spent = outcome_of("ours", 0, "student-0", 1, events).spent
    assert [row["attempts"] for row in spent] == [1, 3] and [row["tokens"] for row in spent] == [15, 45]
    assert [row["seconds"] for row in spent] == [1.0, 4.0] and [row["iteration"] for row in spent] == [-1, 0]


def test_rows_say_what_became_of_taught_levels_and_of_labels() -> None:
    (row,) = ladder_rows([ours(labels={"answers": 200, "wrong": 50})], taught=6)
    assert row["taught_change"] == pytest.approx(-0.1 / 3, abs=1e-4) and row["labels_right"] == 0.75
    assert (row["height"], row["height90"], row["height90_untrained"]) == (11, 10, 5)
    assert "written_level" in row and "written_level" not in known_columns([row])[0]
    assert ladder_rows([ours()])[0]["labels_right"] is None


def test_better_means_on_every_seed_that_both_have() -> None:
    rows = [{"arm": arm, "seed": seed, "added": added} for arm, seed, added in
            (("a", 0, 2.0), ("a", 1, 2.0), ("b", 0, 1.0), ("b", 1, 2.0), ("c", 0, 1.0), ("d", 0, None))]  # fmt: skip
    assert better_on_every_seed(rows, "a", "c") and not better_on_every_seed(rows, "a", "b")
    assert not better_on_every_seed(rows, "a", "d")


def test_the_base_is_sampled_around_the_level_that_was_reached_on_fresh_tasks_alone() -> None:
    asked = base_samples(ours())
    by_level = Counter(one.levels[0] for one in asked)
    assert by_level == {11: 6, 9: 1, 10: 1, 12: 1, 13: 1}
    assert {(one.attempts, one.temperature) for one in asked if one.levels == (11,)} == {
        (1, 0.0), (8, 1.0), (32, 0.7), (32, 1.0), (32, 1.3), (256, 1.0),
    }  # fmt: skip
    assert {one.levels[0] for one in student_answers(ours())} == set(by_level)
    assert base_samples(replace(ours(), scores=())) == ()
    plan, drawn = CLIMB.curriculum, tasks_of(asked[0], CLIMB)
    own = {
        task.canonical
        for split, n in (("validation", CLIMB.evaluation.validation), ("test", CLIMB.evaluation.test))
        for task in heldout(
            split, n, CLIMB.evaluation.seed, plan.domains, names=plan.families, levels=CLIMB.evaluation.levels
        )
    }
    assert len({task.canonical for task in drawn}) == TASKS and not own & {task.canonical for task in drawn}
    assert {split_of_task(task) for task in drawn} == {"test"} and {task.level for task in drawn} == {11}
    assert tasks_of(asked[-1], CLIMB) != drawn


def test_few_tasks_of_a_level_are_not_drawn_a_second_time() -> None:
    """At level 4 many of the fresh tasks would be among the run's own, were these not left out."""
    (low,) = (one for one in student_answers(ours()) if one.levels == (9,))
    near = replace(low, levels=(4,))
    own = {task.canonical for task in tasks_of(replace(near, n=200, excluded=()), CLIMB)}
    without = {task.canonical for task in tasks_of(replace(near, n=200), CLIMB)}
    assert len(own) == len(without) == 200 and own != without


def test_a_row_says_who_solved_how_many_and_what_chance_would_have() -> None:
    exam = StudentExamined(
        exam="32 at T=1", checkpoint="base", split="test", seed=1, attempts=32, temperature=1.0,
        right=(0, 3, 0, 1), majority="0000", levels=(4,), excluded=(OWN_SETS,),
    )  # fmt: skip
    other = exam.model_copy(update={"excluded": ()})
    (row,) = sampling_rows([ours(exams=(exam, other))], chance_by_level(CLIMB))
    assert (row["who"], row["solved"], row["tasks"], row["level"]) == ("base", 2, 4, 4)
    assert row["random"] == pytest.approx(4 * (1 - (1 - 1e-4) ** 32), abs=1e-6)


def test_chance_is_exact_where_families_tell_it() -> None:
    assert chance_by_level(CLIMB)[7] == pytest.approx(1e-7)
    assert chance_by_level(RunConfig()) == {}


def test_an_outcome_is_read_as_it_was_written(tmp_path: Any) -> None:
    assert read_result(tmp_path) is None
    (tmp_path / RESULT).write_text(json.dumps(as_json(ours(alarms={"gate": 0}))))
    assert read_result(tmp_path) == ours(alarms={"gate": 0})


def test_a_plan_keeps_whether_its_base_is_sampled(tmp_path: Any) -> None:
    for sampled in (False, True):
        plan = RunPlan(AblationRun("ours", 0, "r", CLIMB), "climb", {}, sampled=sampled)
        plan.write(tmp_path)
        assert RunPlan.read(tmp_path) == plan


def test_the_page_has_heights_costs_samples_and_alarms() -> None:
    held = replace(ours(labels={"answers": 10, "wrong": 1}), cost={"attempts": 1.0, "tokens": 1.0, "wall_s": 1.0})
    told = found_of([], ["ours"]) | {"cost": cost_rows([held]), "experiment": "climb"}
    ladder = {
        "mastered": 6, "ladder": ladder_rows([held], 6), "ladder_levels": [], "aims": [],
        "reach": cost_to_reach([held]),
        "sampling": [{"level": 11, "who": "base", "how": "32 at T=1", "solved": 0, "tasks": 64, "random": 0.0}],
        "random": {"height": 0, "added": 0.00011},
        "leads": [{"arm": "leak", "seed": 0, "validation_fell": 1, "alarm": "gate", "since": 0, "lead": 2}],
    }  # fmt: skip
    text = page(told | ladder, {}, "docs/results/x.md")
    assert "T 0, S 0.00011" in text and "32 at T=1" in text and "written_level" not in text
    assert "| leak | 0 | 1 | gate | 0 | 2 |" in text and "| ours | 8 | 1 | 1 |" in text
