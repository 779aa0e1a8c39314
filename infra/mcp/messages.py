"""Messages of MCP servers, read with the official types: a list of tools with its digest, and what a tool said."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from pydantic import ValidationError

from agent0.events.base import sha256
from agent0.infra.mcp.schema import SchemaRefused, harmless
from agent0.tools.untrusted import visible

MOST_TOOLS, LONGEST_WORDS = 64, 500
_name = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class WireError(Exception):
    """A server that does not speak the protocol, or says what nobody should be shown."""


@dataclass(frozen=True)
class ListedTool:
    """One tool of a server; ``description`` and ``schema`` are cleaned and cut."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True)
class Listing:
    """A server's tools in the order of their names. ``digest`` changes with any name, description or schema."""

    tools: tuple[ListedTool, ...]
    digest: str


def introduced(raw: Any) -> None:
    """Raises WireError unless ``raw`` is the result of a handshake, or of ``server/discover`` in its place."""
    discovered = isinstance(raw, dict) and "supportedVersions" in raw
    _validated(types.DiscoverResult if discovered else types.InitializeResult, raw)


def listing(pages: Sequence[Any]) -> Listing:
    """Read the results of ``tools/list``, raw or already read.

    Raises:
        WireError: one is none, or there are too many tools, two of a name, or a tool nobody should be shown.
    """
    tools = [tool for page in pages for tool in _validated(types.ListToolsResult, page).tools]
    tools.sort(key=lambda tool: tool.name)
    names = [tool.name for tool in tools]
    if len(tools) > MOST_TOOLS or len(set(names)) < len(names):
        raise WireError(f"it has more than {MOST_TOOLS} tools, or two of one name")
    return Listing(tuple(_listed(tool) for tool in tools), _digest(tools))


def _digest(tools: Sequence[types.Tool]) -> str:
    plain = [[tool.name, tool.description, tool.input_schema, tool.output_schema] for tool in tools]
    return sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")))


def _listed(tool: types.Tool) -> ListedTool:
    if not _name.fullmatch(tool.name):
        raise WireError("a tool has a name that nobody could write")
    try:
        schema = harmless(tool.input_schema)
    except SchemaRefused as error:
        raise WireError(f"tool {tool.name}: {error}") from None
    return ListedTool(tool.name, " ".join(visible(tool.description or "").split())[:LONGEST_WORDS], schema)


def result_text(raw: Any) -> tuple[str, bool]:
    """(text, whether the tool failed) of the result of ``tools/call``.

    Raises:
        WireError: it is none.
    """
    result = _validated(types.CallToolResult, raw)
    if result.result_type != "complete":
        raise WireError("it asks for more, which nobody here can give")
    parts = [_text(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    return "\n".join(parts), result.is_error


def _text(block: Any) -> str:
    if isinstance(block, types.TextContent):
        return block.text
    if isinstance(block, types.EmbeddedResource) and isinstance(block.resource, types.TextResourceContents):
        return block.resource.text
    return f"({block.type} that is no text)"


def _validated(kind: Any, raw: Any) -> Any:
    try:
        return raw if isinstance(raw, kind) else kind.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        errors = error.errors(include_url=False, include_input=False)[:1] if isinstance(error, ValidationError) else []
        problems = [f"{'.'.join(map(str, item['loc']))[:100]} {item['msg']}" for item in errors]
        raise WireError(visible(f"its {kind.__name__} is none: {'; '.join(problems)}")) from None
