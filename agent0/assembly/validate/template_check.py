"""Part of the rim: what form of calls a chat template teaches, and whether what it writes of calls is read back."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent0.errors import OperationError
from agent0.infra.engine.folder_template import renderer, special_tokens
from agent0.infra.engine.turn_forms import Render, described_tool, rendered
from agent0.infra.weights.gguf import chat_template
from agent0.infra.weights.gguf_header import file_template
from agent0.ports.models import ToolSpec
from agent0.rollout.parsing import parse_turn
from agent0.rollout.tool_prompts import toolbox

_text = {"type": "string"}
TOOLS = (
    ToolSpec(
        "python",
        "Run a Python program.",
        {"type": "object", "properties": {"code": _text}, "required": ["code"]},
    ),
    ToolSpec(
        "write_file",
        "Write a file.",
        {
            "type": "object",
            "properties": {"path": _text, "content": _text, "lines": {"type": "integer"}, "again": {"type": "boolean"}},
            "required": ["path", "content"],
        },
    ),
    ToolSpec("list_files", "List the files.", {"type": "object", "properties": {}}),
)
Calls = Sequence[tuple[str, Mapping[str, object]]]
CONVERSATIONS: Mapping[str, tuple[str, Calls]] = {
    "a call": ("", [("python", {"code": "print(6 * 7)"})]),
    "a call after text": ("I compute the product.", [("python", {"code": "print(6 * 7)"})]),
    "quotes and line breaks": ("", [("python", {"code": 'a = "it\'s"\nfor b in a:\n    print(b)'})]),
    "backslashes": ("", [("python", {"code": "import re\nprint(re.findall(r'\\d+', 'a1'), '\\n')"})]),
    "letters beyond ASCII": ("", [("write_file", {"path": "größe.txt", "content": "π ≈ 3.14"})]),
    "a number and a truth value": ("", [("write_file", {"path": "a", "content": "b", "lines": 3, "again": True})]),
    "a text that is a number": ("", [("write_file", {"path": "a", "content": "42"})]),
    "no arguments": ("", [("list_files", {})]),
    "closing marks in a text": ("", [("python", {"code": "print('</tool_call></parameter>')"})]),
    "two calls": ("", [("python", {"code": "print(1)"}), ("python", {"code": "print(2)"})]),
}
"""What an assistant writes: text, and calls with their arguments."""
_SIGNS = (
    ("<function=…> with <parameter=…>", "<function="),
    ("<invoke> with <parameter>", "invoke name="),
    ("<arg_key> and <arg_value>", "<arg_key>"),
    ("[TOOL_CALLS]", "[TOOL_CALLS]"),
    ("channels of gpt-oss", "<|channel|>"),
    ("DeepSeek's marks", "<\uff5ctool\u2581"),
    ("Kimi's marks", "<|tool_call_begin|>"),
    ("call:name{…}", "call:python{"),
    ("[python(…)]", "python(code="),
    ("<|python_tag|>", "<|python_tag|>"),
    ("<tool_call> with JSON", "<tool_call>"),
    ("bare JSON", '"name"'),
)
"""What a written call has, and what that form is called, the first that applies."""
USER = "What is 6 * 7?"


@dataclass(frozen=True)
class TemplateReport:
    """What a template makes of calls: the ``form`` that it teaches ("": none), and of ``tried`` conversations those
    that are not ``lost`` (by name, with what became of them)."""

    form: str
    tried: int
    lost: Mapping[str, str]

    def __str__(self) -> str:
        """One line, as ``doctor`` shows it."""
        if not self.form:
            return "its chat template writes no calls; they go as text"
        read = f"its chat template writes calls as {self.form}, {self.tried - len(self.lost)} of {self.tried} read back"
        return f"{read} (not: {'; '.join(self.lost)})" if self.lost else read


def report_of(render: Render) -> TemplateReport:
    """Have a template write ten conversations, and read its calls back as a student's are."""
    lost: dict[str, str] = {}
    written = {name: _written(render, *conversation) for name, conversation in CONVERSATIONS.items()}
    form = next((form for text in written.values() if text and (form := _form(text))), "")
    for name, (_, calls) in CONVERSATIONS.items():
        if problem := _problem(written[name], calls):
            lost[name] = problem
    return TemplateReport(form, len(CONVERSATIONS), lost)


def calls_of_model(source: Path) -> str:
    """Say in one line what the chat template of a model's folder or GGUF file makes of calls; nothing where it has
    none."""
    report = report_of_model(source)
    return str(report) if report else ""


def teaches_calls(source: Path) -> bool:
    """Whether the chat template of a model's folder or GGUF file teaches a form of calls."""
    report = report_of_model(source)
    return bool(report and report.form)


def report_of_model(source: Path) -> TemplateReport | None:
    """Report on the chat template of a model's folder or GGUF file; None where it has none."""
    template, specials = (chat_template(source), special_tokens(source)) if source.is_dir() else file_template(source)
    return report_of(renderer(template, specials)) if template else None


def _written(render: Render, content: str, calls: Calls) -> str | None:
    """What the template writes of an assistant's turn, None where it refuses it."""
    tools = [described_tool(tool) for tool in TOOLS]
    user: Any = {"role": "user", "content": USER}
    for as_text in (False, True):  # most templates take arguments as objects, some as JSON text
        turn: Any = {"role": "assistant", "content": content, "tool_calls": _native(calls, as_text=as_text)}
        try:
            whole = rendered(render, [user, turn], tools, False, ("user", "assistant"))
            before = rendered(render, [user], tools, False, ("user",))
        except OperationError:
            continue
        written = whole[_common(whole, before) :]
        if as_text or not re.search(r"['\"]code['\"]: ['\"]", written) or '"code"' in written:
            return written
    return None


def _common(text: str, other: str) -> int:
    """How many letters two texts begin with alike."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(text), len(other)))


def _native(calls: Calls, *, as_text: bool) -> list[dict[str, object]]:
    return [
        {
            "id": f"call{number:05}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments) if as_text else dict(arguments)},
        }
        for number, (name, arguments) in enumerate(calls)
    ]


def _form(text: str) -> str:
    return next((form for form, sign in _SIGNS if sign in text), "")


def _problem(written: str | None, calls: Calls) -> str:
    """What became of ``calls`` that the template wrote so; empty where they are read back."""
    if written is None:
        return "the template refuses it"
    parsed = parse_turn(written, toolbox(TOOLS))
    if error := next((call.error for call in parsed.calls if call.error), ""):
        return error
    expected = [(name, dict(arguments)) for name, arguments in calls]
    if [(call.name, call.arguments) for call in parsed.calls] == expected:
        return ""
    return "no call is read" if not parsed.calls else "another call is read"
