"""Messages in OpenAI's form, which most frameworks write conversations in: read into turns and calls, and written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator

from agent0.evaluation.benchmarks.rows import RowError
from agent0.events.values import ToolUse, Turn
from agent0.experiments.interchange import (
    STATES_UNKNOWN,
    Content,
    Document,
    ExportNote,
    Foreign,
    ForeignCall,
    LinkedTurn,
    Role,
    call_id,
    called_text,
    linked_turns,
    text_of,
    thought_of,
    tool_use,
)


class ChatFunction(Foreign):
    """The function that a call names, with its arguments as text or as an object."""

    name: str
    arguments: str | Document = ""


class ChatCall(Foreign):
    """A tool call, its function within it, at its own level, or by name beside its arguments (Inspect)."""

    id: str | None = None
    type: str = "function"
    function: ChatFunction | str | None = None
    name: str | None = None
    arguments: str | Document = ""


def _unpacked(call: object) -> object:
    """A call that is written as a text of JSON (verifiers' results) as what it says."""
    try:
        return json.loads(call) if isinstance(call, str) else call
    except RecursionError as error:
        raise ValueError("nested without end") from error


class ChatMessage(Foreign):
    """One message of a conversation, with the calls that it makes."""

    role: Role
    content: Content = None
    name: str | None = None
    tool_calls: list[Annotated[ChatCall, BeforeValidator(_unpacked)]] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    function: str | None = None


def conversation(
    messages: Sequence[ChatMessage], losses: list[str], location: str, format: str, note: ExportNote
) -> tuple[tuple[Turn, ...], tuple[ToolUse, ...]]:
    """Turns and calls of ``messages``; a call's output is that of the tool message that names it, or that is next.
    Texts of an ``own`` export hold their calls.

    Raises:
        RowError: a call names no function, or its arguments are no JSON object.
    """
    transcript, uses, turn = list[Turn](), list[ToolUse](), -1
    states = dict(enumerate(note.states))
    for index, message in enumerate(messages):
        text = text_of(message.content, losses)
        if message.role == "assistant":
            turn += 1
            calls = [
                _call(call, _output(messages[index + 1 :], call, number, losses), f"messages.{index}", location, format)
                for number, call in enumerate(message.tool_calls or [])
            ]
            losses += [STATES_UNKNOWN] * (bool(calls) and not note.attempt)
            for call in calls:
                uses.append(tool_use(replace(call, state=states.get(len(uses), "")), turn))
            text = text if note.attempt else called_text(text, calls)
        name, thought = message.name or message.function or "", message.reasoning_content or thought_of(message.content)
        transcript.append(Turn(role=message.role, content=text, name=name, thinking=thought))
    return tuple(transcript), tuple(uses)


def _call(call: ChatCall, output: str | None, field: str, location: str, format: str) -> ForeignCall:
    within = call.function
    name = within.name if isinstance(within, ChatFunction) else within or call.name
    arguments = within.arguments if isinstance(within, ChatFunction) else call.arguments
    if not name:
        raise RowError(location, field, f"no row of {format}.", f"Field {field!r}: a call names no function.")
    try:
        read: object = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        why = f"Field {field!r}: the arguments of {name[:40]} are no JSON object."
        raise RowError(location, field, f"no row of {format}.", why, "Mend or leave out this row.")
    return ForeignCall(name, read, output)


def _output(following: Sequence[ChatMessage], call: ChatCall, number: int, losses: list[str]) -> str | None:
    """What the tool answered before the next assistant's turn: in the message that names the call, else in the one at
    its place."""
    answers = list[ChatMessage]()
    for message in following:
        if message.role == "assistant":
            break
        answers += [message] * (message.role == "tool")
    named = next((answer for answer in answers if call.id and answer.tool_call_id == call.id), None)
    at = answers[number] if number < len(answers) else None
    answer = named or at
    return text_of(answer.content, losses) if answer else None


def written(row: Mapping[str, Any]) -> list[Document]:
    """The messages of an exported attempt; calls stand beside the text that the student wrote, which has them, too."""
    return [_message(linked) for linked in linked_turns(row)]


def _message(linked: LinkedTurn) -> Document:
    turn = linked.turn
    message: Document = {"role": turn["role"], "content": turn["content"]}
    if turn.get("thinking"):
        message["reasoning_content"] = turn["thinking"]
    if linked.calls:
        message["tool_calls"] = [_written_call(call) for call in linked.calls]
    if turn["role"] == "tool":
        message |= {"name": turn["name"]} if turn.get("name") else {}
        message |= {"tool_call_id": call_id(linked.answered)} if linked.answered else {}
    return message


def _written_call(call: Mapping[str, Any]) -> Document:
    arguments = json.dumps(call["arguments"] or {}, ensure_ascii=False)
    function = {"name": call["tool"] or "unknown", "arguments": arguments}
    return {"id": call_id(call), "type": "function", "function": function}


def split(messages: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """(prompt, completion): what comes before the first assistant's message is the prompt."""
    first = next((n for n, message in enumerate(messages) if message["role"] == "assistant"), len(messages))
    return list(messages[:first]), list(messages[first:])
