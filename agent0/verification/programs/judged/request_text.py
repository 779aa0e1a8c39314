"""Requests to the two processes, as text within the code of a call."""

import base64
import json
import zlib
from typing import Any


def pack(request: dict[str, Any]) -> str:
    """Write ``request`` as short text of letters, digits and ``+/=``."""
    return base64.b64encode(zlib.compress(json.dumps(request).encode())).decode()


def unpack(text: str) -> dict[str, Any]:
    """Read the request that ``pack`` wrote as ``text``."""
    request: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return request
