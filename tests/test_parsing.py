"""What a model may write: three dialects, all read by one parser that no text can break."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.chat_format import format_call
from agent0.events.tasks import TaskAttempted, ToolCalled
from agent0.events.values import ToolResult, ToolState
from agent0.rollout.parsing import DEEPEST, LONGEST, MOST_CALLS, parse_turn

PIECES = (
    "<tool_call>", "</tool_call>", '{"name": "python", "arguments": {"code": "1"}}', "```json\n", "```", "\\boxed{",
    "{", "}", "\\{", "\\", "Action: ", "Action Input: ", "python[", "]", "Observation: ", "Final Answer: ", "Answer:",
    "\n", "[", '"', "Thought: ", "7", " ", "\x00", "\u2028", "\ud800", "NaN", "1e999",
)  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40).map("".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
names = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)


@settings(max_examples=80, deadline=None)
@given(hostile)
def test_any_text_is_read_and_what_is_read_can_be_stored(text: str) -> None:
    parsed = parse_turn(text)
    assert len(parsed.calls) <= MOST_CALLS
    for number, call in enumerate(parsed.calls):
        result = ToolResult(state=ToolState.OK)
        event = ToolCalled(task="t", attempt="a", turn=0, number=number, call=call, result=result)
        assert ToolCalled.model_validate_json(event.model_dump_json()) == event
        assert call.error or call.name
    if parsed.answer is not None:
        parsed.answer.encode()
        assert parsed.answer == parsed.answer.strip() != ""


@settings(max_examples=80, deadline=None)
@given(names, st.dictionaries(st.text(max_size=8), json_values, max_size=3))
def test_a_call_reads_back_as_written(name: str, arguments: dict[str, object]) -> None:
    parsed = parse_turn(f"I look.\n{format_call(name, arguments)}")
    assert [(c.name, c.arguments, c.error) for c in parsed.calls] == [(name, arguments, "")]
    assert parsed.answer is None


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(names, st.text()), max_size=6))
def test_several_calls_keep_their_order(pairs: list[tuple[str, str]]) -> None:
    text = "\n".join(format_call(name, {"code": code}) for name, code in pairs)
    assert [(c.name, c.arguments.get("code")) for c in parse_turn(text).calls] == pairs


@pytest.mark.parametrize(
    "piece",
    ["\\boxed{", "{", "<tool_call>", '<tool_call>{"a":', "[", "```json\n{", "Action: a[", "**", " ", "\t", "Answer:\n"],
)
@pytest.mark.timeout(20)
def test_repeated_openings_end(piece: str) -> None:
    """They are what makes naive scanners quadratic or worse."""
    parsed = parse_turn(piece * (4 * LONGEST // len(piece)))
    assert any("cut at" in error for error in parsed.errors)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<tool_call>{"name": "python", "arguments": {"code": "1"}}', [("python", {"code": "1"})]),
        ('<tool_call>{"name": "a", "parameters": {"x": 1}}</tool_call>', [("a", {"x": 1})]),
        ('<tool_call>{"name": "a", "arguments": "{\\"x\\": 1}"}</tool_call>', [("a", {"x": 1})]),
        ('<tool_call>{"name": "a"}</tool_call>', [("a", {})]),
        ('Look:\n```json\n{"name": "python", "arguments": {"code": "2"}}\n```', [("python", {"code": "2"})]),
        ("Action: python[print(1)]", [("python", {"code": "print(1)"})]),
        ("Action: python[x = [1, 2]\nprint(x[0])]", [("python", {"code": "x = [1, 2]\nprint(x[0])"})]),
        ('Thought: so\nAction: shell\nAction Input: {"command": "ls"}', [("shell", {"command": "ls"})]),
        ("Action: python\nAction Input: ```python\nprint(3)\n```", [("python", {"code": "print(3)"})]),
        ("Action: plan\nAction Input: go", [("plan", {"input": "go"})]),
        ("Action: a[1]\nObservation: 5\nAction: b[2]\nFinal Answer: 5", [("a", {"input": "1"})]),
        ("**Action:** lone", [("lone", {})]),
    ],
)
def test_dialects(text: str, expected: list[tuple[str, dict[str, object]]]) -> None:
    parsed = parse_turn(text, {"python": "code"})
    assert [(c.name, c.arguments) for c in parsed.calls] == expected
    assert not any(c.error for c in parsed.calls)
    assert parsed.answer is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<tool_call>nonsense</tool_call>", "no JSON"),
        ("<tool_call>[1]</tool_call>", "no JSON object"),
        ('<tool_call>{"name": 3}</tool_call>', "no valid tool name"),
        ('<tool_call>{"name": "a b"}</tool_call>', "no valid tool name"),
        ('<tool_call>{"name": "a", "arguments": 1}</tool_call>', "arguments are no JSON object"),
        ('<tool_call>{"name": "a"} and more</tool_call>', "text after the JSON object"),
        ('<tool_call>{"name": "a", "arguments": {"x": NaN}}</tool_call>', "no JSON"),
        ('<tool_call>{"name": "a", "arguments": {"x": 1e999}}</tool_call>', "no JSON"),
        ('<tool_call>{"name": "a", "arguments": {"x": "\\ud800"}}</tool_call>', "surrogate"),
        ('<tool_call>{"name": "a", "arguments": {"x": ' + "[" * 60 + "]" * 60 + "}}</tool_call>", "too deeply"),
        ("<tool_call>" + "[" * 9000, "no JSON"),
        ("Action: two words\nThought: hm", "no valid tool name"),
    ],
)
def test_malformed_calls_are_data(text: str, problem: str) -> None:
    (call,) = parse_turn(text).calls
    assert problem in call.error
    assert call.raw


def test_more_calls_than_are_read_is_an_error() -> None:
    parsed = parse_turn(format_call("a", {}) * (MOST_CALLS + 1))
    assert len(parsed.calls) == MOST_CALLS
    assert parsed.errors == (f"{MOST_CALLS + 1} calls, {MOST_CALLS} read",)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("\\boxed{1} or rather \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("\\boxed{\\boxed{3}}", "3"),
        ("{ never closed \\boxed{4}", "4"),
        ("\\boxed{5} \\boxed{6", None),
        ("\\boxed{\\{1, 2\\}}", "\\{1, 2\\}"),
        ("so\nFinal Answer: 7\nAnswer: 8", "8"),
        ("**Answer:** 9", "9"),
        ("Answer:\n10\nbecause", "10"),
        ("Answer: 11\nbut \\boxed{12}", "12"),
        ("Thought: easy\nFinal Answer: 13", "13"),
        ("the answer is 14", None),
        ("\\boxed{}", None),
        ("", None),
        (format_call("python", {"code": "print('\\boxed{1}')\nAnswer: 2"}), None),
        ('<tool_call>{"name": "a"}</tool_call> \\boxed{15}', "15"),
        ('```json\n{"x": 1}\n```\n\\boxed{16}', "16"),
    ],
)
def test_answers(text: str, answer: str | None) -> None:
    assert parse_turn(text).answer == answer


def test_a_long_answer_is_kept_short_enough_for_an_event() -> None:
    answer = parse_turn("\\boxed{" + "9" * 5000 + "}").answer
    event = TaskAttempted(
        task="t", attempt="a", iteration=0, number=0, student="base", answer=answer, end="answered", turns=1,
        tool_calls=0, tool_ok=0, prompt="p",
    )  # fmt: skip
    assert len(event.model_dump_json()) < 2000


def test_the_canonical_spelling_is_the_chat_templates() -> None:
    text = format_call("python", {"code": "print('é')"})
    head, body, tail = text.split("\n")
    assert (head, tail) == ("<tool_call>", "</tool_call>")
    assert json.loads(body) == {"name": "python", "arguments": {"code": "print('é')"}}
    assert "é" in body


def test_what_is_read_ends_exactly_at_its_limits() -> None:
    whole = parse_turn("\\boxed{7}".rjust(LONGEST))
    assert (whole.answer, whole.errors) == ("7", ())
    over = parse_turn("\\boxed{7}".rjust(LONGEST + 1))
    assert (over.answer, over.errors) == (None, (f"cut at {LONGEST} characters",))
    most = parse_turn(format_call("a", {}) * MOST_CALLS)
    assert (len(most.calls), most.errors) == (MOST_CALLS, ())


@pytest.mark.parametrize("opened", ["[", '{"y": '])
def test_arguments_nest_as_deep_as_they_may(opened: str) -> None:
    closed = "]" if opened == "[" else "}"
    for depth, error in ((DEEPEST - 1, ""), (DEEPEST, "nested too deeply")):
        value = opened * depth + "1" * (opened != "[") + closed * depth
        (call,) = parse_turn(f'<tool_call>{{"name": "a", "arguments": {{"x": {value}}}}}</tool_call>').calls
        assert call.error == error and bool(call.arguments) == (not error)


@pytest.mark.parametrize(
    ("text", "name", "raw"),
    [
        ("<tool_call> {} </tool_call>", "", " {} "),
        ('<tool_call>{"name": "a", "arguments": 1}</tool_call>', "a", '{"name": "a", "arguments": 1}'),
        ('<tool_call>{"name": "a"} x</tool_call>', "", '{"name": "a"} x'),
        ("Action: two words\nAction Input: 7", "", "two words\n7"),
        ("Action: two words", "", "two words"),
        ("Action:\nAction:", "", "?"),
    ],
)
def test_a_malformed_call_keeps_what_was_written(text: str, name: str, raw: str) -> None:
    call = parse_turn(text).calls[0]
    assert (call.name, call.raw) == (name, raw) and call.error and call.arguments == {}


def test_a_half_written_call_may_be_followed_by_text_only_where_it_is_closed() -> None:
    (call,) = parse_turn('<tool_call>{"name": "a"} and so on').calls
    assert (call.name, call.error) == ("a", "")


def test_fences_hold_calls_only_where_they_look_like_one() -> None:
    call = '```json\n{"name": "a", "parameters": {"x": 1}}\n```'
    other = '```json\n{"name": "a"}\n```'
    open_ = '```json\n{"name": "a", "arguments": {}}'
    found = parse_turn(f"I look. {call} So: \\boxed{{7}} {open_}")
    assert [(call.name, call.arguments) for call in found.calls] == [("a", {"x": 1}), ("a", {})]
    assert found.answer == "7"
    assert parse_turn(other).calls == () and len(parse_turn(open_).calls) == 1
    tagged = parse_turn('```tool_call \t\n{"name": "a", "arguments": {}}\n``` Answer: 1\n\\boxed{2}')
    assert (len(tagged.calls), tagged.answer) == (1, "2")


AROUND = (
    "",
    "\n",
    "\n\n",
    " \t\nSo it is.",
    "\n```python\nprint(1)\n```\n",
    '\n```json\n{"x": 1}\n```\n',
    "\n\\boxed{7}\n",
)


@pytest.mark.parametrize("after", AROUND)
@pytest.mark.parametrize("before", AROUND)
@pytest.mark.parametrize("end", ["\n```", " ```", "\n\n  ```"])
def test_a_call_in_a_fence_is_read_whatever_stands_around_it(before: str, after: str, end: str) -> None:
    bodies = [{"name": "python", "arguments": {"code": f"print('```{n}')\n"}} for n in range(2)]
    texts = [f"```{tag}\n{json.dumps(body)}{end}" for tag, body in zip(("json", ""), bodies, strict=True)]
    parsed = parse_turn(f"I look.{before}\n{texts[0]}{after}\n{texts[1]}{after}")
    assert [{"name": call.name, "arguments": call.arguments} for call in parsed.calls] == bodies
    assert [call.raw for call in parsed.calls] == [text.partition("\n")[2][: -len("```")] for text in texts]
    assert parsed.answer == ("7" if "boxed" in before + after else None)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ['```\n{"":', '```\n{"a":1,"', '```\n{"', "```\n{ ", '```json\n{"a":[{"b":'])
def test_repeated_fences_end(piece: str) -> None:
    assert parse_turn(piece * (LONGEST // len(piece))).calls == ()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Action: a\nAction Input: 1\nFinal Answer: 5", "5"),
        ("Final Answer: 5\nAction: a", "5"),
        ("Observation: 1\nAnswer: 2", "2"),
        ("Action: a\nObservation: 1\nAnswer: 2", None),
        ("Answer: 1\nAnswer:\n", "1"),
        ("> **Final Answer** : `$7$`", "7"),
        ("* # Answer:\n\n 3 \n4", "3"),
        ("Thought: Answer: 3", None),
        ("Answer: 6 \\boxed{ }", None),
    ],
)
def test_labelled_answers_are_read_outside_of_actions(text: str, answer: str | None) -> None:
    assert parse_turn(text).answer == answer


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("```\nprint(1)\n```", {"code": "print(1)"}),
        ("```py\n a \n\n```", {"code": "a"}),
        ("``````", {"code": "``````"}),
        ("```x", {"code": "```x"}),
        ('{"code": "1"}', {"code": "1"}),
        ('{"code": "1"} x', {"code": '{"code": "1"} x'}),
        ('[{"code": "1"}]', {"code": '[{"code": "1"}]'}),
        (" ", {}),
    ],
)
def test_what_follows_an_action_is_its_input(body: str, arguments: dict[str, str]) -> None:
    (call,) = parse_turn(f"Action: `python`\nAction Input: {body}", {"python": "code"}).calls
    assert (call.name, call.arguments) == ("python", arguments)
