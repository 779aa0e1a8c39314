"""Turns that are passed on while they are written, and never made of two models' texts.

A turn is held back until a rule commits to it. Before that another model, or another try, may take over, and what was
held back is dropped. After it nobody may: a failure is an error that says so.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from agent0.errors import StreamBrokenError
from agent0.ports.models import GenerateRequest, Generation, Listen, Model

BYTES_A_TOKEN = 4


class HeldText:
    """Hears what the tries of one request write, and passes it on once ``tokens`` of a try are there; 0: at its first
    byte. A token counts as four bytes. White space at either end waits for what comes after it."""

    def __init__(self, listen: Listen, tokens: int) -> None:
        self._listen, self._least = listen, max(1, tokens * BYTES_A_TOKEN)
        self.given = ""

    def __call__(self, text: str) -> None:
        """Take all that a try has written so far."""
        ready = text.rstrip()
        if text[:1].isspace() or (not self.given and len(ready.encode()) < self._least):
            return
        if len(ready) > len(self.given):
            self.given = ready
            self._listen(ready)

    def require_held(self, error: Exception) -> None:
        """Raises StreamBrokenError, because of ``error``, where text of the try was passed on: nobody may take over."""
        if self.given:
            why = f"{len(self.given)} characters were passed on, then: {error}"
            raise StreamBrokenError("A turn broke off while it was passed on.", why, "Ask again.") from error

    def require_whole(self, text: str) -> None:
        """Raises StreamBrokenError where what was passed on is not how the turn ``text`` begins."""
        if not text.startswith(self.given):
            raise StreamBrokenError("A turn is not what was passed on of it.", "Its server took some of it back.")


def with_held_text(request: GenerateRequest, tokens: int) -> tuple[GenerateRequest, HeldText | None]:
    """``request`` with what hears its tries; None where nobody listens."""
    if request.listen is None:
        return request, None
    text = HeldText(request.listen, tokens)
    return replace(request, listen=text), text


def require_held(request: GenerateRequest, error: Exception) -> None:
    """Raise StreamBrokenError, because of ``error``, where text of ``request`` was passed on."""
    if isinstance(request.listen, HeldText):
        request.listen.require_held(error)


def heard(model: Model, request: GenerateRequest) -> GenerateRequest:
    """``request``, without anybody who listens where ``model`` gives whole turns: it may send requests elsewhere."""
    return request if getattr(model, "streams", False) else replace(request, listen=None)


async def streamed(model: Model, request: GenerateRequest) -> AsyncGenerator[str | Generation]:
    """Pass on a turn of ``model`` piece by piece as it is written, then the turn: its text is that of the pieces.

    Whoever closes this closes the connection to the server; a call that costs money is charged in full then.

    Raises:
        StreamBrokenError: it broke off after a piece of it was passed on. Otherwise as ``Model.generate``.
    """
    grown: asyncio.Queue[str | None] = asyncio.Queue()
    writing = asyncio.ensure_future(model.generate(heard(model, replace(request, listen=grown.put_nowait))))
    writing.add_done_callback(lambda _: grown.put_nowait(None))
    passed = ""
    try:
        while (text := await grown.get()) is not None:
            piece, passed = text[len(passed) :], text
            if piece:
                yield piece
        written = await writing
        if rest := written.text[len(passed) :]:
            yield rest
        yield written
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
