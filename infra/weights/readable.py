"""Whether a model's folder can be loaded, as far as that is known without loading it: all weights are there and whole,
they have the sizes that its config.json names, and its tokenizer can be read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent0.errors import RequirementsError

INDEX = "model.safetensors.index.json"
AGAIN = "Download or save the model again; a download that was broken off is the usual reason."
_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


def check_readable(folder: Path) -> None:
    """Look at the headers of the weights and at the tokenizer in ``folder``.

    Raises:
        RequirementsError: it cannot be loaded.
    """
    sizes = dict(_sizes(folder))
    if (folder / INDEX).is_file():
        _check_listed(folder, sizes)
    if sizes:  # a folder of a served model has its tokenizer alone
        _check_config(folder, sizes)
    _check_tokenizer(folder)


def _sizes(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """(name, shape) of every tensor; a file's header must fit its length."""
    from safetensors import SafetensorError, safe_open

    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, "numpy") as held:
                yield from ((name, held.get_slice(name).get_shape()) for name in held.keys())  # noqa: SIM118 - no dict
        except (SafetensorError, OSError) as error:
            raise _unreadable(f"The weights {file} cannot be read.", error) from error


def _check_listed(folder: Path, sizes: dict[str, list[int]]) -> None:
    listed = _json(folder / INDEX).get("weight_map", {})
    if missing := sorted({file for name, file in listed.items() if name not in sizes}):
        why = f"{INDEX} lists tensors in {', '.join(missing[:3])} that are not there."
        raise RequirementsError(f"The weights in {folder} are not complete.", why, AGAIN)


def _check_config(folder: Path, sizes: dict[str, list[int]]) -> None:
    """Compare the embeddings and the number of layers with config.json, where it names them."""
    config = _json(folder / "config.json")
    embeddings = next((shape for name, shape in sizes.items() if name.endswith("embed_tokens.weight")), None)
    layers = len({found[1] for name in sizes if (found := _LAYER.search(name))}) or None
    pairs = (
        ("vocab_size", embeddings and embeddings[0]),
        ("hidden_size", embeddings and embeddings[1]),
        ("num_hidden_layers", layers),
    )
    for name, held in pairs:
        if None not in (held, said := config.get(name)) and held != said:
            why = f"{name} is {said} in config.json, and {held} in the weights."
            raise RequirementsError(f"config.json and weights in {folder} are of two models.", why, AGAIN)


def _check_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer

    if (path := folder / "tokenizer.json").is_file():
        try:
            Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise _unreadable(f"The tokenizer {path} cannot be read.", error) from error


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _unreadable(f"{path} cannot be read.", error) from error
    return found


def _unreadable(what: str, error: Exception) -> RequirementsError:
    return RequirementsError(what, f"{type(error).__name__}: {str(error).rstrip('.')}.", AGAIN)
