"""Reads what a GGUF file says of itself before its weights (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

The files are other people's: sizes that lead beyond the end are errors, and time is linear in the file's head.
"""

import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent0.errors import DependencyError

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_IDS = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
"""Special tokens as GGUF and as chat templates name them."""
Value = int | float | str | list[bytes] | tuple[int | float, ...]
Part = TypeVar("Part")
DOWNLOAD = "Download the GGUF file again."


@dataclass(frozen=True)
class GgufTensor:
    """One tensor of a file: its shape, outermost first, the number of its kind (``ggml_type``), and the byte of the
    file at which its values begin."""

    shape: tuple[int, ...]
    kind: int
    start: int


@dataclass(frozen=True)
class GgufHeader:
    """Everything of a file but the values of its tensors."""

    fields: Mapping[str, Value]
    tensors: Mapping[str, GgufTensor]


def is_gguf(model: Path) -> bool:
    """Return whether ``model`` names a GGUF file rather than a folder of weights."""
    return model.suffix.lower() == ".gguf"


def file_template(path: Path) -> tuple[str, dict[str, str]]:
    """Read the chat template in a GGUF file (empty where it has none), and the texts of its special tokens.

    Raises:
        DependencyError: it is no GGUF file, or ends too early.
    """
    fields = _read(path, lambda header: header.fields())
    template = fields.get("tokenizer.chat_template")
    return template if isinstance(template, str) else "", special_texts(fields)


def special_texts(fields: Mapping[str, Value]) -> dict[str, str]:
    """The texts of the special tokens that metadata names, by the names that chat templates have for them."""
    tokens, specials = fields.get("tokenizer.ggml.tokens"), dict[str, str]()
    for short, name in _IDS.items():
        number = fields.get(f"tokenizer.ggml.{short}_token_id")
        if isinstance(tokens, list) and isinstance(number, int) and 0 <= number < len(tokens):
            specials[name] = tokens[number].decode(errors="replace")
    return specials


def read_header(path: Path) -> GgufHeader:
    """Read all that a GGUF file says of itself.

    Raises:
        DependencyError: it is no GGUF file, or ends too early.
    """
    return _read(path, lambda header: header.whole())


def _read(path: Path, part: Callable[["_Header"], Part]) -> Part:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return part(_Header(data))
    except (OSError, ValueError) as error:
        raise DependencyError(f"The model {path.name}", f"{error}"[:200], DOWNLOAD) from error


class _Header:
    """A place in the head of a file; reads raise ValueError where they lead beyond its end."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._place, self._count = data, 0, 0

    def whole(self) -> GgufHeader:
        """Metadata and where each tensor is."""
        fields = self.fields()
        entries = [self._tensor() for _ in range(self._count)]
        alignment = fields.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError(f"its values are aligned to {alignment!r} bytes")
        start = -(-self._place // alignment) * alignment
        return GgufHeader(fields, {name: GgufTensor(shape, kind, start + at) for name, shape, kind, at in entries})

    def fields(self) -> dict[str, Value]:
        """All metadata by name."""
        if self._taken(4) != b"GGUF" or self._number("I") not in (2, 3):
            raise ValueError("it is no GGUF file of version 2 or 3")
        self._count, count = int(self._number("Q")), int(self._number("Q"))
        return {self._text().decode(errors="replace"): self._value(int(self._number("I"))) for _ in range(count)}

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._text().decode(errors="replace")
        dimensions = int(self._number("I"))
        shape: tuple[int, ...] = struct.unpack(f"<{dimensions}Q", self._taken(8 * dimensions))
        return name, shape[::-1], int(self._number("I")), int(self._number("Q"))

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
        form = _form(inner)
        data = self._taken(struct.calcsize(f"<{form}") * count)
        return struct.unpack(f"<{count}{form}", data)


def _form(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"it has a value of unknown kind {kind}")
    return _NUMBERS[kind]
