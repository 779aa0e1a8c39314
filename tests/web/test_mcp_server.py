"""Our MCP server, asked by the official client: the tools of a student work in the sandbox, runs
and tables can be read and not written, and no call ends it."""

import asyncio
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.kept_open import attached
from tests.pasts import keep, tell

READ = {"run_list", "run_show", "run_why", "table_show", "table_query", "doc_show"}


@pytest.mark.slow  # sixteen seconds: part of make conformance
async def test_the_official_client_calls_tools_and_reads_runs(tmp_path: Path) -> None:
    await asyncio.to_thread(keep, tmp_path, *tell())
    with attached(tmp_path):
        command = ["-m", "agent0", "tool", "serve", "--mcp", "--profile", "scripted", "--set", "sandbox.workers=1"]
        env = {"AGENT0_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        parameters = StdioServerParameters(command=sys.executable, args=command, env=env)
        async with asyncio.timeout(60), Client(stdio_client(parameters)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) >= {"python", *READ}
            assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == READ
            for name, arguments, failed, text in (
                ("python", {"code": "print(6*7)"}, False, "42"),
                ("run_list", {}, False, '"r1"'),
                ("run_show", {"run": "r1"}, False, '"finished"'),
                ("run_why", {"run": "r1"}, False, '"conclusion"'),
                ("table_query", {"sql": "SELECT count(*) AS n FROM runs"}, False, '"n": 1'),
                ("table_query", {"sql": "DELETE FROM runs"}, True, "may only read"),
                ("run_show", {"run": "r9"}, True, "There is no run 'r9'"),
                ("run_show", {"run": 7}, True, "run is no text"),
                ("run_why", {}, True, "run is no text"),
                ("python", {"code": 7}, True, "code"),
                ("table_show", {"table": "runs"}, False, '"r1"'),
                ("table_show", {"table": "sqlite_master"}, True, "There is no table"),
                ("doc_show", {"page": "reference/cli.md"}, False, "agent0 tool serve"),
                ("doc_show", {"page": "../README.md"}, True, "There is no page"),
                ("wizard", {}, True, "There is no tool 'wizard'"),
            ):
                result = await client.call_tool(name, arguments)
                assert (result.is_error, text in str(result.content)) == (failed, True), (name, result)
