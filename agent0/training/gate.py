"""Which answers a likelihood training accepts: those that the verifier found right, or those of a control.

Pure: the same trajectories and configuration give the same answers, in whichever iteration they are used again.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from agent0.settings import RunConfig
from agent0.training.scored_trajectory import ScoredTrajectory

AGREEING = 0.6
"""Share of a task's attempts that the majority must have."""


def gated(trajectories: Sequence[ScoredTrajectory], config: RunConfig) -> list[ScoredTrajectory]:
    """Say of each of a student's ``trajectories`` whether it is accepted (``success``).

    By ``training.student.verdicts``:

    - ``verified``: as a verifier or reviewer said.
    - ``permuted``: as was said of another attempt of its iteration.
    - ``coin``: by chance, one half.
    - ``majority``: where at least ``AGREEING`` of a task's attempts wrote the same, and this is one of them.

    Of those that are not, ``training.student.leak`` are accepted nevertheless, drawn by chance.
    """
    recipe, found = config.training.student, list(trajectories)
    match recipe.verdicts:
        case "permuted":
            found = _permuted(found, config.seed)
        case "coin":
            found = [replace(one, success=_chance(config.seed, "coin", one) < 0.5) for one in found]
        case "majority":
            found = _by_majority(found)
    if not recipe.leak:
        return found
    return [replace(one, success=one.success or _chance(config.seed, "leak", one) < recipe.leak) for one in found]


def _chance(seed: int, purpose: str, one: ScoredTrajectory) -> float:
    return random.Random(f"{purpose} {seed} {one.event_id}").random()


def _permuted(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    groups: dict[int, list[ScoredTrajectory]] = defaultdict(list)
    for one in sorted(trajectories, key=lambda one: one.event_id):
        groups[one.iteration].append(one)
    verdicts: dict[str, bool] = {}
    for iteration, members in groups.items():
        shuffled = [one.success for one in members]
        random.Random(f"verdicts {seed} {iteration}").shuffle(shuffled)
        verdicts |= {one.event_id: right for one, right in zip(members, shuffled, strict=True)}
    return [replace(one, success=verdicts[one.event_id]) for one in trajectories]


def with_permuted_rewards(
    trajectories: Sequence[ScoredTrajectory], seed: int, attempted: bool = False
) -> list[ScoredTrajectory]:
    """Control: give each scored trajectory the reward of another of its iteration, the same whenever it is asked.

    Only proposals whose task was ``attempted`` take part, where so wanted: the others keep what they earned, so that
    what is no task, or was written before, loses as always.
    """
    groups: dict[int, list[ScoredTrajectory]] = defaultdict(list)
    for one in sorted(trajectories, key=lambda one: one.event_id):
        if one.reward is not None and (one.solve_rate is not None or not attempted):
            groups[one.iteration].append(one)
    dealt: dict[str, float | None] = {}
    for iteration, members in groups.items():
        rewards = [one.reward for one in members]
        random.Random(f"rewards {seed} {iteration}").shuffle(rewards)
        dealt |= {one.event_id: reward for one, reward in zip(members, rewards, strict=True)}
    return [replace(one, reward=dealt.get(one.event_id, one.reward)) for one in trajectories]


def _by_majority(trajectories: Sequence[ScoredTrajectory]) -> list[ScoredTrajectory]:
    said: dict[str, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for one in trajectories:
        said[one.group][_own_tokens(one)] += 1
    accepted = {
        group: texts.most_common(1)[0][0]
        for group, texts in said.items()
        if texts.most_common(1)[0][1] >= AGREEING * texts.total()
    }
    return [replace(one, success=accepted.get(one.group) == _own_tokens(one)) for one in trajectories]


def _own_tokens(one: ScoredTrajectory) -> tuple[int, ...]:
    path = one.trajectory
    return tuple(token for token, own in zip(path.token_ids, path.mask, strict=False) if own) if path else ()
