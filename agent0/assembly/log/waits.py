"""Part of the rim: what runs of a data folder wait for that their events do not say (yet)."""

import asyncio
from pathlib import Path

from agent0.infra.bus import log_wait, user_code
from agent0.infra.models.calls import first_words
from agent0.infra.storage import files as disk

LOOK_S = 1.0


def waits(home: Path) -> str:
    """Say what runs in ``home`` wait for: space on its disk or in the log, which cannot be recorded, or the first
    token of a model server, or a function of a user's file, which are no events before it is too late. Empty where they
    wait for none of these."""
    return disk.waits(home) or log_wait.read(home) or first_words.read(home) or user_code.text(user_code.read(home))


async def write_waits(home: Path) -> None:
    """Let other processes read what this one waits for, until cancelled."""
    while True:
        first_words.write(home)
        user_code.write(home, *user_code.awaited())
        await asyncio.sleep(LOOK_S)
