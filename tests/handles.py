"""Runs of four kinds behind one face for a table of cases: of a folder or of a server, asked by coroutines or not."""

import asyncio
import json
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agent0
from agent0.api import server
from agent0.assembly.api.calls import Background
from agent0.config.loading import load
from agent0.infra.web.agent0_server import ServerLink
from integrations.chat.answers import CommandAnswers
from integrations.chat.core import command_of

SMALL = {
    "run.iterations": 1,
    "run.tasks": 4,
    "run.attempts": 2,
    "run.evaluation.validation": 4,
    "run.evaluation.test": 2,
}
LONG = {**SMALL, "run.iterations": 500}


@contextmanager
def served(home: Path, **settings: str) -> Iterator[str]:
    """`agent0 up` of ``home`` in a thread; its address."""
    stands, said = threading.Event(), list[str]()

    def say(address: str) -> None:
        said.append(address.removesuffix("/runs"))
        stands.set()

    chosen = load("scripted", {"home": str(home), "api.port": "0", "sandbox.workers": "1", **settings})
    serving = Background(lambda: server.up(chosen, say))
    serving.start()
    try:
        while not stands.wait(0.05):
            if serving.ended.done():
                serving.ended.result()
        yield said[0]
    finally:
        serving.stop()


class SyncRun:
    """A handle whose calls wait, asked in threads, so that cases are coroutines for both kinds."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.id = inner, inner.id

    async def status(self) -> str:
        return await asyncio.to_thread(lambda: self.inner.status)

    async def progress(self) -> agent0.RunProgress:
        return await asyncio.to_thread(lambda: self.inner.progress)

    async def fork(self, *given: Any, **more: Any) -> "SyncRun":
        return SyncRun(await asyncio.to_thread(self.inner.fork, *given, **more))

    async def on(self, *given: Any, **more: Any) -> None:
        await asyncio.to_thread(self.inner.on(*given, **more).join)

    async def events(self, *given: Any, **more: Any) -> AsyncIterator[agent0.Recorded]:
        iterator = await asyncio.to_thread(self.inner.events, *given, **more)
        while (event := await asyncio.to_thread(next, iterator, None)) is not None:
            yield event

    def __getattr__(self, name: str) -> Any:
        return lambda *given, **more: asyncio.to_thread(getattr(self.inner, name), *given, **more)


class SyncRuns:
    """A folder or a server, asked in threads."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def start(self, *given: Any, **more: Any) -> SyncRun:
        return SyncRun(await asyncio.to_thread(self.inner.start, *given, **more))

    async def run(self, name: str = "LAST") -> SyncRun:
        return SyncRun(await asyncio.to_thread(self.inner.run, name))

    async def runs(self, **more: Any) -> list[SyncRun]:
        return [SyncRun(run) for run in await asyncio.to_thread(lambda: self.inner.runs(**more))]


class ChatRun:
    """A run of which a chat asks: each call is typed, as one of its users would."""

    def __init__(self, commands: CommandAnswers, id: str) -> None:
        self.commands, self.id = commands, id

    async def status(self) -> str:
        return str((await self.typed("status"))["status"])

    async def fork(self, **given: Any) -> "ChatRun":
        return ChatRun(self.commands, (await self.typed("fork", **given)).id)

    async def events(self, **given: Any) -> AsyncIterator[agent0.Recorded]:
        for event in await self.typed("events", **given):
            yield event

    async def typed(self, verb: str, *words: Any, **given: Any) -> Any:
        """What ``verb`` gives; `name=value` stands behind it, settings by their own names."""
        settings = given.pop("settings", {})
        pairs = settings if isinstance(settings, dict) else {"settings": settings}
        texts = [word if isinstance(word, str) else json.dumps(word) for word in words]
        texts += [f"{name}={json.dumps(value)}" for name, value in (given | pairs).items()]
        text, again = " ".join((verb, self.id, *texts)), str(uuid.uuid4())
        try:
            return await self.commands.value(command_of(text, "U1", self.commands.allowed), again)
        except agent0.Agent0Error as error:
            answer = await self.commands.reply(text, "U1", again)
            assert answer == " ".join(str(error).split()).replace("://", ": //"), (answer, error)
            raise

    def __getattr__(self, name: str) -> Any:
        return lambda *words, **given: self.typed(name, *words, **given)


class ChatRuns:
    """A server of which a chat asks, by commands alone; what starts a run is its template."""

    def __init__(self, url: str) -> None:
        self._commands = CommandAnswers(ServerLink(url, "", 30.0), frozenset({"U1"}), {})

    async def start(self, **given: Any) -> ChatRun:
        self._commands.templates["case"] = given
        return ChatRun(self._commands, (await ChatRun(self._commands, "case").typed("start")).id)

    async def run(self, name: str = "LAST") -> ChatRun:
        return ChatRun(self._commands, (await ChatRun(self._commands, name).typed("overview"))["run"])

    async def runs(self, **given: Any) -> Any:
        return await ChatRun(self._commands, "").typed("runs", **given)


async def all_of(events: Any) -> list[agent0.Recorded]:
    """The events of a stream."""
    return [event async for event in events]
