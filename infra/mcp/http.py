"""MCP servers over HTTP, through the official client. A conversation lists the tools before it calls one, so that what
was trusted is compared with what is there now; answers and time are bounded."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from agent0.infra.mcp.messages import Listing, WireError, listing
from agent0.tools.untrusted import visible

MOST_BYTES, MOST_PAGES = 4 << 20, 20
logging.getLogger("mcp.client").addHandler(logging.NullHandler())  # else its tracebacks are printed; errors are told


class _Bounded(httpx2.AsyncHTTPTransport):
    """Plain answers, whose bytes are counted: all of a conversation together."""

    def __init__(self) -> None:
        super().__init__(trust_env=False)
        self._left = MOST_BYTES

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("a compressed answer that nobody asked for")
        response.stream = _Counted(response.stream, self)
        return response

    def count(self, size: int) -> None:
        """Raises RemoteProtocolError where there were too many bytes."""
        self._left -= size
        if self._left < 0:
            raise httpx2.RemoteProtocolError("the server says far too much")


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inner: Any, transport: _Bounded) -> None:
        self._inner, self._transport = inner, transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._transport.count(len(chunk))
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def ask(
    url: str,
    timeout_s: float,
    tool: str = "",
    arguments: Mapping[str, object] | None = None,
    trust: str = "",
    key: str = "",
) -> tuple[Listing, Any]:
    """(its tools now, the raw result of ``tool``). The tool is called only where the tools' digest is ``trust``; else,
    and without a tool, the result is None. ``key`` goes with every request as a bearer token.

    Raises:
        WireError: no server, no MCP, an error it told, an answer that repeats the key, or none within ``timeout_s``.
    """
    try:
        async with asyncio.timeout(timeout_s), _conversation(url, key) as client:
            listing, raw = await _tools(client), None
            if tool and listing.digest == trust:
                params = types.CallToolRequestParams(name=tool, arguments=dict(arguments or {}))
                # not client.call_tool: it would run the server's own output schema, regular expressions included
                raw = await client.session.send_request(types.CallToolRequest(params=params), types.CallToolResult)
            if key and key in f"{listing}{raw}":
                raise WireError("it repeats the key that it was sent")
            return listing, raw
    except TimeoutError:
        raise WireError(f"it did not answer within {timeout_s:g} s") from None
    except (WireError, MCPError, OSError, httpx2.HTTPError, ValueError, RuntimeError, ExceptionGroup) as error:
        first = _first(error)
        if isinstance(first, WireError):
            raise first from None
        why = str(first).replace(key, "[key]") if key else str(first)
        raise WireError(f"it does not answer as an MCP server should: {visible(why)}"[:300]) from None


@asynccontextmanager
async def _conversation(url: str, key: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(transport=_Bounded(), timeout=httpx2.Timeout(30), headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        yield client


async def _tools(client: Client) -> Listing:
    pages = [await client.list_tools()]
    while pages[-1].next_cursor is not None:
        if len(pages) == MOST_PAGES:
            raise WireError(f"it has more than {MOST_PAGES} pages of tools")
        pages.append(await client.list_tools(cursor=pages[-1].next_cursor))
    return listing(pages)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
