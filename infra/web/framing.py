"""What the proxy process and its client say to each other: two lengths, a JSON object, then raw bytes."""

import asyncio
import json
import struct
from typing import Any

LARGEST_HEADER = 16 << 20
_lengths = struct.Struct("!IQ")

Frame = tuple[dict[str, Any], bytes]


def pack(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Encode one frame as bytes: lengths, JSON header, body."""
    text = json.dumps(header).encode()
    return b"".join((_lengths.pack(len(text), len(body)), text, body))


async def read(stream: asyncio.StreamReader, largest: int) -> Frame:
    """The next frame, its body at most ``largest`` bytes long.

    Raises:
        EOFError: the other end closed, or said something that is no frame.
    """
    try:
        size, length = _lengths.unpack(await stream.readexactly(_lengths.size))
        if size > LARGEST_HEADER or length > largest:
            raise EOFError(f"a frame of {size} + {length} bytes")
        header = json.loads(await stream.readexactly(size))
        return header, await stream.readexactly(length)
    except (asyncio.IncompleteReadError, ValueError, ConnectionError) as error:
        raise EOFError(f"{type(error).__name__}: {error}") from error
