"""Tasks in place of those without contrast: where fewer than ``run.tasks`` groups of attempts teach anything, an
iteration asks for others, up to ``run.refill`` times as many (dynamic sampling, DAPO, arXiv 2503.14476, section 3.2).

The paper samples prompts until a batch is full. Here each round asks for as many tasks as are missing, those that
screening refused among them. Pure: it reads verdicts and rewards of the state, which are events.
"""

from agent0.state.run_state import RunState, TaskState
from agent0.training.objectives.advantages import differ


def has_contrast(task: TaskState, band: tuple[float, float]) -> bool:
    """Whether a policy gradient can learn from the attempts at ``task``: a share of them within ``band`` is right, and
    their rewards differ."""
    judged = [attempt for attempt in task.attempts.values() if attempt.verified and not attempt.dropped]
    verdicts = [attempt.correct for attempt in judged if attempt.correct is not None]
    rewards = [attempt.reward for attempt in judged if attempt.reward is not None]
    if not verdicts or not rewards:
        return False
    return band[0] <= sum(verdicts) / len(verdicts) <= band[1] and differ(rewards)


def with_contrast(state: RunState) -> int:
    """Count this iteration's tasks whose attempts have contrast."""
    return sum(has_contrast(task, state.config.curriculum.band) for task in state.tasks.values())


def refilled(state: RunState) -> int:
    """How many tasks the iteration asks for, once all that it has asked for are done."""
    missing = max(0, state.config.tasks - with_contrast(state)) if state.config.refill > 1 else 0
    return max(state.tasks_asked, min(state.tasks_asked + missing, state.config.most_tasks))
