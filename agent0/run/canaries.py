"""Canaries of a run on ladders: tasks of taught levels with a known right and a known wrong answer, drawn anew in each
iteration. What the verifier says of them and what the gate then accepts is about both, before anything is trained.

Nothing that is trained on comes from here: a canary is no attempt, and its answers are in no log.
"""

import random
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent0.state.run_state import RunState
from agent0.tasks.families import Family, Params, requested_families
from agent0.training.gate import gated
from agent0.training.scored_trajectory import ScoredTrajectory

TASKS = 64
"""Of each iteration, each with two answers."""
LOWEST = 3
"""Levels used where nothing is known to be taught."""


@dataclass(frozen=True)
class Canary:
    """An answer that is known to be right or wrong, and what the verifier said of it, twice."""

    family: str
    answer: str
    right: bool
    verdicts: tuple[bool, bool]

    @property
    def fault(self) -> bool:
        """Whether the verifier is wrong about it, or says otherwise when it is asked again."""
        return self.verdicts != (self.right, self.right)


def canaries(entries: Iterable[Family], highest: int, n: int, key: str) -> Iterator[Canary]:
    """Draw ``n`` tasks of ladders from the upper half of levels 1 to ``highest`` (0: the lowest ones), and have both
    answers verified. ``key`` decides the draw."""
    ladders, rng = [entry for entry in entries if entry.ladder], random.Random(f"canaries {key}")
    top = highest or LOWEST
    for number in range(n if ladders else 0):
        entry = ladders[number % len(ladders)]
        params = entry.sample(rng.randint((top + 1) // 2, top), rng)
        answer = entry.solve(params)
        for right, text in ((True, answer), (False, _spoilt(answer, number // len(ladders), rng))):
            yield Canary(entry.name, text, right, (_accepts(entry, params, text), _accepts(entry, params, text)))


def _accepts(entry: Family, params: Params, answer: str) -> bool:
    return not entry.check(params, answer) if entry.check else answer == entry.solve(params)


def _spoilt(answer: str, turn: int, rng: random.Random) -> str:
    """The answer with one of its digits (of its letters where it has no digit) replaced by another; every third time
    with one more after its last, or without its last where it has several."""
    signs = string.digits if any(sign in string.digits for sign in answer) else string.ascii_lowercase
    places = [index for index, sign in enumerate(answer) if sign in signs]
    if turn % 3 == 1:
        return f"{answer[: places[-1] + 1]}{rng.choice(signs[1:])}{answer[places[-1] + 1 :]}"
    if turn % 3 == 2 and len(places) > 1:
        return f"{answer[: places[-1]]}{answer[places[-1] + 1 :]}"
    index = rng.choice(places)
    other = rng.choice([sign for sign in signs if sign != answer[index]])
    return f"{answer[:index]}{other}{answer[index + 1 :]}"


def canary_measures(state: RunState) -> dict[str, float]:
    """What became of this iteration's canaries: ``verifier_faults``, the share that the verifier is wrong about; and
    the shares of known right and of known wrong answers that the gate accepts, judged among the iteration's own
    attempts."""
    plan = state.config.curriculum
    entries = [
        entry for domain in plan.domains for entry in requested_families(domain, plan.families).values() if entry.ladder
    ]
    drawn = list(canaries(entries, plan.mastered, TASKS, f"{state.config.seed} {state.iteration}"))
    if not drawn:
        return {}
    scored = [
        _scored(f"canary {state.iteration} {n}", canary.verdicts[0], state.iteration, canary.answer)
        for n, canary in enumerate(drawn)
    ]
    gate = state.config.training.student.gate
    judged = gated([*scored, *_attempts(state)], gate, state.config.seed)[: len(scored)]
    accepted = {
        right: [s.success for s, canary in zip(judged, drawn, strict=True) if canary.right is right]
        for right in (True, False)
    }
    return {
        "verifier_faults": sum(canary.fault for canary in drawn) / len(drawn),
        "gate_right": sum(accepted[True]) / len(accepted[True]),
        "gate_wrong": sum(accepted[False]) / len(accepted[False]),
    }


def _attempts(state: RunState) -> Iterator[ScoredTrajectory]:
    for task in state.tasks.values():
        for name, attempt in task.attempts.items():
            if attempt.correct is not None:
                yield _scored(name, attempt.correct, state.iteration, attempt.answer)


def _scored(name: str, right: bool, iteration: int, answer: str | None) -> ScoredTrajectory:
    return ScoredTrajectory(name, name, "", None, None, None, right, iteration=iteration, answer=answer)
