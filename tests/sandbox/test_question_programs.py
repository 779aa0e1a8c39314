"""Rows that ask for a program, in a whole run: what the student wrote is its answer, and the row's tests decide."""

import json
from pathlib import Path

import pytest

from agent0.events.checkpoints import EvaluationItemScored
from agent0.events.tasks import ResultVerified, TaskAttempted
from agent0.infra.sandbox import Bubblewrap
from agent0.ports.models import GenerateRequest, Generation
from tests.play import play
from tests.test_questions import of, plan
from tests.world import Opened, ports, started

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Writing:
    """Writes the function that is asked for, a wrong one for odd numbers, at times none; its block is a call."""

    name = "writing"

    async def generate(self, request: GenerateRequest) -> Generation:
        number = int(_number("".join(turn.content for turn in request.turns)))
        added = number if number % 2 == 0 else number + 1
        text = f"So:\n```python\ndef add(x):\n    return x + {added}\n```\n"
        if number % 5 == 0 or request.turns[-1].role == "tool":
            text = "I have nothing to add."
        return Generation(text, model=self.name)

    async def rest(self) -> None:
        """Nothing is held."""


async def test_programs_are_verified_by_the_tests_of_their_row(sandbox: Bubblewrap, tmp_path: Path) -> None:
    rows = [
        {
            "task_id": n,
            "text": f"Write a function that adds {n}.",
            "code": f"def add(x):\n    return x + {n}",
            "test_list": [f"assert add(1) == {1 + n}", f"assert add(-{n}) == 0"],
        }
        for n in range(1, 25)
    ]
    (tmp_path / "mbpp.json").write_text(json.dumps(rows))
    sizes = {"validation": 3, "test": 0, "forced_tool": False}
    config = plan(tmp_path / "mbpp.json", tasks=8, iterations=1, attempts=1, evaluation=sizes, max_untrained=0)
    world = {**ports(), "models": Opened(Writing()), "verifier_sandbox": sandbox}
    told = await play(started(config), world)
    attempts = {event.attempt: event for event in of(told, TaskAttempted)}
    verdicts = of(told, ResultVerified)
    assert len(verdicts) == 8 and {event.verifier for event in verdicts} == {"rows"}
    for event in verdicts:
        answer = attempts[event.attempt].answer
        assert event.correct == (answer is not None and f"x + {_asked(told, event.task)}\n" in answer), event
        assert attempts[event.attempt].end == ("answered" if answer else "no_answer")
    scored = of(told, EvaluationItemScored)
    assert scored and all(event.correct == (int(_number(event.question)) % 2 == 0) for event in scored if event.answer)


def _asked(told: list, task: str) -> str:  # type: ignore[type-arg]
    return next(_number(r.event.proposal.question) for r in told if r.type == "TaskAccepted" and r.task == task)


def _number(question: str) -> str:
    return question.partition("adds ")[2].split(".")[0]
