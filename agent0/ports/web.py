"""The role of the web: requests through a proxy, and searches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent0.events.values import ToolState


@dataclass(frozen=True)
class WebRequest:
    """One HTTP request of a student. ``hosts`` and ``methods`` are what its run allows."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("GET",)


@dataclass(frozen=True)
class WebResponse:
    """The outcome of a web request.

    ``state`` ok: a response of any ``status``; refused: not allowed, ``reason`` says why; timeout, output_flood: a
    limit was reached; error: no response.
    """

    state: ToolState
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    reason: str = ""
    wall_s: float = 0.0
    url: str = ""
    """The address that answered, after redirects."""


@dataclass(frozen=True)
class Hit:
    """One search result. All of its text is untrusted."""

    title: str
    url: str
    text: str


class Web(Protocol):
    """Network access for tools that a user switched on, in a process of its own."""

    async def fetch(self, request: WebRequest) -> WebResponse:
        """Make one request. Names are resolved once, and only public addresses are connected to."""
        ...

    async def search(self, query: str, limit: int) -> tuple[ToolState, str, list[Hit]]:
        """Search with the configured provider; returns (state, reason, results)."""
        ...

    async def close(self) -> None:
        """End the proxy process."""
        ...
