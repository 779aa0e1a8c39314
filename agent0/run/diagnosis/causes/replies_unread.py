"""Replies that nobody reads: tool calls in a form that is none of the student's, or thoughts that are never closed."""

from typing import Any

from agent0.run.diagnosis import cause
from agent0.run.diagnosis.case import Case, Cause, blamed, of
from agent0.run.diagnosis.replies import UNCLOSED, UNREAD, FailedReplies

BAD = 0.5
"""Share of the attempts of an iteration that end without an answer."""
FORM, ROOM = "run.student.tool_form", "run.student.max_tokens"


@cause(49)
def replies_unread(case: Case) -> Cause | None:
    """Report the first iteration in which half of the attempts gave no answer, where most failed items of evaluations
    hold a call that was not read, or a thought that was not closed."""
    replies, iteration = case.replies, next((it for it in case.iterations if it.attempts), None)
    if replies is None or iteration is None or iteration.attempts - iteration.answered < BAD * iteration.attempts:
        return None
    kind, count = next(iter(replies.kinds.items()))
    if kind not in (UNREAD, UNCLOSED) or 2 * count < sum(replies.kinds.values()):
        return None
    key = FORM if kind == UNREAD else ROOM
    settings = case.changed(key)
    what = "tool calls are not read" if kind == UNREAD else "thoughts are never closed"
    message = f"the student's {what}: so end {of(count, replies.failed)} failed items of {replies.evaluation} "
    message += f"({blamed(case, settings, key)})"
    values = None if settings else _values(case, kind, replies)
    mend = case.again(settings, values=values) if settings or values else replies.reading(case.run)
    advice = "" if kind == UNREAD else "Or let it not think: run.student.thinking=off."
    examples = tuple(example for name, example in iteration.examples.items() if name.startswith("end:"))
    fatal = not case.recovered(iteration.number)
    return Cause("replies_unread", iteration.number, message, examples, mend, advice, fatal=fatal, settings=settings,
                 checkpoint=iteration.student)  # fmt: skip


def _values(case: Case, kind: str, replies: FailedReplies) -> dict[str, Any] | None:
    """The form that its replies have where that is known, or more room; None: somebody has to read them."""
    student = case.config.student
    if kind == UNCLOSED:
        return {ROOM: 4 * student.max_tokens}
    fenced = all("```" in example.wrote for example in replies.examples)
    return {FORM: "fence"} if fenced and student.form != "fence" else None
