"""One message on a stream: a length, a JSON header, then the raw bytes of the blobs whose sizes the header names."""

import json
import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any

MAX_HEADER = 16 << 20
"""All names of a full work folder, escaped as JSON at its worst."""
_LENGTH = struct.Struct("!I")


def pack(header: Mapping[str, object], blobs: Sequence[bytes] = ()) -> bytes:
    """Encode a message: header and blobs as one string of bytes."""
    return b"".join([head(header, blobs), *blobs])


def head(header: Mapping[str, object], blobs: Sequence[bytes]) -> bytes:
    """Encode the part of a message that comes before its blobs."""
    body = json.dumps({**header, "sizes": [len(b) for b in blobs]}).encode()
    return _LENGTH.pack(len(body)) + body


def length(prefix: bytes) -> int:
    """Length of the header behind a 4-byte ``prefix``.

    Raises:
        ValueError: longer than any honest header.
    """
    size = int(_LENGTH.unpack(prefix)[0])
    if size > MAX_HEADER:
        raise ValueError(f"a header of {size} bytes")
    return size


def write(fd: int, data: bytes) -> None:
    """Write all of ``data`` to the file descriptor ``fd``."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def read_exactly(fd: int, size: int) -> bytes:
    """``size`` bytes.

    Raises:
        EOFError: the other end closed before.
    """
    parts: list[bytes] = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError("the other end closed")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read(fd: int) -> tuple[dict[str, Any], list[bytes]]:
    """One message from a blocking descriptor.

    Raises:
        EOFError: none came.
    """
    header = json.loads(read_exactly(fd, length(read_exactly(fd, 4))))
    return header, [read_exactly(fd, size) for size in header["sizes"]]
