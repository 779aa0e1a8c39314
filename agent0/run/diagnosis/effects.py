"""Which settings can have caused what is seen: a limit that nothing ran into, or a wait that nobody had, cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent0.run.diagnosis.case import Case, Iteration, Setting

CALLING = ("timeout_s", "parallel", "price", "key_env", "device")
"""How a model is called, waited for and paid: of an effect only where calls failed."""
LIMITS = {
    "max_tokens": ("length",),
    "max_turns": ("turn_limit",),
    "max_calls": ("budget",),
    "long_factor": ("turn_limit", "budget"),
    "tool_seconds": ("budget",),
}
"""A limit of the student -> the ends of attempts that ran into it; refused tool calls did as well."""
OF_CALLS = ("max_calls", "long_factor", "tool_seconds")
SIZES = ("run.iterations", "run.tasks", "run.attempts")


def could_matter(case: Case, one: Setting) -> bool:
    """Whether a setting that differs can have caused anything in the run."""
    _, _, rest = one.key.partition(".")
    role, _, name = rest.rpartition(".")
    if role not in ("student", "teacher", "verification.judge"):
        return True
    if name in CALLING:
        return bool(case.waits or case.losses or case.retries)
    if role == "teacher" and name == "max_tokens":
        return any(it.cut_off for it in case.iterations)
    if role == "student" and name in LIMITS:
        without_tools = name == "max_calls" and not one.value  # then it is not shown any
        return without_tools or any(_reached(it, name) for it in case.iterations)
    return True


def _reached(one: Iteration, limit: str) -> bool:
    ended = any(one.ends.get(end) for end in LIMITS[limit])
    return ended or (limit in OF_CALLS and bool(one.calls.get("refused")))


def smaller(case: Case) -> tuple[Setting, ...]:
    """Iterations, tasks and attempts of which the run has fewer than its profile."""
    return tuple(one for key in SIZES for one in case.changes if one.key == key and (one.other or 0) > one.value)


def size_words(settings: tuple[Setting, ...]) -> str:
    """Sizes in words: ``run.iterations is 1, run.tasks is 8; in profile tiny 8 and 64``."""
    held = ", ".join(f"{one.key} is {one.value:,}" for one in settings)
    return f"{held}; in {settings[0].source} {' and '.join(f'{one.other:,}' for one in settings)}"
