"""What a run requests when a phase begins: every request with all its fields, and nothing that is not pending."""

from dataclasses import replace
from typing import Any

import pytest

from agent0.events.alarms import ReactionDropped, ReactionFailed
from agent0.events.checkpoints import EvaluationRequested, TrainingRequested
from agent0.events.runs import RunFinished
from agent0.events.tasks import AttemptRequested, TaskAccepted
from agent0.events.values import Artifact, Task
from agent0.run.forking import redone
from agent0.run.requests import REQUESTS, attempt_requests, drop, evaluation_id, evaluation_progress, pending_ids
from agent0.settings import RunConfig
from agent0.state.measurements import EvaluationState
from agent0.state.run_state import AttemptState, Checkpoint, RunState, TaskState, ValidationScore
from agent0.tasks.seeds import derive_seed

ADAPTER = Artifact(sha256="a" * 64, size=1)
PLAN: dict[str, Any] = {
    "seed": 5,
    "evaluation": {"validation": 8, "test": 4, "seed": 9, "benchmarks": ["gsm8k"], "benchmark_items": 3},
}


def state(phase: str, plan: dict[str, Any] | None = None, **more: Any) -> RunState:
    config = RunConfig.model_validate(PLAN if plan is None else plan)
    held = RunState("r", 40, config, "", phase=phase, starts=(3, 10, 20), iteration=2, **more)  # type: ignore[arg-type]
    return replace(held, pending=frozenset(pending_ids(held)))


def evaluations(held: RunState) -> list[tuple[str, str, int, bool, str]]:
    made = REQUESTS[held.phase](held)
    assert all(isinstance(one, EvaluationRequested) for one in made)
    return [(one.evaluation, one.split, one.n, one.forced_tool, one.benchmark) for one in made]  # type: ignore[attr-defined]


BENCH = "benchmark", 3, False, "gsm8k"


def test_each_phase_scores_its_checkpoint_on_its_sets() -> None:
    base = [
        ("base-validation", "validation", 8, False, ""), ("base-test", "test", 4, False, ""),
        ("base-test-forced", "test", 4, True, ""), ("base-benchmark-gsm8k", *BENCH),
    ]  # fmt: skip
    assert evaluations(state("baseline")) == base
    candidate = Checkpoint("student-2", ADAPTER)
    assert evaluations(state("evaluating", candidate=candidate)) == [
        ("student-2-validation", "validation", 8, False, ""), ("student-2-benchmark-gsm8k", *BENCH),
    ]  # fmt: skip
    final = [("base-test-final", "test", 4, False, ""), ("base-benchmark-gsm8k-final", *BENCH)]
    assert evaluations(state("final")) == final
    known = Checkpoint("base", None, None, {"gsm8k/3/9": ValidationScore(0.5)})
    assert evaluations(state("final", promoted=(known,))) == final[:1]
    half = replace(state("baseline"), pending=frozenset({"base-test"}))
    assert [evaluation[0] for evaluation in evaluations(half)] == ["base-test"]
    seldom = {**PLAN, "evaluation": {**PLAN["evaluation"], "benchmark_every": 2, "forced_tool": False, "test": 0}}
    assert [evaluation[0] for evaluation in evaluations(state("evaluating", seldom, candidate=candidate))] == [
        "student-2-validation"
    ]
    assert [evaluation[0] for evaluation in evaluations(state("baseline", seldom))] == [
        "base-validation",
        "base-benchmark-gsm8k",
    ]
    assert evaluation_id(state("baseline"), "benchmark", False, "gym:a") == "base-benchmark-gym-a"
    (first, *_) = REQUESTS["evaluating"](held := state("evaluating", candidate=candidate))
    assert first == EvaluationRequested(
        evaluation="student-2-validation", checkpoint="student-2", adapter=ADAPTER, iteration=2, split="validation",
        n=8, seed=9, state_sha=held.digest,
    )  # fmt: skip
    assert REQUESTS["judging"](state("judging")) == [] and pending_ids(state("tasks")) == []


def test_progress_counts_items_that_are_scored_or_given_up() -> None:
    held = state("baseline")
    assert evaluation_progress(held) == (0, 19) and evaluation_progress(state("tasks")) == (0, 0)
    request = EvaluationRequested(
        evaluation="base-validation", checkpoint="base", iteration=2, split="validation", n=8, seed=9, state_sha=""
    )
    under_way = replace(held, evaluations={"base-validation": EvaluationState(request, 6, 2)})
    assert evaluation_progress(under_way) == (2, 17), "as many as there are"
    assert evaluation_progress(replace(under_way, pending=frozenset({"base-validation"}))) == (13, 17)


@pytest.mark.parametrize(
    ("schedule", "iteration", "roles"),
    [
        ("joint", 2, ["student", "teacher"]), ("student", 2, ["student"]), ("teacher", 2, ["teacher"]),
        ("alternate", 2, ["teacher"]), ("alternate", 3, ["student"]),
    ],
)  # fmt: skip
def test_roles_are_trained_as_the_schedule_says(schedule: str, iteration: int, roles: list[str]) -> None:
    both = {"student": {"enabled": True}, "teacher": {"enabled": True}}
    held = replace(state("training", {"training": {"schedule": schedule, **both}}), iteration=iteration)
    assert pending_ids(held) == [f"{role}-{iteration}" for role in roles]
    rare = {"training": {"schedule": "joint", "student": {"every": 3}, "teacher": {"enabled": False}}}
    assert [pending_ids(replace(state("training", rare), iteration=n)) for n in (1, 2, 3)] == [[], ["student-2"], []]


def test_a_training_is_requested_with_all_fields() -> None:
    plan = {"seed": 5, "training": {"student": {"window": 2, "replay_iterations": 1}, "teacher": {"enabled": False}}}
    held = state("training", plan, promoted=(Checkpoint(), Checkpoint("student-1", ADAPTER)))
    assert REQUESTS["training"](held) == [
        TrainingRequested(
            checkpoint="student-2", role="student", iteration=2, parent="student-1", parent_adapter=ADAPTER, after=10,
            until=40, replay_after=10, seed=derive_seed(5, "train", "student", 2), state_sha=held.digest,
        )
    ]  # fmt: skip
    far = {"training": {"student": {"window": 9, "replay_iterations": 9}, "teacher": {"enabled": False}}}
    (one,) = REQUESTS["training"](state("training", far))
    assert isinstance(one, TrainingRequested) and (one.after, one.replay_after) == (3, 3)
    assert REQUESTS["training"](replace(held, pending=frozenset())) == []


def test_tasks_and_attempts_are_requested_with_seeds_of_their_own() -> None:
    held = state("tasks", {"seed": 5, "tasks": 3, "attempts": 2}, teacher=Checkpoint("teacher-1", ADAPTER))
    made: list[Any] = list(REQUESTS["tasks"](held))
    assert [(one.task, one.slot, one.iteration) for one in made] == [(f"t2-00{n}", n, 2) for n in range(3)]
    assert [one.seed for one in made] == [derive_seed(5, "task", 2, n) for n in range(3)]
    assert {(one.teacher, one.adapter, one.state_sha) for one in made} == {("teacher-1", ADAPTER, held.digest)}
    there = replace(held, tasks={"t2-001": TaskState(1, "math", "f", 1)})
    assert [one.slot for one in REQUESTS["tasks"](there)] == [0, 2]  # type: ignore[attr-defined]
    task = Task(question="q", domain="math", family="f", level=1, canonical="c")
    accepted = TaskAccepted.model_construct(task="t2-000", iteration=2, proposal=task)
    student = replace(held, promoted=(Checkpoint("student-1", ADAPTER),))
    assert attempt_requests(student, accepted) == [
        AttemptRequested(
            task="t2-000", attempt=f"t2-000-a{n}", iteration=2, number=n, proposal=task,
            seed=derive_seed(5, "attempt", "t2-000", n), student="student-1", adapter=ADAPTER, state_sha=student.digest,
        )
        for n in range(2)
    ]  # fmt: skip


def test_an_end_counts_everything_and_a_dropped_reaction_says_why() -> None:
    held = state("done", task_count=7, attempt_count=9)
    assert REQUESTS["done"](held) == [RunFinished(iterations=3, tasks=7, attempts=9, state_sha=held.digest)]
    failed = ReactionFailed.model_construct(
        failure="f", cause_id="c", cause_type="T", cause_task="t", cause_attempt="a", failed_handler="h"
    )
    assert drop(failed) == ReactionDropped(
        failure="f", cause_id="c", cause_type="T", cause_task="t", cause_attempt="a", failed_handler="h",
        reason="policy on_failure=drop",
    )  # fmt: skip


def test_a_fork_asks_again_for_what_was_not_done() -> None:
    done = TaskState(0, "math", "f", 1, closed=True, attempts={"a": AttemptState(0, verified=True, reward=0.0)})
    held = replace(
        state("tasks"), tasks={"b": replace(done, closed=False), "a": replace(done, closed=False), "c": done}
    )
    assert redone(held, held.config) == ("a", "b") and redone(replace(held, phase="training"), held.config) == ()
    for changed in ({"seed": 6}, {"tasks": 9}, {"attempts": 9}, {"curriculum": {"levels": [1]}}):
        assert redone(held, RunConfig.model_validate({**PLAN, **changed})) == ("a", "b", "c")
    assert redone(held, RunConfig.model_validate({**PLAN, "iterations": 9})) == ("a", "b")
