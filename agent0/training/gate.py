"""Gates: which trajectories a training accepts, and with which rewards. The usual one passes on what was verified and
earned; the others are controls, or a plugin's.

Pure: the same trajectories and seed give the same, in whichever iteration they are used again.
"""

import operator
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent0.grading.normal_form import normal_form
from agent0.registry import Registry
from agent0.rollout.confidence.signals import agreement
from agent0.training.scored_trajectory import ScoredTrajectory

AGREEING = 0.6
"""Share of a task's attempts that the majority must have."""
VERIFIED = "verified"
Gate = Callable[[Sequence[ScoredTrajectory], int], Sequence[ScoredTrajectory]]
"""(trajectories of a role, seed of the run) -> the same in the same order, with another ``success`` or ``reward``.
Trajectories of one iteration are judged alike whichever other iterations are there."""

_gates = Registry[str, Gate]("gates", same=operator.is_)


def gate(name: str) -> Callable[[Gate], Gate]:
    """Decorate a function as the gate that ``training.student.gate`` and ``training.teacher.gate`` call ``name``.

    Raises:
        TakenError: another gate has this name.
    """
    return _gates.adding(name, lambda function: function)


def gates() -> dict[str, Gate]:
    """Return every registered gate by its name, sorted by name."""
    return _gates.all()


def gated(trajectories: Sequence[ScoredTrajectory], name: str, seed: int) -> list[ScoredTrajectory]:
    """Pass ``trajectories`` through the gate of this name: their ``success`` says which likelihood training accepts,
    their ``reward`` what the others weigh."""
    return list(gates()[name](trajectories, seed))


@gate(VERIFIED)
def verified(trajectories: Sequence[ScoredTrajectory], seed: int) -> Sequence[ScoredTrajectory]:
    """As a verifier or reviewer decided, and as was earned."""
    return trajectories


@gate("permuted")
def permuted(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """Control: verdict and reward of another trajectory of the same iteration; the unscored swap among themselves."""
    groups: dict[tuple[int, bool], list[ScoredTrajectory]] = defaultdict(list)
    for scored in sorted(trajectories, key=lambda scored: scored.event_id):
        groups[scored.iteration, scored.reward is None].append(scored)
    judged: dict[str, tuple[bool, float | None]] = {}
    for (iteration, _), members in groups.items():
        judgements = [(scored.success, scored.reward) for scored in members]
        random.Random(f"verdicts {seed} {iteration}").shuffle(judgements)
        judged |= {scored.event_id: judgement for scored, judgement in zip(members, judgements, strict=True)}
    return [
        replace(scored, success=success, reward=reward)
        for scored in trajectories
        for success, reward in [judged[scored.event_id]]
    ]


@gate("majority")
def majority(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """Control: accepted where at least ``AGREEING`` of a task's attempts came to the same answer, and this is one of
    them."""
    answers: dict[str, list[str | None]] = defaultdict(list)
    for scored in trajectories:
        answers[scored.group].append(scored.answer)
    agreements = {group: agreement(of_group) for group, of_group in answers.items()}
    accepted = {group: each.majority for group, each in agreements.items() if each.share >= AGREEING}
    return [
        replace(scored, success=scored.answer is not None and normal_form(scored.answer) == accepted.get(scored.group))
        for scored in trajectories
    ]


@gate("answered")
def answered(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """Control: form alone. Whatever is an answer is accepted and rewarded, right or wrong."""
    return [with_verdict(scored, scored.answered) for scored in trajectories]


def with_verdict(scored: ScoredTrajectory, success: bool) -> ScoredTrajectory:
    """``scored`` accepted or not, and rewarded with 1 or 0 where it had a reward."""
    return replace(scored, success=success, reward=None if scored.reward is None else float(success))
