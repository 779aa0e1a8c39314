"""Calls as objects: what JSON of the shapes that models write says of a call, and whether it can be stored."""

import re
from collections.abc import Iterator

from agent0.events.values import ToolCall
from agent0.turns.calls.spellings import read_or_why
from agent0.turns.calls.toolbox import NAME, Toolbox

DEEPEST = 32
"""Nesting of a call's arguments."""
_NAMES = ("name", "function", "tool", "tool_name", "function_name", "recipient_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "params", "kwargs", "tool_input", "action_input")
_ASIDE = frozenset(("type", "id", "call_id", "tool_call_id", "index"))
"""Fields of a call that say nothing of it."""
_PLAIN = ("tool_input", "action_input")
"""Fields whose text is the input of a tool, as LangChain's agents write it."""
_LISTS = ("tool_calls", "tool_uses", "function_calls", "calls")
_INNER = ("function", "function_call", "tool_call")
FINAL_ACTION = "final answer"
"""The action by which LangChain's agents answer."""
_surrogate = re.compile("[\ud800-\udfff]")


def calls_of(value: object, raw: str, toolbox: Toolbox) -> list[ToolCall]:
    """Read the calls that ``value`` spells; a value that is none is a call with its ``error``."""
    calls = [_call(item, raw, toolbox) for item in _single(value)]
    return calls or [ToolCall(name="", raw=raw, error="no JSON object")]


def call_of(name: str, arguments: object, raw: str, toolbox: Toolbox) -> ToolCall:
    """Make the call of tool ``name``; text for ``arguments`` is a JSON object, or the tool's one text argument."""
    name = toolbox.named(name)
    if not NAME.fullmatch(name):
        return ToolCall(name="", raw=raw, error="no valid tool name")
    if isinstance(arguments, str):
        arguments = arguments_of(name, arguments, toolbox)
    if not isinstance(arguments, dict):
        return ToolCall(name=name, raw=raw, error="arguments are no JSON object")
    if problem := _unsound(arguments):
        return ToolCall(name=name, raw=raw, error=problem)
    return ToolCall(name=name, arguments=arguments, raw=raw)


def arguments_of(name: str, text: str, toolbox: Toolbox) -> dict[str, object] | None:
    """Read ``text`` as the arguments of tool ``name``, None where it is neither an object nor text for it."""
    value = object_in(text)
    if value is not None or not text.strip():
        return value or {}
    argument = toolbox.text_arguments.get(name)
    return {argument: text} if argument and not text.lstrip().startswith("{") else None


def object_in(text: str) -> dict[str, object] | None:
    """Return ``text`` as an object, None where it is no object and nothing else."""
    text = text.strip()
    if not text.startswith("{"):
        return None
    value, end, problem = read_or_why(text)
    return value if not problem and isinstance(value, dict) and not text[end:].strip() else None


def is_call(value: object, toolbox: Toolbox) -> bool:
    """Whether ``value`` is shaped like a call and like nothing else, so that it is one without a mark."""
    if isinstance(value, list):
        return bool(value) and all(is_call(item, toolbox) for item in value)
    if not isinstance(value, dict):
        return False
    if any(isinstance(value.get(key), list) and len(value) <= 2 for key in _LISTS):
        return all(is_call(item, toolbox) for key in _LISTS for item in value.get(key, ()))
    if inner := next((value[key] for key in _INNER if isinstance(value.get(key), dict)), None):
        return len({*value} - _ASIDE) == 1 and not _is_schema(inner.get("parameters"))
    fields = {*value} - _ASIDE
    name = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((key for key in _ARGUMENTS if key in value), None)
    if name and arguments and fields == {name, arguments}:
        is_final = name == "action" and value[name].lower() == FINAL_ACTION
        is_text = arguments in _PLAIN and isinstance(value[arguments], str)
        return not is_final and (is_text or _are_arguments(value[arguments], toolbox.named(value[name]), toolbox))
    if name and not arguments and toolbox.named(value[name]) in toolbox.names:
        return {*toolbox.types.get(toolbox.named(value[name]), ())} >= fields - {name} != set()
    return len(fields) == 1 and {*fields} <= toolbox.names and isinstance(value[next(iter(fields))], dict)


def _are_arguments(value: object, name: str, toolbox: Toolbox) -> bool:
    """Whether ``value`` may be arguments; a schema of them describes a tool and calls none."""
    if isinstance(value, str):
        return name in toolbox.names or object_in(value) is not None
    return isinstance(value, dict) and not _is_schema(value)


def _is_schema(value: object) -> bool:
    return isinstance(value, dict) and {"properties", "type"} <= {*value} and value["type"] == "object"


def _single(value: object, room: int = 4) -> Iterator[object]:
    """What is a single call in ``value``, out of lists and envelopes."""
    if isinstance(value, list) and room:
        for item in value:
            yield from _single(item, room - 1)
        return
    fields = value if isinstance(value, dict) and room else {}
    envelopes = [(key, list) for key in _LISTS] + [(key, dict) for key in _INNER]
    if inner := next((key for key, kind in envelopes if isinstance(fields.get(key), kind)), ""):
        yield from _single(fields[inner], room - 1)
        return
    yield value


def _call(value: object, raw: str, toolbox: Toolbox) -> ToolCall:
    if not isinstance(value, dict):
        return ToolCall(name="", raw=raw, error="no JSON object")
    if (field := next((key for key in _NAMES if isinstance(value.get(key), str)), None)) is None:
        only = next(iter(value)) if len(value) == 1 else ""
        is_tool = only in toolbox.names and isinstance(value[only], dict)  # a call whose one key is the tool
        return call_of(only if is_tool else "", value[only] if is_tool else {}, raw, toolbox)
    tool = toolbox.named(name := value[field])
    key = next((key for key in _ARGUMENTS if key in value and key not in toolbox.types.get(tool, ())), None)
    beside = {key: inner for key, inner in value.items() if key != field and key not in _ASIDE}
    arguments = value[key] if key else beside
    if _is_schema(arguments):
        return ToolCall(name="", raw=raw, error="a tool is described, not called")
    if key in _PLAIN and isinstance(arguments, str) and arguments_of(tool, arguments, toolbox) is None:
        arguments = {"input": arguments}
    return call_of(name, {} if arguments is None else arguments, raw, toolbox)


def _unsound(value: object, room: int = DEEPEST) -> str:
    """Why ``value`` could not be stored as JSON text, empty where it could."""
    if isinstance(value, str):
        return "half a surrogate pair in a string" if _surrogate.search(value) else ""
    if not isinstance(value, dict | list):
        return ""
    if not room:
        return "nested too deeply"
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return next((problem for item in inner if (problem := _unsound(item, room - 1))), "")
