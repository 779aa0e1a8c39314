"""Our advantages and losses beside those of TRL and verl, by their formulas written out in numpy: where they are the
same, and by what factor they differ. docs/design/engine.md has the table."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from agent0.events.values import Trajectory
from agent0.infra.training.launch.recipe import Recipe
from agent0.settings import RecipeConfig
from agent0.training.objectives import MinibatchRows, objectives
from agent0.training.objectives.adpo import ambiguity_scale
from agent0.training.scored_trajectory import ScoredTrajectory

Array = np.ndarray[Any, Any]
REWARDS = np.array([[1.0, 0.0, 0.0, 1.0], [0.2, 1.0, 0.9, -0.5]])
"""[groups, attempts]."""
WAY = Trajectory(token_ids=(1, 2), mask=(0, 1), logprobs=(0.0, -0.5))


def ours(name: str, rate: float = 0.5, **recipe: Any) -> Array:
    groups = [
        [ScoredTrajectory(f"e{g}-{n}", "t", "me", WAY, reward, rate, False) for n, reward in enumerate(group)]
        for g, group in enumerate(REWARDS.tolist())
    ]
    found = objectives()[name].weigh(groups, RecipeConfig(objective=name, **recipe), Counter())
    return np.array([one.sample.advantage for one in found]).reshape(REWARDS.shape)


def centred() -> Array:
    return REWARDS - REWARDS.mean(1, keepdims=True)


# --- advantages


def test_grpo_divides_by_the_populations_deviation_and_trl_and_verl_by_the_samples() -> None:
    trl = centred() / (REWARDS.std(1, ddof=1, keepdims=True) + 1e-4)
    verl = centred() / (REWARDS.std(1, ddof=1, keepdims=True) + 1e-6)
    found = ours("grpo")
    assert found == pytest.approx(centred() / (REWARDS.std(1, keepdims=True) + 1e-4), rel=1e-12)
    assert found == pytest.approx(trl * math.sqrt(4 / 3), rel=1e-3)
    assert found == pytest.approx(verl * math.sqrt(4 / 3), rel=1e-3)
    assert np.allclose(found[0], [0.9998, -0.9998, -0.9998, 0.9998], atol=1e-6)
    assert np.allclose(trl[0], [0.865876, -0.865876, -0.865876, 0.865876], atol=1e-5)


def test_dr_grpo_divides_by_no_deviation() -> None:
    """TRL: ``scale_rewards="none"``; verl: ``norm_adv_by_std_in_grpo=False``."""
    assert ours("dr_grpo") == pytest.approx(centred(), rel=1e-12)


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.9])
def test_adpo_scales_grpo_as_the_paper_does(rate: float) -> None:
    assert ours("adpo", rate) == pytest.approx(ours("grpo") * ambiguity_scale(rate), rel=1e-12)


def test_reinforce_whitens_over_attempts_and_verl_over_tokens() -> None:
    above = centred()
    assert ours("reinforce") == pytest.approx(above / (above.std() + 1e-4), rel=1e-12)
    alike = verl_whitened(above, np.full(above.shape, 50))
    assert ours("reinforce") == pytest.approx(alike, rel=2e-3)
    uneven = verl_whitened(above, np.array([[10, 50, 50, 10], [10, 50, 50, 10]]))
    assert not np.allclose(ours("reinforce"), uneven, rtol=0.02)


def verl_whitened(above: Array, lengths: Array) -> Array:
    """Each attempt's value stands at each of its tokens; sample variance over these, 1e-8 under the root."""
    tokens = np.repeat(above.ravel(), lengths.ravel())
    return np.asarray((above - tokens.mean()) / np.sqrt(tokens.var(ddof=1) + 1e-8))


def test_rloo_is_trls_and_verls() -> None:
    trl = REWARDS - (REWARDS.sum(1, keepdims=True) - REWARDS) / 3
    verl = REWARDS * 4 / 3 - REWARDS.mean(1, keepdims=True) * 4 / 3
    assert ours("rloo") == pytest.approx(trl, rel=1e-12) and ours("rloo") == pytest.approx(verl, rel=1e-12)


# --- losses


def batch() -> dict[str, Array]:
    rng = np.random.default_rng(3)
    mask = np.array([[0, 1, 1, 0, 0, 0], [0, 1, 1, 1, 1, 1], [0, 1, 0, 0, 1, 1]], dtype=bool)
    new = rng.normal(-1, 0.4, mask.shape)
    old = np.where(mask, new + rng.normal(0, 0.2, mask.shape), 0.0)
    return {"new": new, "old": old, "mask": mask, "advantage": np.array([1.2, -0.7, 0.4])}


def loss_of(name: str, x: dict[str, Array], high: float = 0.3) -> tuple[float, Array]:
    """Of the step, as the engine divides it, and its slope by token."""
    new, count = torch.tensor(x["new"], requires_grad=True), len(x["new"])
    rows = MinibatchRows(
        new, torch.tensor(x["old"]), torch.tensor(x["mask"]).int(), torch.tensor(x["advantage"]),
        torch.ones(count, dtype=torch.float64), torch.full((count,), high, dtype=torch.float64),
    )  # fmt: skip
    entry = objectives()[name]
    assert entry.per == "token"
    loss = entry.loss(rows, Recipe(clip_low=0.2)).loss / x["mask"].sum()
    loss.backward()
    assert new.grad is not None
    return float(loss.detach()), new.grad.numpy()


def clipped(ratio: Array, advantage: Array) -> Array:
    return -np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.3) * advantage)


@pytest.mark.parametrize("name", ["grpo", "adpo", "dapo", "reinforce"])
def test_the_loss_is_bnpo_and_token_mean_and_not_that_of_attempts(name: str) -> None:
    x = batch()
    each = clipped(np.exp(x["new"] - x["old"]), x["advantage"][:, None]) * x["mask"]
    found, _ = loss_of(name, x)
    assert found == pytest.approx(each.sum() / x["mask"].sum(), rel=1e-12)
    assert found != pytest.approx((each.sum(1) / x["mask"].sum(1)).mean(), rel=0.01)


def test_rloo_moves_as_trls_does_where_nothing_is_clipped() -> None:
    """TRL's loss is the mean over attempts of - ratio A, the ratio of whole attempts; its slope at each token of an
    attempt is - ratio A / rows. Ours is divided by the step's tokens instead."""
    x = batch()
    x["old"] = np.where(x["mask"], x["new"] + 0.1 * (x["old"] - x["new"]), 0.0)
    ratio = np.exp(np.where(x["mask"], x["new"] - x["old"], 0.0).sum(1))
    assert (abs(ratio - 1) < 0.2).all() and (abs(ratio - 1) > 0.001).all()
    trl = np.where(x["mask"], (-ratio * x["advantage"] / 3)[:, None], 0.0)
    _, slope = loss_of("rloo", x)
    assert slope == pytest.approx(trl * 3 / x["mask"].sum(), rel=1e-12)


def test_only_the_ratio_of_whole_attempts_gives_the_gradient_of_the_policys_own_reward() -> None:
    """Attempts of two tokens out of two, all four drawn alike by another policy, right where both are 1. The bound lies
    above every ratio."""
    p, ways = 0.6, [(a, b) for a in (0, 1) for b in (0, 1)]
    chances = np.array([[p if bit else 1 - p for bit in way] for way in ways])
    right = np.array([float(way == (1, 1)) for way in ways])
    x = {"new": np.log(chances), "old": np.log(np.full((4, 2), 0.5)), "mask": np.ones((4, 2), dtype=bool)}
    x["advantage"] = right
    own = -(chances.prod(1) * right)[:, None] * np.ones((4, 2))  # d E[reward] / d logprob, attempt by attempt
    assert loss_of("rloo", x, high=9.0)[1] * 8 / 4 == pytest.approx(own, rel=1e-12)
