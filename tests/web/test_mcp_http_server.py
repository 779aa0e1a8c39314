"""Our MCP server over HTTP: the official client speaks with it in every revision, reads what there is of runs, tables
and pages, and what is no message, or comes from somebody else, is refused in one line."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from agent0.api import mcp
from agent0.api.admission.keys import KeyFile
from agent0.assembly.runtime.mcp_tools import mcp_application
from agent0.cli.tools.mcp_server import offered_prompts, readings
from agent0.config.loading import load
from agent0.errors import AuthError
from agent0.settings import Settings
from agent0.tools.definition import OfferedTool
from tests.kept_open import attached
from tests.pasts import keep, tell
from tests.terminal import agent0

PLAIN = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}
LIST: Mapping[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
LONG = "x" * 1_000_000
READING, CALL = (
    json.dumps({**LIST, "method": "tools/call", "params": {"name": name}}).encode() for name in ("run_list", "echo")
)


def configured(home: Path, **more: object) -> Settings:
    return load("scripted", {"home": str(home), "api.port": "0", **{name: str(more[name]) for name in more}}, {})


async def _echo(arguments: Mapping[str, object]) -> tuple[str, bool]:
    await asyncio.sleep(0)
    return str(arguments.get("text", "")), False


ECHO = OfferedTool("echo", "Say it again.", {"type": "object"}, _echo, reads=False)


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[str]:
    """The address of a server that echoes, and reads the data folder."""
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    read = readings(settings)
    opening = mcp_application([ECHO, *read], offered_prompts(settings))
    reads = {tool.name for tool in read}
    answering = asyncio.create_task(mcp.serve_mcp_http(settings, opening, reads, address.set_result))
    await asyncio.wait({answering, address}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield await address if address.done() else str(await answering)
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


def asked(**params: object) -> bytes:
    return json.dumps({**LIST, **params}).encode()


async def test_each_revision_calls_tools_and_reads_pages(tmp_path: Path) -> None:
    async with served(configured(tmp_path)) as url:
        for mode in ("2026-07-28", "auto", "legacy"):
            async with Client(streamable_http_client(url), mode=mode) as client:
                assert "doc_show" in {tool.name for tool in (await client.list_tools()).tools}
                assert "again" in str((await client.call_tool("echo", {"text": "again"})).content)
                listed = {str(entry.uri) for entry in (await client.list_resources()).resources}
                assert listed >= {"agent0://runs", "agent0://tables/runs", "agent0://docs/reference/cli.md"}
                page = await client.read_resource("agent0://docs/guide/first-run.md")
                assert "agent0 run" in str(page.contents)


async def test_runs_and_tables_are_resources_and_nothing_else_is(tmp_path: Path) -> None:
    await asyncio.to_thread(keep, tmp_path, *tell())
    with attached(tmp_path):
        async with served(configured(tmp_path)) as url, Client(streamable_http_client(url)) as client:
            templates = (await client.list_resource_templates()).resource_templates
            assert {"agent0://runs/{run}", "agent0://runs/{run}/why"} <= {entry.uri_template for entry in templates}
            for uri, text in (
                ("agent0://runs/r1", '"finished"'),
                ("agent0://runs/LAST/why", '"conclusion"'),
                ("agent0://tables/runs", '"r1"'),
                ("agent0://docs/reference/events.md", "RunStarted"),
            ):
                assert text in str((await client.read_resource(uri)).contents), uri
            for uri, why in (
                ("agent0://runs/r9", "There is no run 'r9'"),
                ("agent0://tables/sqlite_master", "There is no table"),
                ("agent0://docs/../README.md", "There is no page"),
                ("agent0://docs/%2e%2e/README.md", "There is no page"),
                ("file:///etc/passwd", "There is no resource"),
            ):
                with pytest.raises(MCPError, match=why) as refused:
                    await client.read_resource(uri)
                assert (refused.value.error.code, len(str(refused.value)) < 2000) == (-32602, True)


HOSTILE: Mapping[str, tuple[Mapping[str, str], bytes, int, str]] = {
    "another site's page": ({"Origin": "http://evil.example"}, asked(), 403, "A page of another site asks."),
    "a page that hides": ({"Origin": "null"}, asked(), 403, "A page of another site asks."),
    "a name bound to us": ({"Host": "evil.example:80"}, asked(), 403, "This server is not called so."),
    "an unknown session": ({"Mcp-Session-Id": "a" * 32}, asked(), 404, "There are no sessions here"),
    "a session, modern": ({**MODERN, "Mcp-Session-Id": "a"}, asked(), 404, "There are no sessions here"),
    "no such revision": ({"MCP-Protocol-Version": "1999-01-01"}, asked(), 400, "-32602"),
    "another revision within": (
        {**MODERN, "Mcp-Method": "tools/list"},
        asked(params={"_meta": {"io.modelcontextprotocol/protocolVersion": "2025-06-18"}}),
        400,
        "error",
    ),
    "another method in the header": ({**MODERN, "Mcp-Method": "ping"}, asked(params={"_meta": {}}), 400, "error"),
    "no JSON": ({}, b"{", 400, "-32700"),
    "no JSON, modern": (MODERN, b"\xff\xfe", 400, "-32700"),
    "nested too deep": ({}, b"[" * 1_000_000, 400, "-32700"),
    "a batch": ({}, b"[" + asked() + b"," + asked() + b"]", 400, "-32600"),
    "an answer": ({}, b'{"jsonrpc":"2.0","id":7,"result":{}}', 400, "-32600"),
    "an error": (MODERN, b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}', 400, "-32600"),
    "no version of JSON-RPC": ({}, b'{"id":1,"method":"tools/list"}', 400, "-32600"),
    "an id that is none": ({}, asked(id=True), 400, "-32600"),
    "params that are none": ({}, asked(params=[1]), 400, "-32600"),
    "no JSON by its type": ({"Content-Type": "text/plain"}, asked(), 400, "Content-Type"),
    "far too large": ({}, asked(method=LONG * 5), 413, "A body has 4,194,304 bytes at most"),
}


async def test_what_is_no_message_or_comes_from_elsewhere_is_refused_in_one_line(tmp_path: Path) -> None:
    settings = configured(tmp_path, **{"api.changes_per_minute": 0})
    async with served(settings) as url, httpx2.AsyncClient(headers=PLAIN) as http:
        for name, (headers, body, status, text) in HOSTILE.items():
            answer = await http.post(url, content=body, headers=dict(headers))
            lines, told = answer.text.splitlines(), (answer.status_code, text in answer.text)
            assert (told, len(lines), len(answer.text) < 1000) == ((status, True), 1, True), (name, answer.text)
        for method in ("GET", "DELETE", "PUT"):
            assert (await http.request(method, url)).status_code == 405
        assert (await http.post(url.replace("/mcp", "/"), content=asked())).status_code == 404
        assert (await http.post(url, content=asked())).status_code == 200, "it goes on"


async def test_a_megabyte_in_a_field_is_answered(tmp_path: Path) -> None:
    """Names stand in a header, too, in the newest revision, and there they are too long."""
    async with served(configured(tmp_path)) as url, Client(streamable_http_client(url), mode="legacy") as client:
        assert len((await client.call_tool("echo", {"text": LONG})).content[0].text) == len(LONG)  # type: ignore[union-attr]
        for name, argument in (("run_show", "run"), ("table_show", "table"), ("doc_show", "page"), (LONG, "x")):
            result = await client.call_tool(name, {argument: LONG})
            assert (result.is_error, len(str(result.content)) < 5000) == (True, True), name
        with pytest.raises(MCPError, match="There is no table 'xxx") as refused:
            await client.read_resource(f"agent0://tables/{LONG}")
        assert len(str(refused.value)) < 2000
    async with served(configured(tmp_path)) as url, Client(streamable_http_client(url)) as client:
        with pytest.raises(MCPError, match="error response"):
            await client.call_tool(LONG, {})
        assert "again" in str((await client.call_tool("echo", {"text": "again"})).content)


async def test_one_id_at_once_from_many_is_answered_to_each(tmp_path: Path) -> None:
    settings = configured(tmp_path, **{"api.changes_per_minute": 0})
    async with served(settings) as url, httpx2.AsyncClient(headers=PLAIN) as http:
        call = {"name": "echo"}
        bodies = [
            asked(method="tools/call", params={**call, "arguments": {"text": f"<{number}>"}}) for number in range(20)
        ]
        answers = await asyncio.gather(*(http.post(url, content=body) for body in bodies))
        for number, answer in enumerate(answers):
            assert f"<{number}>" in answer.text


async def test_keys_are_asked_for_as_by_the_api(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    reader, submitter = keys.add("reader", "read"), keys.add("submitter", "submit")
    async with served(configured(tmp_path)) as url, httpx2.AsyncClient(headers=PLAIN) as http:
        for key, listed, called in (("", 401, 401), ("a0_wrong", 401, 401), (reader, 200, 403), (submitter, 200, 200)):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            for body, status in ((asked(), listed), (READING, listed), (CALL, called)):
                assert (await http.post(url, content=body, headers=headers)).status_code == status
        keys.remove("submitter")
        refused = await http.post(url, content=asked(), headers={"Authorization": f"Bearer {submitter}"})
        assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")


async def test_changes_alone_are_counted(tmp_path: Path) -> None:
    settings = configured(tmp_path, **{"api.changes_per_minute": 2})
    async with served(settings) as url, httpx2.AsyncClient(headers=PLAIN) as http:

        async def statuses(body: bytes) -> list[int]:
            return [(await http.post(url, content=body)).status_code for _ in range(4)]

        assert await statuses(asked()) == await statuses(READING) == [200] * 4
        assert await statuses(CALL) == [200, 200, 429, 429]
        assert await statuses(READING) == [200] * 4
        refused = await http.post(url, content=CALL)
        assert "api.changes_per_minute" in refused.text and int(refused.headers["Retry-After"]) > 0


async def test_prompts_ask_about_runs_with_what_is_known_of_them(tmp_path: Path) -> None:
    await asyncio.to_thread(keep, tmp_path, *tell())
    with attached(tmp_path):
        async with served(configured(tmp_path)) as url, Client(streamable_http_client(url)) as client:
            listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
            assert {name: [each.name for each in prompt.arguments or []] for name, prompt in listed.items()} == {
                "diagnose_run": ["run"],
                "compare_runs": ["first", "second"],
            }
            asks = await client.get_prompt("diagnose_run", {"run": "LAST"})
            assert '"conclusion"' in str(asks.messages[0].content) and asks.messages[0].role == "user"
            both = await client.get_prompt("compare_runs", {"first": "r1", "second": "LAST"})
            assert str(both.messages[0].content).count("finished") >= 2
            for name, arguments, why in (
                ("diagnose_run", {"run": "r9"}, "There is no run 'r9'"),
                ("diagnose_run", {}, "takes run"),
                ("compare_runs", {"first": "r1"}, "takes second"),
                ("wizard", {}, "There is no prompt 'wizard'"),
            ):
                with pytest.raises(MCPError, match=why) as refused:
                    await client.get_prompt(name, arguments)
                assert refused.value.error.code == -32602


async def test_nothing_is_served_to_others_without_a_key(tmp_path: Path) -> None:
    with pytest.raises(AuthError, match="without a key"):
        async with served(configured(tmp_path, **{"api.host": "0.0.0.0"})):
            pass


def test_a_port_without_mcp_is_told(tmp_path: Path) -> None:
    for words, why in ((("--port", "0"), "are of MCP"), (("--mcp", "--host", "::1"), "is of HTTP")):
        told = agent0("tool", "serve", *words, home=tmp_path)
        assert (told.code, why in told.err, "Traceback" in told.err) == (2, True, False), told.err
