"""Every objective: what it makes of a group, and its gradient against an independent reference in double precision."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.validate.run_config import check_names
from agent0.config.loading import load
from agent0.errors import ConfigError
from agent0.events.values import Trajectory
from agent0.infra.training.launch.recipe import Recipe
from agent0.settings import RecipeConfig, RunConfig
from agent0.training.objectives import MinibatchRows, objectives
from agent0.training.objectives.adpo import ambiguity_scale, clip_high
from agent0.training.objectives.policy_gradient import divergence, token_logprobs
from agent0.training.pipeline import settings_of
from agent0.training.scored_trajectory import ScoredTrajectory

Array = np.ndarray[Any, Any]
RECIPE = Recipe(clip_low=0.2, beta=0.7, kl=0.3)
WAY = Trajectory(token_ids=(1, 2, 3), mask=(0, 1, 1), logprobs=(0.0, -0.5, -0.25))


def scored(n: int, reward: float, rate: float | None = 0.5, success: bool = False) -> ScoredTrajectory:
    return ScoredTrajectory(f"e{n}", "t", "me", WAY, reward, rate, success)


def weighed(name: str, *groups: list[ScoredTrajectory], **recipe: Any) -> tuple[list[Any], Counter[str]]:
    skipped: Counter[str] = Counter()
    return objectives()[name].weigh(groups, RecipeConfig(objective=name, **recipe), skipped), skipped


# --- gradients


def softmax_gradient(logits: Array, ids: Array, outer: Array, heat: float) -> Array:
    """d loss / d logits, given ``outer`` = d loss / d logprob of each token: written out, place by place."""
    found = np.zeros_like(logits)
    for row, place in np.ndindex(ids.shape):
        if place == 0:
            continue
        scores = logits[row, place - 1] / heat
        chances = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        found[row, place - 1] -= outer[row, place] * chances / heat
        found[row, place - 1, ids[row, place]] += outer[row, place] / heat
    return found


def reference_logprobs(logits: Array, ids: Array, heat: float) -> Array:
    found = np.zeros(ids.shape)
    for row, place in np.ndindex(ids.shape):
        if place:
            scores = logits[row, place - 1] / heat
            found[row, place] = scores[ids[row, place]] - scores.max() - math.log(np.exp(scores - scores.max()).sum())
    return found


def outer_clipped(x: dict[str, Array]) -> Array:
    """min(r A, clip(r) A) has the slope r A where the first is the smaller one or both are one, else none."""
    out = np.zeros_like(x["new"])
    for i, t in np.argwhere(x["mask"]):
        ratio, a = math.exp(x["new"][i, t] - x["old"][i, t]), x["advantage"][i]
        inside = ratio <= 1 + x["high"][i] if a >= 0 else ratio >= 1 - RECIPE.clip_low
        out[i, t] = -x["weight"][i] * ratio * a if inside else 0.0
    return out


def outer_gspo(x: dict[str, Array]) -> Array:
    """A row's tokens share one ratio, the n-th root of their product, of which each has the n-th part of the slope."""
    gap = np.where(x["mask"], x["new"] - x["old"], 0.0).sum(1) / np.maximum(x["mask"].sum(1), 1)
    ratio, a = np.exp(gap), x["advantage"]
    inside = np.where(a >= 0, ratio <= 1 + x["high"], ratio >= 1 - RECIPE.clip_low)
    return np.where(x["mask"], np.where(inside, -x["weight"] * ratio * a, 0.0)[:, None], 0.0)


def outer_cispo(x: dict[str, Array]) -> Array:
    """No token is without a slope, whatever its ratio."""
    ratio = np.minimum(np.exp(np.where(x["mask"], x["new"] - x["old"], 0.0)), 1 + x["high"][:, None])
    return np.where(x["mask"], -ratio * (x["advantage"] * x["weight"])[:, None], 0.0)


def outer_rloo(x: dict[str, Array]) -> Array:
    """The ratio of a whole attempt is the product of those of its tokens."""
    ratio = np.exp(np.where(x["mask"], x["new"] - x["old"], 0.0)).prod(1)[:, None]
    cut = np.minimum(ratio, 1 + x["high"][:, None])
    return np.where(x["mask"], -cut * (x["advantage"] * x["weight"])[:, None], 0.0)


def outer_sft(x: dict[str, Array]) -> Array:
    return np.where(x["mask"], -x["weight"][:, None], 0.0) * np.ones_like(x["new"])


def outer_dpo(x: dict[str, Array]) -> Array:
    """Rows are pairs one after the other: first all better ones, then all worse."""
    n = len(x["new"]) // 2
    gain = np.where(x["mask"], x["new"] - x.get("parent", x["old"]), 0.0).sum(1)
    margin = RECIPE.beta * (gain[:n] - gain[n:])
    slope = -RECIPE.beta * x["weight"][:n] / (1 + np.exp(margin))
    return np.where(x["mask"], np.concatenate([slope, -slope])[:, None], 0.0)


def outer_kl(x: dict[str, Array]) -> Array:
    gap = np.where(x["mask"], x["parent"] - x["new"], 0.0)
    return np.where(x["mask"], x["weight"][:, None] * (1 - np.exp(gap)), 0.0)


OUTER: dict[str, Callable[[dict[str, Array]], Array]] = {
    "adpo": outer_clipped, "grpo": outer_clipped, "reinforce": outer_clipped, "dr_grpo": outer_clipped,
    "dapo": outer_clipped, "gspo": outer_gspo, "cispo": outer_cispo,
    "rloo": outer_rloo, "sft": outer_sft, "awr": outer_sft, "none": outer_sft, "dpo": outer_dpo,
}  # fmt: skip


@st.composite
def batches(draw: st.DrawFn) -> tuple[dict[str, Array], Array, Array]:
    """Rows of 1 to 7 tokens, padded: several own turns with tool output between, prompts, rows with nothing of their
    own. An even number of them, so that they can also be pairs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, words = 2 * draw(st.integers(1, 2)), 5
    lengths = draw(st.lists(st.integers(1, 7), min_size=rows, max_size=rows))
    longest = max(lengths)
    inside = np.arange(longest) < np.array(lengths)[:, None]
    mask = inside & (rng.random((rows, longest)) < draw(st.sampled_from([0.3, 0.7, 1.0]))) & (np.arange(longest) > 0)
    logits, ids = rng.normal(0, 1.5, (rows, longest, words)), rng.integers(0, words, (rows, longest))
    new = reference_logprobs(logits, ids, 0.8)
    old = np.where(mask, new + rng.normal(0, 0.35, new.shape), 0.0)
    x = {"mask": mask, "old": old, "parent": np.where(mask, new + rng.normal(0, 0.3, new.shape), 0.0), "new": new}
    x |= {"advantage": rng.normal(0, 1, rows), "weight": rng.uniform(0.2, 2, rows), "high": rng.uniform(0.1, 0.4, rows)}
    return x, logits, ids


def own_rows(
    x: dict[str, Array], logprobs: torch.Tensor, which: slice, over: MinibatchRows | None = None
) -> MinibatchRows:
    """``x`` holds "parent" where there is a reference."""
    told = {name: torch.tensor(value[which]) for name, value in x.items()}
    return MinibatchRows(
        logprobs[which], told["old"], told["mask"].int(), told["advantage"], told["weight"], told["high"],
        reference=told.get("parent"), over=over,
    )  # fmt: skip


def loss_of(name: str, x: dict[str, Array], logprobs: torch.Tensor) -> torch.Tensor:
    """Of all rows, with the penalty where a parent calls for it; for DPO the first half is preferred to the second."""
    half = len(logprobs) // 2
    if name == "dpo":
        worse = own_rows(x, logprobs, slice(half, None))
        return objectives()[name].loss(own_rows(x, logprobs, slice(half), worse), RECIPE).loss
    rows = own_rows(x, logprobs, slice(None))
    found = objectives()[name].loss(rows, RECIPE).loss
    if rows.reference is None or not objectives()[name].penalty:
        return found
    return found + RECIPE.kl * divergence(logprobs, rows.reference, rows.mask, rows.weight)


def outer_of(name: str, x: dict[str, Array]) -> Array:
    penalised = "parent" in x and objectives()[name].penalty
    return OUTER[name](x) + (RECIPE.kl * outer_kl(x) if penalised else 0.0)


def without_parent(x: dict[str, Array]) -> dict[str, Array]:
    return {name: value for name, value in x.items() if name != "parent"}


def near_a_kink(x: dict[str, Array]) -> bool:
    ratio = np.exp(x["new"] - x["old"])[x["mask"]]
    bounds = np.concatenate([1 + np.broadcast_to(x["high"][:, None], x["mask"].shape)[x["mask"]], [0.8]])
    return bool(len(ratio)) and float(np.abs(ratio[:, None] - bounds).min()) < 1e-9


@pytest.mark.parametrize("parent", [False, True])
@pytest.mark.parametrize("name", sorted(OUTER))
@given(batches())
@settings(max_examples=15)
def test_the_gradient_is_the_formulas(name: str, parent: bool, drawn: tuple[dict[str, Array], Array, Array]) -> None:
    """A parent that is not the behaviour is felt by DPO in its place, and by the penalty of those that have one."""
    x, numbers, ids = drawn
    x = x if parent else without_parent(x)
    if near_a_kink(x):
        return
    logits = torch.tensor(numbers, requires_grad=True)
    logprobs = token_logprobs(logits, torch.tensor(ids), 0.8)
    assert logprobs.dtype == torch.float64 and np.allclose(logprobs.detach(), x["new"], rtol=1e-12, atol=1e-12)
    loss_of(name, x, logprobs).backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    expected = softmax_gradient(numbers, ids, outer_of(name, x), 0.8)
    assert np.allclose(logits.grad, expected, rtol=1e-6, atol=1e-12)
    silent = ~np.roll(x["mask"], -1, axis=1)  # what predicts a token that is not the policy's own
    silent[:, -1] = True
    assert not logits.grad.numpy()[silent].any()


@given(batches())
@settings(max_examples=25)
def test_the_penalty_is_k3_and_its_slope(drawn: tuple[dict[str, Array], Array, Array]) -> None:
    x, numbers, ids = drawn
    logits = torch.tensor(numbers, requires_grad=True)
    logprobs = token_logprobs(logits, torch.tensor(ids), 0.8)
    parent, mask, weight = (torch.tensor(x[name]) for name in ("parent", "mask", "weight"))
    found = divergence(logprobs, parent, mask, weight)
    gap = (x["parent"] - x["new"])[x["mask"]]
    told = np.broadcast_to(x["weight"][:, None], x["mask"].shape)[x["mask"]]
    assert float(found.detach()) >= -1e-12 and float(found.detach()) == pytest.approx(
        float(((np.exp(gap) - gap - 1) * told).sum()), rel=1e-9, abs=1e-12
    )
    found.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert np.allclose(logits.grad, softmax_gradient(numbers, ids, outer_kl(x), 0.8), rtol=1e-6, atol=1e-12)
    still = divergence(parent, parent, mask, weight)
    assert float(still) == 0.0


@pytest.mark.parametrize("parent", [False, True])
@pytest.mark.parametrize("name", sorted(OUTER))
def test_the_loss_falls_as_finite_differences_say(name: str, parent: bool) -> None:
    """The slope is that of the loss itself, not only of a formula for it (but for those whose ratio is held
    fixed)."""
    rng = np.random.default_rng(7)
    new = torch.tensor(rng.normal(-1, 0.3, (4, 6)), requires_grad=True)
    x = {
        "mask": rng.random((4, 6)) < 0.6, "old": new.detach().numpy() + rng.normal(0, 0.05, (4, 6)),
        "advantage": rng.normal(0, 1, 4), "weight": rng.uniform(0.5, 1, 4), "high": np.full(4, 0.3),
    }  # fmt: skip
    if parent:
        x["parent"] = new.detach().numpy() + rng.normal(0, 0.4, (4, 6))

    def loss(values: torch.Tensor) -> torch.Tensor:
        return loss_of(name, x, values)

    if name in ("rloo", "cispo"):
        loss(new).backward()  # type: ignore[no-untyped-call]
        assert new.grad is not None
        assert np.allclose(new.grad, outer_of(name, x | {"new": new.detach().numpy()}), rtol=1e-9)
    else:
        assert torch.autograd.gradcheck(loss, (new,), eps=1e-6, rtol=1e-6, atol=1e-8)


# --- what a group is worth

REWARDS = st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=1, max_size=8)


@given(REWARDS, st.floats(0, 1))
def test_adpo_is_grpo_scaled_and_equal_to_it_where_tasks_are_solved(rewards: list[float], rate: float) -> None:
    trajectories = [scored(n, reward, rate) for n, reward in enumerate(rewards)]
    (ours, out), (plain, out_too) = weighed("adpo", trajectories), weighed("grpo", trajectories)
    assert out == out_too and len(ours) == len(plain)
    recipe = RecipeConfig()
    for one, other in zip(ours, plain, strict=True):
        assert one.sample.advantage == other.sample.advantage * ambiguity_scale(rate)
        assert one.sample.clip_high == clip_high(rate, recipe) and other.sample.clip_high == 0.2
    if rate >= 0.8:
        assert [one.sample for one in ours] == [one.sample for one in plain]
    elif ours and rate < 0.79:
        assert all(one.sample != other.sample for one, other in zip(ours, plain, strict=True) if other.sample.advantage)


@given(st.lists(REWARDS, min_size=1, max_size=4))
def test_baselines_are_those_of_their_papers(groups: list[list[float]]) -> None:
    trajectories = [[scored(10 * g + n, reward) for n, reward in enumerate(group)] for g, group in enumerate(groups)]
    telling = [group for group in groups if np.std(group) >= 1e-4]
    one_sided = sum(len(group) for group in groups) - sum(map(len, telling))
    for name in ("grpo", "dr_grpo", "dapo", "gspo", "cispo", "rloo", "reinforce"):
        found, skipped = weighed(name, *trajectories)
        assert skipped == ({"no_contrast": one_sided} if one_sided else {})
        told = [one.sample.advantage for one in found]
        if name == "rloo":
            expected = [
                r - np.mean([other for m, other in enumerate(group) if m != n])
                for group in telling for n, r in enumerate(group)
            ]  # fmt: skip
        elif name == "dr_grpo":
            expected = [r - np.mean(group) for group in telling for r in group]
        elif name != "reinforce":
            expected = [(r - np.mean(group)) / (np.std(group) + 1e-4) for group in telling for r in group]
        else:
            above = np.array([r - np.mean(group) for group in telling for r in group])
            expected = list((above - above.mean()) / (above.std() + 1e-4)) if len(above) else []
        assert told == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_expert_iteration_learns_from_what_was_verified() -> None:
    found, skipped = weighed("sft", [scored(n, 0.9, success=n in (1, 3)) for n in range(5)], [scored(9, 1.0)])
    assert [one.scored.event_id for one in found] == ["e1", "e3"] and skipped == {"not_verified": 4}


@given(st.lists(st.lists(st.booleans(), max_size=5), max_size=4), st.integers(0, 6))
def test_expert_iteration_takes_so_many_successes_of_each_task(groups: list[list[bool]], most: int) -> None:
    tasks = [[scored(10 * g + n, 0.0, success=ok) for n, ok in enumerate(group)] for g, group in enumerate(groups)]
    found, skipped = weighed("sft", *tasks, fresh_per_task=most)
    expected = [one for task in tasks for one in [one for one in task if one.success][: most or 99]]
    assert [one.scored for one in found] == expected
    assert len(found) + skipped["further"] + skipped["not_verified"] == sum(map(len, groups))


@pytest.mark.parametrize("name", ["grpo", "adpo", "dr_grpo", "dapo", "gspo", "cispo", "rloo", "reinforce"])
@given(st.lists(REWARDS, min_size=1, max_size=3), st.integers(2, 6))
def test_policy_gradients_take_so_many_attempts_of_each_task_the_furthest_apart(
    name: str, groups: list[list[float]], most: int
) -> None:
    tasks = [[scored(10 * g + n, reward) for n, reward in enumerate(group)] for g, group in enumerate(groups)]
    weighted, skipped = weighed(name, *tasks, fresh_per_task=most)
    learned = {entry.scored.event_id for entry in weighted}
    for task in tasks:
        rewards = [entry.reward or 0.0 for entry in task if entry.event_id in learned]
        values = [entry.reward or 0.0 for entry in task]
        if np.std(values) < 1e-4:
            assert not rewards
            continue
        size = min(most, len(task))
        widest = max(np.var(subset) for subset in itertools.combinations(values, size))
        assert len(rewards) == size and np.var(rewards) == pytest.approx(widest)
    assert len(learned) + skipped["further"] + skipped["no_contrast"] == sum(map(len, groups))


@given(st.lists(st.booleans(), max_size=9))
def test_pairs_are_a_right_one_and_a_wrong_one_of_one_task(right: list[bool]) -> None:
    found, skipped = weighed("dpo", [scored(n, 0.0, success=ok) for n, ok in enumerate(right)])
    assert all(one.scored.success and one.over is not None and not one.over.success for one in found)
    assert all(one.sample.over is not None for one in found)
    assert len(found) == min(sum(right), len(right) - sum(right))
    assert 2 * len(found) + sum(skipped.values()) == len(right)
    assert set(skipped) <= ({"unpaired"} if found else {"no_contrast"})


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), min_size=2, max_size=8))
def test_dapo_compares_what_was_cut_off_and_learns_nothing_from_it(replies: list[tuple[float, bool]]) -> None:
    group = [replace(scored(n, reward), cut_off=cut_off) for n, (reward, cut_off) in enumerate(replies)]
    (ours, skipped), (plain, _) = weighed("dapo", group), weighed("grpo", group)
    assert [entry.scored for entry in ours] == [entry.scored for entry in plain if not entry.scored.cut_off]
    advantages = {entry.scored.event_id: entry.sample.advantage for entry in plain}
    assert all(entry.sample.advantage == advantages[entry.scored.event_id] for entry in ours)
    assert len(ours) + skipped["overlong"] == len(plain)


@pytest.mark.parametrize(
    ("name", "low", "high"), [("grpo", 0.2, 0.2), ("dapo", 0.2, 0.28), ("gspo", 3e-4, 4e-4), ("cispo", 0.2, 4.0)]
)
def test_clips_are_the_objectives_own_unless_they_are_set(name: str, low: float, high: float) -> None:
    def clips_of(**recipe: Any) -> tuple[Any, Any, float]:
        plan = RunConfig.model_validate({"training": {"student": {"objective": name, **recipe}}})
        settings, (weighted, _) = settings_of("student", 0, plan), weighed(name, [scored(0, 0), scored(1, 1)], **recipe)
        return settings["clip_low"], settings["clip_high"], weighted[0].sample.clip_high

    assert clips_of() == (low, high, high)
    assert clips_of(clip_low=0.1, clip_high=0.3) == (0.1, 0.3, 0.3)


# --- names


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ({"run.training.student.objective": "grpoo"}, "Did you mean grpo"),
        ({"run.training.teacher.objective": "dpo"}, "run.training.teacher.objective"),
        ({"run.training.student.objective": "sft", "run.training.student.kl": "0.1"}, "no effect"),
        ({"run.training.teacher.kl_to": "base"}, "kl_to has no effect"),
        ({"run.training.student.objective": "sft", "run.training.student.correction": "mask"}, "correction has no"),
        ({"run.training.student.first": "dpo"}, "run.training.student.first"),
        ({"run.training.student.clip_low": "1.5"}, "clip_low"),
        ({"run.training.student.objective": "sft", "run.refill": "2"}, "for a retraining: --set refill=1"),
    ],
)
def test_what_has_no_effect_is_refused(pairs: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_names(load("scripted", pairs, {}).run)


def test_every_objective_is_named_by_its_file_and_refused_nowhere_else() -> None:
    assert set(objectives()) == set(OUTER)
    for name, entry in objectives().items():
        for role in entry.roles:
            check_names(load("scripted", {f"run.training.{role}.objective": name}, {}).run)
