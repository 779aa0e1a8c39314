"""Replies cut off at their limit of tokens, or attempts at their limit of turns, calls or time."""

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, Iteration, blamed, of

BAD, SOME, FEW = 0.5, 0.25, 0.02
"""Share of texts or attempts that is told of; the second of turns and calls whose limit is another than elsewhere,
the last of a single turn."""
ENDS = {"length": "max_tokens", "turn_limit": "max_turns", "budget": "max_calls"}
"""How an attempt ended -> the limit of ``run.student`` that ended it."""


@cause(52)
def truncated(case: Case) -> Cause | None:
    """Report the first iteration in which half of the teacher's texts or of the student's attempts were cut off."""
    for one in case.iterations:
        if one.screened and one.cut_off >= BAD * one.screened:
            share = f"{of(one.cut_off, one.screened)} texts of the teacher are cut off at their limit of tokens"
            return _found(case, one, "teacher", "max_tokens", share, "malformed")
        for end, limit in ENDS.items():
            if one.attempts and one.ends.get(end, 0) >= _least(case, end, limit) * one.attempts:
                words = limit.removeprefix("max_")
                share = f"{of(one.ends[end], one.attempts)} attempts are truncated at their limit of {words}"
                share += ", since nobody calls a tool and answers in one turn" if _single(case, limit) else ""
                return _found(case, one, "student", limit, share, f"end:{end}")
    return None


def _least(case: Case, end: str, limit: str) -> float:
    """The share of attempts that tells of a limit: each that calls a tool is one where a single turn is allowed."""
    if end == "length" or not case.changed(f"run.student.{limit}"):
        return BAD
    return FEW if _single(case, limit) else SOME


def _single(case: Case, limit: str) -> bool:
    return limit == "max_turns" and case.config.student.max_turns == 1 and bool(case.config.student.tools)


def _found(case: Case, one: Iteration, role: str, limit: str, share: str, example: str) -> Cause:
    key = f"run.{role}.{limit}"
    settings = case.changed(key)
    told = f"{share} ({blamed(case, settings, key)})"
    seen = tuple(one.examples[name] for name in (example,) if name in one.examples)
    mend = case.again(settings) if settings else case.again(values={key: 4 * max(1, case.value(key))})
    return Cause("truncated", one.number, told, seen, mend, settings=settings, checkpoint=getattr(one, role),
                 fatal=not case.recovered(one.number), explained=bool(settings))  # fmt: skip
