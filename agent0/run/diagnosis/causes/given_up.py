"""Reactions that were given up: an error that came again at every try."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Loss, Observation
from agent0.run.diagnosis.causes.failing import CORRECT, faulty_file

COSTLY = ("propose_task", "screen_task", "attempt_task", "continue_attempt", "verify_result", "assign_reward")
"""Handlers without which an attempt is lost."""
TRACED = "Mend what the error names first; agent0 failures show has its traceback."
MUCH = 0.05
"""Share of all attempts whose loss is told though the run went on."""


@cause(30)
def given_up(case: Case) -> Cause | None:
    """Report the reaction that was given up most often, where the run failed of it, waits for a person, or lost more
    than a few attempts."""
    lost = sum(one.count for one in case.losses if one.handler in COSTLY)
    attempts = max(1, sum(one.attempts for one in case.iterations))
    stops = case.ended == "given_up" or any(one.waits for one in case.losses)
    untrained = [one for one in case.losses if one.handler in ("train_checkpoint", "evaluate_checkpoint")]
    if not case.losses or not (stops or untrained or lost > MUCH * attempts):
        return None
    worst = max(untrained or case.losses, key=lambda one: (one.count, -one.event))
    told = f"{worst.handler} was given up {worst.count} times: {worst.error}: {worst.message.rstrip('.')}"
    fork = case.again(at=_before(case, worst))
    retry = f"agent0 failures retry {worst.failure}"
    seen = tuple(Observation(_seen(one), one.task, one.attempt, event=one.event) for one in case.losses[:3])
    file = faulty_file(worst.error, worst.message)
    advice = (
        CORRECT.format(file) if file else "Mend what the error names first; agent0 failures show has its traceback."
    )
    mend = retry if worst.waits and not file else fork
    return Cause("given_up", _iteration(case, worst), told, seen, mend, advice, stops or bool(untrained),
                 event=worst.event)  # fmt: skip


def _seen(one: Loss) -> str:
    return f"{one.handler} was given up {one.count} times, at last after: {one.error}: {one.message}"


def _before(case: Case, loss: Loss) -> int:
    """The event before the first loss; the run's start where that is unknown."""
    return max(case.started, loss.event - 1) if loss.event else case.started


def _iteration(case: Case, loss: Loss) -> int:
    lossy = [one.number for one in case.iterations if one.given_up]
    return lossy[0] if lossy and not loss.waits else case.iteration
