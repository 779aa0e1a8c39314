"""Calls in the forms that models were taught or fall into, and texts that only look like them."""

import json
from pathlib import Path

import pytest

from agent0.rollout.parsing import parse_turn
from agent0.rollout.student import specs_of
from agent0.rollout.tool_prompts import toolbox

ROWS = [json.loads(line) for line in (Path(__file__).parent / "data" / "turns.jsonl").read_text().splitlines()]
TOOLS = toolbox(specs_of(("python", "sympy", "shell", "write_file")))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['kind']}: {row['text'][:40]!r}")
def test_a_turn_is_read_as_it_was_meant(row: dict[str, object]) -> None:
    parsed = parse_turn(str(row["text"]), TOOLS, form=str(row.get("form", "")))
    calls = [[call.name, None if call.error else call.arguments] for call in parsed.calls]
    assert calls == row["calls"]
    assert parsed.answer == row["answer"]
    assert bool(parsed.errors) is row["told"]


@pytest.mark.parametrize("row", [row for row in ROWS if len(row["calls"]) > 0], ids=lambda row: repr(row["text"][:40]))
def test_what_stands_before_a_call_changes_nothing(row: dict[str, object]) -> None:
    if "to=functions" in str(row["text"])[:60]:
        pytest.skip("a message of a channel begins its turn")
    before = "Let me see.\n\n"
    parsed = parse_turn(before + str(row["text"]), TOOLS, form=str(row.get("form", "")))
    assert [[call.name, None if call.error else call.arguments] for call in parsed.calls] == row["calls"]


def test_without_knowledge_of_the_tools_marked_calls_are_the_same() -> None:
    for row in ROWS:
        if row["kind"] == "marks-inside-strings" and row["calls"] and "form" not in row:
            parsed = parse_turn(row["text"], {"python": "code"})
            assert [[call.name, call.arguments] for call in parsed.calls] == row["calls"]


PIECES = (
    "<tool_call>", "<function=python>", "<parameter=code>", "<invoke name=\"a\">", "<|python_tag|>", "[TOOL_CALLS]",
    "{", "{\"a\":", "[", "python(", "name\n", "<arg_key>", "```json\n", "```\n", "Action Input: ", "Action: a\n",
    "\u273fFUNCTION\u273f: a", "<|tool_call>call:a{", "<|channel|>commentary to=a<|message|>{", "'", "\"\"\"",
    " ", "\n", "```", "<|im_start|>{", "Thought: a\n\n", "Thought:\n\ne.g.\n{'", "Never write:\n```python\n", "> ",
    "e.g.\n```python\nprint(1)\n```\n", "e.g. <tool_call>{\"name\": \"a\"}</tool_call>", "&lt;think&gt;", "Never\n",
    "Action: a\nAction Input: b\nThis is a line.\n", "<code>",
    "<longcat_arg_key>", "<longcat_tool_call>a<longcat_arg_key>",
)  # fmt: skip


@pytest.mark.timeout(60)
def test_repeated_openings_of_every_form_end() -> None:
    for piece in PIECES:
        for other in ("", "\n", "x\n", '{"name": '):
            text = (piece + other) * (4_000 // len(piece + other))
            forms = ("", "fence") if other == "\n" else ("",)
            assert all(len(parse_turn(text, TOOLS, form=form).calls) <= 16 for form in forms)
