"""Calls in whichever form a reply writes them: the one reader of student and teacher.

Calls between marks come first; where there are none, messages to a tool in channels, objects in fences and on lines of
their own, then actions (ReAct).
"""

import re

from agent0.turns.actions import acted_calls
from agent0.turns.call_objects import call_of, calls_of, is_call, object_in
from agent0.turns.fence import FencedBlock, first_block, languages
from agent0.turns.marked_calls import marked_calls
from agent0.turns.plain_calls import bare_calls, channel_calls, fenced_calls
from agent0.turns.toolbox import Toolbox
from events.values import ToolCall

_output = re.compile(r"\s*```output\b")


def read_calls(text: str, tools: Toolbox, *, blocks: bool = False) -> tuple[list[ToolCall], str]:
    """Read the calls of a reply without thoughts, and the text around them.

    ``blocks``: the first block of code in a tool's name is the one call.
    """
    if blocks and (block := first_block(text, languages(tools.names))):
        return _block_calls(block, tools), text[: block.start]
    if channels := channel_calls(text, tools):
        return channels[0], text[: channels[1]]
    for read in (marked_calls, fenced_calls, bare_calls):
        calls, prose = read(text, tools)
        if calls:
            return calls, prose
    if block := _block_with_output(text, tools):
        return _block_calls(block, tools), text[: block.start]
    return acted_calls(text, tools)


def _block_with_output(text: str, tools: Toolbox) -> FencedBlock | None:
    """The first block in a tool's name, where the text goes on with an output that it makes up itself."""
    block = first_block(text, languages(tools.names))
    return block if block and block.closed and _output.match(text, block.end) else None


def _block_calls(block: FencedBlock, tools: Toolbox) -> list[ToolCall]:
    """The call that a block is: its text is the one text argument, or an object of all arguments, or of a call."""
    if not block.closed:
        return [ToolCall(name=block.tool, raw=block.body, error="the block is not closed")]
    value = object_in(block.body)
    argument = tools.text_arguments.get(block.tool, "")
    if value is not None and is_call(value, tools):
        return calls_of(value, block.body, tools)
    if value is None or (argument and list(value) != [argument]):
        if not argument:
            return [ToolCall(name=block.tool, raw=block.body, error="the block is no JSON object of arguments")]
        value = {argument: block.body}
    return [call_of(block.tool, value, block.body, tools)]
