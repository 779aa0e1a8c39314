"""Sessions of Pi (version 3), which trace viewers render: a line that begins the session, then one a message, each
naming the one before it."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent0.experiments.interchange import Document, LinkedTurn, call_id, linked_turns

ROLES = {"system": "developer", "user": "user", "assistant": "assistant", "tool": "toolResult"}


def write(row: Mapping[str, Any]) -> Iterator[Document]:
    """Write an exported attempt as the lines of one session; ``row`` is one of ``projections.trajectories``."""
    name = f"{row['run']}-{row['attempt']}"
    yield {"type": "session", "version": 3, "id": name, "timestamp": row["time"], "cwd": "/"}
    parent: str | None = None
    for number, linked in enumerate(linked_turns(row)):
        line = f"{name}-{number}"
        message = {"role": ROLES[linked.turn["role"]], "content": _blocks(linked)}
        if linked.answered:
            message |= {"toolCallId": call_id(linked.answered), "toolName": linked.answered["tool"] or "unknown"}
            message |= {"isError": linked.answered["state"] != "ok"}
        yield {"type": "message", "id": line, "parentId": parent, "timestamp": row["time"], "message": message}
        parent = line


def _blocks(linked: LinkedTurn) -> list[Document]:
    thought = linked.turn.get("thinking")
    blocks: list[Document] = [{"type": "thinking", "thinking": thought}] if thought else []
    blocks.append({"type": "text", "text": linked.turn["content"]})
    for call in linked.calls:
        name, arguments = call["tool"] or "unknown", call["arguments"] or {}
        blocks.append({"type": "toolCall", "id": call_id(call), "name": name, "arguments": arguments})
    return blocks
