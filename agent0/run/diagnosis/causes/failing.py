"""A handler that fails again and again, and has not given up yet."""

import builtins
import re

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Observation, Retry

SEVERAL = 2
"""Tries that failed from which on it is told: one failure mostly passes."""
SHOWN = 3
CORRECT = "Correct {} first: the fork takes the file as it is then, while the run itself keeps the one it began with."
_FILE = re.compile(r"\b(?:of )?plugin (\w+\.py), ")


@cause(25)
def failing(case: Case) -> Cause | None:
    """Report the handler that failed most often and tries again. Where one reaction failed ``SEVERAL`` times, the run
    stands still for it."""
    if not case.retries or case.retries[0].tries < SEVERAL:
        return None
    worst = case.retries[0]
    why = ": ".join(part for part in (worst.error, worst.message.rstrip(".")) if part)
    conclusion = f"{worst.handler} fails again and again, {worst.tries:,} times so far, on {_what(worst)}: "
    conclusion += why or "its process ended during it, each time"
    evidence = tuple(
        Observation(f"a try of {worst.handler} failed", worst.task, worst.attempt, event=seq)
        for seq in worst.events[-SHOWN:]
    )
    advice = "Mend what the error names first; it is tried again by itself where a process executes the run."
    mend = case.go_on()
    if file := faulty_file(worst.error, worst.message):
        mend, advice = case.again(at=max(case.started, min(worst.events, default=1) - 1)), CORRECT.format(file)
    return Cause(
        "failing", case.iteration, conclusion, evidence, mend, advice, worst.most >= SEVERAL, event=worst.event
    )


def faulty_file(error: str, message: str) -> str:
    """The file of a user's whose own code raised an error, by the error's name and message: another try gives the
    same. Empty where there is none, or where the error may pass, as those of a network do."""
    kind = getattr(builtins, error, OSError)
    return "" if issubclass(kind, OSError | MemoryError) else named_file(message)


def named_file(text: str) -> str:
    """The file of a user's that ``text`` names with a line of it; empty where it names none."""
    match = _FILE.search(text)
    return match[1] if match else ""


def _what(worst: Retry) -> str:
    """The task or attempt that it fails on, else the event; and on how many more."""
    named = worst.attempt or worst.task or worst.cause
    return f"{named} and {worst.reactions - 1:,} more" if worst.reactions > 1 else named
