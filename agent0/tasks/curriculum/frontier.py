"""Which rungs of ladders to ask for: those around the highest level that the student still solves.

A family's frontier is its highest level whose last iteration solved at least ``THRESHOLD``; levels up to
``curriculum.mastered`` count as solved until they are asked for. Tasks are spread evenly from the level below the
frontier to ``curriculum.ahead`` levels above it, so that a student that falls back is asked for lower levels again.

A control follows no student: the level rises from the lowest of ``curriculum.levels`` to the highest, at an even pace
over the iterations of a run, whatever is solved.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from agent0.settings import CurriculumConfig
from agent0.state.run_state import Arm, RunState, arm_key

Slot = tuple[str, str, int]
At = Callable[[Sequence[Slot]], int]
"""Of the rungs of one family, the level around which tasks are asked for."""
THRESHOLD = 0.5
BEHIND = 1
"""Levels below the frontier that are asked for."""


def frontier(arms: Mapping[str, Arm], rungs: Sequence[Slot], mastered: int) -> int:
    """The frontier of one family's ``rungs``: a level; the lowest where none is solved."""
    solved = [rung[2] for rung in rungs if _rate(arms.get(arm_key(*rung)), rung[2] <= mastered) >= THRESHOLD]
    return max(solved, default=min(level for _, _, level in rungs))


def _rate(arm: Arm | None, mastered: bool) -> float:
    return arm.solved / arm.closed if arm and arm.closed else float(mastered)


def around(at: At, slots: Iterable[Slot], plan: CurriculumConfig) -> list[Slot]:
    """Those of ``slots`` that are around their family's level ``at``, families taking turns, lower levels first."""
    families: dict[str, list[Slot]] = {}
    for slot in slots:
        families.setdefault(slot[1], []).append(slot)
    chosen = []
    for rungs in families.values():
        level = at(rungs)
        chosen.append(sorted(slot for slot in rungs if level - BEHIND <= slot[2] <= level + plan.ahead))
    longest = max(map(len, chosen), default=0)
    return [rungs[index] for index in range(longest) for rungs in chosen if index < len(rungs)]


def spread(state: RunState, domains: Mapping[str, Sequence[Slot]], at: At | None = None) -> list[Slot]:
    """Choose ``config.tasks`` slots: domains take turns, and within one the slots around ``at`` do (None: around the
    frontier)."""
    plan = state.config.curriculum

    def solved(rungs: Sequence[Slot]) -> int:
        return frontier(state.arms, rungs, plan.mastered)

    places = {domain: around(at or solved, slots, plan) for domain, slots in domains.items()}
    order = [domain for domain, slots in places.items() if slots]
    counts = [divmod(number, len(order)) for number in range(state.config.tasks)]
    return [places[order[turn]][at % len(places[order[turn]])] for at, turn in counts]


def remember(state: RunState) -> dict[str, Arm]:
    """Replace what is known of each slot that this iteration asked for by how its tasks ended."""
    return {**state.arms, **{key: Arm(float(len(rates)), 0.0, sum(rates)) for key, rates in rates_of(state)}}


def rates_of(state: RunState) -> list[tuple[str, list[float]]]:
    """The solve rates of this iteration's tasks by the key of their slot."""
    rates: dict[str, list[float]] = {}
    for task in state.tasks.values():
        if task.paid and task.solve_rate is not None:
            rates.setdefault(arm_key(task.domain, task.family, task.level), []).append(task.solve_rate)
    return [*rates.items()]


def rising_level(rungs: Sequence[Slot], iteration: int, iterations: int) -> int:
    """The level of one family's ``rungs`` around which tasks are asked for in ``iteration``, from 0."""
    lowest, highest = (end(rung[2] for rung in rungs) for end in (min, max))
    return round(lowest + (highest - lowest) * iteration / max(1, iterations - 1))


def spread_rising(state: RunState, domains: Mapping[str, Sequence[Slot]]) -> list[Slot]:
    """Choose ``config.tasks`` slots, as ``spread`` does around the frontier."""
    return spread(state, domains, lambda rungs: rising_level(rungs, state.iteration, state.config.iterations))
