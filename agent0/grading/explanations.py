"""Why a reply is judged as it is: what was read of it, where, by which rule it was decided, what would change that."""

from dataclasses import dataclass

from agent0.grading import Grade
from agent0.grading.answer_types import kind_of, without_solution
from agent0.grading.extraction import extracted, reply_of
from agent0.grading.math.symbolic import compared
from agent0.grading.math.undone import UNDONE
from agent0.turns.marks import own_turn
from agent0.turns.thoughts import split_thoughts

LONGEST = 200
"""Characters of a text that are shown."""


@dataclass(frozen=True)
class Explanation:
    """Why a reply is right, wrong or undecided (``grade``).

    ``answer`` was read at ``place`` in the reply; ``expected`` and ``got`` were compared, both in one notation, as the
    ``kind``; ``rule`` decided. ``mend`` says what would have changed the verdict, empty where it is right.
    """

    grade: Grade
    kind: str
    answer: str | None
    place: str
    expected: str
    got: str
    rule: str
    mend: str


def explain(gold: str, reply: str, kind: str = "") -> Explanation:
    """Explain the verdict on a whole ``reply`` where ``gold``, of a ``kind`` (empty: as it reads), is expected.

    Raises:
        ConfigError: there is no such kind.
    """
    kind = kind or kind_of(without_solution(gold))
    extract = extracted(reply_of(reply))
    grade = compared(gold, reply, reply=True, kind=kind)
    shown = None if extract.answer is None else extract.answer[:LONGEST]
    place = extract.place if extract.answer is not None or "not closed" in extract.place else "nowhere"
    return Explanation(
        grade, kind, shown, place, grade.expected, grade.got, grade.reason, _mend(gold, reply, place, grade)
    )


def _mend(gold: str, reply: str, place: str, grade: Grade) -> str:
    """What would have changed a verdict."""
    if grade.correct:
        return ""
    if split_thoughts(own_turn(reply)).unclosed:
        return "The reply ends within a thought: nothing behind its opening mark is read."
    if "not closed" in place:
        return "The last box is not closed: what stands before it was taken back."
    if place == "nowhere":
        return "State the answer in \\boxed{...}, or in a sentence such as 'The answer is ...'."
    if grade.reason == UNDONE:
        return "Write the value that it comes to."
    if grade.symbolic:
        return "A symbolic engine may find them equal; it is asked where a sandbox runs."
    if grade.correct is None:
        return "Neither is known to be right: another notation may be read."
    return f"An answer that is equal to {without_solution(gold)[:LONGEST]}."
