"""Redaction: leaves events out of an archive while its hash chain still verifies; a place and a digest remain."""

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from agent0.errors import ConfigError
from agent0.events.alarms import LOG, EventRedacted
from agent0.events.base import Recorded, effect_id, record, sha256

_KEPT = ("LogSealed", "LogContinued", "EventRedacted")
_ENVELOPE = ("run", "task", "attempt", "time", "cause", "handler", "code_rev")


Patterns = Sequence[re.Pattern[str]]
BLANK = "[redacted]"
_CODED = ("role", "state", "kind", "end")


def blanked(value: object, patterns: Patterns) -> object:
    """Return ``value``, which JSON can hold, with ``BLANK`` for all that a pattern matches in any of its texts; names
    of fields stay, and so does what is one of a few words."""
    if isinstance(value, str):
        for pattern in patterns:
            value = pattern.sub(BLANK, value)
        return value
    if isinstance(value, dict):
        return {key: each if key in _CODED else blanked(each, patterns) for key, each in value.items()}
    return [blanked(each, patterns) for each in value] if isinstance(value, list) else value


def blanked_attempt(row: dict[str, Any], patterns: Patterns) -> dict[str, Any]:
    """``blanked`` of an exported attempt; its trajectory goes where anything matched, since token ids are text, too."""
    texts = {name: value for name, value in row.items() if name != "trajectory"} if patterns else {}
    after = blanked(texts, patterns)
    assert isinstance(after, dict)  # noqa: S101 - as it came
    return row if after == texts else {**after, **({"trajectory": None} if "trajectory" in row else {})}


@dataclass(frozen=True)
class Redaction:
    """What to redact: tasks by id, and whatever a regular expression matches."""

    tasks: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, targets: Sequence[str]) -> "Redaction":
        """Read the redactions that a user asks for: each is a task's id, and a regular expression besides.

        Raises:
            ConfigError: one is empty, or no regular expression.
        """
        patterns = []
        for text in targets:
            try:
                patterns.append(re.compile(text))
            except re.error as error:
                raise ConfigError(f"--redact {text[:80]!r} is no regular expression.", f"{error}.") from error
            if patterns[-1].search(""):
                raise ConfigError(f"--redact {text[:80]!r} finds everything.", fix="Name a task, or some text.")
        return cls(frozenset(targets), tuple(patterns))

    def takes(self, raw: Mapping[str, object], body: bytes) -> frozenset[str]:
        """Which redactions match the event with this body, parsed as ``raw``; none: it stays."""
        if not self.patterns or raw.get("type") in _KEPT:
            return frozenset()
        data = raw.get("data")
        of = {raw.get("task"), data.get("cause_task") if isinstance(data, dict) else None}
        return self.tasks & (of - {None, "-"}) | self._finds(body, raw.get("data"))

    def finds(self, content: bytes) -> frozenset[str]:
        """Which redactions match an artifact's content: text, and text inside JSON."""
        try:
            parsed = json.loads(content) if self.patterns else None
        except (ValueError, RecursionError):
            parsed = None
        return self._finds(content, parsed)

    def require_found(self, matched: Set[str]) -> None:
        """Check that every redaction matched something.

        Raises:
            ConfigError: one matched nothing, so what it was meant for is still there.
        """
        for text in sorted(self.tasks - matched):
            why = "No task has that id, and no event or artifact holds such a text."
            raise ConfigError(f"--redact {text[:80]!r} finds nothing.", why, "See: agent0 task list RUN")

    def _finds(self, data: bytes, parsed: object) -> frozenset[str]:
        texts = [data.decode(errors="replace"), *_strings(parsed)]
        return frozenset(p.pattern for p in self.patterns if any(p.search(text) for text in texts))


def tombstone(raw: Mapping[str, object], body: bytes, seq: int, why: Literal["forgotten", "elsewhere"]) -> bytes:
    """The body that replaces a redacted one. Its envelope stays, so that causes are still found.

    Of a run that the archive is not about only digest and time stay.
    """
    digest = sha256(body)
    event = EventRedacted(sha256=digest, was=str(raw.get("type", "")) if why == "forgotten" else "", why=why)
    envelope = {name: raw[name] for name in _ENVELOPE if name in raw}
    id = str(raw.get("id", ""))
    if why == "elsewhere":
        envelope = {"run": LOG, "task": "-", "attempt": "-", "time": raw["time"]}
        id = effect_id(digest, "elsewhere", seq)
    head = {"id": id, "type": EventRedacted.__name__, "version": 1, **envelope}
    return json.dumps({**head, "data": event.model_dump()}, separators=(",", ":"), ensure_ascii=False).encode()


def set_aside(seq: int, body: bytes, exclusion: Recorded) -> bytes:
    """The tombstone of a body that is no event, as the ``MessageExcluded`` in ``exclusion`` describes; empty where that
    is about another body."""
    digest = sha256(body)
    if getattr(exclusion.event, "sha256", "") != digest:
        return b""
    event = EventRedacted(sha256=digest, why="aside")
    return record(event, run=LOG, time=exclusion.time, id=effect_id(exclusion.id, "aside", seq)).to_json()


def _strings(value: object) -> list[str]:
    """Every text in a JSON value, keys included."""
    out, stack = [], [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            out.append(node)
        elif isinstance(node, dict):
            stack += [*node.keys(), *node.values()]
        elif isinstance(node, list):
            stack += node
    return out
