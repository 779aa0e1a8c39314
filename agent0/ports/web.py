"""The role of the web: requests through a proxy, and searches."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from events.values import ToolState


@dataclass(frozen=True)
class WebRequest:
    """One request a student wants made. ``hosts`` and ``methods`` are what its run allows."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    hosts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("GET",)


@dataclass(frozen=True)
class WebResponse:
    """What came of it. ``state`` ok: there was an answer, of any ``status``; refused: not allowed, ``reason`` says
    what; timeout, output_flood: a limit; error: no answer."""

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
    """One search result. All of it is text of strangers."""

    title: str
    url: str
    text: str


class Web(Protocol):
    """The outside, for tools that a person has switched on. Lives in a process of its own."""

    async def fetch(self, request: WebRequest) -> WebResponse:
        """Make one request. Names are resolved once, and only public addresses are ever connected to."""
        ...

    async def search(self, query: str, limit: int) -> tuple[ToolState, str, list[Hit]]:
        """(state, reason, results) of the configured provider."""
        ...

    async def close(self) -> None:
        """End the process."""
        ...
