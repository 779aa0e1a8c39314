"""The manifest of a checkpoint: which events, with which weights, under which recipe, from which parent."""

import json
from collections.abc import Mapping

from agent0.events.base import sha256
from agent0.events.checkpoints import TrainingRequested
from agent0.ports.training import TrainingExample
from agent0.training.selection import DatasetSelection

NOTED = ("checkpoint", "parent", "parent_adapter", "dataset", "seed", "recipe")
"""What an adapter says of itself; ``lineage`` is the digest of these."""


def manifest(chosen: DatasetSelection, request: TrainingRequested, recipe: Mapping[str, object]) -> dict[str, object]:
    """The manifest of a training: everything that its adapter follows from.

    ``events`` are ids: first those of ``samples`` (each with its advantage, upper clip and weight), then those
    replayed, then those that samples are preferred ``over``, where they are pairs. ``examples`` names each training
    example by the event it was made from, the digest of its text and its weight. No run is named, so equal datasets
    have equal manifests.
    """
    content: dict[str, object] = {
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
        content["over"] = list(chosen.over)
    if chosen.examples:
        content["examples"] = [[example.event, example_sha(example), example.weight] for example in chosen.examples]
    return content


def example_sha(example: TrainingExample) -> str:
    """Return the SHA-256 of a training example: of its turns, as JSON."""
    return sha256(canonical([turn.model_dump(mode="json") for turn in example.turns]))


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no spaces, so that equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def dataset_sha(manifest: Mapping[str, object]) -> str:
    """Digest of a manifest without ``until``, the bound of reading, which does not change what was read."""
    return sha256(canonical({key: value for key, value in manifest.items() if key != "until"}))


def adapter_metadata(request: TrainingRequested, recipe: Mapping[str, object], dataset: str) -> dict[str, str]:
    """The metadata that an adapter carries: its inputs by digest, and the digest of these (``lineage``)."""
    inputs = {
        "checkpoint": request.checkpoint,
        "parent": request.parent,
        "parent_adapter": request.parent_adapter.sha256 if request.parent_adapter else "",
        "dataset": dataset,
        "seed": str(request.seed),
        "recipe": canonical(dict(recipe)).decode(),
    }
    return {**inputs, "lineage": lineage_of(inputs)}


def lineage_of(metadata: Mapping[str, str]) -> str:
    """The ``lineage`` digest that an adapter with this metadata must carry."""
    return sha256(canonical({key: metadata.get(key, "") for key in NOTED}))
