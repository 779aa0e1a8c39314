"""``agent0 tool serve``: calls of others, as lines of JSON or of MCP, or as MCP over HTTP."""

import sys
from typing import Annotated

import typer

from agent0.api.mcp import serve_mcp_http
from agent0.assembly.runtime.mcp_tools import mcp_application, serve_mcp
from agent0.assembly.tooling.tool_calls import open_bench
from agent0.cli import console, flags
from agent0.cli.tools.jsonl_server import incoming
from agent0.cli.tools.jsonl_server import serve as answer_all
from agent0.cli.tools.mcp_server import offered_prompts, offered_tools
from agent0.errors import ConfigError

Port = Annotated[int | None, typer.Option(min=0, max=65535, help="With --mcp: over HTTP on this port; 0: a free one.")]
Host = Annotated[str | None, typer.Option(help="With --port: where to listen; any but loopback needs a key.")]


def serve(
    json_lines: Annotated[bool, typer.Option("--json-lines", help="One JSON object a line, in and out.")] = True,
    as_mcp: Annotated[bool, typer.Option("--mcp", help="As an MCP server, with runs and tables to read.")] = False,
    port: Port = None,
    host: Host = None,
    profile: console.Profile = None,
    pairs: console.Set = None,
) -> None:
    """Answer calls from standard input until it ends, several at once, in the order in which they came. A line is an
    object with tool, code or args, and as wanted wall, mem, files, from, keep, id; the answer is the object of `tool
    call`, with the id. Lines may come faster than they are carried out: what finds sandbox.queue calls waiting is
    answered `busy`. The sandbox is started once. With --mcp the lines are those of an MCP server (the package mcp);
    with --mcp and --port it answers over HTTP instead, at /mcp, to whom `agent0 up` would: keys, Origin and Host are
    checked alike, and bodies have 4 MiB at most."""
    if not as_mcp and (port, host) != (None, None):
        raise ConfigError("--port and --host are of MCP.", fix="Say: agent0 tool serve --mcp --port 8020")
    if host is not None and port is None:
        raise ConfigError("--host is of HTTP.", fix="Name a port, too: agent0 tool serve --mcp --port 8020")
    settings = flags.settings(profile, pairs, api__port=port, api__host=host)

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    async def work() -> None:
        async with open_bench(settings) as bench:
            if not as_mcp:
                await answer_all(settings, bench, incoming(sys.stdin.fileno()), write)
                return
            offered, prompts = offered_tools(settings, bench), offered_prompts(settings)
            if port is None:
                await serve_mcp(offered, prompts)
                return
            reads = {tool.name for tool in offered if tool.reads}
            await serve_mcp_http(settings, mcp_application(offered, prompts), reads, _announce)

    console.run_async(work)


def _announce(address: str) -> None:
    console.text(address)
    console.say("Ctrl-C stops.")
