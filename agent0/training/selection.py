"""From rewarded trajectories to a training job: who wrote it, the frontier filter, the objective's weights, and replay.

Pure: the same events and configuration give the same job.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent0.ports.training import Lesson, Sample
from agent0.settings import RecipeConfig, RunConfig, TrainingConfig
from agent0.training.objectives import Objective, objectives
from agent0.training.scored_trajectory import Deed, pattern
from events.checkpoints import CheckpointTrained
from events.values import Role, Trajectory


@dataclass(frozen=True)
class Selection:
    """What is trained on, and how much was left out for which reason.

    ``used`` are event ids: of ``samples``, of ``replay``, then of what samples are preferred ``over``, which are as
    many as samples, or none.
    """

    samples: tuple[Sample, ...]
    replay: tuple[Sample, ...]
    used: tuple[str, ...]
    skipped: dict[str, int]
    over: tuple[str, ...] = ()
    lessons: tuple[Lesson, ...] = ()


def select(
    role: Role, deeds: Sequence[Deed], replay: Sequence[Deed], *, author: str, config: RunConfig, seed: int
) -> Selection:
    """Choose and weigh.

    A student's attempts are compared inside their task, a teacher's proposals inside the iteration. Left out: what
    another policy wrote or nobody can tell how, unscored deeds, and groups that are no lesson for the objective.
    """
    skipped: Counter[str] = Counter()
    student = role == "student"
    usable = _usable(_shuffled(deeds, seed) if student and config.shuffle_rewards else deeds, author, skipped)
    recipe = config.training.student if student else config.training.teacher
    objective = objectives()[recipe.objective]
    groups: dict[str, list[Deed]] = {}
    for deed in usable:
        groups.setdefault(deed.group if student else "all", []).append(
            deed if student else replace(deed, solve_rate=None)
        )
    teaching = [members for members in groups.values() if not student or _teaches(members, objective, config, skipped)]
    chosen = objective.weigh(teaching, recipe, skipped)
    again = _replay(replay, recipe, seed, skipped) if student and not config.shuffle_rewards else []
    over = tuple(one.over.event_id for one in chosen if one.over)
    used = [one.deed.event_id for one in chosen] + [deed.event_id for deed in again]
    memories = tuple(Sample(d.trajectory, 1.0) for d in again if d.trajectory)
    return Selection(tuple(one.sample for one in chosen), memories, (*used, *over), dict(skipped), over)


def learning_rate(recipe: RecipeConfig, iteration: int, iterations: int) -> float:
    """Linear from ``lr`` at the first to ``lr * lr_final`` at the last iteration."""
    done = iteration / max(1, iterations - 1)
    return recipe.lr * (1 - (1 - recipe.lr_final) * done)


def nan_share(metrics: Mapping[str, float]) -> float:
    """Share of a training's steps that had no finite loss or gradient, and so were left out."""
    skipped = metrics.get("skipped", 0.0)
    return skipped / max(1.0, skipped + metrics.get("steps", 0.0))


def unsound(trained: CheckpointTrained, plan: TrainingConfig) -> str:
    """What a person should hear of how a checkpoint was made; empty where nothing was wrong."""
    share = nan_share(trained.metrics)
    if share <= (plan.student if trained.role == "student" else plan.teacher).nan_share:
        return ""
    return (
        f"{trained.checkpoint}: {share:.0%} of its training steps had no finite loss and were left out; "
        f"a lower run.training.{trained.role}.lr is the usual remedy"
    )


def fault(path: Trajectory | None) -> str:
    """Why a trajectory cannot be trained on; empty where it can."""
    if path is None or not any(path.mask):
        return "no_trajectory"
    if not path.logprobs:
        return "no_logprobs"
    if not len(path.token_ids) == len(path.mask) == len(path.logprobs):
        return "uneven"
    return "" if all(map(math.isfinite, path.logprobs)) else "not_finite"


def _usable(deeds: Sequence[Deed], author: str, skipped: Counter[str]) -> list[Deed]:
    kept = []
    for deed in deeds:
        if deed.author != author:
            skipped["other_author"] += 1
        elif why := fault(deed.trajectory):
            skipped[why] += 1
        elif deed.reward is None:
            skipped["unscored"] += 1
        else:
            kept.append(deed)
    return kept


def _teaches(members: Sequence[Deed], objective: Objective, config: RunConfig, skipped: Counter[str]) -> bool:
    """Whether a task is solved neither too often nor, where the objective needs failures too, too rarely."""
    low, high = config.curriculum.band
    rate = members[0].solve_rate
    if rate is not None and (low if objective.contrast else 0.0) <= rate <= high:
        return True
    skipped["off_frontier"] += len(members)
    return False


def _replay(deeds: Sequence[Deed], recipe: RecipeConfig, seed: int, skipped: Counter[str]) -> list[Deed]:
    """Own verified successes, a few a task, as many as ``replay_steps`` minibatches hold."""
    held: Counter[str] = Counter()
    pool = []
    for deed in random.Random(seed).sample(list(deeds), len(deeds)):
        if deed.success and deed.trajectory and held[deed.group] < recipe.replay_per_task:
            if why := fault(deed.trajectory):
                skipped[f"replay_{why}"] += 1
                continue
            held[deed.group] += 1
            pool.append(deed)
    wanted = recipe.replay_steps * recipe.minibatch
    return pool[:wanted] if recipe.replay_by == "chance" else diverse(pool, wanted, seed)


def diverse(deeds: Sequence[Deed], count: int, seed: int) -> list[Deed]:
    """``count`` of ``deeds``, so that no level and no way to solve crowds out the others.

    Drawn without replacement (Efraimidis and Spirakis 2006): a level's chance is as the root of how many deeds it has,
    inside it a pattern's as the fourth root.
    """
    ways: dict[int, Counter[str]] = {}
    for deed in deeds:
        ways.setdefault(deed.level, Counter())[pattern(deed)] += 1
    chances = {
        (level, name): found.total() ** 0.5 * alike**-0.75 / sum(n**0.25 for n in found.values())
        for level, found in ways.items()
        for name, alike in found.items()
    }
    rng = random.Random(f"diverse {seed}")
    keys = [math.log(1.0 - rng.random()) / chances[deed.level, pattern(deed)] for deed in deeds]
    ranked = sorted(range(len(deeds)), key=keys.__getitem__, reverse=True)
    return [deeds[place] for place in ranked[:count]]


def _shuffled(deeds: Sequence[Deed], seed: int) -> list[Deed]:
    """Control: rewards and verdicts permuted over all attempts, so that nothing can be learned from them."""
    found = [(deed.reward, deed.success) for deed in deeds]
    random.Random(seed).shuffle(found)
    return [replace(deed, reward=paid, success=right) for deed, (paid, right) in zip(deeds, found, strict=True)]
