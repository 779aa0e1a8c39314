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
    if isinstance(held, dict) and held and all(isinstance(key, str) and is_dataclass(one) for key, one in held.items()):
        return _joined((key, _remembered(_Same(one))) for key, one in held.items())
    return _text(held)


@dataclass(frozen=True, eq=False)
class _Same:
    """Equal to itself and to what holds the same object: a frozen value is not compared field by field."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@functools.lru_cache(maxsize=4096)
def _remembered(held: _Same) -> str:
    return _text(held.value)


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
