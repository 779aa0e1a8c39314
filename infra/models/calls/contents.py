"""What a message of a server holds: text, thoughts and native calls, whichever way its kind of server writes them.

Fields as seen on the wire: content as text or in parts (Mistral's ``thinking`` parts, OpenAI's ``text`` and
``refusal``), thoughts as ``reasoning_content`` (DeepSeek, vLLM, SGLang, llama.cpp), ``reasoning`` (OpenRouter, vLLM,
Ollama's ``/v1``) or ``thinking``; calls with arguments as text or as an object, numbered, all numbered 0, or not.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Fields and kinds of parts that hold a thought; the first of the fields that is filled counts."""
TEXTS = ("text", "output_text", "refusal")
"""Kinds of parts that hold text, and the fields of a part that may have it."""


def text_of(content: Any) -> str:
    """The text of ``content``, which is text, None, a part or several parts; thoughts are none of it.

    Raises:
        ValueError: it is nothing of the kind.
    """
    return _joined(content, thoughts=False)


def thought_of(message: Mapping[str, Any]) -> str:
    """The thought of a ``message``, from a field of its own or from the parts of its content; errors as ``text_of``."""
    for name in THOUGHTS:
        if message.get(name):
            return _within(message[name])
    content = message.get("content")
    return "" if isinstance(content, str | None) else _joined(content, thoughts=True)


def _joined(content: Any, *, thoughts: bool) -> str:
    if isinstance(content, str | None):
        return content or ""
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Sequence):
        raise ValueError("a content is text or a list of parts")
    return "".join(_part(part, thoughts) for part in content)


def _part(part: Any, thoughts: bool) -> str:
    if isinstance(part, str):
        return "" if thoughts else part
    kind = part.get("type") or "text"
    if kind in THOUGHTS or part.get("thought"):
        return _within(next((part[name] for name in (*THOUGHTS, *TEXTS) if part.get(name)), "")) if thoughts else ""
    if thoughts or kind not in TEXTS:
        return ""  # an image, a tool of the server's own
    return _within(next((part[name] for name in TEXTS if part.get(name)), ""))


def _within(value: Any) -> str:
    """The text of a part's field, which may hold parts again; of an assistant's ``{"value": …}`` that."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and "value" in value:
        return str(value["value"])
    parts = [value] if isinstance(value, Mapping) else value
    return "".join(part if isinstance(part, str) else str(part.get("text") or "") for part in parts)


@dataclass
class _CallPiece:
    id: str = ""
    name: str = ""
    arguments: str = ""

    def continues(self, id: str, name: str) -> bool:
        """Whether a piece with this id and name is one more of it, rather than another call."""
        if not name:
            return True  # whatever its id: some servers draw one for each piece
        return id == self.id if id and self.id else not _is_object(self.arguments)


@dataclass
class NativeCalls:
    """The native calls of one message as they come: whole ones of a message, or in pieces."""

    calls: list[_CallPiece] = field(default_factory=list)
    _latest: dict[int, _CallPiece] = field(default_factory=dict)

    def add(self, message: Mapping[str, Any]) -> None:
        """Read those of one more ``message`` or piece of one. Entries of one list are different calls, and another id
        is another call, however they are numbered.

        Raises:
            ValueError, TypeError, AttributeError, ArithmeticError: they are no calls.
        """
        old = message.get("function_call")  # of the API before tools
        entries = [*(message.get("tool_calls") or ()), *([{"index": -1, "function": old}] if old else [])]
        grown: list[_CallPiece] = []
        for position, entry in enumerate(entries):
            grown.append(self._add(entry, position, grown))

    def _add(self, entry: Mapping[str, Any], position: int, grown: Sequence[_CallPiece]) -> _CallPiece:
        function = entry.get("function") or entry
        id, name = str(entry.get("id") or ""), str(function.get("name") or "")
        number = int(entry["index"]) if entry.get("index") is not None else position
        call = self._latest.get(number)
        if call is None or any(call is earlier for earlier in grown) or not call.continues(id, name):
            call = _CallPiece()
            self.calls.append(call)
        self._latest[number] = call
        call.id = call.id or id
        call.name += name if name != call.name else ""  # some servers repeat it with each piece
        arguments = function.get("arguments")
        if arguments is not None:
            call.arguments += arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return call

    def pairs(self) -> list[tuple[str, str]]:
        """Name and arguments, as text, of each call in order."""
        return [(call.name, call.arguments or "{}") for call in self.calls]


def _is_object(text: str) -> bool:
    try:
        return text.rstrip().endswith("}") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
