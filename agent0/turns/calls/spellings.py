r"""Reads an object as language models spell it: JSON, else JSON with the marks of Python and JavaScript.

Nothing is repaired. A spelling beside JSON is read where Python and JavaScript would read it alike: raw line breaks in
strings, strings in ``'``, in triple quotes or in ``“ ”``, keys without quotes, comments, trailing commas, ``True`` and
``None``. Escapes are those of JSON. Each string, word and mark is written as JSON, which ``json`` then parses. (The
package ``json5`` takes 40 to 300 microseconds a character, knows neither ``None`` nor triple quotes, and reads ``\(``
as ``(``.)
"""

import json
import math
import re
from typing import Any

DEEPEST = 32

_token = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)
    |(?P<triple>\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3})
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|“(?:[^“”\\]|\\.)*”)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>[-+.\d][-+.\w]*)
    |(?P<mark>[{}\[\]:,])""",
    re.S | re.X,
)
_inside = re.compile(r"""\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\'|\\.|\\|\"""", re.S)
_colon = re.compile(r"\s*:")
_mark = re.compile("\\s*(?:<[/|\uff5c]|```|\\[/)")
_CLOSING = {"{": "}", "[": "]"}
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}


def read_object(text: str, start: int) -> tuple[Any, int] | None:
    """Read the object or list that opens at ``start``; returns (value, end), or None where it cannot be read.

    An object that has a key twice cannot: it says two things.
    """
    value, end, problem = read_or_why(text, start)
    return None if problem else (value, end)


def read_or_why(text: str, start: int = 0, *, unclosed: bool = False) -> tuple[Any, int, str]:
    """Read the object or list that opens at ``start``; returns (value, end, what is wrong as JSON).

    ``unclosed``: closing brackets that lack at the end of ``text``, or before a mark, are added.
    """
    try:
        return *_decoder.raw_decode(text, start), ""
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]
    try:
        tokens, end = _tokens(text, start, unclosed)
        return _decoder.decode(" ".join(tokens)), end, ""
    except (ValueError, RecursionError):
        return None, start, problem or "no object"


def _tokens(text: str, start: int, unclosed: bool) -> tuple[list[str], int]:
    """The object at ``start`` as tokens of JSON, and where it ends.

    Raises:
        ValueError: there is a token that JSON has no word for, or no end.
    """
    tokens: list[str] = []
    closings: list[str] = []
    position = start
    while token := _token.match(text, position):
        kind, written, position = str(token.lastgroup), token[0], token.end()
        if kind == "space":
            continue
        _drop_comma(tokens, written)
        _nest(closings, written)
        tokens.append(_as_json(kind, written, text, position))
        if not closings:
            return tokens, position
    if unclosed and _may_end(tokens, closings, text, position):
        return [*tokens, *reversed(closings)], position
    raise ValueError("no end")


def _may_end(tokens: list[str], closings: list[str], text: str, position: int) -> bool:
    """Whether nothing but closing brackets lacks at ``position``: a value ends there, and a mark follows, or the text
    ends and no field but the first may lack."""
    if not closings or tokens[-1] in (",", ":", "{", "["):
        return False
    is_deep = len(closings) > 1 or not {"}", "]"}.isdisjoint(tokens)
    return bool(_mark.match(text, position)) or (is_deep and not text[position:].strip())


def _drop_comma(tokens: list[str], following: str) -> None:
    """Take away a comma before a closing bracket."""
    if following in ("}", "]") and tokens and tokens[-1] == ",":
        tokens.pop()


def _nest(closings: list[str], written: str) -> None:
    """Keep the brackets that must still close. Raises ValueError where another one does, or too many are open."""
    if written in _CLOSING:
        closings.append(_CLOSING[written])
    elif written in ("}", "]") and (not closings or closings.pop() != written):
        raise ValueError("another bracket is open")
    if len(closings) > DEEPEST:
        raise ValueError("nested too deeply")


def _as_json(kind: str, written: str, text: str, end: int) -> str:
    """One token as JSON. A word before a colon is a key."""
    if kind in ("string", "triple"):
        quotes = 3 if kind == "triple" else 1
        return f'"{_inside.sub(_escaped, written[quotes:-quotes])}"'
    if kind == "word":
        return f'"{written}"' if _colon.match(text, end) else _constant(written)
    return written


def _constant(constant: str) -> str:
    if constant not in _WORDS:
        raise ValueError(f"{constant[:40]} is no constant")
    return _WORDS[constant]


def _escaped(escape: re.Match[str]) -> str:
    written = escape[0]
    if written in ('"', "\\'"):
        return {'"': '\\"', "\\'": "'"}[written]
    if len(written) < 2 or written[1] not in '"\\/bfnrtu' or written == "\\u":
        raise ValueError("an escape that is read in two ways")
    return written


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The pairs as a dictionary.

    Raises:
        ValueError: a key is there twice.
    """
    if len(fields := dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return fields


def _finite(literal: str) -> float:
    if math.isfinite(number := float(literal)):
        return number
    raise ValueError("number out of range")


def _no_constant(literal: str) -> None:
    raise ValueError(f"{literal} is no JSON")


_decoder = json.JSONDecoder(strict=False, object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant)
