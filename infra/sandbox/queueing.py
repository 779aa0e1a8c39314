"""A bounded queue before a backend that serves a fixed number of calls at once. A call beyond the bound returns
``busy`` at once."""

import asyncio
from abc import ABC, abstractmethod
from typing import ClassVar

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolState
from agent0.infra.sandbox import selftest
from agent0.infra.sandbox.execution import not_run, refusal
from agent0.infra.sandbox.inside.calling import SandboxProcessError
from agent0.infra.sandbox.roots import EVERYTHING
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult
from agent0.settings import SandboxSettings

TIER = "watchdog"


class Queued(ABC):
    """The ``Sandbox`` port with a bounded queue before the ``execute`` of a subclass. The self-test runs with
    ``root``; each call names its own root."""

    name: ClassVar[str]

    def __init__(
        self, settings: SandboxSettings, label: str = "student", workers: int = 1, root: Root = EVERYTHING
    ) -> None:
        self.label, self.settings, self.root = label, settings, root
        self.places = workers * settings.calls
        self._room = asyncio.Semaphore(self.places)
        self._waiting = 0
        self._closed = False

    @abstractmethod
    async def execute(self, call: SandboxCall) -> SandboxResult:
        """See ``agent0.infra.sandbox.selftest.Executes``."""

    async def start(self) -> None:
        """Pass the whole self-test.

        Raises:
            SandboxUnavailableError: it did not.
        """
        selftest.require(await selftest.inspect(self, self.root))
        selftest.require(await selftest.limits(self, self.root))

    async def call(self, call: SandboxCall) -> SandboxResult:
        """See ``agent0.ports.sandbox.Sandbox``. More than ``queue`` calls in line: state ``busy`` at once."""
        if reason := refusal(call):
            return not_run(ToolState.REFUSED, reason, self.name, TIER)
        if self._waiting >= self.settings.queue:
            reason = f"{self._waiting} calls are waiting already (sandbox.queue); try again later"
            return not_run(ToolState.BUSY, reason, self.name, TIER)
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        try:
            return await self._twice(call)
        finally:
            self._room.release()

    async def _twice(self, call: SandboxCall) -> SandboxResult:
        """Once more, equally isolated, where the container died under the call: another may have been the cause."""
        error = ""
        for _ in range(2):
            if self._closed:
                raise SandboxUnavailableError(f"The sandbox ({self.label})", "it was closed.")
            try:
                return await self.execute(call)
            except SandboxProcessError as trouble:
                error = str(trouble)
        return not_run(ToolState.SANDBOX_ERROR, error, self.name, TIER)

    async def close(self) -> None:
        """Serve nobody any more."""
        self._closed = True
