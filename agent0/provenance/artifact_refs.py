"""Which artifacts an event refers to: directly, and through artifacts that refer to others (work folders, transcripts,
progress)."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from agent0.tools.snapshots import MEDIA
from events.values import Artifact

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MENTION = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def named(value: Any) -> Iterator[Artifact]:
    """Yield every artifact in ``value``, however deep: objects with digest, size and media type."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            if isinstance(one.get("sha256"), str) and isinstance(one.get("size"), int) and "media" in one:
                media = one["media"] if isinstance(one["media"], str) else ""
                yield Artifact(sha256=one["sha256"], size=one["size"], media=media)
            else:
                stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)


def named_within(artifact: Artifact, content: bytes) -> Iterator[Artifact]:
    """Yield the artifacts that another one's ``content`` refers to; none where it is no JSON."""
    try:
        told = [json.loads(line) for line in content.splitlines()] if _is_lines(artifact) else json.loads(content)
    except (ValueError, RecursionError):
        return
    if artifact.media == MEDIA and isinstance(told, dict):
        yield from _files(told.values())
    else:
        yield from named(told)


def may_name(artifact: Artifact) -> bool:
    """Whether an artifact's content can refer to others at all, by its media type."""
    return "json" in artifact.media


def mentioned(data: bytes) -> set[str]:
    """Find every sha256 digest that occurs in ``data`` as text, whatever it means there."""
    return {found.decode() for found in _MENTION.findall(data)}


def _is_lines(artifact: Artifact) -> bool:
    return artifact.media.endswith("jsonl")


def _files(entries: Iterable[Any]) -> Iterator[Artifact]:
    """Of a work folder's manifest: digest and size of each file."""
    for entry in entries:
        digest, size = entry if isinstance(entry, list) and len(entry) == 2 else ("", 0)
        if isinstance(digest, str) and isinstance(size, int) and _DIGEST.fullmatch(digest):
            yield Artifact(sha256=digest, size=size)
