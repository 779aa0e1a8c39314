"""A server written with the official package: over stdio where it is run, else an object to be served over HTTP."""

from mcp.server import MCPServer


def build(more: str = "") -> MCPServer:
    """``more`` is added to what a tool says of itself."""
    server = MCPServer("official")

    @server.tool(description=f"Add two numbers.{more}")
    def add(a: int, b: int = 1) -> int:
        return a + b

    @server.tool(description="Say a text again.")
    def echo(text: str) -> str:
        return text

    @server.tool(description="Fail.")
    def fail() -> str:
        raise ValueError("this went wrong")

    return server


if __name__ == "__main__":
    build().run()
