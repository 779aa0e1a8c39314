"""A server on 127.0.0.1 that says exactly the bytes it is told to, and keeps what it was asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Say = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Asked:
    """One request as it came over the wire; header names in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes
    server_name: str | None = None

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]


@dataclass
class Served:
    """Where a server listens, how many connected to it, and what it was asked."""

    port: int = 0
    connections: int = 0
    asked: list[Asked] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)


def reply(body: bytes = b"hello", status: str = "200 OK", **headers: str) -> Say:
    """The same answer to everything."""
    given = {"Content-Type": "text/plain", "Content-Length": str(len(body))}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return raw(f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + body)


def raw(data: bytes) -> Say:
    """Just these bytes."""

    async def say(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return say


@asynccontextmanager
async def serving(say: Say, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """A listening server."""
    found = Served()
    if tls:
        tls.sni_callback = lambda _, name, __: found.names.append(name)
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.connections += 1
        try:
            found.asked.append(await _read(reader))
            await say(found.asked[-1], writer)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Asked(head[0], headers, await reader.readexactly(int(headers.get("content-length", 0))))
