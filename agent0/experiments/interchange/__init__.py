"""Attempts as other frameworks write them: what every format is read into, and how an untrusted row is read.

One file a format, with ``read`` (a row of a file to attempts) and ``write`` (an exported attempt to rows) where it has
them. A row that is none is refused by file, line and field; what a sound row has that no event keeps is a loss with a
name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from agent0.chat_format import format_call
from agent0.evaluation.benchmarks.rows import RowError
from agent0.events.values import RewardPart, Task, ToolCall, ToolResult, ToolState, ToolUse, Trajectory, Turn, Usage
from agent0.rollout.parsing import parse_turn

Document = dict[str, Any]
"""A JSON object of another framework, checked by the format's own classes."""
LONGEST = 200_000
"""Characters of one text of a file."""
DEEPEST = 60
"""Objects and lists within each other."""
OWN = "agent0"
"""The field, where a format allows others, in which an export keeps what the format has no place for."""


class Foreign(BaseModel):
    """Base of what an untrusted row must be: wrong types and numbers that are none are refused, other fields kept."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)


class NotedPart(Foreign):
    """A part of a reward as an export of ours has it."""

    name: str
    value: float | None = None
    weight: float = 1.0


TokenId = Annotated[int, Field(ge=0)]
"""The id of a token in whatever vocabulary the file's model has."""


class NotedTokens(Foreign):
    """The tokens of an attempt as an export of ours has them, as ``Trajectory`` does."""

    token_ids: list[TokenId]
    mask: list[Literal[0, 1]]
    logprobs: list[float]

    @model_validator(mode="after")
    def require_one_length(self) -> "NotedTokens":
        """Require that there is a mask and a log-probability for each id."""
        if not len(self.token_ids) == len(self.mask) == len(self.logprobs):
            raise ValueError("token_ids, mask and logprobs differ in length")
        return self


class ExportNote(Foreign):
    """What an export of ours says of an attempt besides the format's own fields. It is not verified."""

    task: Document | None = None
    attempt: str = ""
    answer: str | None = None
    correct: bool | None = None
    reward: float | None = None
    reward_parts: list[NotedPart] = []
    end: str = ""
    model: str = ""
    states: list[str] = []
    trajectory: NotedTokens | None = None


@dataclass(frozen=True)
class ForeignCall:
    """A tool call that a message makes, and what came back; ``output`` None: the file has nothing of it."""

    name: str
    arguments: Document
    output: str | None = None
    state: str = ""


NO_USAGE = Usage()


@dataclass(frozen=True)
class ForeignAttempt:
    """One attempt of a foreign file. ``group`` names the task that it is an attempt at, ``expected`` is the answer
    that the file calls right; both empty where the file does not say. ``task`` is the one that our own export named.
    ``losses`` are what the file has of it and no event keeps."""

    location: str
    question: str
    transcript: tuple[Turn, ...]
    expected: str = ""
    group: str = ""
    answer: str | None = None
    calls: tuple[ToolUse, ...] = ()
    total: float | None = None
    parts: tuple[RewardPart, ...] = ()
    correct: bool | None = None
    trajectory: Trajectory | None = None
    problem: str = ""
    model: str = ""
    usage: Usage = NO_USAGE
    task: Task | None = None
    losses: tuple[str, ...] = ()


Role = Literal["system", "user", "assistant", "tool"]
Shape = TypeVar("Shape", bound=BaseModel)


def shaped(model: type[Shape], row: object, location: str, format: str) -> Shape:
    """Read ``row`` as ``model``.

    Raises:
        RowError: it is none; the first field that is wrong is named.
    """
    try:
        return model.model_validate(row)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        first = max(faults, key=lambda fault: len(fault["loc"]))  # of alternatives, the one that fits furthest
        field = ".".join(str(step) for step in first["loc"])[:80]
        why = f"Field {field!r}: {first['msg'][:200]}." if field else f"{first['msg'][:200]}."
        raise RowError(location, field, f"no row of {format}.", why, "Mend or leave out this row.") from error


def require_whole(row: object, location: str, format: str) -> None:
    """Require that every text of ``row`` can stand in an event, and that it is not nested without end.

    Raises:
        RowError: a text is too long, holds NUL or half of a surrogate pair, a number is none, or something lies too
            deep; its field is named.
    """
    waiting: list[tuple[str, int, object]] = [("", 0, row)]
    while waiting:
        field, depth, value = waiting.pop()
        children: Iterable[tuple[object, object]] = ()
        if isinstance(value, dict):
            children = value.items()
            waiting += [(field, depth + 1, key) for key in value]
        elif isinstance(value, list):
            children = enumerate(value)
        elif why := _unfit(value):
            raise RowError(location, field, f"no row of {format}.", f"Field {field[:80]!r}: {why}.", "Mend this row.")
        if children and depth >= DEEPEST:
            why = f"Field {field[:80]!r} is nested more than {DEEPEST} deep."
            raise RowError(location, field, f"no row of {format}.", why, "Leave it out.")
        waiting += [(f"{field}.{key}" if field else f"{key}", depth + 1, child) for key, child in children]


def _unfit(text: object) -> str:
    if isinstance(text, float) and not isfinite(text):
        return f"{text} is no finite number"
    if not isinstance(text, str):
        return ""
    if len(text) > LONGEST:
        return f"it has {len(text):,} characters, and {LONGEST:,} are the most"
    if "\0" in text:
        return f"character {text.find(chr(0)) + 1:,} is NUL"
    return "it holds half of a surrogate pair" if any("\ud800" <= sign <= "\udfff" for sign in text) else ""


def unread(value: object, field: str = "") -> Iterator[str]:
    """Name the fields of ``value``, a row that was read, for which its class has no place; empty ones lose nothing."""
    if isinstance(value, Foreign):
        extra = value.model_extra or {}
        yield from (f"{field}{name}"[:80] for name, content in extra.items() if content not in (None, "", [], {}))
        for name in type(value).model_fields:
            yield from unread(getattr(value, name), f"{field}{name}.")
    elif isinstance(value, list):
        for child in value:
            yield from unread(child, field)


def unread_fields(*values: object) -> list[str]:
    """``unread`` of several, each field once, in order."""
    return list(dict.fromkeys(name for value in values for name in unread(value)))


class ContentText(Foreign):
    """A part of a message whose content is a list."""

    type: str = "text"
    text: str | None = None
    reasoning: str | None = None


Content = str | list[ContentText] | None


def text_of(content: Content, losses: list[str]) -> str:
    """The text of a message's content; parts that are no text are added to ``losses``."""
    if content is None or isinstance(content, str):
        return content or ""
    losses += [f"a part of type {part.type[:20]}" for part in content if part.text is None and part.reasoning is None]
    return "".join(part.text or "" for part in content)


def thought_of(content: Content) -> str:
    """The text of the parts of a message that are its writer's thoughts."""
    return "" if isinstance(content, str) else "".join(part.reasoning or "" for part in content or ())


def called_text(text: str, calls: Iterable[ForeignCall]) -> str:
    """An assistant's text with the calls that it makes, in our own form, where the text itself makes none."""
    if parse_turn(text).calls:
        return text
    return "\n".join(filter(None, [text, *(format_call(call.name, call.arguments) for call in calls)]))


def tool_use(call: ForeignCall, turn: int) -> ToolUse:
    """The call as an event has it. ``turn`` counts assistant turns from 0."""
    written = ToolCall(name=call.name, arguments=call.arguments, raw=format_call(call.name, call.arguments))
    state = ToolState(call.state) if call.state in set(ToolState) else ToolState.OK
    return ToolUse(turn=turn, call=written, result=ToolResult(state=state, output=call.output or ""))


STATES_UNKNOWN = "how its tool calls ended: all are taken as ok"
"""The loss of a format that has no place for it."""


def note_of(value: object, location: str, format: str) -> ExportNote:
    """Read what an export of ours wrote under ``OWN``; without anything where it is none."""
    return shaped(ExportNote, value, location, format) if isinstance(value, Mapping) else ExportNote()


def noted_task(note: ExportNote, location: str, format: str) -> Task | None:
    """The task that our own export named.

    Raises:
        RowError: it is no task.
    """
    # strict values are lists here and tuples there
    return None if note.task is None else shaped(Task, note.task, location, format)


def noted_parts(note: ExportNote) -> tuple[RewardPart, ...]:
    """The parts of the reward that our own export named."""
    return tuple(RewardPart(name=part.name[:80], value=part.value, weight=part.weight) for part in note.reward_parts)


def noted_trajectory(note: ExportNote) -> Trajectory | None:
    """Make the trajectory of the tokens that our own export named; None where it named none."""
    tokens = note.trajectory
    if tokens is None:
        return None
    return Trajectory(token_ids=tuple(tokens.token_ids), mask=tuple(tokens.mask), logprobs=tuple(tokens.logprobs))


def written_note(row: Mapping[str, Any], *, tokens: bool = True) -> Document:
    """What stands under ``OWN`` of an attempt that is exported, ``row`` being one of ``projections.trajectories``:
    without its ``tokens`` where the format has places for them."""
    names = ("run", "attempt", "iteration", "answer", "correct", "reward", "end", "model", "student", "prompt", "seed")
    parts = [{name: part[name] for name in ("name", "value", "weight")} for part in row["reward_parts"]]
    note = {**{name: row[name] for name in names}, "task": row["proposal"], "reward_parts": parts}
    note["states"] = [call["state"] for call in row["calls"] if not call["inner"]]
    return note | {"trajectory": row["trajectory"]} if tokens else note


@dataclass(frozen=True)
class LinkedTurn:
    """A turn of an exported attempt: ``calls`` are those that it makes, ``answered`` the one that it answers.
    ``sampled``: the student wrote it in this attempt, and not an example of its prompt."""

    turn: Mapping[str, Any]
    calls: tuple[Mapping[str, Any], ...] = ()
    answered: Mapping[str, Any] | None = None
    sampled: bool = False


def linked_turns(row: Mapping[str, Any]) -> Iterator[LinkedTurn]:
    """The turns of an exported attempt with their calls; ``row`` is one of ``projections.trajectories``."""
    transcript, waiting = row["transcript"] or [], list[Mapping[str, Any]]()
    number = (row["turns"] or 0) - sum(turn["role"] == "assistant" for turn in transcript)
    for turn in transcript:
        if turn["role"] == "assistant":
            waiting = [call for call in row["calls"] if call["turn"] == number and not call["inner"]]
            yield LinkedTurn(turn, tuple(waiting), sampled=number >= 0)
            number += 1
        else:
            answers = turn["role"] == "tool" and waiting
            yield LinkedTurn(turn, answered=waiting.pop(0) if answers else None)


def call_id(call: Mapping[str, Any]) -> str:
    """What an exported call is called in its attempt."""
    return f"call-{call['number']}"
