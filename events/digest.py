"""Which fields of a value its digest leaves out. Each field declares it, so that another value's field of the same
name, or a new one, is not left out by chance.

``calls: Annotated[tuple[ToolCallRecord, ...], NEVER] = ()``, in dataclasses and in the values of events alike.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from itertools import compress, repeat
from json.encoder import encode_basestring_ascii
from operator import is_not
from typing import Any, cast, get_type_hints

from agent0.events.base import sha256

_ABSENT = object()


@dataclass(frozen=True)
class InDigest:
    """How a field enters the digest: as ``transform`` transforms its content."""

    transform: Callable[[Any], Any]


NEVER = InDigest(lambda value: _ABSENT)
"""Left out."""


NOT_EMPTY = InDigest(lambda value: value or _ABSENT)
"""Left out where it is empty, as in digests from before there was such a field."""


def always(content: Any) -> InDigest:
    """Declare that a field enters every digest as ``content``, whatever it holds."""
    return InDigest(lambda value: content)


def digest_of(value: object) -> str:
    """sha256 of the canonical JSON of a value made of dataclasses, pydantic values, mappings, sequences and sets."""
    if not is_dataclass(value):
        return sha256(_text(value))
    shown = cast("dict[str, object]", _plain(value))
    digest = hashlib.sha256()  # piece by piece: a state may be megabytes, and is never needed as one text
    for index, name in enumerate(sorted(shown)):
        digest.update(f"{',' if index else '{'}{encode_basestring_ascii(name)}:".encode())
        digest.update(_by_part(shown[name]))
    digest.update(b"}" if shown else b"{}")
    return digest.hexdigest()


def _text(value: object) -> str:
    """The canonical JSON of a value."""
    return json.dumps(value, sort_keys=True, default=_plain, separators=(",", ":"))


def _by_part(value: object) -> bytes:
    """The JSON of a field; of a mapping to dataclasses part by part, since most are as they were at the last digest."""
    if not isinstance(value, dict) or not value:
        return _text(value).encode()
    names, values = tuple(value), list(value.values())
    before, texts = _field_texts.get(names, (_NOTHING, [b""] * len(values)))
    new = list(compress(range(len(values)), map(is_not, values, before)))
    if not all(isinstance(names[index], str) and is_dataclass(values[index]) for index in new):
        return _text(value).encode()
    texts = texts.copy()
    for index in new:
        texts[index] = f"{encode_basestring_ascii(names[index])}:{_text(values[index])}".encode()
    if len(_field_texts) >= REMEMBERED:
        _field_texts.clear()
    _field_texts[names] = values, texts
    parts = dict(zip(names, texts, strict=True))
    parts_in_order = [parts[name] for name in sorted(parts)]
    return b"{%b}" % b",".join(parts_in_order)


_NOTHING = repeat(object())
"""Stands before the first digest of a mapping: nothing is the same as before."""
_field_texts: dict[tuple[object, ...], tuple[Iterable[object], list[bytes]]] = {}
"""By the names of a mapping: what it held at its last digest, and the JSON of each. Frozen values are told to be the
same by being the same object, not field by field."""
REMEMBERED = 16
"""Mappings that are remembered; then it begins anew."""


def _plain(value: Any) -> object:
    """One level of a value for JSON; ``asdict`` would copy everything deeply first (10 times slower)."""
    if isinstance(value, frozenset):
        return sorted(value)
    shown, rules = vars(value), _rules(value.__class__)
    if rules:
        shown = shown | {name: rule.transform(shown[name]) for name, rule in rules}
        return {name: content for name, content in shown.items() if content is not _ABSENT}
    return shown


@functools.cache
def _rules(kind: type) -> tuple[tuple[str, InDigest], ...]:
    """By field, for those that declare one."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (name, rule)
        for name, hint in hints.items()
        for rule in getattr(hint, "__metadata__", ())
        if isinstance(rule, InDigest)
    )
