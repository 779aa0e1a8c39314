"""Climbing ladders: which rungs are asked for, which answers are accepted, and that nobody but the student writes what
it learns."""

import ast
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load
from agent0.errors import ConfigError, OperationError
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.runs import RunFailed
from agent0.events.tasks import TaskAccepted, TaskRequested
from agent0.events.values import Trajectory
from agent0.infra.models.sampler import Sampler
from agent0.infra.training.launch.recipe import Recipe, schedule
from agent0.ports.models import GenerateRequest, Sampling
from agent0.ports.training import Sample, TrainJob
from agent0.rollout.prompts import prompt
from agent0.rollout.teacher import request_turns
from agent0.settings import ActorConfig, RunConfig, StudentConfig
from agent0.state.run_state import Arm, RunState, TaskState, arm_key
from agent0.tasks.curriculum.sampler import allocate, remember
from agent0.tasks.families import families
from agent0.tasks.splits import split_of_task, task_of
from agent0.training.gate import gated
from agent0.training.scored_trajectory import ScoredTrajectory
from tests.play import play
from tests.test_architecture import FILES, Source, source
from tests.world import ports, started

CLIMB = load("climb", {}, {}).run


def state(arms: dict[int, tuple[int, int]], **plan: Any) -> RunState:
    """A run of profile climb that saw (solved, tried) at some levels."""
    config = CLIMB.model_copy(update={"curriculum": CLIMB.curriculum.model_copy(update=plan)})
    held = {arm_key("math", "reversal", n): Arm(float(tried), 0.0, float(right)) for n, (right, tried) in arms.items()}
    return RunState(run="r", seq=1, config=config, config_sha="", arms=held, iteration=1)


def levels(held: RunState) -> Counter[int]:
    return Counter(level for _, _, level in allocate(held))


# --- the frontier


@pytest.mark.parametrize(
    ("seen", "window"),
    [
        ({}, range(5, 10)),
        ({7: (60, 100), 8: (40, 100)}, range(6, 11)),
        ({5: (90, 100), 6: (40, 100), 7: (20, 100)}, range(4, 9)),
        ({9: (50, 100), 7: (10, 100)}, range(8, 13)),
        ({40: (99, 100)}, range(39, 41)),
        (dict.fromkeys(range(1, 41), (0, 100)), range(1, 5)),
    ],
)
def test_tasks_are_spread_around_the_highest_level_that_is_solved_half_the_time(
    seen: dict[int, tuple[int, int]], window: range
) -> None:
    found = levels(state(seen))
    assert set(found) == set(window) and found.total() == 512
    assert max(found.values()) - min(found.values()) <= 1


@given(st.integers(1, 60), st.integers(2, 30), st.integers(1, 40))
def test_a_rising_schedule_goes_from_the_lowest_level_to_the_highest_whatever_is_solved(
    iterations: int, highest: int, ahead: int
) -> None:
    plan = {"kind": "rising", "levels": tuple(range(2, highest + 1)), "ahead": ahead}
    before, lowest = state({7: (100, 100)}, **plan), []
    before = replace(before, config=before.config.model_copy(update={"iterations": iterations}))
    for number in range(iterations):
        asked = levels(held := replace(before, iteration=number))
        assert asked == levels(replace(held, arms={})) and asked.total() == 512
        assert max(asked) - min(asked) <= ahead + 1 and max(asked.values()) - min(asked.values()) <= 1
        lowest.append(min(asked))
    assert lowest == sorted(lowest) and lowest[0] == 2
    assert iterations == 1 or max(asked) == highest
    assert all(b - a <= 1 + (highest - 2) // (iterations - 1) for a, b in pairwise(lowest))


def test_each_ladder_has_a_frontier_of_its_own() -> None:
    held = state({9: (9, 10)}, families=("reversal", "digit_sums"))
    found = Counter(slot[1:] for slot in allocate(held))
    assert {n for name, n in found if name == "reversal"} == {8, 9, 10, 11, 12}
    assert {n for name, n in found if name == "digit_sums"} == {5, 6, 7, 8, 9}
    assert max(found.values()) - min(found.values()) <= 1


def test_only_the_last_iteration_that_asked_for_a_level_counts() -> None:
    held = state({7: (100, 100), 8: (100, 100)})
    rates = {7: [1.0, 0.0, 0.0], 9: [1.0, 1.0]}
    done = [
        TaskState(slot=n, domain="math", family="reversal", level=level, paid=True, solve_rate=rate)
        for n, (level, rate) in enumerate((level, rate) for level, found in rates.items() for rate in found)
    ]
    undone = TaskState(slot=9, domain="math", family="reversal", level=9, paid=True)
    found = remember(replace(held, tasks={f"t{one.slot}": one for one in (*done, undone)}))
    sums = {int(key.rpartition("/")[2]): (arm.solved, arm.closed) for key, arm in found.items()}
    assert sums == {7: (1.0, 3.0), 8: (100.0, 100.0), 9: (2.0, 2.0)}


def test_a_bandit_on_progress_seeks_levels_whose_solve_rate_moved() -> None:
    held = state({}, kind="progress", exploration=0.0)
    rates = {5: [1.0, 1.0], 6: [0.0, 1.0], 8: [1.0, 0.0], 9: [0.0]}
    done = [
        TaskState(slot=n, domain="math", family="reversal", level=level, paid=True, solve_rate=rate)
        for n, (level, rate) in enumerate((level, rate) for level, found in rates.items() for rate in found)
    ]
    found = remember(replace(held, tasks={f"t{one.slot}": one for one in done}))
    moved = {int(key.rpartition("/")[2]): (arm.value, arm.solved) for key, arm in found.items()}
    assert moved == {5: (0.0, 1.0), 6: (0.5, 0.75), 8: (0.5, 0.25), 9: (0.0, 0.0)}
    assert {arm.value for arm in remember(replace(held, arms=found, tasks={"t0": done[0]})).values()} == {0.0, 0.5}
    tried = found | {arm_key("math", "reversal", n): Arm(1.0, 0.0, 1.0) for n in range(1, 41) if n not in rates}
    asked = levels(replace(held, arms=tried))
    assert asked[6] + asked[8] > 0.5 * asked.total() > asked[5] + asked[9]


# --- the sampler


def asking(family: str, level: int, seed: int = 1) -> GenerateRequest:
    return GenerateRequest(
        request_turns(prompt("compact", "math", "teacher"), "math", family, level), Sampling(seed=seed)
    )


async def test_the_sampler_writes_training_tasks_of_the_level_it_is_asked_for() -> None:
    for family, level in (("reversal", 5), ("reversal", 17), ("digit_sums", 12), ("countdown", 3)):
        seen = set()
        for seed in range(30):
            written = await Sampler().generate(asking(family, level, seed))
            task = task_of(families()[family], written.text)
            assert task and task.level == level and split_of_task(task) == "train"
            seen.add(task.canonical)
        assert len(seen) > 25
    assert await Sampler().generate(asking("reversal", 9)) == await Sampler().generate(asking("reversal", 9))
    with pytest.raises(OperationError, match="only draws tasks"):
        await Sampler().generate(GenerateRequest(asking("reversal", 9).turns[:0], Sampling()))


# --- the gate


def attempts(seed: int = 1) -> list[ScoredTrajectory]:
    """Two iterations of 50 tasks, with two attempts each that write one of two texts; a third of all are right."""
    rng = random.Random(seed)
    return [
        ScoredTrajectory(
            f"e{iteration}-{task}-{n}", f"t{iteration}-{task}", "base",
            Trajectory(token_ids=(1, token), mask=(0, 1), logprobs=(0.0, -1.0)), 0.5, 0.5,
            rng.random() < 0.33, iteration=iteration, answer=f"{token}",
        )
        for iteration in (0, 1) for task in range(50) for n in (0, 1) for token in [rng.choice((5, 6))]
    ]  # fmt: skip


def accepted(found: list[ScoredTrajectory]) -> set[str]:
    return {one.event_id for one in found if one.success}


def test_a_gate_without_a_control_accepts_what_was_verified() -> None:
    assert gated(attempts(), "verified", 4) == attempts()


@pytest.mark.parametrize("name", ["permuted", "majority"])
def test_a_control_says_the_same_of_an_attempt_whenever_it_is_asked(name: str) -> None:
    first = [attempt for attempt in attempts() if attempt.iteration == 0]
    early, late = gated(first, name, 4), gated(attempts()[::-1], name, 4)
    assert accepted(early) == {name for name in accepted(late) if name.startswith("e0")} != accepted(first)
    assert [one.event_id for one in late] == [one.event_id for one in attempts()[::-1]], "in the order they came"


def test_permuting_keeps_how_many_were_right_in_each_iteration() -> None:
    found = gated(attempts(), "permuted", 4)
    counts = [Counter(one.iteration for one in each if one.success) for each in (attempts(), found)]
    assert counts[0] == counts[1]
    right = accepted(attempts())
    assert len(accepted(found) & right) < 0.6 * len(right), "most of them are others"


def test_a_majority_is_accepted_whatever_is_right() -> None:
    found = gated(attempts(), "majority", 4)
    texts: dict[str, set[int]] = {}
    for one in found:
        assert one.trajectory
        texts.setdefault(one.group, set()).add(one.trajectory.token_ids[1])
    assert {one.success for one in found if len(texts[one.group]) == 1} == {True}
    assert {one.success for one in found if len(texts[one.group]) == 2} == {False}


# --- minibatches


def samples(n: int, source: Any, first: int) -> tuple[Sample, ...]:
    path = Trajectory(token_ids=(1, first), mask=(0, 1), logprobs=(0.0, -1.0))
    return tuple(Sample(path.model_copy(update={"token_ids": (1, first + k)}), source=source) for k in range(n))


def test_every_minibatch_has_its_shares_of_new_earlier_and_taught() -> None:
    recipe = Recipe(objective="sft", steps=40, fresh=0.5, taught=0.125, minibatch=16)
    job = TrainJob(samples(5, "own", 100), (*samples(30, "own", 200), *samples(9, "taught", 300)), None, 1, {})
    found = schedule(job, recipe)
    assert len(found) == 40 and {kind for kind, _ in found} == {"policy"}
    for _, batch in found:
        hundreds = Counter(sample.trajectory.token_ids[1] // 100 for sample in batch)
        assert hundreds == {1: 8, 2: 6, 3: 2}
    assert found == schedule(job, recipe) != schedule(replace(job, seed=2), recipe)


def test_without_what_was_taught_or_earlier_the_others_take_its_place() -> None:
    recipe = Recipe(objective="sft", steps=3, fresh=0.5, taught=0.25, minibatch=8)
    for replay, expected in (((), {1: 8}), (samples(3, "own", 200), {1: 4, 2: 4})):
        for _, batch in schedule(TrainJob(samples(2, "own", 100), replay, None, 1, {}), recipe):
            assert Counter(sample.trajectory.token_ids[1] // 100 for sample in batch) == expected


def test_the_rate_rises_over_its_first_steps_and_falls_to_its_end() -> None:
    recipe = Recipe(lr_end=0.05, warmup=5)
    found = [recipe.pace(place, 50) for place in range(50)]
    assert found[0] == pytest.approx(0.2) and max(found) == found[4] > 0.9 and found[-1] == pytest.approx(0.05)
    assert found[4:] == sorted(found[4:], reverse=True)
    assert [Recipe().pace(place, 50) for place in (0, 49)] == [1.0, 1.0]


# --- settings that do not fit


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"training.student.objective": "grpo"}, "steps has no effect"),
        ({"training.teacher.fresh_per_task": "1"}, "fresh_per_task has no effect"),
        (
            {
                "training.student.objective": "grpo",
                "training.student.steps": "0",
                "training.student.settle": "0",
                "training.student.taught": "0",
                "training.student.fresh": "0.5",
                "training.student.fresh_per_task": "1",
            },
            "compares attempts at a task",
        ),
        ({"training.student.steps": "0"}, "settle has no effect"),
        ({"training.student.steps": "0", "training.student.settle": "0"}, "taught has no effect"),
        ({"training.student.fresh": "0.9"}, "more than a minibatch"),
        ({"curriculum.levels": "[5, 99]"}, r"Level 99 of reversal cannot be answered.*max_tokens"),
        (
            {
                "student.provider": "ollama",
                "student.num_ctx": "128",
                "student.max_tokens": "70",
                "curriculum.levels": "[58]",
                "training.student.enabled": "false",
                "evaluation.forced_tool": "false",
            },
            "Level 58 of reversal is beyond the context.*holds 128",
        ),
        ({"student.model": "long"}, "What the base was taught cannot be replayed"),
    ],
)
def test_what_cannot_work_is_refused_by_name(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_names(load("climb", {f"run.{key}": value for key, value in settings.items()}, {}).run)


def test_the_profile_holds_together() -> None:
    check_names(CLIMB)
    assert CLIMB.training.student.objective == "sft" and not CLIMB.training.teacher.enabled


# --- who writes what the student learns

WRITERS = {"solve", "script"}
"""What a family writes itself, rather than says of an answer."""
WAY = ("agent0/training/", "infra/training/", "handlers/train_checkpoint.py", "agent0/ports/training.py")
ANSWERS = ("agent0/rollout/", "infra/models/", "infra/engine/", "handlers/")
SCRIPTED = "infra/models/scripted.py"
"""Plays a model in tests and in profile `scripted`, from what families write."""


def on_the_way() -> list[str]:
    """Files between the log and a training batch."""
    return [path for path in FILES if path.startswith(WAY)]


def written_by_families(file: Source) -> set[str]:
    """What ``file`` reads of that, by a dot or by its name as text."""
    texts = {node.value for node in file.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return WRITERS & ({name for _, name in file.attributes()} | texts)


def test_nothing_on_the_way_to_a_training_batch_reads_what_a_family_writes() -> None:
    for path in on_the_way():
        assert not written_by_families(source(path)), path
        assert not any(module.startswith("agent0.tasks.families") for module, _ in source(path).imports()), path


def test_nothing_on_the_way_to_an_answer_reads_what_a_family_writes() -> None:
    asked = [path for path in FILES if path.startswith(ANSWERS)]
    assert len(asked) > 40
    assert [path for path in asked if written_by_families(source(path))] == [SCRIPTED]


@pytest.mark.parametrize("text", ["entry.solve(params)", "getattr(entry, 'solve')(params)", "x = entry.script"])
def test_such_a_reader_would_be_found(text: str) -> None:
    assert written_by_families(Source("infra/models/planted.py", text))


def test_the_way_is_where_it_is() -> None:
    assert {"agent0/training/pipeline.py", "infra/training/loop.py", "handlers/train_checkpoint.py"} <= set(
        on_the_way()
    )


# --- the loop


def little(**changes: Any) -> RunConfig:
    """A climb of seconds, played by scripted models."""
    plain: dict[str, Any] = {
        "iterations": 3, "tasks": 6, "attempts": 1,
        "curriculum": {
            "kind": "frontier", "mastered": 6, "domains": ["math"], "families": ["reversal"], "band": [0.0, 1.0],
            "levels": list(range(1, 41)), "embedder": "ngram", "similarity_limit": 1.0,
        },
        "evaluation": {"validation": 6, "test": 0, "levels": [4, 5, 6], "gate": "open", "forced_tool": False},
        "training": {"student": {"objective": "sft", "steps": 2, "minibatch": 4}, "teacher": {"enabled": False}},
        "student": {"tools": [], "max_calls": 0},
    }  # fmt: skip
    return RunConfig.model_validate(plain | changes)


async def told(config: RunConfig) -> list[Any]:
    held = ports()
    held["models"] = ByRole(held["models"].open(ActorConfig()), Sampler())
    return [recorded.event for recorded in await play(started(config), held)]


class ByRole:
    """Opens the sampler for the teacher and the scripted model for the student."""

    def __init__(self, student: Any, teacher: Any) -> None:
        self._student, self._teacher = student, teacher

    def open(self, actor: ActorConfig) -> Any:
        return self._student if isinstance(actor, StudentConfig) else self._teacher


async def test_every_task_is_accepted_and_the_next_ones_follow_what_was_solved() -> None:
    events = await told(little())
    asked = [e for e in events if isinstance(e, TaskRequested)]
    assert Counter(e.iteration for e in asked) == {0: 6, 1: 6, 2: 6}
    assert {e.level for e in asked if e.iteration == 0} == {5, 6, 7, 8, 9}
    assert sum(isinstance(e, TaskAccepted) for e in events) == 18
    assert not any(isinstance(e, RunFailed) for e in events)
    assert len({tuple(sorted(e.level for e in asked if e.iteration == n)) for n in range(3)}) > 1


async def test_nothing_accepted_is_a_failed_run_and_no_silent_flat_line() -> None:
    nobody = little(curriculum=little().curriculum.model_dump() | {"mastered": 40, "levels": [37, 38, 39, 40]})
    events = await told(nobody)
    assert [e.adapter for e in events if isinstance(e, CheckpointTrained)] == [None, None]
    (failed,) = (e for e in events if isinstance(e, RunFailed))
    assert failed.cause_kind == "untrained" and "not_verified" in failed.reason
