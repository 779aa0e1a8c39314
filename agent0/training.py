"""From rewarded trajectories to a training job: advantages, ambiguity weighting, frontier filter and replay.

Pure: the same events and configuration give the same job.
"""

import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent0.ports import Sample
from agent0.settings import RecipeConfig, RunConfig
from events.values import Role, Trajectory

_EPSILON = 1e-4


@dataclass(frozen=True)
class Deed:
    """One rewarded trajectory: of a student's attempt (``group`` is its task) or a teacher's proposal."""

    event_id: str
    group: str
    author: str
    trajectory: Trajectory | None
    reward: float | None
    solve_rate: float | None
    success: bool = False


@dataclass(frozen=True)
class Selection:
    """What is trained on, and how much was left out for which reason."""

    samples: tuple[Sample, ...]
    replay: tuple[Sample, ...]
    used: tuple[str, ...]
    skipped: dict[str, int]


def select(
    role: Role, deeds: Sequence[Deed], replay: Sequence[Deed], *, author: str, config: RunConfig, seed: int
) -> Selection:
    """Choose and weigh.

    A student's attempts are compared inside their task, a teacher's proposals inside the iteration. Left out: what
    another policy wrote, unscored deeds, groups beyond the frontier band and groups whose rewards are all equal.
    """
    skipped: Counter[str] = Counter()
    usable = _usable(_shuffled(deeds, seed) if role == "student" and config.shuffle_rewards else deeds, author, skipped)
    recipe = config.training.student if role == "student" else config.training.teacher
    groups: dict[str, list[Deed]] = {}
    for deed in usable:
        groups.setdefault(deed.group if role == "student" else "all", []).append(deed)
    chosen: list[tuple[Deed, Sample]] = []
    for members in groups.values():
        if role == "student" and not _at_frontier(members[0], config):
            skipped["off_frontier"] += len(members)
        else:
            chosen += _weigh(members, recipe, role, skipped)
    again = _replay(replay, recipe, seed) if role == "student" and not config.shuffle_rewards else []
    used = [deed.event_id for deed, _ in chosen] + [deed.event_id for deed in again]
    memories = tuple(Sample(d.trajectory, 1.0) for d in again if d.trajectory)
    return Selection(tuple(s for _, s in chosen), memories, tuple(used), dict(skipped))


def learning_rate(recipe: RecipeConfig, iteration: int, iterations: int) -> float:
    """Linear from ``lr`` at the first to ``lr * lr_final`` at the last iteration."""
    done = iteration / max(1, iterations - 1)
    return recipe.lr * (1 - (1 - recipe.lr_final) * done)


def ambiguity_scale(rate: float) -> float:
    """ADPO's advantage scale s(p): 0.6 at p <= 0.3 rising to 1 at p >= 0.8 (arXiv 2511.16043, section 3.3; constants
    of the released recipe)."""
    return 0.6 + 0.4 * min(1.0, max(0.0, (rate - 0.3) / 0.5))


def clip_high(rate: float, recipe: RecipeConfig) -> float:
    """ADPO's upper clip: widest for tasks that are rarely solved (same source)."""
    return recipe.clip_high + recipe.clip_bonus * min(1.0, max(0.0, (0.8 - rate) / 0.5))


def _usable(deeds: Sequence[Deed], author: str, skipped: Counter[str]) -> list[Deed]:
    kept = []
    for deed in deeds:
        if deed.author != author:
            skipped["other_author"] += 1
        elif deed.trajectory is None or not any(deed.trajectory.mask):
            skipped["no_trajectory"] += 1
        elif deed.reward is None:
            skipped["unscored"] += 1
        else:
            kept.append(deed)
    return kept


def _at_frontier(deed: Deed, config: RunConfig) -> bool:
    low, high = config.curriculum.band
    return deed.solve_rate is not None and low <= deed.solve_rate <= high


def _weigh(members: list[Deed], recipe: RecipeConfig, role: Role, skipped: Counter[str]) -> list[tuple[Deed, Sample]]:
    """Group-relative advantages (GRPO, arXiv 2402.03300, section 4.1.2)."""
    values = [deed.reward or 0.0 for deed in members]
    centre, spread = statistics.fmean(values), statistics.pstdev(values)
    if spread < _EPSILON:
        skipped["no_contrast"] += len(members)
        return []
    by = spread + _EPSILON if recipe.advantage == "group" else 1.0
    chosen = []
    for deed, value in zip(members, values, strict=True):
        rate = 1.0 if role == "teacher" or deed.solve_rate is None else deed.solve_rate
        advantage = (value - centre) / by * ambiguity_scale(rate)
        chosen.append((deed, Sample(deed.trajectory or Trajectory(), advantage, clip_high(rate, recipe))))
    return chosen


def _replay(deeds: Sequence[Deed], recipe: RecipeConfig, seed: int) -> list[Deed]:
    """Own verified successes, at most two a task, as many as ``replay_steps`` minibatches hold."""
    held: Counter[str] = Counter()
    pool = []
    for deed in random.Random(seed).sample(list(deeds), len(deeds)):
        if deed.success and deed.trajectory and held[deed.group] < 2:
            held[deed.group] += 1
            pool.append(deed)
    return pool[: recipe.replay_steps * recipe.minibatch]


def _shuffled(deeds: Sequence[Deed], seed: int) -> list[Deed]:
    """Control: rewards permuted over all attempts, so that nothing can be learned from them."""
    values = [deed.reward for deed in deeds]
    random.Random(seed).shuffle(values)
    return [replace(deed, reward=value) for deed, value in zip(deeds, values, strict=True)]
