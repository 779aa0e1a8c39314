"""Whether a model's folder can be loaded, as far as that is known without loading it: all weights are there and whole,
they have the sizes that its config.json names, and its tokenizer can be read."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent0.errors import RequirementsError

INDEX = "model.safetensors.index.json"
AGAIN = "Download or save the model again; a download that was broken off is the usual reason."
PLAIN = ("qwen2", "qwen3", "llama", "mistral")
"""Whose checkpoints name their tensors as transformers does; others are renamed or joined as they are loaded."""


def check_readable(folder: Path) -> None:
    """Look at the headers of the weights and at the tokenizer in ``folder``.

    Raises:
        RequirementsError: it cannot be loaded.
    """
    sizes = dict(_sizes(folder))
    if (folder / INDEX).is_file():
        _check_listed(folder, sizes)
    if sizes and "quantization_config" not in _json(folder / "config.json"):
        _check_model(folder, sizes)  # of a served model there may be its tokenizer alone
    _check_tokenizer(folder, sizes)


def _sizes(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """(name, shape) of every tensor; a file's header must fit its length."""
    from safetensors import SafetensorError, safe_open

    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, "numpy") as tensors:
                yield from ((name, tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118 - no dict
        except (SafetensorError, OSError) as error:
            raise _unreadable(f"The weights {file} cannot be read.", error) from error


def _check_listed(folder: Path, sizes: dict[str, list[int]]) -> None:
    listed = _json(folder / INDEX).get("weight_map")
    files = listed.items() if isinstance(listed, dict) else ()
    if missing := sorted({file for name, file in files if name not in sizes}):
        why = f"{INDEX} lists tensors in {', '.join(missing[:3])} that are not there."
        raise RequirementsError(f"The weights in {folder} are not complete.", why, AGAIN)


def _check_model(folder: Path, sizes: dict[str, list[int]]) -> None:
    """Compare the weights with the model that config.json describes, which is made without any weight."""
    expected = _expected_shapes(folder)
    if not expected.keys() & sizes.keys():
        why = f"None of its {len(sizes)} tensors is one of the model that config.json describes: {_some(sizes)}."
        raise RequirementsError(f"config.json and weights in {folder} are of two models.", why, AGAIN)
    for name, shape in sizes.items():
        if name in expected and list(expected[name]) != shape:
            why = f"{name} is {shape} in the weights, and {list(expected[name])} by config.json."
            raise RequirementsError(f"config.json and weights in {folder} are of two models.", why, AGAIN)
    if _json(folder / "config.json").get("model_type") in PLAIN and (missing := expected.keys() - sizes.keys()):
        why = f"Of the model that config.json describes are missing: {_some(missing)}. They would be drawn at random."
        raise RequirementsError(f"The weights in {folder} are not complete.", why, AGAIN)


def _expected_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every tensor of the model that config.json describes."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except Exception as error:  # whatever a file that is none raises there
        raise _unreadable(f"{folder / 'config.json'} describes no model that can be loaded.", error) from error
    tied = bool(getattr(config, "tie_word_embeddings", False))
    named = model.named_parameters(remove_duplicate=False)
    return {name: tuple(value.shape) for name, value in named if not (tied and name.startswith("lm_head."))}


def _some(names: Iterable[str]) -> str:
    first = sorted(names)
    return ", ".join(first[:3]) + (f" and {len(first) - 3} more" if len(first) > 3 else "")


def _check_tokenizer(folder: Path, sizes: dict[str, list[int]]) -> None:
    """Its tokens must have embeddings."""
    from tokenizers import Tokenizer

    if not (path := folder / "tokenizer.json").is_file():
        return
    try:
        highest = max(Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True).values(), default=0)
    except Exception as error:  # the library raises nothing narrower
        raise _unreadable(f"The tokenizer {path} cannot be read.", error) from error
    rows = next((shape[0] for name, shape in sizes.items() if name.endswith("embed_tokens.weight")), 0)
    if rows and highest >= rows:
        why = f"It has a token {highest}, of {rows} embeddings."
        raise RequirementsError(f"The tokenizer {path} is of another model.", why, AGAIN)


def _json(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("it is no JSON object")
    except (OSError, ValueError) as error:
        raise _unreadable(f"{path} cannot be read.", error) from error
    return content


def _unreadable(what: str, error: Exception) -> RequirementsError:
    message = next(iter(str(error).strip().splitlines()), "")[
        :200
    ]  # transformers advises at length, not always to the point
    return RequirementsError(what, f"{type(error).__name__}: {message}", AGAIN)
