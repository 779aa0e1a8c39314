"""Part of the rim: rebuilding the tables while a server goes on with the old ones: by the command line's own word, in a
process of its own, since reading a million events would keep this one from answering."""

import asyncio
import json
import sys
from typing import Any

from agent0.config.loading import environment_settings
from agent0.errors import OperationError
from agent0.infra.engine.worker_process import environment_of
from agent0.settings import Settings

Row = dict[str, Any]
SHOWN = 500
"""Characters of what a rebuild that failed said."""


class Rebuilding:
    """The rebuild that one server began last: ``state`` is none, under way, done or failed (``why``)."""

    def __init__(self) -> None:
        self.said: Row = {"state": "none", "seq": None, "why": ""}
        self._work: asyncio.Task[None] | None = None

    def begin(self, settings: Settings) -> Row:
        """Begin to rebuild the tables of ``settings``.

        Raises:
            OperationError: they are being rebuilt.
        """
        if self._work and not self._work.done():
            raise OperationError("The tables are being rebuilt.", fix="Wait for it: GET /v1/status says how it stands.")
        self.said = {"state": "under way", "seq": None, "why": ""}
        self._work = asyncio.create_task(self._run(settings))
        return self.said

    async def close(self) -> None:
        """End what is under way; the live tables stay as they are."""
        if self._work:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    async def _run(self, settings: Settings) -> None:
        command = (sys.executable, "-m", "agent0", "projections", "rebuild", "--json")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, env=environment_for(settings), stdout=pipe, stderr=pipe
        )
        try:
            out, wrong = await process.communicate()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        if process.returncode == 0:
            self.said = {"state": "done", "seq": json.loads(out)["seq"], "why": ""}
        else:
            self.said = {"state": "failed", "seq": None, "why": wrong.decode(errors="replace").strip()[-SHOWN:]}


def environment_for(settings: Settings) -> dict[str, str]:
    """What a command needs to do as this process does: the settings of its environment, and the data folder and server
    of ``settings``. No secret but that of the log."""
    values = {name: getattr(settings.nats, name) for name in settings.nats.model_fields_set}
    plain = {name: value.get_secret_value() if name == "password" else value for name, value in values.items()}
    nats = {f"AGENT0_NATS__{name.upper()}": str(value) for name, value in plain.items() if value is not None}
    return {**environment_settings(), **environment_of(1), "AGENT0_HOME": str(settings.home), **nats}
