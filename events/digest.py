"""Which fields of a value its digest leaves out. Each field declares it, so that another value's field of the same
name, or a new one, is not left out by chance.

``calls: Annotated[tuple[ToolCallRecord, ...], NEVER] = ()``, in dataclasses and in the values of events alike.
"""

import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, is_dataclass
from json.encoder import encode_basestring_ascii
from typing import Any, cast, get_type_hints

from events.base import sha256

_ABSENT = object()


@dataclass(frozen=True)
class InDigest:
    """How a field enters the digest: as ``seen`` transforms its content."""

    seen: Callable[[Any], Any]


NEVER = InDigest(lambda held: _ABSENT)
"""Left out."""
UNLESS_EMPTY = InDigest(lambda held: held or _ABSENT)
"""Left out where it is empty: what a field must be that values of earlier versions lack, or their digests change."""


def always(content: Any) -> InDigest:
    """Declare that a field enters every digest as ``content``, whatever it holds."""
    return InDigest(lambda held: content)


def digest_of(value: object) -> str:
    """sha256 of the canonical JSON of a value made of dataclasses, pydantic values, mappings, sequences and sets."""
    if not is_dataclass(value):
        return sha256(_text(value))
    shown = cast("dict[str, object]", _plain(value))
    return sha256(_joined((name, _by_part(held)) for name, held in shown.items()))


def _text(value: object) -> str:
    """The canonical JSON of a value."""
    return json.dumps(value, sort_keys=True, default=_plain, separators=(",", ":"))


def _joined(parts: Iterable[tuple[str, str]]) -> str:
    """A JSON object of names and the JSON of what they hold."""
    return "{" + ",".join(f"{encode_basestring_ascii(name)}:{text}" for name, text in sorted(parts)) + "}"


def _by_part(held: object) -> str:
    """The JSON of a field; of a mapping to dataclasses part by part, since most are as they were at the last digest."""
    if not isinstance(held, dict) or not held or not all(map(_is_part, held, held.values())):
        return _text(held)
    return "{" + ",".join([_remembered(key, held[key]) for key in sorted(held)]) + "}"


def _is_part(key: object, held: object) -> bool:
    return isinstance(key, str) and hasattr(held, "__dataclass_fields__")


def _remembered(key: str, held: object) -> str:
    """A name and the JSON of a frozen value, known again by being the same object: it is not compared field by field.
    What is remembered holds on to the object, so no other can have its number."""
    known = _known.get(id(held))
    if known is not None and known[0] == key:
        return known[1]
    if len(_known) >= REMEMBERED:
        _known.clear()
    text = f"{encode_basestring_ascii(key)}:{_text(held)}"
    _known[id(held)] = key, text, held
    return text


_known: dict[int, tuple[str, str, object]] = {}
REMEMBERED = 4096
"""Values whose JSON is remembered; then it begins anew."""


def _plain(value: Any) -> object:
    """One level of a value for JSON; ``asdict`` would copy everything deeply first (10 times slower)."""
    if isinstance(value, frozenset):
        return sorted(value)
    shown, rules = vars(value), _rules(value.__class__)
    if rules:
        shown = shown | {name: rule.seen(shown[name]) for name, rule in rules}
        return {name: held for name, held in shown.items() if held is not _ABSENT}
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
