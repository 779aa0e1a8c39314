r"""Reads an object as language models spell it: JSON, else JSON with the marks of Python and JavaScript.

Nothing is repaired. A spelling beside JSON is read where Python and JavaScript would read it alike: raw line breaks in
strings, strings in ``'``, in triple quotes or in ``“ ”``, keys without quotes, comments, trailing commas, ``True`` and
``None``. Escapes are those of JSON. Each string, word and mark is written as JSON, which ``json`` then parses. (The
package ``json5`` takes 40 to 300 microseconds a character, knows neither ``None`` nor triple quotes, and reads ``\(``
as ``(``.)
"""

import json
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
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}


def read_object(text: str, start: int) -> tuple[Any, int] | None:
    """Read the object or list that opens at ``start``; returns (value, end), or None where it cannot be read.

    An object that has a key twice cannot: it says two things.
    """
    try:
        return _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    try:
        tokens, end = _tokens(text, start)
        return _decoder.decode(" ".join(tokens)), end
    except (ValueError, RecursionError):
        return None


def _tokens(text: str, start: int) -> tuple[list[str], int]:
    """The object at ``start`` as tokens of JSON, and where it ends.

    Raises:
        ValueError: there is a token that JSON has no word for, or no end.
    """
    found: list[str] = []
    depth, place = 0, start
    while token := _token.match(text, place):
        kind, said, place = str(token.lastgroup), token[0], token.end()
        if kind == "space":
            continue
        if said in ("}", "]") and found and found[-1] == ",":
            found.pop()
        found.append(_as_json(kind, said, text, place))
        depth += (said in ("{", "[")) - (said in ("}", "]"))
        if not depth:
            return found, place
        if depth > DEEPEST:
            break
    raise ValueError("no end, or nested too deeply")


def _as_json(kind: str, said: str, text: str, end: int) -> str:
    """One token as JSON. A word before a colon is a key."""
    if kind in ("string", "triple"):
        quotes = 3 if kind == "triple" else 1
        return f'"{_inside.sub(_escaped, said[quotes:-quotes])}"'
    if kind == "word":
        return f'"{said}"' if _colon.match(text, end) else _constant(said)
    return said


def _constant(word: str) -> str:
    if word not in _WORDS:
        raise ValueError(f"{word[:40]} is no constant")
    return _WORDS[word]


def _escaped(found: re.Match[str]) -> str:
    said = found[0]
    if said in ('"', "\\'"):
        return {'"': '\\"', "\\'": "'"}[said]
    if len(said) < 2 or said[1] not in '"\\/bfnrtu' or said == "\\u":
        raise ValueError("an escape that is read in two ways")
    return said


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as a dictionary.

    Raises:
        ValueError: a key is there twice.
    """
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return found


_decoder = json.JSONDecoder(strict=False, object_pairs_hook=_once)
