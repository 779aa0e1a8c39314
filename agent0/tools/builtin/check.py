"""How a student asks whether an answer is right before it gives it, where that can be checked without knowing one."""

from typing import Annotated

from agent0.chat_format import LONGEST_ANSWER
from agent0.events.values import ToolResult, ToolState
from agent0.tasks.families import families
from agent0.tools import tool
from agent0.tools.definition import VALUES, Example
from agent0.tools.results import refused
from agent0.tools.workspace import Workspace

RIGHT, WRONG = "right", "wrong: "
"""What it says; why follows what is wrong."""


@tool(pure=False, control=True, examples=[Example({"answer": "7+3=10;10*2=20"})], states=(*VALUES, ToolState.REFUSED))
async def check(
    work: Workspace, answer: Annotated[str | int | float, "the answer to try, as you would give it"]
) -> ToolResult:
    """Try an answer to your task before you give it. Says right, or wrong and the first thing that is wrong with it;
    then try another. Each try is a call. Not every task can be checked. Example: {"answer": "7+3=10;10*2=20"}
    """
    text = str(answer).strip()
    if len(text) > LONGEST_ANSWER:
        return ToolResult(state=ToolState.ERROR, output=f"The answer is longer than {LONGEST_ANSWER} characters.")
    for entry in families().values():
        if entry.check and (params := entry.parse(work.question)) is not None:
            why = entry.check(params, text)
            return ToolResult(state=ToolState.OK, output=f"{WRONG}{why}" if why else RIGHT)
    return refused("this task cannot be checked; work its answer out and give it")
