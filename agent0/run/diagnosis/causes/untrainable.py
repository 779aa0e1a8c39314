"""Trajectories that cannot be trained on: without token data, of another checkpoint, unscored, or none at all."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation, blamed
from agent0.training.selection import left_out

WHY = {
    "no_trajectory": "their tokens were not recorded",
    "no_logprobs": "their log-probabilities were not recorded",
    "uneven": "their tokens and log-probabilities do not fit",
    "not_finite": "their log-probabilities are not finite",
    "other_author": "another model or checkpoint wrote them",
    "unscored": "they have no reward",
}
KEYS = ("run.student.provider", "run.student.", "run.verification.", "run.rewards.")
UNSCORED = ("run.rewards.", "run.verification.")
"""Settings that may leave attempts without a reward, before ``KEYS``."""


@cause(65)
def untrainable(case: Case) -> Cause | None:
    """Report the first training of the student that left out all attempts for what they lack."""
    for training in case.trainings:
        worst = max(training.skipped, key=lambda name: training.skipped[name], default="")
        if training.role == "student" and training.status == "unchanged" and (worst in WHY or worst not in KNOWN):
            settings = case.changed(*(UNSCORED if worst == "unscored" else ()), *KEYS)
            why = WHY.get(worst, worst)
            conclusion = (
                f"the student's attempts cannot be trained on: {training.skipped[worst]:,} of them since {why} "
            )
            conclusion += f"({blamed(case, settings, KEYS[0])})"
            evidence = (
                Observation(
                    f"left out: {left_out(training.skipped)}", checkpoint=training.checkpoint, event=training.requested
                ),
            )
            mend = case.again(settings) if settings else "agent0 doctor"
            fatal = not case.recovered(training.iteration)
            step = training.checkpoint, training.requested
            return Cause("untrainable", training.iteration, conclusion, evidence, mend, "", fatal, settings, *step)
    return None


KNOWN = ("", "off_frontier", "no_contrast", "no_spread", "not_verified", "wrong", "no_success")
"""Reasons that other causes tell of."""
