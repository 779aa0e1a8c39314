"""Runs of four kinds behind one face for a table of cases: of a folder or of a server, asked by coroutines or not."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agent0
from agent0.api import server
from agent0.assembly.api.calls import Background
from agent0.config.loading import load
from agent0.errors import Agent0Error, ConfigError, NotFoundError

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

    async def on(self, *given: Any) -> None:
        await asyncio.to_thread(self.inner.on(*given).join)

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


async def all_of(events: Any) -> list[agent0.Recorded]:
    """The events of a stream."""
    return [event async for event in events]


WRONG: dict[str, tuple[str, Any]] = {
    "timeout = 'x' is no number of seconds": ("run", lambda run: run.wait(timeout="x")),
    "timeout = -1 is no": ("run", lambda run: run.wait(-1)),
    "timeout = nan is no": ("run", lambda run: run.wait(float("nan"))),
    "at = 'x' is no whole number": ("run", lambda run: run.fork(at="x")),
    "at = True is no": ("run", lambda run: run.fork(True)),
    "settings = 5 is no mapping": ("run", lambda run: run.fork(0, 5)),
    "name = 5 is no text": ("run", lambda run: run.fork(name=5)),
    "after = 'x' is no": ("run", lambda run: all_of(run.events(after="x"))),
    "type = 5 is no text": ("run", lambda run: all_of(run.events(5))),
    "follow = 'x' is no truth value": ("run", lambda run: all_of(run.events(follow="x"))),
    "callback = 5 is no function": ("run", lambda run: run.on(5)),
    "columns = 5 is no text": ("run", lambda run: run.metrics("step", 5)),
    "reason = 5 is no text": ("run", lambda run: run.pause(5)),
    "wait = 5 is no truth value": ("runs", lambda runs: runs.start(wait=5)),
    "questions = 5 is no file or rows": ("runs", lambda runs: runs.start(questions=5)),
    "profile = 5 is no text": ("runs", lambda runs: runs.start(5)),
    "settings = {5: 1} is no mapping": ("runs", lambda runs: runs.start(settings={5: 1})),
    "name = None is no text": ("runs", lambda runs: runs.run(None)),
    "documents = 5 is no path": ("runs", lambda runs: runs.start(documents=5)),
    "tag = 5 is no text": ("runs", lambda runs: runs.runs(tag=5)),
}
"""What an error says of an argument of another type -> on what it is called, and the call."""


ABSENT: dict[str, tuple[type[Agent0Error], Any]] = {
    "Did you mean whole-": (NotFoundError, lambda runs, run: runs.run(run.id[:-1] + "_")),
    "Did you mean curve/validation": (NotFoundError, lambda _, run: run.metrics("curve/validaton")),
    "Did you mean TaskAccepted": (NotFoundError, lambda _, run: all_of(run.events("TaskAcepted"))),
    "has no task 't9-8'": (NotFoundError, lambda _, run: all_of(run.events(task="t9-8"))),
    "has no task 't9-9'": (NotFoundError, lambda _, run: all_of(run.events("RunPaused", task="t9-9"))),
    "no event 1000000000 yet": (NotFoundError, lambda _, run: all_of(run.events(after=10**9))),
    "Did you mean run.tasks": (ConfigError, lambda runs, _: runs.start(settings={"run.taks": 3}, wait=False)),
    "Did you mean": (ConfigError, lambda _, run: run.fork(settings={"run.atempts": 3}, wait=False)),
    "Did you mean scripted": (ConfigError, lambda runs, _: runs.start("scriptd", wait=False)),
    "no event 1000000000": (NotFoundError, lambda _, run: run.fork(10**9, wait=False)),
}
"""What an error says of what there is not -> its class, and the call on the runs or on one that is over."""
