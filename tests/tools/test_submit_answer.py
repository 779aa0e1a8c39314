"""Submitted answers: the last subgoal's is the task's; whatever is wrong is said, and nothing is recorded then."""

from typing import Any

import pytest

from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.tools.calling import call_tool
from agent0.tools.workspace import Workspace
from tests.memory import TrustingSandbox


async def submitted(steps: int, **arguments: Any) -> tuple[ToolResult, Workspace]:
    work = Workspace(TrustingSandbox(), ["submit_answer"], subgoals=[None] * steps)
    return await call_tool(ToolCall(name="submit_answer", arguments=arguments), work), work


@pytest.mark.parametrize(
    ("steps", "arguments", "answer", "subgoals"),
    [
        (0, {"answer": " 42 "}, "42", []),
        (0, {"answer": 42}, "42", []),
        (0, {"answer": 0.5}, "0.5", []),
        (3, {"answer": "a", "subgoal": 0}, "a", [None] * 3),
        (3, {"answer": "a", "subgoal": 3}, "a", [None] * 3),
        (3, {"answer": "a", "subgoal": 2}, None, [None, "a", None]),
        (1, {"answer": "a", "subgoal": 1}, "a", [None]),
    ],
)
async def test_answers(steps: int, arguments: dict[str, Any], answer: str | None, subgoals: list[str | None]) -> None:
    result, work = await submitted(steps, **arguments)
    assert (result.state, work.answer, work.subgoals) == (ToolState.OK, answer, subgoals)


async def test_a_step_may_be_answered_again_and_what_is_open_is_told() -> None:
    work = Workspace(TrustingSandbox(), ["submit_answer"], subgoals=[None] * 3)
    told = []
    for answer in ("1", "2"):
        call = ToolCall(name="submit_answer", arguments={"answer": answer, "subgoal": 1})
        told.append((await call_tool(call, work)).output)
    assert work.subgoals == ["2", None, None]
    assert told == ["The answer to step 1 is recorded. Still open: 2, 3."] * 2


@pytest.mark.parametrize(
    ("steps", "arguments", "told"),
    [
        (0, {}, "answer: Field required"),
        (0, {"answer": "  "}, "The answer is empty."),
        (0, {"answer": "x" * 1001}, "has 1001 characters; at most 1000"),
        (0, {"answer": "1", "subgoal": 1}, "This task has no steps"),
        (3, {"answer": "1", "subgoal": 4}, "There is no subgoal 4. This task has steps 1 to 3"),
        (3, {"answer": "1", "subgoal": -1}, "There is no subgoal -1."),
        (3, {"answer": "1", "subgoal": "2"}, "subgoal: Input should be a valid integer"),
        (3, {"answer": None}, "answer"),
        (3, {"answer": ["1"]}, "answer"),
    ],
)
async def test_what_is_wrong_is_told_and_not_recorded(steps: int, arguments: dict[str, Any], told: str) -> None:
    result, work = await submitted(steps, **arguments)
    assert result.state is ToolState.ERROR and told in result.output
    assert (work.answer, work.subgoals) == (None, [None] * steps)
