"""What kind of failure a reply is that an item of an evaluation failed by."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent0.turns.thoughts import split_thoughts

EMPTY = "empty"
UNCLOSED = "a thought that is never closed"
CUT = "cut off at the limit of tokens"
UNREAD = "no call read"
LIMITED = "out of turns or calls"
SILENT = "no answer"
WRONG = "wrong answer"
UNDECIDED = "undecided"
OF_SETTINGS = (UNCLOSED, CUT, UNREAD)
"""Kinds that settings mend, whatever the model: room for the reply, or the form in which tools are called."""
LONGEST = 32_768
"""Characters of a reply that are looked at."""
_CALL = re.compile(
    r"<\|?(?:tool_call|function|invoke|python_tag)|\[tool_calls?\]|\"(?:arguments|parameters)\"[ \t]*:|^[ \t>]{0,8}```"
    r"|^[ \t*]{0,4}Action[ \t*]{0,4}:",
    re.MULTILINE | re.IGNORECASE,
)
"""What a call of a tool is written with, whether or not it is one that is read."""


@dataclass(frozen=True)
class FailedReply:
    """The last reply of an item that was not solved. ``event`` is the sequence of its score."""

    attempt: str
    kind: str
    wrote: str
    answer: str | None = None
    expected: str = ""
    event: int = 0


@dataclass(frozen=True)
class FailedReplies:
    """How items of an evaluation failed: ``failed`` of ``items`` were not solved. ``kinds`` count them (the first
    of very many), the most frequent kind first; ``examples`` are some, of different kinds first."""

    evaluation: str
    items: int
    failed: int
    kinds: Mapping[str, int]
    examples: tuple[FailedReply, ...] = ()

    @property
    def mended_by_settings(self) -> bool:
        """Whether at least half of what failed is of kinds that settings mend."""
        return 2 * sum(self.kinds.get(kind, 0) for kind in OF_SETTINGS) >= sum(self.kinds.values()) > 0

    def reading(self, run: str) -> str:
        """The command that lists them."""
        return f"agent0 trajectory list {run} --evaluation {self.evaluation} --wrong"


def kind_of_reply(reply: str | None, answer: str | None, correct: bool | None, end: str, *, called: bool) -> str:
    """Name the kind of failure of an item that is not right.

    Args:
        reply: the last turn that the student wrote, None where it is not at hand.
        end: how the attempt ended (``agent0.events.values.End``), empty where that is not known.
        called: whether a call was read in that turn.
    """
    if answer is not None:
        return UNDECIDED if correct is None else WRONG
    if reply is not None and not reply.strip():
        return EMPTY
    text = split_thoughts((reply or "")[:LONGEST])
    if text.unclosed:
        return UNCLOSED
    if end == "length":
        return CUT
    if not called and _CALL.search(text.visible):
        return UNREAD
    return LIMITED if end in ("turn_limit", "budget") else SILENT
