"""Part of the rim: whether the student's gain can be measured where settings ask for it, or for rewards by it."""

from agent0.errors import ConfigError
from agent0.settings import RunConfig
from agent0.tasks.curriculum.ladder_height import on_ladder

WEIGHT = "run.rewards.weights.student_gain"


def check_gain(run: RunConfig) -> None:
    """What is rewarded must be measured, and what is measured must be a student's short training on a ladder.

    Raises:
        ConfigError: it is not.
    """
    plan, recipe = run.rewards.gain, run.training.student
    if not plan.subsets:
        if run.rewards.weights.get("student_gain"):
            raise ConfigError(f"{WEIGHT} has no effect.", "No gain is measured.", "Set run.rewards.gain.subsets = 4.")
        return
    fix = "Set it to 0, or start from profile climb-teacher."
    if plan.subsets == 1:
        raise ConfigError("run.rewards.gain.subsets = 1 does not fit.", "There is nothing to compare it with.", fix)
    if not (recipe.enabled and recipe.steps):
        why = "Short trainings are of a student that learns in steps (run.training.student.steps)."
        raise ConfigError("run.rewards.gain does not fit.", why, fix)
    if not on_ladder(run):
        why = "Gains are measured on tasks beyond a frontier, and not every family is a ladder."
        raise ConfigError("run.rewards.gain does not fit.", why, fix)
