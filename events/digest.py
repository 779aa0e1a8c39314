"""Which fields of a value its digest leaves out. Each field declares it, so that another value's field of the same
name, or a new one, is not left out by chance.

``calls: Annotated[tuple[ToolCallRecord, ...], NEVER] = ()``, in dataclasses and in the values of events alike.
"""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

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
    return sha256(json.dumps(value, sort_keys=True, default=_plain, separators=(",", ":")))


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
