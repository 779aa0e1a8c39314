"""Exactly what a checkpoint is made of: which events, with which weights, under which recipe, from which parent."""

import json
from collections.abc import Mapping
from typing import Any

from agent0.ports.training import Lesson
from agent0.training.selection import Selection
from events.base import sha256
from events.checkpoints import TrainingRequested

NOTED = ("checkpoint", "parent", "parent_adapter", "dataset", "seed", "recipe")
"""What an adapter says of itself; ``lineage`` is the digest of these."""


def manifest(chosen: Selection, request: TrainingRequested, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Everything the adapter follows from. ``events`` are ids: first those of ``samples`` (each with its advantage,
    upper clip and weight), then those replayed, then those that samples are preferred ``over``, where they are pairs.
    ``lessons`` are named by the event each was made from, the digest of its text and its weight. No run is named, so
    equal datasets are equal anywhere."""
    told: dict[str, Any] = {
        "role": request.role,
        "events": list(chosen.used),
        "samples": [[s.advantage, s.clip_high, s.weight] for s in chosen.samples],
        "replayed": len(chosen.replay),
        "until": request.until,
        "seed": request.seed,
        "recipe": dict(recipe),
        "parent_adapter": request.parent_adapter.sha256 if request.parent_adapter else "",
    }
    if chosen.over:
        told["over"] = list(chosen.over)
    if chosen.lessons:
        told["lessons"] = [[lesson.event, lesson_sha(lesson), lesson.weight] for lesson in chosen.lessons]
    return told


def lesson_sha(lesson: Lesson) -> str:
    """Digest of what a lesson says, and of which part of it is learned where that is not all."""
    said = [turn.model_dump(mode="json") for turn in lesson.turns]
    return sha256(canonical(said if lesson.learned is None else [said, lesson.learned, lesson.closed]))


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no spaces: equal values, equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def dataset_sha(told: Mapping[str, Any]) -> str:
    """Digest of a manifest but for where reading ended, which says nothing of what was read."""
    return sha256(canonical({key: value for key, value in told.items() if key != "until"}))


def note(request: TrainingRequested, recipe: Mapping[str, Any], dataset: str) -> dict[str, str]:
    """What the adapter carries: its inputs by digest, and the digest of these."""
    told = {
        "checkpoint": request.checkpoint,
        "parent": request.parent,
        "parent_adapter": request.parent_adapter.sha256 if request.parent_adapter else "",
        "dataset": dataset,
        "seed": str(request.seed),
        "recipe": canonical(dict(recipe)).decode(),
    }
    return {**told, "lineage": lineage_of(told)}


def lineage_of(told: Mapping[str, str]) -> str:
    """The digest that an adapter with this note must carry."""
    return sha256(canonical({key: told.get(key, "") for key in NOTED}))
