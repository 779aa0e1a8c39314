"""Calls in whichever form a reply writes them: the one reader of student and teacher.

Messages to a tool in channels come first; where there are none, calls between marks, objects in fences and on lines of
their own, then actions (ReAct). What is only talked about is no call.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from agent0.events.values import ToolCall
from agent0.turns.calls.actions import action_spans
from agent0.turns.calls.blocks import FencedBlock, first_block, languages, tool_blocks
from agent0.turns.calls.bodies import CallSpan, argument_value, outside
from agent0.turns.calls.marked import marked_spans
from agent0.turns.calls.mentions import is_answered, is_mentioned
from agent0.turns.calls.objects import call_of, calls_of, is_call, object_in
from agent0.turns.calls.plain import bare_spans, channel_spans, fenced_spans
from agent0.turns.calls.toolbox import Toolbox

Read = Callable[[str, Toolbox], Sequence[CallSpan]]
_output = re.compile(r"\s*```output\b")
_escaped_mark = re.compile(r"&lt;\|?(?:tool_calls?|function|invoke)\b")
_beside = re.compile(r"[\s,;*+-]*")


class CallReading(NamedTuple):
    """The calls of a text in order, the text around them, and how many more it only talks about."""

    calls: list[ToolCall]
    prose: str
    mentioned: int = 0


def read_calls(text: str, tools: Toolbox, *, blocks: bool = False) -> CallReading:
    """Read the calls of a reply without thoughts.

    ``blocks``: the first block of code in a tool's name is the one call.
    """
    readers: list[Read] = [channel_spans, marked_spans, fenced_spans, bare_spans, _block_with_output, action_spans]
    mentioned = 0
    for read in [_first_block, *readers] if blocks else readers:
        spans = read(text, tools)
        mentions = [*_mentions(text, spans)]
        mentioned += len(mentions)
        if calls := [call for span in spans if span not in mentions for call in span.calls]:
            return CallReading(calls, outside(text, spans), mentioned)
        text = outside(text, mentions)
    if _escaped_mark.search(text) and not _escaped_mark.search(unescaped := html.unescape(text)):
        return read_calls(unescaped, tools, blocks=blocks)
    return CallReading([], text, mentioned)


def _mentions(text: str, spans: Sequence[CallSpan]) -> Iterator[CallSpan]:
    """Those of ``spans`` that are only talked about, all of a row together."""
    for row in _rows(text, spans):
        calls = [call for span in row for call in span.calls]
        if calls and is_mentioned(text, row[0].start, row[-1].end, calls):
            yield from row


def _rows(text: str, spans: Sequence[CallSpan]) -> Iterator[list[CallSpan]]:
    """``spans`` in rows, between which there are words."""
    row: list[CallSpan] = []
    for span in spans:
        if row and not _beside.fullmatch(text, row[-1].end, span.start):
            yield row
            row = []
        row.append(span)
    if row:
        yield row


def _first_block(text: str, tools: Toolbox) -> list[CallSpan]:
    """The first block in a tool's name that calls it, which ends the turn, and those before it that are only talked
    about."""
    spans: list[CallSpan] = []
    for block in tool_blocks(text, languages(tools.names)):
        calls = _block_calls(block, tools)
        if not is_mentioned(text, block.start, block.end, calls):
            return spans if is_answered(text[: block.start]) else [*spans, CallSpan(block.start, len(text), calls)]
        spans.append(CallSpan(block.start, block.end, calls))
    return spans


def _block_with_output(text: str, tools: Toolbox) -> list[CallSpan]:
    """The first block in a tool's name, where the text goes on with an output that it makes up itself."""
    block = first_block(text, languages(tools.names))
    if block is None or not block.closed or not _output.match(text, block.end):
        return []
    return [CallSpan(block.start, len(text), _block_calls(block, tools))]


def _block_calls(block: FencedBlock, tools: Toolbox) -> list[ToolCall]:
    """The call that a block is: its text is the one text argument, or an object of all arguments, or of a call."""
    if not block.closed:
        return [ToolCall(name=block.tool, raw=block.body, error="the block is not closed")]
    value = object_in(block.body)
    argument = tools.text_arguments.get(block.tool, "")
    if value is not None and is_call(value, tools):
        return calls_of(value, block.body, tools)
    if value is None and not argument and not block.body.strip():
        value = {}
    if value is None or (argument and list(value) != [argument]):
        if not argument:
            return [ToolCall(name=block.tool, raw=block.body, error="the block is no JSON object of arguments")]
        is_text = tools.is_text(block.tool, argument) is not False
        value = {argument: block.body if is_text else argument_value(block.tool, argument, block.body, tools)}
    return [call_of(block.tool, value, block.body, tools)]
