"""Our own MCP server, through the official package, which speaks every revision: tools, each answered by a function,
those with an address readable as resources, and prompts. It answers on standard input and output, or over HTTP, where
every request stands for itself: there are no sessions."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from agent0.errors import Agent0Error, NotFoundError
from agent0.tools.definition import OfferedPrompt, OfferedTool

LONGEST_URI = 2000
"""Characters that are told of an address that nothing is at."""
Application = Callable[[Any, Any, Any], Awaitable[None]]
"""What answers over HTTP: a function of scope, receive and send (ASGI)."""


def mcp_server(
    name: str, version: str, tools: Sequence[OfferedTool], prompts: Sequence[OfferedPrompt] = ()
) -> Server[Any]:
    """Make a server of ``tools`` and ``prompts``. A call that fails is answered with the reason, and ends nothing."""
    handlers = _OfferHandlers(tools, prompts)
    return Server[Any](
        name,
        version=version,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class _OfferHandlers:
    """What each kind of request is answered with."""

    def __init__(self, tools: Sequence[OfferedTool], prompts: Sequence[OfferedPrompt]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._prompts = {prompt.name: prompt for prompt in prompts}
        self._readable = [tool for tool in tools if tool.uri]

    async def list_tools(self, _: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in self._tools.values()])

    async def call_tool(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            why = f"There is no tool {params.name[:80]!r}. There are: {', '.join(self._tools)}."
            return _result(why, failed=True)
        try:
            text, failed = await tool.answer(params.arguments or {})
        except Agent0Error as error:
            return _result(str(error), failed=True)
        return _result(text, failed=failed)

    async def list_resources(self, _: Any, __: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[entry for tool in self._readable for entry in _resources(tool)])

    async def list_templates(self, _: Any, __: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[*map(_template, filter(_parts, self._readable))])

    async def read_resource(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        tool, arguments = self._addressed(params.uri)
        try:
            text, failed = await tool.answer(arguments)
        except Agent0Error as error:
            code = types.INVALID_PARAMS if isinstance(error, NotFoundError) else types.INTERNAL_ERROR
            raise MCPError(code, str(error), {"uri": params.uri[:LONGEST_URI]}) from error
        if failed:
            raise MCPError(types.INTERNAL_ERROR, text, {"uri": params.uri[:LONGEST_URI]})
        contents = types.TextResourceContents(uri=params.uri, mime_type=tool.media, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, _: Any, __: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[_shown(prompt) for prompt in self._prompts.values()])

    async def get_prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt, arguments = self._prompts.get(params.name), params.arguments or {}
        if prompt is None:
            why = f"There is no prompt {params.name[:80]!r}. There are: {', '.join(self._prompts)}."
            raise MCPError(types.INVALID_PARAMS, why)
        if missing := [name for name in prompt.arguments if not arguments.get(name)]:
            raise MCPError(types.INVALID_PARAMS, f"The prompt {prompt.name} takes {missing[0]}.")
        try:
            text = await prompt.write(arguments)
        except Agent0Error as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        content = types.TextContent(text=text)
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    def _addressed(self, uri: str) -> tuple[OfferedTool, Mapping[str, object]]:
        """The tool that is read at ``uri``, and its arguments."""
        for tool in self._readable:
            part = ".+" if _values(tool) else "[^/]+"
            pattern = re.sub(r"\\{(\w+)\\}", rf"(?P<\1>{part})", re.escape(tool.uri))
            if match := re.fullmatch(pattern, uri):
                return tool, {name: unquote(value) for name, value in match.groupdict().items()}
        why = f"There is no resource {uri[:80]!r}. resources/list and resources/templates/list name them."
        raise MCPError(types.INVALID_PARAMS, why, {"uri": uri[:LONGEST_URI]})


async def serve_stdio(server: Server[Any]) -> None:
    """Answer on standard input and output until the former ends."""
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


@asynccontextmanager
async def http_application(server: Server[Any]) -> AsyncIterator[Application]:
    """What answers requests at one path, for as long as this is open."""
    manager = StreamableHTTPSessionManager(server, stateless=True)
    async with manager.run():
        yield manager.handle_request


def _listed(tool: OfferedTool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=tool.reads, destructive_hint=False)
    return types.Tool(name=tool.name, description=tool.description, input_schema={**tool.schema}, annotations=hints)


def _shown(prompt: OfferedPrompt) -> types.Prompt:
    arguments = [types.PromptArgument(name=n, description=d, required=True) for n, d in prompt.arguments.items()]
    return types.Prompt(name=prompt.name, description=prompt.description, arguments=arguments)


def _result(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)


def _parts(tool: OfferedTool) -> list[str]:
    return re.findall(r"\{(\w+)\}", tool.uri)


def _values(tool: OfferedTool) -> list[str]:
    """The values of its address's one part, where its schema names all of them."""
    properties = tool.schema.get("properties")
    part = properties.get(parts[0]) if isinstance(properties, Mapping) and (parts := _parts(tool)) else None
    values = part.get("enum") if isinstance(part, Mapping) else None
    return [str(value) for value in values] if isinstance(values, list) else []


def _resources(tool: OfferedTool) -> Iterator[types.Resource]:
    about = tool.description, tool.media
    if not (parts := _parts(tool)):
        yield types.Resource(name=tool.name, uri=tool.uri, description=about[0], mime_type=about[1])
    for value in _values(tool):
        uri = tool.uri.replace(f"{{{parts[0]}}}", value)
        yield types.Resource(name=value, uri=uri, description=about[0], mime_type=about[1])


def _template(tool: OfferedTool) -> types.ResourceTemplate:
    return types.ResourceTemplate(
        name=tool.name, uri_template=tool.uri, description=tool.description, mime_type=tool.media
    )
