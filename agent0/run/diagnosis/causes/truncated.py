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
    for iteration in case.iterations:
        if iteration.screened and iteration.cut_off >= BAD * iteration.screened:
            share = (
                f"{of(iteration.cut_off, iteration.screened)} texts of the teacher are cut off at their limit of tokens"
            )
            return _cause(case, iteration, "teacher", "max_tokens", share, "malformed")
        for end, limit in ENDS.items():
            if iteration.attempts and iteration.ends.get(end, 0) >= _least(case, end, limit) * iteration.attempts:
                limit_name = limit.removeprefix("max_")
                cut = of(iteration.ends[end], iteration.attempts)
                share = f"{cut} attempts are truncated at their limit of {limit_name}"
                share += ", since nobody calls a tool and answers in one turn" if _single(case, limit) else ""
                return _cause(case, iteration, "student", limit, share, f"end:{end}")
    return None


def _least(case: Case, end: str, limit: str) -> float:
    """The share of attempts that tells of a limit: each that calls a tool is one where a single turn is allowed."""
    if end == "length" or not case.changed(f"run.student.{limit}"):
        return BAD
    return FEW if _single(case, limit) else SOME


def _single(case: Case, limit: str) -> bool:
    return limit == "max_turns" and case.config.student.max_turns == 1 and bool(case.config.student.tools)


def _cause(case: Case, iteration: Iteration, role: str, limit: str, share: str, example: str) -> Cause:
    key = f"run.{role}.{limit}"
    settings = case.changed(key)
    conclusion = f"{share} ({blamed(case, settings, key)})"
    evidence = iteration.observations_of(example)
    mend = case.again(settings) if settings else case.again(values={key: 4 * max(1, case.value(key))})
    return Cause(
        "truncated",
        iteration.number,
        conclusion,
        evidence,
        mend,
        settings=settings,
        checkpoint=getattr(iteration, role),
        fatal=not case.recovered(iteration.number),
        explained=bool(settings),
    )
