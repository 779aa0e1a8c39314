"""How a prompt describes a student's tools, and how it is to call them: ``run.student.tool_prompt``.

``calls`` leaves both to the model's chat template, in whose form our prompts write their examples. ``actions`` says it
in the first turn, for models that were taught no such form, and writes the examples of our prompts likewise. Whatever
a prompt asks for, ``rollout.parsing`` reads either.
"""

import json
import re
from collections.abc import Sequence

from agent0.chat_format import CLOSE, OPEN, format_action
from agent0.ports.models import ToolSpec
from events.values import Turn

ACTIONS = "actions"
_call = re.compile(rf"{OPEN}\n(.*?)\n{CLOSE}", re.DOTALL)
_INTRODUCTION = """You may use these tools:
{}

To use one, end your turn with two lines, the second a JSON object with the tool's arguments:
Action: <the tool's name>
Action Input: <JSON object>
Its output is the next message."""


def shown(turns: tuple[Turn, ...], tools: Sequence[ToolSpec], style: str) -> tuple[Turn, ...]:
    """Return a prompt's ``turns`` with ``tools`` described in ``style``; the question's text stays as it is."""
    if style != ACTIONS or not tools:
        return turns
    told = _INTRODUCTION.format("\n".join(map(_described, tools)))
    if turns and turns[0].role == "system":
        first, *rest = turns
        turns = (first.model_copy(update={"content": f"{_acting(first.content)}\n\n{told}"}), *rest)
    else:
        turns = (Turn(role="system", content=told), *turns)
    return tuple(
        turn.model_copy(update={"content": _acting(turn.content)}) if turn.role == "assistant" else turn
        for turn in turns
    )


def requested(tools: tuple[ToolSpec, ...], style: str) -> tuple[ToolSpec, ...]:
    """The tools that a model's own template is to describe: none where the prompt does."""
    return () if style == ACTIONS else tools


def _described(tool: ToolSpec) -> str:
    arguments = tool.parameters.get("properties", {})
    return f"- {tool.name}: {tool.description} Arguments: {json.dumps(arguments, ensure_ascii=False)}"


def _acting(text: str) -> str:
    """``text`` with its calls as actions."""
    return _call.sub(lambda found: _action(found[1]), text)


def _action(body: str) -> str:
    call = json.loads(body)
    return format_action(call["name"], call["arguments"])
