"""What drives a stdio MCP server inside the sandbox, on the official implementation, with its handshake and without."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agent0.infra.mcp import messages, stdio_bridge

pytestmark = pytest.mark.asyncio(loop_scope="session")
FOLDER = Path(__file__).parent / "servers_of_mcp"


class WithoutHandshake(stdio_bridge.ServerProcess):
    """As if the server refused to shake hands."""

    def ask(self, method: str, params: Any) -> dict[str, object]:
        if method == "initialize":
            raise stdio_bridge.RefusedRequestError("initialize: not here")
        return super().ask(method, params)


@pytest.mark.parametrize("kind", [stdio_bridge.ServerProcess, WithoutHandshake])
async def test_the_driver_speaks_with_the_official_server(kind: type[stdio_bridge.ServerProcess]) -> None:
    def converse() -> tuple[Any, list[Any], Any]:
        server = kind(["python", str(FOLDER / "official.py")])
        with server._child:
            told = (
                server.begin(),
                server.pages(),
                server.ask("tools/call", {"name": "add", "arguments": {"a": 2, "b": 40}}),
            )
            server._child.kill()
        return told

    introduced, pages, called = await asyncio.to_thread(converse)
    messages.introduced(introduced)
    assert [tool.name for tool in messages.listing(pages).tools] == ["add", "echo", "fail"]
    assert messages.result_text(called) == ("42", False)


async def test_the_driver_needs_the_standard_library_only() -> None:
    names = {
        line.split()[1].split(".")[0]
        for line in Path(stdio_bridge.__file__).read_text().splitlines()
        if line[:4] in ("impo", "from")
    }
    assert names <= sys.stdlib_module_names
