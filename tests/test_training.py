"""What is trained on: own deeds only, at the frontier, compared within their group; everything left out is counted."""

import random
from statistics import fmean, pstdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.settings import RecipeConfig, RunConfig
from agent0.storing import INLINE, claim, claim_turns, redeem
from agent0.training import Deed, Selection, ambiguity_scale, clip_high, learning_rate, select
from events.values import Trajectory, Turn
from tests.memory import MemoryArtifacts

WAY = Trajectory(token_ids=(1, 2, 3), mask=(0, 1, 1), logprobs=(0.0, -0.5, -0.25))
CONFIG = RunConfig(tasks=4)


def deed(number: int, **changes: Any) -> Deed:
    """A student's deed in the group of its tens."""
    plain = {"group": f"t{number // 10}", "author": "me", "trajectory": WAY, "reward": float(number % 2)}
    return Deed(**{"event_id": f"e{number}", "solve_rate": 0.5, "success": number % 2 == 1} | plain | changes)  # type: ignore[arg-type]


def chosen(
    deeds: list[Deed], config: RunConfig = CONFIG, role: Any = "student", replay: list[Deed] | None = None
) -> Selection:
    return select(role, deeds, replay or [], author="me", config=config, seed=3)


DEEDS = st.lists(
    st.builds(
        deed,
        st.integers(0, 39),
        reward=st.none() | st.floats(-2, 2),
        author=st.sampled_from(["me", "me", "me", "other"]),
        trajectory=st.sampled_from([WAY, WAY, None, Trajectory(token_ids=(1,), mask=(0,), logprobs=(0.0,))]),
    ),
    max_size=30,
)


@given(DEEDS, st.sampled_from(["student", "teacher"]))
def test_everything_is_used_or_counted(deeds: list[Deed], role: Any) -> None:
    found = chosen(deeds, role=role)
    assert len(found.samples) + sum(found.skipped.values()) == len(deeds)
    assert len(found.used) == len(found.samples)
    mine = {d.event_id for d in deeds if d.author == "me" and d.reward is not None and d.trajectory}
    assert set(found.used) <= mine
    assert all(count > 0 for count in found.skipped.values())


@given(DEEDS)
def test_advantages_of_a_group_cancel(deeds: list[Deed]) -> None:
    found = chosen(deeds)
    groups: dict[str, list[float]] = {}
    by_id = dict(zip(found.used, found.samples, strict=True))
    for one in deeds:
        if one.event_id in by_id and len(by_id) == len(found.used):
            groups.setdefault(one.group, []).append(by_id[one.event_id].advantage)
    if len({d.event_id for d in deeds}) == len(deeds):
        assert all(sum(values) == pytest.approx(0, abs=1e-6) for values in groups.values())


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.floats(0.1, 0.9))
def test_advantages_are_those_of_the_paper(rewards: list[float], rate: float) -> None:
    deeds = [deed(n, group="t", reward=r, solve_rate=rate) for n, r in enumerate(rewards)]
    found = chosen(deeds)
    spread = pstdev(rewards)
    if spread < 1e-4:
        assert found.skipped == {"no_contrast": len(deeds)} and not found.samples
        return
    for sample, reward in zip(found.samples, rewards, strict=True):
        expected = (reward - fmean(rewards)) / (spread + 1e-4) * ambiguity_scale(rate)
        assert sample.advantage == pytest.approx(expected)
        assert sample.clip_high == clip_high(rate, CONFIG.training.student)


def test_centered_advantages_are_not_divided() -> None:
    config = RunConfig.model_validate({"training": {"student": {"advantage": "centered"}}})
    found = chosen([deed(0), deed(1)], config)
    assert [s.advantage for s in found.samples] == pytest.approx(
        [-0.5 * ambiguity_scale(0.5), 0.5 * ambiguity_scale(0.5)]
    )


def test_what_another_wrote_is_refused() -> None:
    found = chosen([deed(0, author="cloud"), deed(1, author="base"), deed(2), deed(3)])
    assert found.skipped == {"other_author": 2}
    assert found.used == ("e2", "e3")


@pytest.mark.parametrize(
    ("rate", "used"), [(0.0, 0), (0.05, 0), (0.1, 2), (0.5, 2), (0.9, 2), (0.95, 0), (1.0, 0), (None, 0)]
)
def test_only_the_frontier_teaches_the_student(rate: float | None, used: int) -> None:
    deeds = [deed(0, solve_rate=rate), deed(1, solve_rate=rate)]
    assert len(chosen(deeds).samples) == used
    assert chosen(deeds).skipped == ({} if used else {"off_frontier": 2})


def test_the_teacher_is_compared_over_the_iteration() -> None:
    deeds = [deed(10 * n, group=f"t{n}", reward=n / 4, solve_rate=None) for n in range(5)]
    found = chosen(deeds, role="teacher")
    assert len(found.samples) == 5
    assert [s.advantage for s in found.samples] == sorted(s.advantage for s in found.samples)
    assert {s.clip_high for s in found.samples} == {clip_high(1.0, CONFIG.training.teacher)}


SHUFFLED = CONFIG.model_copy(update={"shuffle_rewards": True})


def test_the_shuffle_control_keeps_rewards_but_not_whose_they_are() -> None:
    deeds = [deed(n, group="t", reward=float(n)) for n in range(12)]
    plain, mixed = chosen(deeds), chosen(deeds, SHUFFLED)
    assert sorted(s.advantage for s in plain.samples) == pytest.approx(sorted(s.advantage for s in mixed.samples))
    assert [s.advantage for s in plain.samples] != pytest.approx([s.advantage for s in mixed.samples])
    assert chosen(deeds, SHUFFLED) == mixed
    assert chosen(deeds, SHUFFLED, role="teacher") == chosen(deeds, role="teacher")


def test_nothing_is_replayed_under_the_control() -> None:
    """Verified successes are a signal that shuffled rewards must not leak."""
    past = [deed(n) for n in range(40)]
    assert chosen(past, SHUFFLED, replay=past).replay == ()
    assert chosen(past, replay=past).replay


@given(st.lists(st.builds(deed, st.integers(0, 99)), max_size=60), st.integers(0, 4))
def test_replay_is_of_successes_two_a_task(past: list[Deed], steps: int) -> None:
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
    assert recipe.clip_high <= clip_high(high, recipe) <= clip_high(low, recipe) <= recipe.clip_high + recipe.clip_bonus


def test_formulas_at_their_corners() -> None:
    recipe = RecipeConfig(clip_high=0.2, clip_bonus=0.16, lr=1.0, lr_final=0.2)
    assert [ambiguity_scale(p) for p in (0, 0.3, 0.55, 0.8, 1)] == pytest.approx([0.6, 0.6, 0.8, 1, 1])
    assert [clip_high(p, recipe) for p in (0, 0.3, 0.55, 0.8, 1)] == pytest.approx([0.36, 0.36, 0.28, 0.2, 0.2])
    assert [learning_rate(recipe, n, 5) for n in range(5)] == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])
    assert learning_rate(recipe, 0, 1) == 1.0


@given(st.integers(0, 2**32))
def test_the_same_deeds_give_the_same_job(seed: int) -> None:
    rng = random.Random(seed)
    deeds = [deed(n, reward=rng.random()) for n in range(20)]
    assert chosen(deeds, SHUFFLED, replay=deeds) == chosen(deeds, SHUFFLED, replay=deeds)


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
