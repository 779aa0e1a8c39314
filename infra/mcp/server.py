"""Our own MCP server on standard input and output, through the official package, which speaks every revision: a list of
tools, each answered by a function."""

from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from agent0.errors import Agent0Error
from agent0.tools.definition import OfferedTool


async def serve_stdio(name: str, version: str, tools: Sequence[OfferedTool]) -> None:
    """Answer until standard input ends. A call that fails is answered with the reason, and ends nothing."""
    offered = {tool.name: tool for tool in tools}

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in tools])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = offered.get(params.name)
        if tool is None:
            return _result(f"There is no tool {params.name[:80]!r}. There are: {', '.join(offered)}.", failed=True)
        try:
            text, failed = await tool.answer(params.arguments or {})
        except Agent0Error as error:
            return _result(str(error), failed=True)
        return _result(text, failed=failed)

    server = Server[Any](name, version=version, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _listed(tool: OfferedTool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=tool.reads, destructive_hint=False)
    return types.Tool(name=tool.name, description=tool.description, input_schema={**tool.schema}, annotations=hints)


def _result(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)
