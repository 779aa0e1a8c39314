"""Answers of servers as text that can be read: a byte that is no UTF-8 becomes the sign for that, and ends nothing."""

import codecs
from collections.abc import AsyncIterator

import httpx2


async def readable(response: httpx2.Response) -> None:
    """Have ``response`` give UTF-8 alone, as a hook of a client; one that is compressed stays as it is."""
    if isinstance(response.stream, httpx2.AsyncByteStream) and "content-encoding" not in response.headers:
        response.stream = _Readable(response.stream)


class _Readable(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for part in self._stream:
            yield decoder.decode(part).encode()
        yield decoder.decode(b"", final=True).encode()

    async def aclose(self) -> None:
        """Close the stream of the server."""
        await self._stream.aclose()
