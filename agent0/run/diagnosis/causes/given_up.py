"""Reactions that were given up: an error that came again at every try."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Loss, Observation
from agent0.run.diagnosis.causes.dependency import ASKED_BY
from agent0.run.diagnosis.causes.failing import CORRECT, faulty_file

COSTLY = ("propose_task", "screen_task", "attempt_task", "continue_attempt", "verify_result", "assign_reward")
"""Handlers without which an attempt is lost."""
ROLES = {handler: role for role, handlers in ASKED_BY.items() for handler in handlers}
"""Handler -> the role whose model it asks."""
OWN_KEYS = {"ollama": "OLLAMA_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Provider -> the variable that it reads where run.<role>.key_env names none."""
KEY = "First: export {}=... to a key that the server takes ({} names the variable)."
TRACED = "Mend what the error names first; agent0 failures show has its traceback."
MUCH = 0.05
"""Share of all attempts whose loss is told though the run went on."""


@cause(30)
def given_up(case: Case) -> Cause | None:
    """Report the reaction that was given up most often, where the run failed of it, waits for a person, or lost more
    than a few attempts."""
    lost = sum(loss.count for loss in case.losses if loss.handler in COSTLY)
    attempts = max(1, sum(iteration.attempts for iteration in case.iterations))
    stops = case.ended == "given_up" or any(loss.waits for loss in case.losses)
    untrained = [loss for loss in case.losses if loss.handler in ("train_checkpoint", "evaluate_checkpoint")]
    if not case.losses or not (stops or untrained or lost > MUCH * attempts):
        return None
    worst = max(untrained or case.losses, key=lambda loss: (loss.count, -loss.event))
    conclusion = f"{worst.handler} was given up {worst.count} times: {worst.error}: {worst.message.rstrip('.')}"
    evidence = tuple(
        Observation(_description(loss), loss.task, loss.attempt, event=loss.event) for loss in case.losses[:3]
    )
    mend, advice = _mended(case, worst)
    return Cause(
        "given_up", worst.iteration, conclusion, evidence, mend, advice, stops or bool(untrained), event=worst.event
    )


def _mended(case: Case, worst: Loss) -> tuple[str, str]:
    """The command, and what to do before it: correct a file of the user's, set a key, or mend what the error names."""
    at = _before(case, worst)
    if file := faulty_file(worst.error, worst.message):
        return case.again(at=at), CORRECT.format(file)
    advice, values = TRACED, dict[str, str]()
    if worst.error == "AuthError" and (role := ROLES.get(worst.handler)):
        setting = f"run.{role}.key_env"
        name = case.value(setting) or OWN_KEYS.get(case.value(f"run.{role}.provider"), "")
        values = {} if name else {setting: "PROVIDER_KEY"}
        advice = KEY.format(name or "PROVIDER_KEY", setting)
    if worst.waits and not values:
        return f"agent0 failures retry {worst.failure}", advice
    return case.again(at=at, values=values), advice


def _description(loss: Loss) -> str:
    return f"{loss.handler} was given up {loss.count} times, at last after: {loss.error}: {loss.message}"


def _before(case: Case, loss: Loss) -> int:
    """The event before the first loss; the run's start where that is unknown."""
    return max(case.started, loss.event - 1) if loss.event else case.started
