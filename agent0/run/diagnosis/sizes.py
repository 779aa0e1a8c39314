"""How large a run is beside its profile."""

from agent0.run.diagnosis.case import Case, Setting

SIZES = ("run.iterations", "run.tasks", "run.attempts")


def smaller(case: Case) -> tuple[Setting, ...]:
    """Iterations, tasks and attempts of which the run has fewer than its profile."""
    return tuple(one for key in SIZES for one in case.changes if one.key == key and (one.other or 0) > one.value)


def size_words(settings: tuple[Setting, ...]) -> str:
    """Sizes in words: ``run.iterations is 1, run.tasks is 8; in profile tiny 8 and 64``."""
    held = ", ".join(f"{one.key} is {one.value:,}" for one in settings)
    return f"{held}; in {settings[0].source} {' and '.join(f'{one.other:,}' for one in settings)}"
