"""Which processes react to the events of this log, and what each of them lacks: they are asked, and those that live
answer."""

import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nats.aio.msg import Msg

from agent0.errors import DependencyError
from agent0.infra.log.event_log import Log

SUBJECT = "a0.live.processes"
PATIENCE_S = 1.0
"""How long answers are waited for: nobody knows how many will come."""


@dataclass(frozen=True, order=True)
class ProcessReply:
    """A process that reacts to events. ``missing``: run -> handler -> what it lacks; ``slots``: reactions at once, of
    the handler that has most."""

    host: str
    pid: int
    number: int
    handlers: tuple[str, ...]
    missing: Mapping[str, Mapping[str, str]]
    slots: int = 0
    version: str = ""
    waits: str = field(default="", compare=False)
    """Why it cannot store what it has done."""
    models: tuple[str, ...] = field(default=(), compare=False)
    """Those that it has loaded, by digest."""

    @property
    def name(self) -> str:
        """What no other process is called."""
        return f"{self.host} {self.pid} {self.number}"

    def __str__(self) -> str:
        return f"{self.pid} on {self.host} ({len(self.handlers)} handlers)"


class Processes:
    """Answers for this process when all are asked."""

    def __init__(
        self,
        log: Log,
        handlers: Sequence[str],
        missing: Mapping[str, Mapping[str, DependencyError]],
        slots: int = 0,
        version: str = "",
        waits: Callable[[], str] = str,
        models: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._waits, self._models = waits, models
        self._log, self._handlers, self._missing = log, tuple(handlers), missing
        self._slots, self._version = slots, version
        self._subscription: Any = None

    async def start(self) -> None:
        """Answer whoever asks."""
        self._subscription = await self._log.client.subscribe(SUBJECT, cb=self._answer)

    async def stop(self) -> None:
        """Answer no more."""
        if self._subscription and not self._log.client.is_closed:
            await self._subscription.unsubscribe()

    def own_reply(self) -> ProcessReply:
        """What this process answers."""
        missing = {
            run: {name: str(error.dependency) for name, error in of.items()} for run, of in self._missing.items()
        }
        own = socket.gethostname(), os.getpid(), id(self), self._handlers
        return ProcessReply(*own, missing, self._slots, self._version, self._waits(), tuple(self._models()))

    async def _answer(self, message: Msg) -> None:
        if message.reply:
            await self._log.client.publish(message.reply, json.dumps(asdict(self.own_reply())).encode())


async def ask(log: Log) -> list[ProcessReply]:
    """Ask all processes that react to the events of ``log``; in a fixed order."""
    replies: list[ProcessReply] = []

    async def take(message: Msg) -> None:
        plain = json.loads(message.data)
        lists = {name: tuple(plain[name]) for name in ("handlers", "models")}
        replies.append(ProcessReply(**{**plain, **lists}))

    inbox = log.client.new_inbox()
    subscription = await log.client.subscribe(inbox, cb=take)
    await log.client.publish(SUBJECT, b"", reply=inbox)
    await asyncio.sleep(PATIENCE_S)
    await subscription.unsubscribe()
    return sorted(replies, key=lambda reply: (reply.host, reply.pid, reply.number))
