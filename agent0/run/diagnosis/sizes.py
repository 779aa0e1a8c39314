"""How large a run, or a number of its recipe, is beside its profile."""

from agent0.run.diagnosis.case import Case, Setting

FAR = 10
SIZES = ("run.iterations", "run.tasks", "run.attempts")


def smaller(case: Case) -> tuple[Setting, ...]:
    """Iterations, tasks and attempts of which the run has fewer than its profile."""
    return tuple(
        setting
        for key in SIZES
        for setting in case.changes
        if setting.key == key and (setting.other or 0) > setting.value
    )


def size_words(settings: tuple[Setting, ...]) -> str:
    """Sizes in words: ``run.iterations is 1, run.tasks is 8; in profile tiny 8 and 64``."""
    sizes = ", ".join(f"{setting.key} is {setting.value:,}" for setting in settings)
    return f"{sizes}; in {settings[0].source} {' and '.join(f'{setting.other:,}' for setting in settings)}"


def far_off(setting: Setting) -> bool:
    """Whether it is a number of a training's recipe that is ``FAR`` times what it is elsewhere, or a part of it."""
    if not setting.key.startswith(("run.training.student.", "run.training.teacher.")):
        return False
    if not all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in (setting.value, setting.other)
    ):
        return False
    low, high = sorted((abs(setting.value), abs(setting.other)))
    return bool(high >= FAR * low if low else high >= 1)
