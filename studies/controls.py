"""Gates that only studies use: which answers a training accepts is made worse on purpose. A study file names this
one; so does ``--plugin studies/controls.py``."""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean

from tokenizers import Tokenizer

import agent0
from agent0.events.values import Trajectory
from agent0.infra.models.transformers import packaged
from agent0.training.gate import Gate, permuted, with_verdict
from agent0.training.scored_trajectory import ScoredTrajectory


def _chance(seed: int, purpose: str, scored: ScoredTrajectory) -> float:
    return random.Random(f"{purpose} {seed} {scored.event_id}").random()


@agent0.gate("coin")
def coin(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """By chance, one half."""
    return [replace(scored, success=_chance(seed, "coin", scored) < 0.5) for scored in trajectories]


def _leaky(share: float) -> Gate:
    def leaky(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
        """As verified; of those that are wrong, a share is accepted nevertheless, drawn by chance."""
        return [
            replace(scored, success=scored.success or _chance(seed, "leak", scored) < share) for scored in trajectories
        ]

    return leaky


for name, share in (("leak-10", 0.1), ("leak-30", 0.3), ("leak-all", 1.0)):
    agent0.gate(name)(_leaky(share))


@agent0.gate("permuted-tasks")
def permuted_tasks(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """Of proposals: rewards permuted over those whose task was attempted, so that what is no task, or was written
    before, loses as always."""
    attempted = [scored for scored in trajectories if scored.solve_rate is not None]
    dealt = {scored.event_id: scored for scored in permuted(attempted, seed)}
    return [dealt.get(scored.event_id, scored) for scored in trajectories]


@agent0.gate("wrong")
def wrong(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """Answers that the verifier refused, and no other."""
    return [with_verdict(scored, scored.answered and not scored.success) for scored in trajectories]


@agent0.gate("permuted-answers")
def permuted_answers(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """Verdicts and rewards permuted over an iteration's answers; what is no answer stays refused."""
    answers = [scored for scored in trajectories if scored.answered]
    dealt = {scored.event_id: scored for scored in permuted(answers, seed)}
    return [dealt.get(scored.event_id, scored) for scored in trajectories]


@agent0.gate("confident")
def confident(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """The student's own confidence in place of the verifier: as many of an iteration's answers as were verified, those
    with the highest mean log-probability of their tokens."""
    groups: dict[int, list[ScoredTrajectory]] = defaultdict(list)
    for scored in trajectories:
        groups[scored.iteration].append(scored)
    accepted: set[str] = set()
    for members in groups.values():
        ranked = sorted(members, key=lambda scored: (-_confidence(scored), scored.event_id))
        accepted |= {scored.event_id for scored in ranked[: sum(scored.success for scored in members)]}
    return [replace(scored, success=scored.event_id in accepted) for scored in trajectories]


def _confidence(scored: ScoredTrajectory) -> float:
    """Mean log-probability of the tokens that it wrote; the lowest where they are not known."""
    path = scored.trajectory
    own = [logprob for logprob, mask in zip(path.logprobs, path.mask, strict=False) if mask] if path else []
    return fmean(own) if own else float("-inf")


@agent0.gate("gold")
def gold(trajectories: Sequence[ScoredTrajectory], seed: int) -> list[ScoredTrajectory]:
    """A ceiling, for profile `climb`: of each attempt the right answer is learned, in place of what was written."""
    return [replace(scored, success=True, trajectory=_with_gold(scored.trajectory)) for scored in trajectories]


def _with_gold(trajectory: Trajectory | None) -> Trajectory | None:
    """Its prompt, then the digits of the question in reverse order as the base writes an answer. None where there is no
    trajectory."""
    if trajectory is None:
        return None
    start = trajectory.mask.index(1)
    prompt, end = trajectory.token_ids[:start], _tokenizer().token_to_id("<|im_end|>")
    [digits] = re.findall(r"\d+", _tokenizer().decode(list(prompt)))
    answer = (*_tokenizer().encode(f"\\boxed{{{digits[::-1]}}}").ids, end)
    length = start + len(answer)
    return Trajectory(
        token_ids=prompt + answer, mask=trajectory.mask[:start] + (1,) * len(answer), logprobs=(0.0,) * length
    )


@cache
def _tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(packaged("climb") / "tokenizer.json"))
