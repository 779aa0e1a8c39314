"""Why a reply is judged as it is: what was read of it, where, by which rule it was decided, what would change that."""

from dataclasses import dataclass

from agent0.grading import Grade
from agent0.grading.answer_types import kind_of
from agent0.grading.extraction import extracted, reply_of
from agent0.grading.golds import without_solution
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
    answer, place = extracted(reply_of(reply))
    grade = compared(gold, reply, reply=True, kind=kind)
    place = place if answer is not None or "not closed" in place else "nowhere"
    mends = {
        "": grade.correct,
        "The reply ends within a thought: nothing behind its opening mark is read.": split_thoughts(
            own_turn(reply)
        ).unclosed,
        "The last box is not closed: what stands before it was taken back.": "not closed" in place,
        "State the answer in \\boxed{...}, or in a sentence such as 'The answer is ...'.": place == "nowhere",
        "Write the value that it comes to.": grade.reason == UNDONE,
        "A symbolic engine may find them equal; it is asked where a sandbox runs.": grade.symbolic,
        "Neither is known to be right: another notation may be read.": grade.correct is None,
        f"An answer that is equal to {without_solution(gold)[:LONGEST]}.": True,
    }
    mend = next(mend for mend, holds in mends.items() if holds)
    return Explanation(grade, kind, answer and answer[:LONGEST], place, grade.expected, grade.got, grade.reason, mend)
