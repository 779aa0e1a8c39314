"""What an Ollama server does with a conversation: renders it by the model's Go template, has the model go on, and reads
native tool calls out of what it wrote.

As read in ollama/ollama (server/routes.go, template/template.go, tools/tools.go at fb30760): the model sees the
rendered prompt and nothing else; consecutive messages of one role are joined, those of tools aside; where a request
names tools, everything from the tag on is taken out of the content, whether a call can be made of it or not.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent0.chat_format import OPEN
from agent0.events.values import Turn
from tests.go_template import render

QWEN = (Path(__file__).parent / "data/templates/qwen2.5.gotmpl").read_text()
QWEN_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
"""The system message of Ollama's qwen2.5, where a conversation begins with none (its blob 66b9ea09bd5b)."""

_turn = re.compile(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|\Z)", re.S)
_response = re.compile(r"\s*<tool_response>\n(.*?)\n</tool_response>", re.S)


def rendered(body: Mapping[str, Any], template: str = QWEN, system: str = QWEN_SYSTEM) -> str:
    """The prompt of a chat request."""
    messages = [dict(message) for message in body["messages"]]
    if messages[0]["role"] != "system" and system:
        messages.insert(0, {"role": "system", "content": system})
    values = {
        "System": "\n\n".join(m["content"] for m in messages if m["role"] == "system"),
        "Messages": [_value(message) for message in _joined(messages)],
        "Tools": [{"Function": tool["function"]} for tool in body.get("tools") or ()],
    }
    return render(template, values)


def _joined(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Consecutive messages of one role as one, with the calls of the first."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"] != "tool":
            joined[-1]["content"] += "\n\n" + message["content"]
        else:
            joined.append(dict(message))
    return joined


def _value(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {"Function": {"Name": call["function"]["name"], "Arguments": call["function"]["arguments"]}}
        for call in message.get("tool_calls") or ()
    ]
    return {"Role": message["role"], "Content": message.get("content") or "", "ToolCalls": calls}


def seen(prompt: str) -> tuple[Turn, ...]:
    """What a model that knows this template takes a prompt for: its turns, but for the one that it is to write."""
    turns: list[Turn] = []
    for role, content in _turn.findall(prompt)[:-1]:
        responses = _response.findall(content) if role == "user" else []
        whole = [Turn.model_validate({"role": role, "content": content})]
        turns += [Turn(role="tool", content=text) for text in responses] or whole
    return tuple(turns)


def native(text: str, names: Sequence[str], tag: str = OPEN) -> tuple[str, list[dict[str, Any]]]:
    """Content and calls that the server makes of ``text`` where the request names tools. What follows the tag and is
    no call of one of these is nowhere."""
    content, _, rest = text.partition(tag)
    calls: list[dict[str, Any]] = []
    while found := _first(rest, names):
        name, arguments, end = found
        calls.append({"function": {"name": name, "arguments": arguments}})
        rest = rest[end:]
    return content, calls


def _first(text: str, names: Sequence[str]) -> tuple[str, dict[str, Any], int] | None:
    """The first known name in ``text`` with the arguments of the first object in it, and where both end."""
    places = [(text.find(name), -len(name), name) for name in names if name in text]
    if not places:
        return None
    start, _, name = min(places)
    for begin, end in _objects(text):
        try:
            found = json.loads(text[begin:end])
        except ValueError:
            continue
        arguments = _arguments(found, name)
        return None if arguments is None else (name, arguments, max(end, start + len(name)))
    return None


def _objects(text: str) -> list[tuple[int, int]]:
    """Where brackets outside of strings balance."""
    found, depth, begin, quoted, escaped = list[tuple[int, int]](), 0, 0, False, False
    for place, one in enumerate(text):
        if escaped or one == "\\":
            escaped = not escaped
        elif one == '"':
            quoted = not quoted
        elif one == "{" and not quoted:
            begin, depth = (begin if depth else place), depth + 1
        elif one == "}" and not quoted and depth:
            depth -= 1
            found += [] if depth else [(begin, place + 1)]
    return found


def _arguments(found: Any, name: str) -> dict[str, Any] | None:
    """Those of a call; an object that is no call is arguments as it stands."""
    keys = ("arguments", "parameters") if "name" in found else (name,)
    for key in keys:
        if isinstance(found.get(key), str):
            try:
                found[key] = json.loads(found[key])
            except ValueError:
                continue
        if isinstance(found.get(key), dict):
            return dict(found[key])
    return None if "name" in found else dict(found)
