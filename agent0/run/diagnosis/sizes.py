"""How large a run, or a number of its recipe, is beside its profile."""

from agent0.run.diagnosis.case import Case, Setting

FAR = 10
SIZES = ("run.iterations", "run.tasks", "run.attempts")


def smaller(case: Case) -> tuple[Setting, ...]:
    """Iterations, tasks and attempts of which the run has fewer than its profile."""
    return tuple(one for key in SIZES for one in case.changes if one.key == key and (one.other or 0) > one.value)


def size_words(settings: tuple[Setting, ...]) -> str:
    """Sizes in words: ``run.iterations is 1, run.tasks is 8; in profile tiny 8 and 64``."""
    held = ", ".join(f"{one.key} is {one.value:,}" for one in settings)
    return f"{held}; in {settings[0].source} {' and '.join(f'{one.other:,}' for one in settings)}"


def far_off(one: Setting) -> bool:
    """Whether it is a number of a training's recipe that is ``FAR`` times what it is elsewhere, or a part of it."""
    if not one.key.startswith(("run.training.student.", "run.training.teacher.")):
        return False
    if not all(isinstance(held, int | float) and not isinstance(held, bool) for held in (one.value, one.other)):
        return False
    low, high = sorted((abs(one.value), abs(one.other)))
    return bool(high >= FAR * low if low else high >= 1)
