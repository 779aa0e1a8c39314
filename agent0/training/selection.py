"""From scored trajectories to what is trained on: author, learnable tasks, the objective's weights, and replay.

Pure: the same events and configuration give the same selection.
"""

import math
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent0.events.checkpoints import CheckpointTrained
from agent0.events.values import Role, Trajectory
from agent0.ports.training import Sample, TrainingExample
from agent0.settings import RecipeConfig, RunConfig, TrainingConfig
from agent0.training.gate import gated
from agent0.training.objectives import Objective, objectives
from agent0.training.scored_trajectory import ScoredTrajectory, solution_pattern

SETTLING = {"fresh": 0.125, "taught": 0.75}
"""Shares of a minibatch in an iteration that settles; the rest are earlier successes."""
SLOWER = 0.3
"""Share of the learning rate in such an iteration."""


@dataclass(frozen=True)
class DatasetSelection:
    """What is trained on, and how much was left out for which reason.

    ``used`` are event ids: of ``samples``, of ``replay``, then of what samples are preferred ``over``, which are as
    many as samples, or none.
    """

    samples: tuple[Sample, ...]
    replay: tuple[Sample, ...]
    used: tuple[str, ...]
    skipped: dict[str, int]
    over: tuple[str, ...] = ()
    authors: Mapping[str, int] = field(default_factory=dict)
    """Tokens of ``samples``, of what they are preferred over, and of ``replay``, each once, by the checkpoint that
    wrote them."""
    examples: tuple[TrainingExample, ...] = ()


def select(
    role: Role,
    trajectories: Sequence[ScoredTrajectory],
    replay: Sequence[ScoredTrajectory],
    *,
    author: str,
    config: RunConfig,
    seed: int,
    earlier: str = "",
) -> DatasetSelection:
    """Select the trajectories to train on and weigh them by the recipe's objective: those of the policy ``author``,
    and of the one ``earlier`` where it is named.

    A student's attempts are compared inside their task, a teacher's proposals as the recipe's ``baseline`` says. Left
    out and counted in ``skipped``: trajectories of another policy (unless the objective can use them) or without token
    data, unscored ones, and groups that the objective cannot learn from.
    """
    skipped: Counter[str] = Counter()
    student = role == "student"
    recipe = config.training.student if student else config.training.teacher
    trajectories, replay = (gated(each, recipe.gate, config.seed) for each in (trajectories, replay))
    objective = objectives()[recipe.objective]
    usable = _usable(trajectories, set[str]() if objective.off_policy else {author, earlier} - {""}, skipped)
    groups: dict[str, list[ScoredTrajectory]] = {}
    for scored in usable:
        groups.setdefault(scored.group if student else _compared(scored, recipe), []).append(
            scored if student else replace(scored, solve_rate=None)
        )
    teaching = [members for members in groups.values() if not student or _teaches(members, objective, config, skipped)]
    chosen = objective.weigh(teaching, recipe, skipped)
    again = _replay(replay, recipe, seed, skipped) if student else []
    over = tuple(weighted.over.event_id for weighted in chosen if weighted.over)
    used = [weighted.scored.event_id for weighted in chosen] + [scored.event_id for scored in again]
    authors: Counter[str] = Counter()
    for scored in (*(w.scored for w in chosen), *(w.over for w in chosen if w.over), *again):
        authors[scored.author] += sum(scored.trajectory.mask) if scored.trajectory else 0
    memories = tuple(Sample(d.trajectory, 1.0) for d in again if d.trajectory)
    samples = tuple(replace(w.sample, stale=bool(earlier) and w.scored.author == earlier) for w in chosen)
    return DatasetSelection(samples, memories, (*used, *over), dict(skipped), over, dict(authors))


def _compared(scored: ScoredTrajectory, recipe: RecipeConfig) -> str:
    """What a teacher's proposal is compared with, as a key: its iteration, or there those after the same prompt."""
    path = scored.trajectory
    if recipe.baseline == "iteration" or path is None:
        return f"{scored.iteration}"
    return f"{scored.iteration} {path.token_ids[: path.mask.index(1)]}"


def learning_rate(recipe: RecipeConfig, iteration: int, iterations: int | None) -> float:
    """The learning rate of an iteration: linear from ``lr`` at the first to ``lr * lr_final`` at the last; ``lr`` where
    their number is not known."""
    if iterations is None:
        return recipe.lr
    done = iteration / max(1, iterations - 1)
    return recipe.lr * (1 - (1 - recipe.lr_final) * done)


def settling(recipe: RecipeConfig, rate: float, iteration: int, iterations: int | None) -> dict[str, float]:
    """What a training of an iteration, from 0, has instead of the recipe's ``lr``, ``fresh`` and ``taught`` where it
    is one of the last, in which what was forgotten is learned again (``settle``); ``rate`` is its learning rate."""
    if iterations is None:
        return {}
    last = int(recipe.settle * iterations)
    return SETTLING | {"lr": SLOWER * rate} if iteration >= iterations - last else {}


def nan_share(metrics: Mapping[str, float]) -> float:
    """Share of a training's steps that were skipped because loss or gradient was not finite."""
    skipped = metrics.get("skipped", 0.0)
    return skipped / max(1.0, skipped + metrics.get("steps", 0.0))


def left_out(skipped: Mapping[str, int]) -> str:
    """What a training left out and why, in words: ``off_frontier 9, unscored 2``."""
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(skipped.items())) or "no samples"


def training_warning(trained: CheckpointTrained, plan: TrainingConfig) -> str:
    """A warning about too many skipped steps for the user; empty where the training is sound."""
    share = nan_share(trained.metrics)
    if share <= (plan.student if trained.role == "student" else plan.teacher).nan_share:
        return ""
    return (
        f"{trained.checkpoint}: {share:.0%} of its training steps had no finite loss and were left out; "
        f"a lower run.training.{trained.role}.lr is the usual remedy"
    )


def unusable_because(path: Trajectory | None) -> str:
    """Why a trajectory cannot be trained on, as the key it is counted under; empty where it can."""
    if path is None or not any(path.mask):
        return "no_trajectory"
    if not path.logprobs:
        return "no_logprobs"
    if not len(path.token_ids) == len(path.mask) == len(path.logprobs):
        return "uneven"
    return "" if all(map(math.isfinite, path.logprobs)) else "not_finite"


def _usable(
    trajectories: Sequence[ScoredTrajectory], authors: Collection[str], skipped: Counter[str]
) -> list[ScoredTrajectory]:
    """Those of ``authors``, or of anybody where there are none, that can be trained on."""
    kept = []
    for scored in trajectories:
        if authors and scored.author not in authors:
            skipped["other_author"] += 1
        elif why := unusable_because(scored.trajectory):
            skipped[(why == "no_trajectory" and scored.problem) or why] += 1
        elif scored.reward is None:
            skipped["unscored"] += 1
        else:
            kept.append(scored)
    return kept


def _teaches(
    members: Sequence[ScoredTrajectory], objective: Objective, config: RunConfig, skipped: Counter[str]
) -> bool:
    """Whether a task's own answer is not in doubt, and its solve rate within the learnable band; the lower bound holds
    only where the objective needs failures too."""
    low, high = config.curriculum.band
    rate = members[0].solve_rate
    if members[0].doubt == "ambiguous":
        skipped["ambiguous"] += len(members)
        return False
    if rate is not None and (low if objective.contrast else 0.0) <= rate <= high:
        return True
    skipped["off_frontier"] += len(members)
    return False


def _replay(
    trajectories: Sequence[ScoredTrajectory], recipe: RecipeConfig, seed: int, skipped: Counter[str]
) -> list[ScoredTrajectory]:
    """Own accepted answers, a few a task, as many as ``steps`` or ``replay_steps`` minibatches hold."""
    replayed: Counter[str] = Counter()
    pool = []
    for scored in random.Random(seed).sample(list(trajectories), len(trajectories)):
        sound = scored.success and not scored.doubt
        if sound and scored.trajectory and replayed[scored.group] < recipe.replay_per_task:
            if why := unusable_because(scored.trajectory):
                skipped[f"replay_{why}"] += 1
                continue
            replayed[scored.group] += 1
            pool.append(scored)
    count = (recipe.steps or recipe.replay_steps) * recipe.minibatch
    return pool[:count] if recipe.replay_by == "chance" else draw_diverse(pool, count, seed)


def draw_diverse(trajectories: Sequence[ScoredTrajectory], count: int, seed: int) -> list[ScoredTrajectory]:
    """Draw ``count`` of ``trajectories`` so that no level and no way to solve crowds out the others.

    Without replacement (Efraimidis and Spirakis 2006): a level's probability grows with the root of its number of
    trajectories, inside it a pattern's with the fourth root.
    """
    ways: dict[int, Counter[str]] = {}
    for scored in trajectories:
        ways.setdefault(scored.level, Counter())[solution_pattern(scored)] += 1
    chances = {
        (level, name): patterns.total() ** 0.5 * alike**-0.75 / sum(n**0.25 for n in patterns.values())
        for level, patterns in ways.items()
        for name, alike in patterns.items()
    }
    rng = random.Random(f"diverse {seed}")
    keys = [math.log(1.0 - rng.random()) / chances[scored.level, solution_pattern(scored)] for scored in trajectories]
    ranked = sorted(range(len(trajectories)), key=keys.__getitem__, reverse=True)
    return [trajectories[index] for index in ranked[:count]]
