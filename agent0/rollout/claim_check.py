"""The claim check: values above 64 KB go to the artifact store, smaller ones stay inside the event."""

import asyncio
import json
from collections.abc import Sequence
from typing import TypeVar

from agent0.events.base import Value
from agent0.events.values import Artifact, Trajectory, Turn
from agent0.ports.storage import Artifacts
from agent0.rollout.attempt import AttemptProgress

INLINE = 64_000
"""Bytes of JSON that may stand inside an event."""


V = TypeVar("V", bound=Value)


def claim(value: V | None, artifacts: Artifacts) -> tuple[V | None, Artifact | None]:
    """Store a value above 64 KB as an artifact: returns ``(value, None)`` inline or ``(None, artifact)``."""
    if value is None:
        return None, None
    body = value.model_dump_json().encode()
    return (value, None) if len(body) <= INLINE else (None, artifacts.put(body, "application/json"))


def claim_turns(turns: Sequence[Turn], artifacts: Artifacts) -> tuple[tuple[Turn, ...], Artifact | None]:
    """Store a transcript above 64 KB as an artifact; token ids are left out, they stay with the trajectory."""
    inline = tuple(turn.model_copy(update={"token_ids": ()}) for turn in turns)
    body = json.dumps([turn.model_dump() for turn in inline]).encode()
    return (inline, None) if len(body) <= INLINE else ((), artifacts.put(body, "application/json"))


def redeem(inline: Trajectory | None, stored: Artifact | None, artifacts: Artifacts) -> Trajectory | None:
    """Return the trajectory, from the event itself or from the artifact store."""
    return inline if stored is None else Trajectory.model_validate_json(artifacts.get(stored))


def redeem_turns(inline: tuple[Turn, ...], stored: Artifact | None, artifacts: Artifacts) -> tuple[Turn, ...]:
    """Return the transcript, from the event itself or from the artifact store."""
    return inline if stored is None else tuple(map(Turn.model_validate, json.loads(artifacts.get(stored))))


async def put_progress(progress: AttemptProgress, artifacts: Artifacts) -> Artifact:
    """Store an attempt's progress as an artifact, off the event loop."""
    return await asyncio.to_thread(artifacts.put, progress.model_dump_json().encode(), "application/json")


async def get_progress(stored: Artifact, artifacts: Artifacts) -> AttemptProgress:
    """Read back the progress that ``put_progress`` stored.

    Raises:
        NotFoundError, LogError: it is missing or damaged.
    """
    return AttemptProgress.model_validate_json(await asyncio.to_thread(artifacts.get, stored))
