"""Tool use in attempts: which tools, in which order, and the accuracy of attempts with and without them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent0.events.values import Turn
from agent0.stats.intervals import wilson

START, ANSWER = "(start)", "(answer)"
UNREAD = "(unread)"
"""A call that could not be parsed has no tool."""

NO_TOOL, FAILED = "no call", "no call went well"


@dataclass(frozen=True)
class Call:
    """One tool call of an attempt: tool, arguments as given, and ``state`` as in ``agent0.events.values.ToolState``."""

    tool: str
    state: str
    arguments: Mapping[str, object]


@dataclass(frozen=True)
class Trace:
    """One attempt: its calls in order, and whether its answer is right (None: undecided)."""

    attempt: str
    task: str
    correct: bool | None
    calls: tuple[Call, ...]


def used(calls: Sequence[Call]) -> str:
    """The tools that an attempt used successfully, in order of first use, as one label."""
    went_well = dict.fromkeys(call.tool for call in calls if call.state == "ok")
    return "+".join(went_well) or (FAILED if calls else NO_TOOL)


def tool_shares(traces: Sequence[Trace]) -> list[dict[str, str | float]]:
    """One row per tool: calls, the share of them that succeeded, and attempts that used it."""
    calls: dict[str, list[bool]] = defaultdict(list)
    attempts: dict[str, set[str]] = defaultdict(set)
    for trace in traces:
        for call in trace.calls:
            calls[call.tool or UNREAD].append(call.state == "ok")
            attempts[call.tool or UNREAD].add(trace.attempt)
    return [
        {
            "tool": tool,
            "calls": len(wells),
            "ok": sum(wells),
            "success": sum(wells) / len(wells),
            "attempts": len(attempts[tool]),
            "share_of_attempts": len(attempts[tool]) / len(traces),
        }
        for tool, wells in sorted(calls.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    ]


def transitions(traces: Iterable[Trace]) -> list[dict[str, str | float | None]]:
    """Count which tool follows which, from the start to the answer, most frequent first.

    With the share of right attempts among those in which it happened (undecided ones left out, None: all were).
    """
    times: Counter[tuple[str, str]] = Counter()
    rights: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for trace in traces:
        steps = [START, *(call.tool or UNREAD for call in trace.calls), ANSWER]
        pairs = list(pairwise(steps))
        times.update(pairs)
        for pair in dict.fromkeys(pairs):
            if trace.correct is not None:
                rights[pair].append(trace.correct)
    ordered = sorted(times.items(), key=lambda entry: (-entry[1], entry[0]))
    return [
        {
            "from": left,
            "to": right,
            "times": n,
            "attempts": len(rights[left, right]),
            "correct": _share(rights[left, right]),
        }
        for (left, right), n in ordered
    ]


def with_and_without(traces: Iterable[Trace]) -> list[dict[str, str | float | None]]:
    """Compare the accuracy of decided attempts by the tools they used.

    A correlation, not an effect: attempts chose their tools.
    """
    groups: dict[str, list[bool]] = defaultdict(list)
    for trace in traces:
        if trace.correct is not None:
            groups[used(trace.calls)].append(trace.correct)
    rows: list[dict[str, str | float | None]] = []
    for mark, rights in sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        low, high = wilson(sum(rights), len(rights))
        rows.append(
            {"tools": mark, "attempts": len(rights), "correct": _share(rights), "lower95": low, "upper95": high}
        )
    return rows


def _share(rights: Sequence[bool]) -> float | None:
    return sum(rights) / len(rights) if rights else None


def repeated(answer: str, transcript: Sequence[Turn]) -> bool:
    """Whether the student wrote ``answer`` before any tool printed it; true, too, where that cannot be decided."""
    spoken = re.compile(rf"(?<![\w.]){re.escape(answer.strip())}(?![\w.]*\w)")
    last = max((n for n, turn in enumerate(transcript) if turn.role == "user"), default=-1)
    for turn in transcript[last + 1 :]:
        if spoken.search(turn.content):
            return turn.role != "tool"
    return True
