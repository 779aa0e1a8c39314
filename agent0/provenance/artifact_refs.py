"""Which artifacts an event refers to: directly, and through artifacts that refer to others (work folders, transcripts,
progress)."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from agent0.events.values import Artifact
from agent0.tools.snapshots import MEDIA

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MENTION = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

MOST_MARKS = 1 << 21
"""Opening brackets and commas in JSON that is parsed at once. Artifacts that were written have one in 20 bytes, and
manifests of archives one in 30: a manifest of half a million artifacts, a transcript of 40 MiB or a folder of 700,000
files stay below; what is parsed takes 200 MiB at most."""


def named(value: Any) -> Iterator[Artifact]:
    """Yield every artifact in ``value``, however deep: objects with digest, size and media type."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("sha256"), str) and isinstance(node.get("size"), int) and "media" in node:
                media = node["media"] if isinstance(node["media"], str) else ""
                yield Artifact(sha256=node["sha256"], size=node["size"], media=media)
            else:
                stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)


def marks(data: bytes) -> int:
    """Count opening brackets and commas in ``data``: JSON holds no more values than that, and one. Each takes up to a
    hundred bytes of memory once parsed, whatever it takes in the text."""
    return sum(map(data.count, (b"[", b"{", b",")))


def marks_at_once(artifact: Artifact, content: bytes) -> int:
    """The most marks in what is parsed of ``content`` at once: all of it, or one line."""
    return max(map(marks, _pieces(artifact, content)), default=0)


def named_within(artifact: Artifact, content: bytes) -> Iterator[Artifact]:
    """Yield the artifacts that another one's ``content`` refers to; none where it is no JSON, or too much to parse."""
    try:
        for piece in _pieces(artifact, content):
            if marks(piece) > MOST_MARKS:
                return
            content_json = json.loads(piece)
    except (ValueError, RecursionError):
        return
    for number, piece in enumerate(_pieces(artifact, content)):
        content_json = json.loads(piece) if number or _is_lines(artifact) else content_json
        yield from (
            _files(content_json.values())
            if artifact.media == MEDIA and isinstance(content_json, dict)
            else named(content_json)
        )


def _pieces(artifact: Artifact, content: bytes) -> Iterable[bytes]:
    """What is parsed at once. One line at a time is in memory."""
    return io.BytesIO(content) if _is_lines(artifact) else (content,)


def may_name(artifact: Artifact) -> bool:
    """Whether an artifact's content can refer to others at all, by its media type."""
    return "json" in artifact.media


def mentioned(data: bytes) -> set[str]:
    """Find every sha256 digest that occurs in ``data`` as text, whatever it means there."""
    return {digest.decode() for digest in _MENTION.findall(data)}


def _is_lines(artifact: Artifact) -> bool:
    return artifact.media.endswith("jsonl")


def _files(entries: Iterable[Any]) -> Iterator[Artifact]:
    """Of a work folder's manifest: digest and size of each file."""
    for entry in entries:
        digest, size = entry if isinstance(entry, list) and len(entry) == 2 else ("", 0)
        if isinstance(digest, str) and isinstance(size, int) and _DIGEST.fullmatch(digest):
            yield Artifact(sha256=digest, size=size)
