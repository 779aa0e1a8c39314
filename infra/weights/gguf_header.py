"""Reads what a GGUF file says of itself before its weights (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

The files are other people's: sizes that lead beyond the end are errors, and time is linear in the file's head.
"""

import mmap
import struct
from pathlib import Path

from agent0.errors import DependencyError

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_IDS = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
"""Special tokens as GGUF and as chat templates name them."""
Value = int | float | str | list[bytes] | None
"""A list of numbers is skipped."""


def is_gguf(model: Path) -> bool:
    """Return whether ``model`` names a GGUF file rather than a folder of weights."""
    return model.suffix.lower() == ".gguf"


def file_template(path: Path) -> tuple[str, dict[str, str]]:
    """Read the chat template in a GGUF file (empty where it has none), and the texts of its special tokens.

    Raises:
        DependencyError: it is no GGUF file, or ends too early.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            fields = _Header(data).fields()
    except (OSError, ValueError) as error:
        raise DependencyError(f"The model {path.name}", f"{error}"[:200], "Download the GGUF file again.") from error
    template, tokens = fields.get("tokenizer.chat_template"), fields.get("tokenizer.ggml.tokens")
    specials: dict[str, str] = {}
    for short, name in _IDS.items():
        number = fields.get(f"tokenizer.ggml.{short}_token_id")
        if isinstance(tokens, list) and isinstance(number, int) and 0 <= number < len(tokens):
            specials[name] = tokens[number].decode(errors="replace")
    return template if isinstance(template, str) else "", specials


class _Header:
    """A place in the head of a file; reads raise ValueError where they lead beyond its end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._place = data, 0

    def fields(self) -> dict[str, Value]:
        """All metadata by name."""
        if self._taken(4) != b"GGUF" or self._number("I") not in (2, 3):
            raise ValueError("it is no GGUF file of version 2 or 3")
        _tensors, count = self._number("Q"), int(self._number("Q"))
        return {self._text().decode(errors="replace"): self._value(int(self._number("I"))) for _ in range(count)}

    def _taken(self, size: int) -> bytes:
        start, end = self._place, self._place + size
        if end > len(self._data):
            raise ValueError("it ends too early")
        self._place = end
        return self._data[start:end]

    def _number(self, form: str) -> int | float:
        number: int | float = struct.unpack(f"<{form}", self._taken(struct.calcsize(f"<{form}")))[0]
        return number

    def _text(self) -> bytes:
        return self._taken(int(self._number("Q")))

    def _value(self, kind: int) -> Value:
        if kind == _TEXT:
            return self._text().decode(errors="replace")
        if kind != _LIST:
            return self._number(_form(kind))
        inner, count = int(self._number("I")), int(self._number("Q"))
        if inner == _TEXT:
            return [self._text() for _ in range(count)]
        self._taken(struct.calcsize(f"<{_form(inner)}") * count)
        return None


def _form(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"it has a value of unknown kind {kind}")
    return _NUMBERS[kind]
