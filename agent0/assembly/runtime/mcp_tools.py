"""Part of the rim: MCP servers become tools. The tools of each server in the settings are listed, compared with the
list that a user trusted, and added to the registered tools of the app."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypedDict

from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_port
from agent0.config.distribution import installed_version
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, DependencyError, NotFoundError
from agent0.ports.sandbox import Sandbox
from agent0.settings import McpServer, Settings
from agent0.tools import tools
from agent0.tools.definition import OfferedPrompt, OfferedTool, Tool

MCP = "mcp_"
"""How the names of all their tools begin."""

if TYPE_CHECKING:
    from agent0.infra.mcp.messages import Listing
    from agent0.infra.mcp.server import Application


class McpListing(TypedDict):
    """What a server offers: ``digest`` of its tools, the ``trust`` of the settings, and ``name``, ``description`` and
    ``schema`` of each tool, all cleaned."""

    server: str
    transport: str
    digest: str
    trust: str
    trusted: bool
    tools: Sequence[Mapping[str, object]]


async def mcp_tools(settings: Settings, sandbox: Sandbox) -> dict[str, Tool]:
    """The tools that all configured servers offer, by name; none without servers. A tool that the profile's student
    wants must be among them.

    Raises:
        ConfigError: a server that is not configured well, whose tools are not the trusted ones, or have a name twice.
        DependencyError: one that does not answer, or the package mcp is not installed.
    """
    offered: dict[str, Tool] = {}
    for name, server in settings.mcp.servers.items():
        for entry in await _trusted_tools(settings, name, server, sandbox):
            if entry.name in offered or entry.name in tools():
                why = f"One of them is offered by MCP server {name}."
                raise ConfigError(f"Two tools are named {entry.name}.", why, "Give the server another name.")
            offered[entry.name] = entry
    missing = [name for name in settings.run.student.tools if name.startswith(MCP) and name not in offered]
    if missing:
        why = f"MCP servers offer: {', '.join(offered) or 'nothing'}."
        raise ConfigError(
            f"run.student.tools: there is no {missing[0][:80]!r}.", why, nearest(missing[0], list(offered))
        )
    return offered


async def _trusted_tools(settings: Settings, name: str, server: McpServer, sandbox: Sandbox) -> list[Any]:
    _check_package()
    from agent0.infra.mcp.servers import changed, list_source, open_source, tools_of

    source = open_source(name, server, sandbox, settings.run.policy)
    look = f"Look at its tools with: agent0 tool mcp {name}"
    if server.transport == "http" and not server.trust:
        raise ConfigError(f"MCP server {name} is not trusted.", f"mcp.servers.{name}.trust is empty.", look)
    listing = await list_source(name, source)
    if server.trust and server.trust != listing.digest:
        what = changed(name, server.trust, listing.digest)
        raise ConfigError(f"{what[:1].upper()}{what[1:]}.", fix=f"{look}; then set mcp.servers.{name}.trust.")
    return tools_of(name, source, listing)


async def serve_mcp(offered: Sequence[OfferedTool], prompts: Sequence[OfferedPrompt]) -> None:
    """Offer tools and prompts as an MCP server on standard input and output, until the former ends.

    Raises:
        DependencyError: the package mcp is not installed.
    """
    _check_package()
    from agent0.infra.mcp.server import mcp_server, serve_stdio

    await serve_stdio(mcp_server("agent0", installed_version(), offered, prompts))


@asynccontextmanager
async def mcp_application(
    offered: Sequence[OfferedTool], prompts: Sequence[OfferedPrompt]
) -> AsyncIterator["Application"]:
    """What answers as an MCP server over HTTP, for as long as this is open; who may ask is decided before it.

    Raises:
        DependencyError: the package mcp is not installed.
    """
    _check_package()
    from agent0.infra.mcp.server import http_application, mcp_server

    async with http_application(mcp_server("agent0", installed_version(), offered, prompts)) as application:
        yield application


async def inspect_mcp(settings: Settings, name: str) -> McpListing:
    """What the server ``name`` offers now. Nothing is offered to anyone.

    Raises:
        NotFoundError: no such server is configured.
        ConfigError, DependencyError: it cannot be asked.
    """
    servers = settings.mcp.servers
    if name not in servers:
        configured = f"Configured: {', '.join(servers) or 'none'}."
        raise NotFoundError(f"There is no MCP server {name[:40]!r}.", configured, nearest(name, list(servers)))
    if servers[name].transport == "http":
        return _shown(name, servers[name], await _list(settings, name, None))
    single = settings.model_copy(update={"sandbox": settings.sandbox.model_copy(update={"workers": 1})})
    sandbox = await open_port("sandbox", single, artifact_store(settings))
    try:
        return _shown(name, servers[name], await _list(settings, name, sandbox))
    finally:
        await sandbox.close()


async def _list(settings: Settings, name: str, sandbox: Any) -> "Listing":
    _check_package()
    from agent0.infra.mcp.servers import list_source, open_source

    return await list_source(name, open_source(name, settings.mcp.servers[name], sandbox, settings.run.policy))


def _shown(name: str, server: McpServer, listing: "Listing") -> McpListing:
    return {
        "server": name,
        "transport": server.transport,
        "digest": listing.digest,
        "trust": server.trust,
        "trusted": server.trust == listing.digest,
        "tools": [
            {"name": tool.name, "description": tool.description, "schema": dict(tool.schema)} for tool in listing.tools
        ],
    }


def _check_package() -> None:
    if find_spec("mcp") is None:
        raise DependencyError("The package mcp", "MCP servers are configured.", "make setup EXTRAS=mcp")
