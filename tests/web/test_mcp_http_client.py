"""MCP servers elsewhere that speak one kind of revision alone, or misbehave: the official client behind our bounds ends
each conversation with a result or one line, and the first answer to a request counts."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agent0.errors import AuthError
from agent0.events.values import ToolState
from agent0.infra.mcp import http
from agent0.infra.mcp.messages import WireError, result_text
from agent0.infra.mcp.servers import Http
from agent0.settings import McpServer
from agent0.tools.workspace import Workspace
from tests.web.servers import Asked, Say, serving

TOOL: Mapping[str, Any] = {"name": "t", "description": "d", "inputSchema": {"type": "object"}}
LONG = "x" * 1_000_000


def result(number: object, **fields: object) -> Mapping[str, object]:
    return {"jsonrpc": "2.0", "id": number, "result": {"resultType": "complete", **fields}}


def text(number: object, words: str) -> Mapping[str, object]:
    return result(number, content=[{"type": "text", "text": words}])


def stream(*messages: Mapping[str, object]) -> bytes:
    return "".join(f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n" for message in messages).encode()


ABOUT = {"capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
KEY = "sk-1234567890/+abc=="
TOOLS = {
    "tells the key": {"description": KEY},
    "long description": {"description": LONG},
    "long name": {"name": LONG},
} | {"long schema": {"inputSchema": {"type": "object", "title": LONG}}}


def introduced(how: str, method: str, number: object) -> tuple[str, Mapping[str, object]]:
    """(status, message) for ``server/discover`` and ``initialize``."""
    if how == "no handshake":
        if method == "initialize":
            return "400 Bad Request", {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "gone"}}
        return "200 OK", result(number, supportedVersions=["2026-07-28"], ttlMs=0, cacheScope="private", **ABOUT)
    if method == "server/discover":
        return "404 Not Found", {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "unknown"}}
    version = how if how[:1].isdigit() else "2025-06-18"
    return "200 OK", {"jsonrpc": "2.0", "id": number, "result": {"protocolVersion": version, **ABOUT}}


def server(how: str) -> Say:
    """A server with one tool that misbehaves as ``how`` says, or speaks that revision alone."""

    async def say(asked: Asked, writer: asyncio.StreamWriter) -> None:
        def answer(body: bytes, kind: str = "application/json", status: str = "200 OK") -> None:
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)

        message = json.loads(asked.body) if asked.line.startswith("POST") else {}
        method, number = message.get("method"), message.get("id")
        if method in ("server/discover", "initialize"):
            status, about = introduced(how, method, number)
            answer(json.dumps(about).encode(), status=status)
        elif method == "tools/list":
            await listed(how, number, answer, writer)
        elif method == "tools/call":
            await called(how, number, answer)
        else:
            answer(b"", status="202 Accepted" if message else "405 Method Not Allowed")

    return say


async def called(how: str, number: object, answer: Callable[..., None]) -> None:
    """Answer ``tools/call``."""
    if how == "hangs in a call":
        await asyncio.Event().wait()
    if how == "refuses the key":
        error = {"code": -32000, "message": f"{KEY} is of no use"}
        return answer(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode())
    first = f"You sent {KEY}." if how == "repeats the key" else "first"
    answer(stream(text(number, first), text(number, "second")), "text/event-stream")


async def listed(how: str, number: object, answer: Callable[..., None], writer: asyncio.StreamWriter) -> None:
    """Answer ``tools/list``."""
    tools = result(number, tools=[{**TOOL, **TOOLS.get(how, {})}], ttlMs=0, cacheScope="private")
    if how == "hangs":
        await asyncio.Event().wait()
    if how == "another id":
        return answer(json.dumps({**tools, "id": 99}).encode())
    if how == "gone":
        return
    if how == "floods":
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": LONG}}
        while True:
            writer.write(stream(note))
            await writer.drain()
    asks = {"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": {}}
    answer(stream(asks, tools, result(number, tools=[])), "text/event-stream")


@pytest.mark.parametrize("how", ["no handshake", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_each_revision_is_spoken_and_the_first_answer_counts(how: str) -> None:
    async with serving(server(how)) as served:
        url = f"http://127.0.0.1:{served.port}/mcp"
        listing, _ = await http.ask(url, 20)
        assert [tool.name for tool in listing.tools] == ["t"]
        assert result_text((await http.ask(url, 20, "t", {}, listing.digest))[1]) == ("first", False)


@pytest.mark.parametrize(
    ("how", "why", "seconds"),
    [
        ("1999-01-01", "Unsupported protocol version from the server: 1999-01-01", 20),
        ("long name", "a name that nobody could write", 20),
        ("long schema", "a schema is longer than 65536 characters", 20),
        ("floods", "does not answer as an MCP server should", 20),
        ("gone", "does not answer as an MCP server should", 20),
        ("hangs", "did not answer within 1 s", 1),
        ("another id", "did not answer within 1 s", 1),
    ],
)
async def test_a_server_that_misbehaves_is_told_in_one_line(
    how: str, why: str, seconds: float, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(server(how)) as served:
        with pytest.raises(WireError, match=why) as refused:
            await http.ask(f"http://127.0.0.1:{served.port}/mcp", seconds)
    assert (len(str(refused.value)) <= 300, "\n" in str(refused.value), capfd.readouterr().err) == (True, False, "")


async def test_its_key_goes_with_every_request_and_comes_back_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_KEY", f" {KEY}\n")

    def far(port: int, key_env: str = "FAR_KEY") -> Http:
        return Http("far", McpServer(transport="http", url=f"http://127.0.0.1:{port}/mcp", key_env=key_env))

    for how, state, words in (
        ("no handshake", ToolState.OK, "first"),
        ("repeats the key", ToolState.ERROR, "it repeats the key that it was sent"),
        ("refuses the key", ToolState.ERROR, "[key] is of no use"),
    ):
        async with serving(server(how)) as served:
            listing = await far(served.port).list()
            result = await far(served.port).call(Workspace(None), "t", {}, listing.digest)  # type: ignore[arg-type]
            assert (result.state, words in result.output, KEY in result.output) == (state, True, False), result
            assert {asked.headers.get("authorization") for asked in served.asked} == {f"Bearer {KEY}"}
            await far(served.port, "").list()
            assert "authorization" not in served.asked[-1].headers
    async with serving(server("tells the key")) as served:
        with pytest.raises(WireError, match="it repeats the key"):
            await far(served.port).list()
    for value, why in (
        ("", "FAR_KEY is not set"),
        ("short", "must hold 8 or more"),
        ("a b\r\nX: y" * 9, "must hold 8"),
    ):
        monkeypatch.setenv("FAR_KEY", value)
        with pytest.raises(AuthError, match=why):
            far(1)


async def test_a_call_that_hangs_is_left_and_a_long_description_is_cut() -> None:
    async with serving(server("hangs in a call")) as served:
        url = f"http://127.0.0.1:{served.port}/mcp"
        listing, _ = await http.ask(url, 20)
        with pytest.raises(WireError, match="did not answer within 1 s"):
            await http.ask(url, 1, "t", {}, listing.digest)
    async with serving(server("long description")) as served:
        listing, _ = await http.ask(f"http://127.0.0.1:{served.port}/mcp", 20)
        assert len(listing.tools[0].description) == 500
