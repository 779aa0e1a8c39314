"""Which processes react to the events of this log, and what each of them lacks: they are asked, and those that live
answer."""

import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
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
    longest: str = field(default="", compare=False)
    """What it has had in hand for longest."""
    in_hand: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Handler -> messages that were delivered to it and are not done."""

    @property
    def name(self) -> str:
        """What no other process is called."""
        return f"{self.host} {self.pid} {self.number}"

    def __str__(self) -> str:
        return f"{self.pid} on {self.host} ({len(self.handlers)} handlers)"


KNOWN = {field.name for field in fields(ProcessReply)}


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
        longest: Callable[[], str] = str,
        in_hand: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self._waits, self._models, self._longest, self._in_hand = waits, models, longest, in_hand
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
        states = self._waits(), tuple(self._models()), self._longest(), self._in_hand()
        return ProcessReply(*own, missing, self._slots, self._version, *states)

    async def _answer(self, message: Msg) -> None:
        if message.reply:
            await self._log.client.publish(message.reply, json.dumps(asdict(self.own_reply())).encode())


async def ask(log: Log) -> list[ProcessReply]:
    """Ask all processes that react to the events of ``log``; in a fixed order."""
    replies: list[ProcessReply] = []

    async def take(message: Msg) -> None:
        plain = {name: value for name, value in json.loads(message.data).items() if name in KNOWN}
        lists = {name: tuple(plain.get(name, ())) for name in ("handlers", "models")}
        replies.append(ProcessReply(**{**plain, **lists}))  # another version says more, or less

    inbox = log.client.new_inbox()
    subscription = await log.client.subscribe(inbox, cb=take)
    await log.client.publish(SUBJECT, b"", reply=inbox)
    await asyncio.sleep(PATIENCE_S)
    await subscription.unsubscribe()
    return sorted(replies, key=lambda reply: (reply.host, reply.pid, reply.number))
