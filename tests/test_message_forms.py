"""Messages as the many kinds of servers write them: content in parts, thoughts of their own, native calls in every
numbering. What is said comes out the same."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent0.infra.models.anthropic.messages import MessageReading as AnthropicReading
from agent0.infra.models.calls.contents import text_of, thought_of
from agent0.infra.models.openai.dialects import Way
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.openai.replies import Reading, ServerReply
from agent0.rollout.parsing import parse_turn
from tests.conformance_model import ask
from tests.openai_server import actor, serving

TEXT = {"type": "text", "text": "\\boxed{42}"}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "6*7, maybe \\boxed{41}"}]}

CONTENTS: tuple[tuple[Any, str, str], ...] = (
    ("\\boxed{42}", "\\boxed{42}", ""),
    (None, "", ""),
    ([], "", ""),
    ([THOUGHT, TEXT], "\\boxed{42}", "6*7, maybe \\boxed{41}"),
    ([TEXT], "\\boxed{42}", ""),
    (TEXT, "\\boxed{42}", ""),
    ([{"type": "text", "text": "It is "}, TEXT], "It is \\boxed{42}", ""),
    ([{"text": "without a type"}], "without a type", ""),
    (["It is ", "42"], "It is 42", ""),
    ([{"type": "output_text", "text": "42"}], "42", ""),
    ([{"type": "text", "text": {"value": "42", "annotations": []}}], "42", ""),
    ([{"type": "thinking", "thinking": "plain"}, TEXT], "\\boxed{42}", "plain"),
    ([{"type": "reasoning", "text": "a"}, TEXT], "\\boxed{42}", "a"),
    ([{"type": "reasoning", "reasoning": "a"}], "", "a"),
    ([{"type": "text", "text": "a", "thought": True}, {"type": "text", "text": "b"}], "b", "a"),
    ([{"type": "refusal", "refusal": "No."}], "No.", ""),
    ([{"type": "image_url", "image_url": {"url": "x"}}, TEXT], "\\boxed{42}", ""),
    ([{"type": "text", "text": None}, TEXT], "\\boxed{42}", ""),
    ("[{'type': 'text', 'text': 'as text'}]", "[{'type': 'text', 'text': 'as text'}]", ""),
)
"""A content, its text, its thought."""


@pytest.mark.parametrize(("content", "text", "thought"), CONTENTS)
def test_text_and_thought_of_a_content(content: Any, text: str, thought: str) -> None:
    assert (text_of(content), thought_of({"content": content})) == (text, thought)


@pytest.mark.parametrize("content", [5, 1.5, True, [5], [None], [[TEXT]]])
def test_what_is_no_content_is_refused(content: Any) -> None:
    with pytest.raises((ValueError, AttributeError)):
        text_of(content)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_thought_in_a_field_of_its_own_is_no_text(name: str, stream: bool) -> None:
    pieces = [{name: "6*7 is "}, {name: "\\boxed{41}?"}, {name: None, "content": "\\boxed{42}"}, {name: ""}]
    whole = [{name: "6*7 is \\boxed{41}?", "content": "\\boxed{42}"}]
    reply = read(pieces if stream else whole, "delta" if stream else "message")
    assert (reply.text, reply.thinking) == ("\\boxed{42}", "6*7 is \\boxed{41}?")
    both = read([{"reasoning": "a", "reasoning_content": "a", "content": "b"}])
    assert (both.text, both.thinking) == ("b", "a")


def read(messages: list[dict[str, Any]], key: str = "delta") -> ServerReply:
    """The reply whose parts have these messages."""
    reading = Reading(Way("chat", "text"))
    for message in messages:
        reading.add({"choices": [{"index": 0, key: message}]})
    reading.add({"choices": [{"index": 0, "delta": None, "finish_reason": "tool_calls"}]})
    [reply] = reading.replies()
    return reply


def entry(arguments: Any, name: Any = "python", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


A, B = {"code": "print(1)"}, {"code": "print(2)"}
TA, TB = json.dumps(A), json.dumps(B)
CALLS: tuple[tuple[str, list[list[dict[str, Any]]], list[dict[str, Any]]], ...] = (
    ("numbered 0, other ids", [[entry(TA, index=0, id="a")], [entry(TB, index=0, id="b")]], [A, B]),
    ("numbered 0, without ids", [[entry(TA, index=0)], [entry(TB, index=0)]], [A, B]),
    ("not numbered, other ids", [[entry(TA, id="a")], [entry(TB, id="b")]], [A, B]),
    ("not numbered, without ids", [[entry(TA)], [entry(TB)]], [A, B]),
    ("one list, numbered 0", [[entry(TA, index=0, id="a"), entry(TB, index=0, id="b")]], [A, B]),
    ("one list, numbered 0, without ids", [[entry(TA, index=0), entry(TB, index=0)]], [A, B]),
    ("one list, not numbered", [[entry(TA), entry(TB)]], [A, B]),
    ("numbered", [[entry(TA, index=0, id="a")], [entry(TB, index=1, id="b")]], [A, B]),
    ("numbered from 1", [[entry(TA, index=1, id="a")], [entry(TB, index=2, id="b")]], [A, B]),
    ("objects", [[entry(A, index=0, id="a"), entry(B, index=1, id="b")]], [A, B]),
    ("objects, numbered 0", [[entry(A, index=0)], [entry(B, index=0)]], [A, B]),
    ("twice the same", [[entry(TA, index=0, id="a")], [entry(TA, index=0, id="b")]], [A, A]),
    (
        "in pieces",
        [[entry("", index=0, id="a")], [entry(TA[:5], None, index=0)], [entry(TA[5:], None, index=0)]],
        [A],
    ),
    ("in pieces, id repeated", [[entry(TA[:5], index=0, id="a")], [entry(TA[5:], "", index=0, id="a")]], [A]),
    ("in pieces, name repeated", [[entry(TA[:5], index=0, id="a")], [entry(TA[5:], index=0, id="a")]], [A]),
    ("in pieces, an id each", [[entry(TA[:5], index=0, id="a")], [entry(TA[5:], None, index=0, id="b")]], [A]),
    ("in pieces, not numbered", [[entry(TA[:5], id="a")], [entry(TA[5:], None)], [entry(TB, id="b")]], [A, B]),
    (
        "two in turns",
        [
            [entry(TA[:5], index=0, id="a"), entry(TB[:5], index=1, id="b")],
            [entry(TA[5:], None, index=0), entry(TB[5:], None, index=1)],
        ],
        [A, B],
    ),
    ("flat", [[{"name": "python", "arguments": A}]], [A]),
    ("null between", [[entry(TA[:5], index=0, id="a")], [], [entry(TA[5:], None, index=0)]], [A]),
)


@pytest.mark.parametrize(("deltas", "expected"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
def test_native_calls_come_out_as_they_were_made(deltas: list[Any], expected: list[dict[str, Any]]) -> None:
    reply = read([{"content": None, "tool_calls": calls or None} for calls in deltas])
    calls = parse_turn(reply.text).calls
    assert [(call.name, dict(call.arguments), call.error) for call in calls] == [("python", a, "") for a in expected]


@pytest.mark.parametrize("numbered", [{}, {"index": 0}, {"index": 0, "id": "a"}])
def test_calls_of_a_whole_message_are_as_many_as_it_lists(numbered: dict[str, Any]) -> None:
    [first, second] = parse_turn(
        read([{"tool_calls": [entry(A, **numbered), entry(TB, **numbered)]}], "message").text
    ).calls
    assert (dict(first.arguments), dict(second.arguments)) == (A, B)
    [old] = parse_turn(read([{"content": None, "function_call": entry(TA)["function"]}], "message").text).calls
    assert dict(old.arguments) == A


def test_a_call_with_text_and_thought_keeps_all_three() -> None:
    reply = read([{"reasoning": "hm"}, {"content": "I compute."}, {"tool_calls": [entry(TA, index=0)]}])
    assert reply.thinking == "hm" and reply.text.startswith("I compute.\n<tool_call>")


@pytest.mark.parametrize("arguments", ["", None, "{}", {}])
def test_a_call_without_arguments_is_a_call(arguments: Any) -> None:
    [call] = parse_turn(read([{"tool_calls": [entry(arguments, "plan", index=0)]}]).text).calls
    assert (call.name, call.arguments, call.error) == ("plan", {}, "")


@pytest.fixture
def server() -> Iterator[Any]:
    with serving(level="logprobs") as there:
        yield there


@pytest.mark.parametrize("stream", [True, False])
async def test_a_thought_is_set_aside_over_the_wire(server: Any, stream: bool) -> None:
    model = OpenAIServer(actor(server.url, tokenizer=""))
    await model.profile()
    end = {"finish_reason": "stop"}
    parts = [{"choices": [{"delta": {"content": [THOUGHT]}}]}, {"choices": [{"delta": {"content": [TEXT]}} | end]}]
    server.replies = [parts if stream else {"choices": [{"message": {"content": [THOUGHT, TEXT]}} | end]}]
    written = await model.generate(ask())
    assert (written.text, written.thinking) == ("\\boxed{42}", "6*7, maybe \\boxed{41}")
    await model.close()


def test_a_thought_of_anthropic_is_kept_and_is_no_text() -> None:
    reading = AnthropicReading()
    reading.add({"type": "message_start", "message": {"model": "m", "usage": {}}})
    for index, (block, delta) in enumerate(
        (
            ({"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "maybe \\boxed{41}"}),
            ({"type": "redacted_thinking", "data": "abc"}, {"type": "signature_delta", "signature": "xyz"}),
            ({"type": "text", "text": ""}, {"type": "text_delta", "text": "\\boxed{42}"}),
        )
    ):
        reading.add({"type": "content_block_start", "index": index, "content_block": block})
        reading.add({"type": "content_block_delta", "index": index, "delta": delta})
    assert (reading.text, reading.thinking) == ("\\boxed{42}", "maybe \\boxed{41}")
