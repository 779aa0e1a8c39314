"""Renders the part of Go's text/template that chat templates of Ollama's library use: if, range, variables, fields,
and, or, not, eq, ne, len, slice. Anything else is an error, so no template is rendered half right.

Values are dictionaries, lists, strings and numbers. What has no text of its own is printed as Go's JSON.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_action = re.compile(r"\{\{(- )?\s*(.*?)\s*( -)?\}\}", re.S)
_token = re.compile(r'"(?:[^"\\]|\\.)*"|[()]|[^\s()]+')


@dataclass
class _Node:
    """One action (or a text, whose ``kind`` is empty) with what lies inside it and after its ``else``."""

    kind: str
    words: str
    inside: list["_Node"] = field(default_factory=list)
    other: list["_Node"] = field(default_factory=list)


def render(template: str, values: Mapping[str, Any]) -> str:
    """The text that ``template`` makes of ``values``.

    Raises:
        ValueError: it uses what is not known here.
    """
    nodes, ended = _block(_pieces(template))
    if ended:
        raise ValueError(f"{ended} without a beginning")
    return "".join(_run(nodes, values, {"$": values}))


def go_json(value: Any) -> str:
    """``value`` as Go's encoder writes it: without spaces, keys sorted, marks of HTML escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _pieces(template: str) -> Iterator[_Node]:
    """Texts and actions in order; a dash trims the white space on its side."""
    place, trim = 0, False
    for found in _action.finditer(template):
        text = template[place : found.start()]
        text = text.lstrip() if trim else text
        yield _Node("", text.rstrip() if found[1] else text)
        kind, _, words = found[2].partition(" ")
        known = kind in ("if", "range", "else", "end")
        yield _Node(kind, words) if known else _Node("print", found[2])
        place, trim = found.end(), bool(found[3])
    yield _Node("", template[place:].lstrip() if trim else template[place:])


def _block(pieces: Iterator[_Node]) -> tuple[list[_Node], _Node | None]:
    """Nodes up to the ``else`` or ``end`` that ends them, and that one."""
    nodes: list[_Node] = []
    for node in pieces:
        if node.kind in ("else", "end"):
            return nodes, node
        if node.kind in ("if", "range"):
            node.inside, ended = _block(pieces)
            if ended and ended.kind == "else":
                node.other = _otherwise(ended.words, pieces)
        nodes.append(node)
    return nodes, None


def _otherwise(words: str, pieces: Iterator[_Node]) -> list[_Node]:
    """What follows an ``else``; ``else if`` is an ``if`` of its own that shares the ``end``."""
    if not words.startswith("if "):
        return _block(pieces)[0]
    node = _Node("if", words.removeprefix("if "))
    node.inside, ended = _block(pieces)
    if ended and ended.kind == "else":
        node.other = _otherwise(ended.words, pieces)
    return [node]


def _run(nodes: Sequence[_Node], dot: Any, names: dict[str, Any]) -> Iterator[str]:
    for node in nodes:
        match node.kind:
            case "":
                yield node.words
            case "if":
                chosen = node.inside if _value(node.words, dot, names) else node.other
                yield from _run(chosen, dot, names)
            case "range":
                yield from _range(node, dot, names)
            case _ if ":=" in node.words:
                name, _, words = node.words.partition(":=")
                names[name.strip()] = _value(words, dot, names)
            case _:
                yield _shown(_value(node.words, dot, names))


def _range(node: _Node, dot: Any, names: dict[str, Any]) -> Iterator[str]:
    declared, _, words = node.words.rpartition(":=")
    items = _value(words, dot, names) or []
    for place, item in enumerate(items):
        given = [name.strip() for name in declared.split(",") if name.strip()]
        values = (place, item) if len(given) == 2 else (item,)
        yield from _run(node.inside, item, names | dict(zip(given, values, strict=bool(given))))
    if not items:
        yield from _run(node.other, dot, names)


def _value(words: str, dot: Any, names: Mapping[str, Any]) -> Any:
    tokens = _token.findall(words)
    found = _call(tokens, dot, names)
    if tokens:
        raise ValueError(f"not understood: {words}")
    return found


def _call(tokens: list[str], dot: Any, names: Mapping[str, Any]) -> Any:
    """The value of an operand, or of a function with its operands, up to the closing bracket."""
    operands: list[Any] = []
    name = tokens.pop(0) if tokens and tokens[0] in _FUNCTIONS else ""
    while tokens and tokens[0] != ")":
        operands.append(_operand(tokens, dot, names))
    if not name and len(operands) != 1:
        raise ValueError(f"not understood: {operands} {tokens}")
    return _FUNCTIONS[name](*operands) if name else operands[0]


def _operand(tokens: list[str], dot: Any, names: Mapping[str, Any]) -> Any:
    token = tokens.pop(0)
    if token == "(":
        found = _call(tokens, dot, names)
        tokens.pop(0)
        return found
    if token.startswith('"'):
        return json.loads(token)
    if token.isdigit():
        return int(token)
    head, *fields = token.split(".")
    if head and head not in names:
        raise ValueError(f"not understood: {token}")
    found = names[head] if head else dot
    for name in filter(None, fields):
        found = (found or {}).get(name)
    return found


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else go_json(value)


def _and(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


def _or(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


_FUNCTIONS: dict[str, Any] = {
    "and": _and,
    "or": _or,
    "not": lambda value: not value,
    "eq": lambda value, other: value == other,
    "ne": lambda value, other: value != other,
    "len": len,
    "slice": lambda items, *bounds: items[slice(*bounds)] if len(bounds) == 2 else items[bounds[0] :],
}
