"""Marks that chat templates put around turns, and what of a text stands before an end of its own turn."""

import re
from typing import NamedTuple

_USERS = r"user|human|tool|system|observation|ipython|environment"
_ends = re.compile(
    r"<\|(?:im_end|eo[tm](?:_id)?|eos|end_of_(?:text|turn|role|sentence)|endof(?:text|turn)|return|END_OF_TURN_TOKEN"
    r"|assistant_end|im_user|im_system)\|>|<(?:end_of_turn|turn\||(?:seed:)?eos|end_of_utterance)>|</s>|\[e~\["
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>|\[\|(?:endofturn|user)\|\]|\[INST\]"
    rf"|(?:<\|(?:im_start|start|start_header_id|header_start|start_of_role)\|>|<start_of_turn>)[ \t]*(?:{_USERS})\b"
    rf"|<\|turn>[ \t]*(?:{_USERS})\b|<\|(?:{_USERS})\|>|<\uff5cUser\uff5c>|<\|end\|>(?!\s*<\|start\|>\s*assistant)"
)
"""Nothing behind one of these is of the turn. What stands before an end of a message of gpt-oss may go on."""
_opening = re.compile(
    r"\s*(?:<\|(?:im_start|start|start_header_id)\|>|<start_of_turn>|<\|turn>)[ \t]*(?:assistant|model)\b"
    r"(?:<\|end_header_id\|>)?\s*|\s*<\|assistant\|>\s*|\s*\[INST\](?s:.{0,9000}?)\[/INST\]\s*|\s*<\uff5cAssistant\uff5c>\s*"
)
_message = re.compile(
    r"(?:<\|start\|>(?P<role>[^<]{0,120}))?<\|channel\|>(?P<head>[^<]{0,200})(?:<\|constrain\|>(?P<kind>[^<]{0,40}))?"
    r"<\|message\|>"
)
_message_end = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)")
_recipient = re.compile(r"\bto=([\w.-]{1,80})")


class ChannelMessage(NamedTuple):
    """A message of gpt-oss (its "harmony" format) from ``start`` to ``end``; ``recipient`` is the tool it goes to."""

    channel: str
    recipient: str
    content: str
    start: int
    end: int
    closed: bool


def channel_messages(text: str) -> list[ChannelMessage]:
    """Find the messages of ``text`` that name a channel, in order; time is linear in the text."""
    messages = []
    position = 0
    while head := _message.search(text, position):
        end = _message_end.search(text, head.end())
        inner_end, position = (end.start(), end.end()) if end else (len(text), len(text))
        channel = re.match(r"\s*(\w*)", head["head"])
        recipient = _recipient.search(f"{head['role'] or ''} {head['head']}")
        content = text[head.end() : inner_end]
        name, tool = channel[1] if channel else "", recipient[1] if recipient else ""
        messages.append(ChannelMessage(name, tool, content, head.start(), position, end is not None))
    return messages


def own_turn(text: str) -> str:
    """Return ``text`` up to the first mark that ends its turn or opens somebody else's; its own opening is left out.

    A mark between quotation marks is a text of a program or a call.
    """
    opening = _opening.match(text)
    start = opening.end() if opening and not text.startswith("<|start|>") else 0
    ends = (mark.start() for mark in _ends.finditer(text, start) if not _is_quoted(mark, text))
    return text[start : next(ends, len(text))]


def _is_quoted(mark: re.Match[str], text: str) -> bool:
    before, after = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
    return bool(before and after) and before in "\"'`" and after in "\"'`\\"
