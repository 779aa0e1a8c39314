"""A bandit on learning progress: slots whose solve rate moved most when they were last asked for, up or down, come most
often (Oudeyer, Kaplan and Hafner 2007; for curricula Matiisen et al. 2017, arXiv 1707.00183).

Of each slot is kept what is expected of it, a solve rate that moves halfway to each new one, and how far the newest was
from that. ``curriculum.mastered`` says where 1 is expected at the start; elsewhere it is 0.
"""

from agent0.state.run_state import Arm, RunState, arm_key
from agent0.tasks.curriculum.frontier import rates_of

STEP = 0.5
"""How far the expected rate moves to a new one."""
UNTRIED = 0.5
LEAST = 0.02
"""What a slot is worth that was never asked for, and that one has in any case."""


def promise(arm: Arm | None) -> float:
    """What a slot is worth: the distance of its newest solve rate from what was expected."""
    return LEAST + (arm.value if arm else UNTRIED)


def remember(state: RunState) -> dict[str, Arm]:
    """Replace what is known of each slot that this iteration asked for."""
    mastered = {
        arm_key(task.domain, task.family, task.level): task.level <= state.config.curriculum.mastered
        for task in state.tasks.values()
    }
    return {**state.arms, **{key: _moved(state.arms.get(key), mastered[key], rates) for key, rates in rates_of(state)}}


def _moved(arm: Arm | None, mastered: bool, rates: list[float]) -> Arm:
    expected, rate = arm.solved if arm else float(mastered), sum(rates) / len(rates)
    return Arm(1.0, abs(rate - expected), expected + STEP * (rate - expected))
