"""Weights in safetensors files, read and written with numpy alone: no torch, and one tensor in memory at a time."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent0.errors import NotFoundError, OperationError
from agent0.infra.storage.files import known_digest

Array = NDArray[np.float32]
Buffer = bytes | NDArray[np.uint8]
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Kinds of numbers that are read: all as float32."""
LONGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class _TensorSpan:
    file: str
    kind: str
    shape: tuple[int, ...]
    start: int
    end: int


class Weights:
    """Tensors by name, from named buffers of safetensors. Nothing is read before it is asked for.

    Raises:
        OperationError: a buffer is cut short, or no safetensors.
    """

    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self._buffers = dict(buffers)
        self._places: dict[str, _TensorSpan] = {}
        for name, buffer in self._buffers.items():
            self._places |= _places(name, buffer)

    @classmethod
    def of_folder(cls, folder: Path) -> "Weights":
        """Every ``*.safetensors`` of ``folder``, mapped.

        Raises:
            NotFoundError: there is none.
        """
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            fix = "Name a folder that a Hugging Face model was saved to."
            raise NotFoundError(f"There are no safetensors in {folder}.", fix=fix)
        return cls({path.name: np.memmap(path, np.uint8, "r") if path.stat().st_size else b"" for path in files})

    @property
    def files(self) -> dict[str, list[str]]:
        """Names of tensors by file."""
        return {file: [n for n, location in self._places.items() if location.file == file] for file in self._buffers}

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Any:
        return iter(self._places)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of one tensor, outermost first."""
        return self._places[name].shape

    def read(self, name: str) -> Array:
        """One tensor as float32.

        Raises:
            OperationError: it is quantised, or of another kind of number.
        """
        location = self._places[name]
        if location.kind not in BYTES:
            fix = "Name the folder of the base as it was before it was quantised."
            raise OperationError(f"The tensor {name} is of kind {location.kind}.", "Only floating point is read.", fix)
        raw = np.frombuffer(self._buffers[location.file], np.uint8, location.end - location.start, location.start)
        if location.kind == "BF16":
            array: Array = (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            array = raw.view(f"<f{BYTES[location.kind]}").astype(np.float32)
        return array.reshape(location.shape)


def _places(file: str, buffer: Buffer) -> dict[str, _TensorSpan]:
    try:
        size = int.from_bytes(bytes(buffer[:8]), "little")
        if len(buffer) < 8 or not 0 < size <= min(LONGEST_HEADER, len(buffer) - 8):
            raise ValueError("no header")
        header = json.loads(bytes(buffer[8 : 8 + size]))
        spans = {}
        for name, entry in header.items():
            if name != "__metadata__":
                start, end = (8 + size + int(n) for n in entry["data_offsets"])
                spans[name] = _TensorSpan(file, str(entry["dtype"]), tuple(int(n) for n in entry["shape"]), start, end)
                _check(spans[name], 8 + size, len(buffer))
        return spans
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"[:200]
        raise OperationError(f"{file} is no whole safetensors file.", why, "Save or download it again.") from error


def _check(span: _TensorSpan, after: int, length: int) -> None:
    if not after <= span.start <= span.end <= length:
        raise ValueError(f"data ends at byte {span.end}, the file at {length}")
    if span.kind in BYTES and prod(span.shape) * BYTES[span.kind] != span.end - span.start:
        raise ValueError(f"{span.end - span.start} bytes are no {span.kind} of shape {span.shape}")


def digest(folder: Path) -> str:
    """Identify a base model: the sha256 of its weights; of several files, that of the list of their names and
    sha256s."""
    digests = [(path.name, known_digest(path)) for path in sorted(folder.glob("*.safetensors"))]
    if len(digests) == 1:
        return digests[0][1]
    return hashlib.sha256("".join(f"{sha}  {name}\n" for name, sha in digests).encode()).hexdigest()


def write(path: Path, shapes: Mapping[str, tuple[int, ...]], read: Callable[[str], Array], kind: str) -> None:
    """Write tensors of ``shapes`` one after the other, each as ``read`` gives it, in numbers of ``kind`` (F32, F16,
    BF16). Same tensors, same bytes."""
    width, offset = BYTES[kind], 0
    header: dict[str, dict[str, object]] = {"__metadata__": {"format": "pt"}}
    for name, shape in shapes.items():
        size = prod(shape) * width
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for name in shapes:
            file.write(_encoded(read(name), kind))


def _encoded(values: Array, kind: str) -> bytes:
    if kind != "BF16":
        return values.astype(f"<f{BYTES[kind]}").tobytes()
    bits = values.view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)  # to nearest, ties to even
    return (rounded >> 16).astype("<u2").tobytes()


def names(tensor_names: Iterable[str], most: int = 3) -> str:
    """Join up to ``most`` of ``tensor_names`` for an error message."""
    listed = sorted(tensor_names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")
