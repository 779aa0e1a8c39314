"""A model that an Ollama on this machine has pulled: the blob that its manifest names, by the digest in that name."""

import json
import os
from functools import partial
from pathlib import Path

from agent0.errors import NotFoundError, OperationError
from agent0.infra.model_files.offers import Offer, copy
from agent0.settings.catalogue import OllamaSource

MODEL = "application/vnd.ollama.image.model"


def offer(source: OllamaSource) -> Offer:
    """Offer the weights of an Ollama's model.

    Raises:
        NotFoundError: no Ollama here has pulled it.
        OperationError: its manifest cannot be read.
    """
    folder = Path(os.environ.get("OLLAMA_MODELS") or Path.home() / ".ollama" / "models")
    name, _, tag = source.model.partition(":")
    manifest = folder / "manifests" / "registry.ollama.ai" / "library" / name / (tag or "latest")
    if not manifest.is_file():
        raise NotFoundError(
            f"No Ollama here has {source.model}.", f"There is no {manifest}.", f"ollama pull {source.model}"
        )
    try:
        layers = json.loads(manifest.read_bytes())["layers"]
        layer = next(layer for layer in layers if layer["mediaType"] == MODEL)
        digest, size = str(layer["digest"]).removeprefix("sha256:"), int(layer["size"])
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise OperationError(
            f"{manifest} cannot be read.", f"{type(error).__name__}: {error}.", "Pull it again."
        ) from error
    blob = folder / "blobs" / f"sha256-{digest}"
    if not blob.is_file():
        fix = f"Pull it again: ollama pull {source.model}"
        raise NotFoundError(f"The weights of {source.model} are missing.", f"There is no {blob}.", fix)
    return Offer(f"Ollama's {source.model}", size, digest, partial(copy, blob), is_variant=True)
