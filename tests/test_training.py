"""What is trained on: own deeds only, at the frontier, compared within their group; everything left out is counted."""

import random
from statistics import fmean, pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.checkpoints import CheckpointTrained
from agent0.events.values import Trajectory, Turn
from agent0.infra.training.metrics import learned_tokens
from agent0.rollout.claim_check import INLINE, claim, claim_turns, redeem
from agent0.settings import RecipeConfig, RunConfig, TrainingConfig
from agent0.training.objectives.adpo import ambiguity_scale, clip_high
from agent0.training.pipeline import settings_of
from agent0.training.scored_trajectory import ScoredTrajectory, solution_pattern
from agent0.training.selection import (
    SLOWER,
    DatasetSelection,
    learning_rate,
    nan_share,
    select,
    training_warning,
    unusable_because,
)
from tests import released
from tests.memory import MemoryArtifacts

WAY = Trajectory(token_ids=(1, 2, 3), mask=(0, 1, 1), logprobs=(0.0, -0.5, -0.25))
CONFIG = RunConfig(tasks=4)


def scored(number: int, **changes: Any) -> ScoredTrajectory:
    """A student's deed in the group of its tens."""
    plain = {"group": f"t{number // 10}", "author": "me", "trajectory": WAY, "reward": float(number % 2)}
    return ScoredTrajectory(
        **{"event_id": f"e{number}", "solve_rate": 0.5, "success": number % 2 == 1} | plain | changes
    )  # type: ignore[arg-type]


def chosen(
    trajectories: list[ScoredTrajectory],
    config: RunConfig = CONFIG,
    role: Any = "student",
    replay: list[ScoredTrajectory] | None = None,
) -> DatasetSelection:
    return select(role, trajectories, replay or [], author="me", config=config, seed=3)


DEEDS = st.lists(
    st.builds(
        scored,
        st.integers(0, 39),
        reward=st.none() | st.floats(-2, 2),
        author=st.sampled_from(["me", "me", "me", "other"]),
        trajectory=st.sampled_from([WAY, WAY, None, Trajectory(token_ids=(1,), mask=(0,), logprobs=(0.0,))]),
    ),
    max_size=30,
)


@given(DEEDS, st.sampled_from(["student", "teacher"]))
def test_everything_is_used_or_counted(trajectories: list[ScoredTrajectory], role: Any) -> None:
    found = chosen(trajectories, role=role)
    assert len(found.samples) + sum(found.skipped.values()) == len(trajectories)
    assert len(found.used) == len(found.samples)
    mine = {d.event_id for d in trajectories if d.author == "me" and d.reward is not None and d.trajectory}
    assert set(found.used) <= mine
    assert all(count > 0 for count in found.skipped.values())


@given(DEEDS)
def test_advantages_of_a_group_cancel(trajectories: list[ScoredTrajectory]) -> None:
    found = chosen(trajectories)
    groups: dict[str, list[float]] = {}
    by_id = dict(zip(found.used, found.samples, strict=True))
    for trajectory in trajectories:
        if trajectory.event_id in by_id and len(by_id) == len(found.used):
            groups.setdefault(trajectory.group, []).append(by_id[trajectory.event_id].advantage)
    if len({d.event_id for d in trajectories}) == len(trajectories):
        assert all(sum(values) == pytest.approx(0, abs=1e-6) for values in groups.values())


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.floats(0.1, 0.9))
def test_advantages_are_those_of_the_paper(rewards: list[float], rate: float) -> None:
    trajectories = [scored(n, group="t", reward=r, solve_rate=rate) for n, r in enumerate(rewards)]
    found = chosen(trajectories)
    spread = pstdev(rewards)
    if spread < 1e-4:
        assert found.skipped == {"no_contrast": len(trajectories)} and not found.samples
        return
    for sample, reward in zip(found.samples, rewards, strict=True):
        expected = (reward - fmean(rewards)) / (spread + 1e-4) * ambiguity_scale(rate)
        assert sample.advantage == pytest.approx(expected)
        assert sample.clip_high == clip_high(rate, CONFIG.training.student)


def test_what_another_wrote_is_refused() -> None:
    found = chosen([scored(0, author="cloud"), scored(1, author="base"), scored(2), scored(3)])
    assert found.skipped == {"other_author": 2}
    assert found.used == ("e2", "e3")


@pytest.mark.parametrize(
    ("rate", "used"), [(0.0, 0), (0.05, 0), (0.1, 2), (0.5, 2), (0.9, 2), (0.95, 0), (1.0, 0), (None, 0)]
)
def test_only_the_frontier_teaches_the_student(rate: float | None, used: int) -> None:
    trajectories = [scored(0, solve_rate=rate), scored(1, solve_rate=rate)]
    assert len(chosen(trajectories).samples) == used
    assert chosen(trajectories).skipped == ({} if used else {"off_frontier": 2})


def test_the_teacher_is_compared_over_the_iteration() -> None:
    trajectories = [scored(10 * n, group=f"t{n}", reward=n / 4, solve_rate=None) for n in range(5)]
    found = chosen(trajectories, role="teacher")
    assert len(found.samples) == 5
    assert [s.advantage for s in found.samples] == sorted(s.advantage for s in found.samples)
    assert {s.clip_high for s in found.samples} == {clip_high(1.0, CONFIG.training.teacher)}


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (None, "no_trajectory"),
        (Trajectory(token_ids=(1, 2), mask=(0, 0), logprobs=(0.0, 0.0)), "no_trajectory"),
        (Trajectory(token_ids=(1, 2), mask=(0, 1)), "no_logprobs"),
        (Trajectory(token_ids=(1, 2), mask=(0, 1), logprobs=(0.0,)), "uneven"),
        (Trajectory(token_ids=(1, 2, 3), mask=(0, 1), logprobs=(0.0, -1.0)), "uneven"),
        (Trajectory(token_ids=(1, 2), mask=(0, 1), logprobs=(0.0, float("nan"))), "not_finite"),
        (Trajectory(token_ids=(1, 2), mask=(0, 1), logprobs=(0.0, float("-inf"))), "not_finite"),
    ],
)
@pytest.mark.parametrize("objective", ["adpo", "grpo", "reinforce", "rloo", "sft", "dpo"])
def test_what_nobody_can_tell_the_making_of_is_counted_and_left_out(path: Any, why: str, objective: str) -> None:
    config = RunConfig.model_validate({"training": {"student": {"objective": objective}}})
    found = chosen(
        [scored(0, trajectory=path), scored(1, trajectory=path), scored(2), scored(3)], config, replay=[scored(1)]
    )
    assert found.skipped.pop(why) == 2 and found.skipped in ({}, {"not_verified": 1})
    assert {sample.trajectory for sample in found.samples} == {WAY}
    assert set(found.used) - {"e1"} <= {"e2", "e3"}


def test_the_reason_that_was_recorded_with_an_attempt_is_the_one_it_is_counted_under() -> None:
    why = "the server gives text only"
    found = chosen([scored(0, trajectory=None, problem=why), scored(1, trajectory=None), scored(2), scored(3)])
    assert found.skipped == {why: 1, "no_trajectory": 1} and found.used == ("e2", "e3")


def test_of_a_sound_trajectory_there_is_no_fault() -> None:
    assert unusable_because(WAY) == ""
    assert unusable_because(Trajectory(token_ids=(1, 2), mask=(1, 1), logprobs=(0.0, float("inf")))) == "not_finite"


@given(st.integers(0, 50), st.integers(0, 50), st.floats(0, 1), st.sampled_from(["student", "teacher"]))
def test_more_steps_without_a_number_than_allowed_are_told(skipped: int, steps: int, allowed: float, role: Any) -> None:
    """The limit is that of the role which was trained; the share is of all steps that were begun."""
    other = "teacher" if role == "student" else "student"
    plan = RunConfig.model_validate({"training": {role: {"nan_share": allowed}, other: {"nan_share": 1.0}}}).training
    metrics = {"skipped": float(skipped), "steps": float(steps)}
    share = skipped / (skipped + steps) if skipped else 0.0
    assert nan_share(metrics) == pytest.approx(share)
    made = CheckpointTrained.model_validate(
        {"checkpoint": "c", "role": role, "iteration": 0, "parent": "base", "adapter": None}
        | {"samples": 0, "metrics": metrics}
    )
    told = training_warning(made, plan)
    assert bool(told) == (nan_share(metrics) > allowed)
    assert not told or (told.startswith(f"c: {share:.0%} of its") and f"run.training.{role}.lr" in told)
    assert nan_share({}) == 0.0 and nan_share({"steps": 3.0}) == 0.0


def test_a_replayed_trajectory_must_be_whole_too() -> None:
    odd = Trajectory(token_ids=(1, 2), mask=(0, 1), logprobs=(0.0,))
    found = chosen([], replay=[scored(1, trajectory=odd), scored(3), scored(5, trajectory=None)])
    assert found.skipped == {"replay_uneven": 1} and len(found.replay) == 1


def with_recipe(**recipe: Any) -> RunConfig:
    return RunConfig.model_validate({"training": {"student": recipe}})


def test_a_single_success_is_enough_for_expert_iteration_and_pairs_need_both() -> None:
    rare = [scored(n, solve_rate=0.05, success=n == 1) for n in range(9)]
    often = [scored(n, solve_rate=0.95) for n in range(10, 19)]
    found = chosen(rare + often, with_recipe(objective="sft"))
    assert found.used == ("e1",) and found.skipped == {"not_verified": 8, "off_frontier": 9}
    pairs = chosen([scored(n, solve_rate=0.5) for n in range(5)], with_recipe(objective="dpo"))
    assert pairs.over == ("e0", "e2") and pairs.used == ("e1", "e3", "e0", "e2") and pairs.skipped == {"unpaired": 1}
    assert chosen(rare, with_recipe(objective="dpo")).skipped == {"off_frontier": 9}


def test_authors_are_of_all_tokens_that_are_learned() -> None:
    """Of what is preferred, what that is preferred over, and what is replayed; a step over them counts as many."""
    deeds = [scored(n) for n in range(4)]
    result = chosen(deeds, with_recipe(objective="dpo"), replay=[scored(31, author="you"), scored(33, author="old")])
    assert result.authors == {"me": 8, "you": 2, "old": 2}
    assert sum(learned_tokens([*result.samples, *result.replay]).values()) == sum(result.authors.values())


def test_the_control_permutes_verdicts_with_the_rewards() -> None:
    """Else an objective that reads verdicts would learn from what the control hides."""
    trajectories = [scored(n, group="t", success=n < 3, reward=float(n < 3)) for n in range(12)]
    plain = with_recipe(objective="sft")
    mixed = with_recipe(objective="sft", gate="permuted")
    assert chosen(trajectories, plain).used == ("e0", "e1", "e2")
    found = chosen(trajectories, mixed)
    assert len(found.samples) == 3 and found.used != ("e0", "e1", "e2")


def test_replay_by_pattern_brings_rare_ways_and_levels_forward() -> None:
    common = [scored(n, group=f"c{n}", success=True, family="sum", level=1, tools=("python",)) for n in range(900)]
    rare = [scored(n, group=f"r{n}", success=True, family="sum", level=1, tools=("sympy",)) for n in range(900, 920)]
    hard = [scored(n, group=f"h{n}", success=True, family="sum", level=3, tools=("python",)) for n in range(920, 940)]
    plain, balanced = with_recipe(replay_steps=2), with_recipe(replay_steps=2, replay_by="pattern")
    for config, fewest, most in ((plain, 0, 10), (balanced, 14, 60)):
        found = chosen([], config, replay=common + rare + hard).used
        uncommon = sum(int(one[1:]) >= 900 for one in found)
        assert len(found) == len(set(found)) == 64 and fewest <= uncommon <= most
        assert found == chosen([], config, replay=common + rare + hard).used
    assert (
        solution_pattern(common[0]) == "sum/1/python"
        and solution_pattern(scored(1, signature="a+b", level=2)) == "/2/a+b"
    )


PAST = st.lists(
    st.builds(scored, st.integers(0, 99), level=st.integers(1, 3)), max_size=40, unique_by=lambda one: one.event_id
)


@given(PAST, st.integers(1, 3))
def test_replay_by_pattern_is_of_the_same_pool(past: list[ScoredTrajectory], each: int) -> None:
    by_chance = with_recipe(replay_steps=100, replay_per_task=each)
    by_pattern = with_recipe(replay_steps=100, replay_per_task=each, replay_by="pattern")
    found = [chosen([], config, replay=past).used for config in (by_chance, by_pattern)]
    assert sorted(found[0]) == sorted(found[1])
    assert all(sum(d.event_id in found[1] and d.group == g for d in past) <= each for g in {d.group for d in past})


PERMUTED = with_recipe(gate="permuted")


def test_the_shuffle_control_keeps_rewards_but_not_whose_they_are() -> None:
    trajectories = [scored(n, group="t", reward=float(n)) for n in range(12)]
    plain, mixed = chosen(trajectories), chosen(trajectories, PERMUTED)
    assert sorted(s.advantage for s in plain.samples) == pytest.approx(sorted(s.advantage for s in mixed.samples))
    assert [s.advantage for s in plain.samples] != pytest.approx([s.advantage for s in mixed.samples])
    assert chosen(trajectories, PERMUTED) == mixed
    assert chosen(trajectories, PERMUTED, role="teacher") == chosen(trajectories, role="teacher")


@given(st.lists(st.builds(scored, st.integers(0, 99)), max_size=60), st.integers(0, 4))
def test_replay_is_of_successes_two_a_task(past: list[ScoredTrajectory], steps: int) -> None:
    config = RunConfig.model_validate({"training": {"student": {"replay_steps": steps, "minibatch": 3}}})
    found = chosen([], config, replay=past)
    per_task: dict[str, int] = {}
    for one in past:
        per_task[one.group] = min(2, per_task.get(one.group, 0) + one.success)
    assert len(found.replay) == min(sum(per_task.values()), 3 * steps)
    assert all(sample.advantage == 1.0 for sample in found.replay)
    assert chosen([], config, role="teacher", replay=past).replay == ()


@given(st.floats(0, 1), st.floats(0, 1))
def test_ambiguity_scale_and_clip_run_against_each_other(low: float, high: float) -> None:
    low, high = sorted((low, high))
    recipe = RecipeConfig()
    assert 0.6 <= ambiguity_scale(low) <= ambiguity_scale(high) <= 1.0
    assert 0.2 <= clip_high(high, recipe) <= clip_high(low, recipe) <= 0.2 + recipe.clip_bonus


def test_formulas_at_their_corners() -> None:
    assert [ambiguity_scale(p) for p in (0, 0.3, 0.55, 0.8, 1)] == pytest.approx([0.6, 0.6, 0.8, 1, 1])
    rates, recipe = (0, 0.3, 0.55, 0.8, 1), RecipeConfig()
    assert [clip_high(p, recipe) for p in rates] == pytest.approx([0.36, 0.36, 0.28, 0.2, 0.2])
    theirs = RecipeConfig(clip_bonus=0.1)  # released.adpo: what a token that grew without bound is still paid
    assert [1 + clip_high(p, theirs) for p in rates] == pytest.approx([-released.adpo(9.0, 1.0, p) for p in rates])
    recipe = RecipeConfig(lr=1.0, lr_final=0.2)
    assert [learning_rate(recipe, n, 5) for n in range(5)] == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])
    assert learning_rate(recipe, 0, 1) == 1.0


@pytest.mark.parametrize(
    ("settle", "iterations", "late"), [(0.1, 20, 2), (0.1, 10, 1), (0.1, 9, 0), (0.3, 10, 3), (1.0, 3, 3), (0.0, 5, 0)]
)
def test_the_last_iterations_settle(settle: float, iterations: int, late: int) -> None:
    """Slower, on what the base was taught; the same in a run and where it is trained again from its log."""
    recipe = RecipeConfig(objective="sft", lr=0.01, lr_final=1.0, steps=4, taught=0.25, settle=settle)
    plan = RunConfig(iterations=iterations, training=TrainingConfig(student=recipe))
    found = [settings_of("student", n, plan) for n in range(iterations)]
    shares = [(one["lr"], one.get("fresh", 0.5), one["taught"]) for one in found]
    assert shares[: iterations - late] == [(0.01, 0.5, 0.25)] * (iterations - late)
    assert shares[iterations - late :] == [(SLOWER * 0.01, 0.125, 0.75)] * late


@given(st.integers(0, 2**32))
def test_the_same_deeds_give_the_same_job(seed: int) -> None:
    rng = random.Random(seed)
    trajectories = [scored(n, reward=rng.random()) for n in range(20)]
    assert chosen(trajectories, PERMUTED, replay=trajectories) == chosen(trajectories, PERMUTED, replay=trajectories)


@pytest.mark.parametrize("length", [0, 3, 100_000])
def test_a_trajectory_is_claimed_and_redeemed(length: int) -> None:
    store = MemoryArtifacts()
    way = Trajectory(token_ids=(7,) * length, mask=(1,) * length, logprobs=(0.0,) * length)
    inline, stored = claim(way, store)
    assert (inline is None) is (stored is not None) is (length == 100_000)
    assert redeem(inline, stored, store) == way
    assert claim(None, store) == (None, None)


def test_a_long_transcript_is_claimed_without_token_ids() -> None:
    store = MemoryArtifacts()
    short = (Turn(role="assistant", content="hi", token_ids=(1, 2)),)
    assert claim_turns(short, store) == ((Turn(role="assistant", content="hi"),), None)
    told, stored = claim_turns((Turn(role="tool", content="x" * INLINE),), store)
    assert told == () and stored is not None and stored.size > INLINE
