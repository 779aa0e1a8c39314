"""Tasks that persons submitted, told as events."""

from agent0.events import submissions
from agent0.events.base import Recorded, sha256
from agent0.events.tasks import ResultVerified, TaskAttempted
from agent0.events.values import Task, Turn, Usage
from tests.story import Teller, renumbered
from tests.story_conversation import CONVERSATION


def submitted_task(after: int = 0) -> list[Recorded]:
    """A task that a person submitted, solved and judged right; and one whose solution failed."""
    told = Teller(f"{submissions.PREFIX}00aa11", 1, 1, 1, 0)
    task = Task(question="What is 7 * 8?", domain="math", family="open", level=1, canonical="open what is 7 * 8?")
    at = {"task": "t0", "attempt": "t0-a0"}
    asked = submissions.TaskSubmitted(**at, source="r1", student="student-1", proposal=task, config={"seed": 0}, seed=7)
    turns = (Turn(role="user", content=task.question), Turn(role="assistant", content="56"))
    solved = TaskAttempted(
        **at, iteration=-1, number=0, student="student-1", answer="56", end="answered", turns=1, tool_calls=0,
        tool_ok=0,
        prompt="compact/student", transcript=turns,
    )  # fmt: skip
    verdict = ResultVerified(**at, iteration=-1, correct=True, verifier="expected", reason="equal", expected="56")
    first = told.tell(asked)
    for effect in (solved, verdict):
        told.tell(effect, first, "solve_submission")
    other = Teller(f"{submissions.PREFIX}00aa22", 1, 1, 1, 0)
    other.failure(other.tell(asked), "solve_submission")
    return renumbered([*told.told, *other.told], after)


def recorded_turn(after: int = 0) -> list[Recorded]:
    """A turn that a student answered for another program."""
    told = Teller(f"{submissions.RECORDING}mine", 1, 1, 1, 0)
    turns = (Turn(role="user", content="What is 7 * 8?"),)
    told.tell(submissions.TurnAnswered(student="r1/student-1", dialect="chat", turns=turns, text="56", finish="stop"))
    return renumbered(told.told, after)


def batch_run(after: int = 0) -> list[Recorded]:
    """A file of two questions: one is answered, one cannot be asked."""
    told = Teller("batch-1", 1, 1, 1, 0)
    told.tell(
        submissions.BatchRunStarted(
            source="/q.jsonl", sha256=sha256("rows"), rows=2, out="/a.jsonl", question="question", id="id", seed=0,
            temperature=0.0, domain="math", profile="tiny", actor={"provider": "tiny", "model": ""},
        )
    )  # fmt: skip
    attempt = {"conversation": CONVERSATION, "turns": 2, "tool_calls": 1, "usage": Usage(completion_tokens=7)}
    told.tell(submissions.RowAnswered(row=1, answer="18", end="answered", **attempt))
    told.tell(submissions.RowAnswered(row=2, error="row 2, column question: it is empty"))
    told.tell(submissions.BatchRunFinished(rows=2, answered=1, unanswered=0, failed=1))
    return renumbered(told.told, after)
