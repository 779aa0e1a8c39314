"""What still comes of a request: its body, of bounded length and in time; then that its client left, or that its key
was removed, which ends streams in the same way."""

import asyncio
from time import monotonic

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from agent0.api.admission.keys import Key, KeyFile
from agent0.settings import ApiSettings

LOOK_S = 0.5
"""How often it is looked whether the key of a stream is still there."""
DISCONNECT = {"type": "http.disconnect"}


class Receiving:
    """The receiving side of one request with ``key``; an application calls it as it would call ``receive``."""

    def __init__(self, receive: Receive, settings: ApiSettings, keys: KeyFile, key: Key | None) -> None:
        self._receive, self._settings, self._keys, self._key = receive, settings, keys, key
        self._deadline = monotonic() + settings.request_s
        self._bytes, self._whole = 0, False
        self.revoked = False
        """Whether the key was removed while the request was under way."""

    async def __call__(self) -> Message:
        """The next message.

        Raises:
            HTTPException: the body is too long, or it does not come in time.
        """
        if self._whole:
            return await self._until_left()
        try:
            async with asyncio.timeout(self._deadline - monotonic()):
                message = await self._receive()
        except TimeoutError:
            why = f"The body did not come in {self._settings.request_s:g} s (api.request_s)."
            raise HTTPException(408, why, {"Connection": "close"}) from None
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._settings.max_body:
            raise HTTPException(413, f"A body has {self._settings.max_body:,} bytes at most (api.max_body).")
        self._whole = not message.get("more_body", False)
        return message

    async def _until_left(self) -> Message:
        if self._key is None:
            return await self._receive()
        left = asyncio.ensure_future(self._receive())
        try:
            while not left.done():
                if not self._keys.has(self._key):
                    self.revoked = True
                    return DISCONNECT
                await asyncio.wait({left}, timeout=LOOK_S)
            return left.result()
        finally:
            left.cancel()
