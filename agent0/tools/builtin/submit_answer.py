"""How a student says that it is done, or done with a step."""

from typing import Annotated

from agent0.chat_format import LONGEST_ANSWER
from agent0.events.values import ToolResult, ToolState
from agent0.tools import tool
from agent0.tools.definition import VALUES, Example
from agent0.tools.workspace import Workspace


@tool(pure=False, control=True, examples=[Example({"answer": "42"}, "The answer is recorded.")], states=VALUES)
async def submit_answer(
    work: Workspace,
    answer: Annotated[str | int | float, "the answer alone, exactly"],
    subgoal: Annotated[int, "number of the step it answers, from 1; 0: the whole task"] = 0,
) -> ToolResult:
    """Give your answer. For a task with steps, give each step's answer with its number as soon as you know it; the
    last step's answer is the answer to the task. The final answer ends the task.
    Example: {"answer": "42"} or {"answer": "7", "subgoal": 1}
    """
    text, steps = str(answer).strip(), len(work.subgoals)
    if problem := _problem(text, subgoal, steps):
        return ToolResult(state=ToolState.ERROR, output=problem)
    if 0 < subgoal < steps:
        work.subgoals[subgoal - 1] = text
        missing = [str(n) for n, subgoal_answer in enumerate(work.subgoals, 1) if subgoal_answer is None]
        return ToolResult(
            state=ToolState.OK, output=f"The answer to step {subgoal} is recorded. Still open: {', '.join(missing)}."
        )
    work.answer = text
    return ToolResult(state=ToolState.OK, output="The answer is recorded.")


def _problem(text: str, subgoal: int, steps: int) -> str:
    """What the student should correct, empty where nothing."""
    if not text:
        return "The answer is empty."
    if len(text) > LONGEST_ANSWER:
        return f"The answer has {len(text)} characters; at most {LONGEST_ANSWER} are read. Give the answer alone."
    if subgoal and not steps:
        return f"This task has no steps: there is no subgoal {subgoal}. Leave subgoal out."
    if not 0 <= subgoal <= steps:
        return f"There is no subgoal {subgoal}. This task has steps 1 to {steps}; 0 is the whole task."
    return ""
