"""Which levels of ladders to ask for on a fixed schedule: from the lowest of ``curriculum.levels`` to the highest, at
an even pace over the iterations of a run, whatever is solved. A control for schedules that follow the student."""

from collections.abc import Mapping, Sequence

from agent0.state.run_state import RunState
from agent0.tasks.curriculum.frontier import Slot
from agent0.tasks.curriculum.frontier import spread as around


def level(rungs: Sequence[Slot], iteration: int, iterations: int) -> int:
    """The level of one family's ``rungs`` around which tasks are asked for in ``iteration``, from 0."""
    lowest, highest = (end(rung[2] for rung in rungs) for end in (min, max))
    return round(lowest + (highest - lowest) * iteration / max(1, iterations - 1))


def spread(state: RunState, domains: Mapping[str, Sequence[Slot]]) -> list[Slot]:
    """Choose ``config.tasks`` slots, as ``agent0.tasks.curriculum.frontier`` does around the frontier."""
    return around(state, domains, lambda rungs: level(rungs, state.iteration, state.config.iterations))
