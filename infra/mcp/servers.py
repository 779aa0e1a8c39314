"""MCP servers as a source of tools. A stdio server runs only inside the sandbox, started anew for each call on a folder
of its own; an http server is asked only while its tools are exactly those a person trusts."""

import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from agent0.errors import AuthError, ConfigError, DependencyError
from agent0.events.values import ToolResult, ToolState
from agent0.infra.mcp import http, messages
from agent0.infra.mcp.messages import ListedTool, Listing, WireError
from agent0.infra.mcp.schema import checker
from agent0.ports.sandbox import Root, Sandbox, SandboxCall, SandboxResult
from agent0.settings import McpServer, PolicyConfig
from agent0.tools.builtin.http_request import SPENT
from agent0.tools.definition import AnyArguments, ExternalTool, Tool
from agent0.tools.results import answer, refused
from agent0.tools.snapshots import MOST_BYTES, MOST_FILES, is_inside
from agent0.tools.untrusted import marked, visible
from agent0.tools.workspace import Workspace

WALL_S = 30.0
"""One conversation; the sandbox's own limits hold besides."""
LONGEST_TOOL_NAME = 64
_INSIDE = Path(__file__).with_name("stdio_bridge.py")
_label = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
_key = re.compile(r"[A-Za-z0-9._~+/=:-]{8,4096}")


class ToolServer(Protocol):
    """One MCP server: list its tools, call one of them."""

    async def list(self) -> Listing:
        """Its tools now.

        Raises:
            WireError: it has none to tell.
        """
        ...

    async def call(self, work: Workspace, tool: str, arguments: Mapping[str, object], trust: str) -> ToolResult:
        """What ``tool`` says; ``trust`` is the digest of the list that it was taken from."""
        ...


class Stdio:
    """A server that lives in the sandbox, as long as one conversation takes."""

    def __init__(self, name: str, server: McpServer, sandbox: Sandbox, policy: PolicyConfig) -> None:
        self._name, self._command, self._sandbox = name, list(server.command), sandbox
        self._root = Root(policy.executables, policy.modules)
        self._files = read_files(name, server.files) if server.files else {}

    async def list(self) -> Listing:
        """Its tools, asked for in a conversation of its own."""
        program = self._program("", {})
        answer = _driver_answer(
            await self._sandbox.call(SandboxCall("python", program, self._files, WALL_S, root=self._root))
        )
        messages.introduced(answer.get("initialize"))
        pages = answer.get("pages")
        return messages.listing(pages if pages and isinstance(pages, list) else [None])

    async def call(self, work: Workspace, tool: str, arguments: Mapping[str, object], trust: str) -> ToolResult:
        """The student's work folder is neither seen nor changed."""
        result = await work.aside(self._program(tool, arguments), self._files, WALL_S)
        if result.state is not ToolState.OK:
            return answer(result)
        try:
            text, failed = messages.result_text(_driver_answer(result).get("call"))
        except WireError as error:
            text, failed = str(error), True
        shown = answer(result, marked(f"MCP server {self._name}", text))
        return shown.model_copy(update={"state": ToolState.ERROR if failed else shown.state})

    def _program(self, tool: str, arguments: Mapping[str, object]) -> str:
        request = json.dumps({"command": self._command, "tool": tool, "arguments": arguments})
        return f"{_INSIDE.read_text(encoding='utf-8')}\n\nmain({request!r})\n"


def _driver_answer(result: SandboxResult) -> dict[str, object]:
    """What the driver printed."""
    try:
        answer = json.loads(result.stdout)
    except (ValueError, RecursionError):
        answer = None
    if result.state is not ToolState.OK or not isinstance(answer, dict):
        why = result.reason or result.stderr.strip()[-300:] or "it said nothing that can be read"
        raise WireError(f"{result.state.value}: {visible(why)}")
    if "problem" in answer:
        raise WireError(f"{visible(str(answer['problem']))[:600]} {visible(result.stderr.strip())[-300:]}".strip())
    return answer


class Http:
    """An MCP server reached over HTTP; ``name`` is its key in the settings.

    Raises:
        AuthError: the variable with its key is not set, or holds none.
    """

    def __init__(self, name: str, server: McpServer) -> None:
        self._name, self._url, self._key = name, server.url, _key_of(name, server)

    async def list(self) -> Listing:
        """Its tools, through the official client."""
        listing, _ = await http.ask(self._url, WALL_S, key=self._key)
        return listing

    async def call(self, work: Workspace, tool: str, arguments: Mapping[str, object], trust: str) -> ToolResult:
        """Only where its list is still the trusted one."""
        if work.seconds <= 0:
            return refused(SPENT)
        start = time.monotonic()
        try:
            listing, raw = await http.ask(self._url, min(WALL_S, work.seconds), tool, arguments, trust, self._key)
            if listing.digest != trust:
                return refused(changed(self._name, trust, listing.digest))
            text, failed = messages.result_text(raw)
        except WireError as error:
            text, failed = str(error), True
        return ToolResult(
            state=ToolState.ERROR if failed else ToolState.OK,
            output=marked(f"MCP server {self._name}", text),
            wall_s=time.monotonic() - start,
            output_bytes=len(text.encode(errors="replace")),
        )


def _key_of(name: str, server: McpServer) -> str:
    if not server.key_env:
        return ""
    key = os.environ.get(server.key_env, "").strip()
    if not key:
        raise AuthError(f"The key of MCP server {name} is missing.", f"{server.key_env} is not set.")
    if not _key.fullmatch(key):
        why = f"{server.key_env} must hold 8 or more letters, digits or ._~+/=:-"
        raise AuthError(f"The key of MCP server {name} is none.", why)
    return key


def changed(name: str, trusted: str, current: str) -> str:
    """What is said of a server whose tools are not those that were trusted."""
    return f"the tools of MCP server {name} are not the trusted ones: sha256 {trusted} was trusted, now it is {current}"


def open_source(name: str, server: McpServer, sandbox: Sandbox, policy: PolicyConfig) -> ToolServer:
    """The server ``name`` as it is configured.

    Raises:
        ConfigError: its name, command, folder or address does not do. AuthError: its key is missing.
    """
    if not _label.fullmatch(name):
        why = "A name is 1 to 24 lower-case letters, digits or dashes: it becomes part of its tools' names."
        raise ConfigError(f"mcp.servers: {name[:40]!r} is no name of a server.", why)
    if server.transport == "http":
        if not server.url:
            raise ConfigError(f"mcp.servers.{name} has no url.", fix="Set it, or transport = stdio.")
        return Http(name, server)
    if not server.command:
        raise ConfigError(f"mcp.servers.{name} has no command.", fix="Set command, or transport = http and url.")
    return Stdio(name, server, sandbox, policy)


async def list_source(name: str, source: ToolServer) -> Listing:
    """Its tools.

    Raises:
        DependencyError: it does not tell them.
    """
    try:
        return await source.list()
    except WireError as error:
        fix = f"Repair it, or take it out of mcp.servers; see: agent0 tool mcp {name}"
        raise DependencyError(f"MCP server {name}", f"{error}.", fix) from error


def tools_of(name: str, source: ToolServer, listing: Listing) -> list[Tool]:
    """Its tools as ours, named ``mcp_<server>_<tool>``.

    Raises:
        ConfigError: two would have one name.
    """
    tools = {tool.name: tool for tool in (_tool(name, source, listed, listing.digest) for listed in listing.tools)}
    if len(tools) < len(listing.tools):
        raise ConfigError(f"Two tools of MCP server {name} cannot be told apart.", "Their names differ in signs only.")
    return list(tools.values())


def _tool(server: str, source: ToolServer, listed: ListedTool, digest: str) -> Tool:
    async def run(work: Workspace, /, **arguments: Any) -> ToolResult:
        return await source.call(work, listed.name, arguments, digest)

    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp_{server}_{listed.name}")[:LONGEST_TOOL_NAME]
    description = f"[untrusted] {listed.description or listed.name} (tool of MCP server {server})"
    foreign = ExternalTool(description, listed.schema, checker(listed.schema))
    return Tool(name, run, AnyArguments, pure=False, untrusted=True, foreign=foreign)


def read_files(name: str, folder: Path) -> dict[str, bytes]:
    """Every file below ``folder``, links left out.

    Raises:
        ConfigError: there is no such folder, or it holds more than a work folder may.
    """
    if not folder.is_dir():
        raise ConfigError(f"mcp.servers.{name}.files: there is no folder {folder}.")
    contents: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).as_posix()
        linked = any(part.is_symlink() for part in (path, *path.parents) if folder in part.parents)
        if path.is_file() and not linked and "__pycache__" not in path.parts and is_inside(inside):
            contents[inside] = path.read_bytes()
        if len(contents) > MOST_FILES or sum(map(len, contents.values())) > MOST_BYTES:
            why = f"A folder may hold {MOST_FILES} files and {MOST_BYTES >> 20} MiB."
            raise ConfigError(f"mcp.servers.{name}.files: {folder} is too large.", why)
    return contents
