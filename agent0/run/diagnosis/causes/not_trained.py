"""A student that the run's settings leave untrained."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import NEVER, Case, Cause, Observation, Setting

KEYS = ("run.training.student.enabled", "run.training.student.every", "run.training.schedule")


@cause(88)
def not_trained(case: Case) -> Cause | None:
    """Report a finished run that trained no student, where its settings forbid it and others do not."""
    settings = tuple(setting for setting in case.changed(*KEYS) if _forbids(case, setting))
    if case.status != "finished" or not settings or any(t.role == "student" for t in case.trainings):
        return None
    attempts = sum(iteration.attempts for iteration in case.iterations)
    conclusion = f"the student was not trained, though it made {attempts:,} attempts ({settings[0]})"
    evidence = (Observation("no training of the student was asked for", event=case.started),)
    advice = "Nothing is to be mended where this run is a control."
    return Cause(
        "not_trained", NEVER, conclusion, evidence, case.again(settings), advice, False, settings, event=case.started
    )


def _forbids(case: Case, setting: Setting) -> bool:
    """Whether the setting by itself leaves the student untrained in every iteration."""
    plan = case.config.training
    forbidden = {
        KEYS[0]: not plan.student.enabled,
        KEYS[1]: plan.student.every > case.config.iterations,
        KEYS[2]: plan.schedule == "teacher" or (plan.schedule == "alternate" and case.config.iterations == 1),
    }
    return forbidden.get(setting.key, False)
