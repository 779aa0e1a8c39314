"""What a student reads of its calls, and the value that one printed."""

from collections.abc import Sequence

from agent0.events.values import ToolResult, ToolUse

NOTHING = "[no output]"
"""What is read of a call that returned no text."""
REPEATED = "[this is your last call again, word for word, and its result: make another one]"
USED_UP = "[the attempt's tool output is used up; only the beginning and end of more is shown]"


def observation(result: ToolResult, called: Sequence[ToolUse], characters: int) -> str:
    """What is read of ``result``, which is that of the last of ``called``; ``characters`` of output are left for the
    attempt."""
    lines = [REPEATED] if is_repeated(called) else []
    lines.append(result.output if result.output.strip() else NOTHING)
    return "\n".join([*lines, *([USED_UP] if characters <= 0 else [])])


def is_repeated(called: Sequence[ToolUse]) -> bool:
    """Whether the last call is the one before it, word for word, ended in the same way, and changed no file."""
    uses = [use for use in called if not use.inner][-2:]
    compared = [(use.call.name, use.call.arguments, use.result.state, use.result.output) for use in uses]
    return len(uses) == 2 and compared[0] == compared[1] and uses[0].result.work == uses[1].result.work


def plain_output(text: str) -> str:
    """A printed value without wrapping: the last line, without ``name =``, brackets of a single item, or quotes."""
    lines = text.strip().splitlines()
    last = lines[-1].strip() if lines else ""
    name, equals, value = last.partition("=")
    if equals and name.strip().isidentifier() and not value.startswith("="):
        last = value.strip()
    if last.startswith("[") and last.endswith("]") and "," not in last:
        last = last[1:-1].strip()
    return last.strip("'\"").strip()
