"""The texts of single tokens, from a tokenizer's file alone: to show a recorded trajectory needs no model."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

KEPT = 4
"""Tokenizers that stay in memory."""


def token_texts(folder: Path, ids: Sequence[int]) -> list[str]:
    """The text of each of ``ids`` by the tokenizer of ``folder``; a token that is a part of a character shows as such.

    Raises:
        OSError: the folder has no readable tokenizer.
    """
    tokenizer = _loaded(folder / "tokenizer.json")
    return [tokenizer.decode([one], skip_special_tokens=False) for one in ids]  # type: ignore[attr-defined]


@lru_cache(KEPT)
def _loaded(path: Path) -> object:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise OSError(f"{path} cannot be read: {error}") from error
