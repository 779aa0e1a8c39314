"""Gates that only studies use: which answers a training accepts is made worse on purpose. A study file names this
one; so does ``--plugin studies/controls.py``."""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import agent0
from agent0.training.gate import Gate, permuted
from agent0.training.scored_trajectory import ScoredTrajectory


def _chance(seed: int, purpose: str, one: ScoredTrajectory) -> float:
    return random.Random(f"{purpose} {seed} {one.event_id}").random()


@agent0.gate("coin")
def coin(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """By chance, one half."""
    return [replace(one, success=_chance(seed, "coin", one) < 0.5) for one in trajectories]


def _leaky(share: float) -> Gate:
    def leaky(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
        """As verified; of those that are wrong, a share is accepted nevertheless, drawn by chance."""
        return [replace(one, success=one.success or _chance(seed, "leak", one) < share) for one in trajectories]

    return leaky


for name, share in (("leak-10", 0.1), ("leak-30", 0.3), ("leak-all", 1.0)):
    agent0.gate(name)(_leaky(share))


@agent0.gate("permuted-tasks")
def permuted_tasks(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """Of proposals: rewards permuted over those whose task was attempted, so that what is no task, or was written
    before, loses as always."""
    attempted = [one for one in trajectories if one.solve_rate is not None]
    dealt = {one.event_id: one for one in permuted(attempted, seed)}
    return [dealt.get(one.event_id, one) for one in trajectories]


@agent0.gate("confident")
def confident(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """The student's own confidence in place of the verifier: as many of an iteration's answers as were verified, those
    with the highest mean log-probability of their tokens."""
    groups: dict[int, list[ScoredTrajectory]] = defaultdict(list)
    for one in trajectories:
        groups[one.iteration].append(one)
    accepted: set[str] = set()
    for members in groups.values():
        ranked = sorted(members, key=lambda one: (-_confidence(one), one.event_id))
        accepted |= {one.event_id for one in ranked[: sum(one.success for one in members)]}
    return [replace(one, success=one.event_id in accepted) for one in trajectories]


def _confidence(one: ScoredTrajectory) -> float:
    """Mean log-probability of the tokens that it wrote; the lowest where they are not known."""
    path = one.trajectory
    own = [logprob for logprob, mask in zip(path.logprobs, path.mask, strict=False) if mask] if path else []
    return fmean(own) if own else float("-inf")
