"""What stands between the marks of calls: JSON, a name before JSON, parameters in tags, or an expression of Python.

A reader returns the calls that begin at a position and where they end, None where nothing of its kind begins there.
"""

import ast
import json
import re
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from agent0.events.values import ToolCall
from agent0.turns.calls.objects import call_of, calls_of, is_call
from agent0.turns.calls.spellings import read_or_why
from agent0.turns.calls.toolbox import Toolbox

Body = tuple[list[ToolCall], int]
MOST = 64
"""Calls of one body."""

_name = r"(?P<name>[\w.-]{1,64}(?::\d{1,4})?)"
_space = re.compile(r"\s*")
_between = re.compile(r"[\s,;]*")
_fence_open = re.compile(r"\s*```[a-z_]{0,12}[ \t]*\n\s*")
_fence_close = re.compile(r"[\s}\]]*```")
_plain_value = re.compile(r"-?\d+(?:\.\d+)?|true|false|null|\{.*\}|\[.*\]", re.DOTALL)
_named = re.compile(
    rf"(?:function\s{{0,9}}<\uff5ctool\u2581sep\uff5c>\s{{0,9}})?{_name}\s{{0,9}}"
    r"(?:<[^<>\n]{1,40}>|\[CALL_ID\]\w{1,40}\[ARGS\]|\[ARGS\]|\n|:|(?=\{))\s{0,9}(?:```(?:json)?\s{0,9}\n\s{0,9})?(?=\{)"
)
_arg = "(?:[a-z]{1,20}_)?arg"
_keyed = re.compile(rf"{_name}\s*(?=<{_arg}_key>)")
_key_end = re.compile(rf"</{_arg}_value>(?=\s*(?:<{_arg}_key>|</|\Z))|\Z")
SPACE = "(?:[|\uff5c]?[A-Za-z]{1,20}[:|\uff5c])?"
"""A name space before a tag: ``minimax:``, DeepSeek's ``\uff5cDSML\uff5c``."""
_call_tag, _tag = f"{SPACE}(?:function(?:_call)?|invoke|tool|action)", f"{SPACE}(?:parameter|param|argument)"
_is = r"(?:=|\s+name\s*=\s*)[\"']?"
_function = re.compile(rf"\s*<{_call_tag}{_is}{_name}[\"']?\s*>")
_parameter = re.compile(
    rf"\s*(?:<{_tag}{_is}(?P<argument>[\w.-]{{1,64}})[\"']?(?P<aside>\s[^<>]{{0,80}})?>"
    rf"|<{_arg}_key>\s{{0,9}}(?P<key>[^<\s]{{1,64}})\s{{0,9}}</{_arg}_key>\s{{0,9}}<{_arg}_value>)"
)
_is_text = re.compile(r"\bstring\s?=\s?[\"']?true")
_parameter_end = re.compile(rf"</{_tag}>(?=\s*(?:<{_tag}\b|</{_call_tag}\b|\Z))")
_any_parameter_end = re.compile(f"</{_tag}>")
_function_end = re.compile(rf"\s*</{_call_tag}>")
_expression = re.compile(r"\[?\s*(?P<name>[A-Za-z_][\w.]{0,63})\s*\(")
_python_token = re.compile(r"(?s)\"{3}.*?\"{3}|'{3}.*?'{3}|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[()\[\]{}]")
_unescaped = re.compile(
    r"(?s)\[?(?P<name>[A-Za-z_][\w.]{0,63})\((?P<key>[A-Za-z_]\w{0,63})=(?P<quote>[\"'])(?P<text>.*)(?P=quote)\)\]?"
)
_second = re.compile(r"[\"']\s{0,9},\s{0,9}\w{1,64}\s{0,9}=\s{0,9}[\"'\d\[{TFN]")
_mark = re.compile(r"<\|?/?\w{1,40}\|?>\s*\Z|<\|\w{1,40}\|>")
_braced = re.compile(rf"call:{_name}(?=\{{)")
_braced_end = re.compile(r"<tool_call\|>|<end_function_call>|\Z")
_quoted = re.compile(r"(<\|\"\|>|<escape>)(.*?)\1", re.DOTALL)


class CallSpan(NamedTuple):
    """The ``calls`` that a text writes from ``start`` to ``end``; none where what stands there is neither a call nor
    prose, as a closing mark and all behind an output that the text makes up."""

    start: int
    end: int
    calls: list[ToolCall]


def outside(text: str, spans: Sequence[CallSpan]) -> str:
    """Return ``text`` with a line break in the place of each of ``spans``, which are in order."""
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    return "\n".join(text[end:start] for end, start in zip([0, *ends], [*starts, len(text)], strict=True))


def with_raw(calls: list[ToolCall], raw: str) -> list[ToolCall]:
    """Return a single call with all that was written of it, several as they are."""
    return [calls[0].model_copy(update={"raw": raw})] if len(calls) == 1 else calls


def read_body(text: str, position: int, toolbox: Toolbox) -> Body | None:
    """Read the calls that begin at ``position`` of ``text``, in whichever way they are written."""
    if fence := _fence_open.match(text, position):
        position = fence.end()
    position = skipped(_space, text, position)
    for read in (json_calls, parameter_calls, named_calls, braced_calls, expression_calls):
        if body := read(text, position, toolbox):
            closing = _fence_close.match(text, body[1]) if fence else None
            return (body[0], closing.end()) if closing else body
    return None


def json_calls(text: str, position: int, toolbox: Toolbox, *, shaped: bool = False) -> Body | None:
    """Objects or lists of them, one behind the other; ``shaped``: those shaped like calls, however many."""
    calls: list[ToolCall] = []
    end = position
    while (shaped or len(calls) < MOST) and text[position : position + 1] in ("{", "["):
        value, after, problem = read_or_why(text, position, unclosed=True)
        if problem or (shaped and not is_call(value, toolbox)):
            break
        calls += calls_of(value, text[position:after], toolbox)
        end = after
        position = skipped(_between, text, end)
    return (calls, end) if calls else None


def named_calls(text: str, position: int, toolbox: Toolbox) -> Body | None:
    """The tool's name before an object of its arguments: DeepSeek, Kimi, Mistral, GLM-4."""
    head = _named.match(text, position)
    if not head:
        return None
    value, end, problem = read_or_why(text, head.end(), unclosed=True)
    if problem:
        return None
    if closing := _fence_close.match(text, end):
        end = closing.end()
    return [call_of(head["name"], value, text[position:end], toolbox)], end


def parameter_calls(text: str, position: int, toolbox: Toolbox) -> Body | None:
    """The tool's name and a tag for each argument: in a tag of its own Qwen3-Coder, Nemotron 3, MiniMax, Claude; alone,
    before tags of keys and values, GLM 4.5 and LongCat."""
    head = _function.match(text, position) or _keyed.match(text, position)
    if not head:
        return None
    name, pairs, end = toolbox.named(head["name"]), list[tuple[str, object]](), head.end()
    while parameter := _parameter.match(text, end):
        key = parameter["key"] or parameter["argument"]
        inner_end, end = _end_of_parameter(text, parameter.end(), is_keyed=bool(parameter["key"]))
        written = text[parameter.end() : inner_end]
        is_text = bool(_is_text.search(parameter["aside"] or ""))
        pairs.append((key, written if is_text else argument_value(name, key, written, toolbox)))
    start = skipped(_space, text, end)
    value: object = None
    if not pairs and text.startswith("{", start):
        value, after, problem = read_or_why(text, start, unclosed=True)
        end = end if problem else after
    end = skipped(_function_end, text, end)
    raw = text[position:end]
    if len({key for key, _ in pairs}) < len(pairs):
        return [ToolCall(name=name, raw=raw, error="an argument is there twice")], end
    return [call_of(name, dict(pairs) if value is None else value, raw, toolbox)], end


def _end_of_parameter(text: str, start: int, *, is_keyed: bool) -> tuple[int, int]:
    """Where the value of a parameter ends, and its closing tag: one that another tag of the call follows."""
    ends = (_key_end,) if is_keyed else (_parameter_end, _any_parameter_end)
    if closing := next(filter(None, (end.search(text, start) for end in ends)), None):
        return closing.span()
    closing = _function_end.search(text, start)
    end = closing.start() if closing else len(text)
    return end, end


def braced_calls(text: str, position: int, toolbox: Toolbox) -> Body | None:
    """Read calls as Gemma 4 writes them, ``call:name{key:<|"|>text<|"|>}``, or FunctionGemma, with ``<escape>``."""
    head = _braced.match(text, position)
    ending = _braced_end.search(text, head.end()) if head else None
    if not head or not ending:
        return None
    end = ending.start()
    body = _quoted.sub(lambda quoted: json.dumps(quoted[2], ensure_ascii=False), text[head.end() : end])
    value, _, problem = read_or_why(body, unclosed=True)
    return None if problem else ([call_of(head["name"], value, text[position:end], toolbox)], end)


def expression_calls(text: str, position: int, toolbox: Toolbox) -> Body | None:
    """A call as Python writes it, or a list of such: ``[python(code="print(1)")]``. Nothing is evaluated."""
    if not _expression.match(text, position):
        return None
    end = _end_of_expression(text, position)
    body = _parsed_expression(text, position, end, toolbox) if end else None
    return body or _unescaped_call(text, position, toolbox)


def _unescaped_call(text: str, position: int, toolbox: Toolbox) -> Body | None:
    """A call with one text that stands between quotation marks as it is, before a mark: not all templates escape."""
    mark = _mark.search(text, position)
    call = _unescaped.fullmatch(text, position, mark.start()) if mark else None
    if mark is None or call is None or _second.search(call["text"]):
        return None
    return [call_of(call["name"], {call["key"]: call["text"]}, call[0], toolbox)], mark.start()


def _parsed_expression(text: str, position: int, end: int, toolbox: Toolbox) -> Body | None:
    """The calls of the expression that ends at ``end``, None where it is none or has other than literals."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text[position:end].strip(), mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List) else [tree]
        calls = [_of_node(node, text[position:end], toolbox) for node in nodes]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return (calls, end) if calls else None


def _end_of_expression(text: str, position: int) -> int | None:
    """Where the brackets that open at ``position`` are all closed."""
    depth = 0
    while token := _python_token.search(text, position):
        position = token.end()
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
            if depth <= 0:
                return position if depth == 0 else None
    return None


def _of_node(node: ast.expr, raw: str, toolbox: Toolbox) -> ToolCall:
    """The call that an expression is; raises ValueError where its arguments are no literals."""
    if not isinstance(node, ast.Call) or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("no call")
    name = toolbox.named(ast.unparse(node.func))
    arguments: dict[str, object] = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    if node.args:
        argument = toolbox.text_arguments.get(name)
        if argument is None or len(node.args) > 1 or arguments:
            raise ValueError("arguments without names")
        arguments = {argument: ast.literal_eval(node.args[0])}
    return call_of(name, arguments, raw, toolbox)


def argument_value(tool: str, argument: str, text: str, toolbox: Toolbox) -> object:
    """What ``text`` between tags, on lines of its own or not, says: itself where the argument is text, or may be, else
    the JSON that it is."""
    text = text[1:].removesuffix("\n") if text.startswith("\n") else text
    is_text = toolbox.is_text(tool, argument)
    if is_text or (is_text is None and not _plain_value.fullmatch(text.strip())):
        return text
    value, end, problem = read_or_why(text.strip())
    return text if problem or end < len(text.strip()) else value


def skipped(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return where ``text`` goes on behind ``pattern`` at ``position``."""
    match = pattern.match(text, position)
    return match.end() if match else position
