"""A run that is killed in the middle, for tests of what goes on behind it."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent0.events.base import Recorded
from agent0.handlers import handlers
from tests.processes import Crew
from tests.terminal import agent0

QUICK = ("--profile", "scripted", "--set", "handlers.ack_wait_s=1", "--set", "sandbox.workers=1")


def facts(crew: Crew, run: str) -> list[Recorded]:
    """All events of ``run``."""
    return asyncio.run(crew.facts(run))


@contextmanager
def killed_before_a_verdict(
    home: Path, sizes: Mapping[str, object], flag: str, source: Path
) -> Iterator[tuple[Crew, str]]:
    """A run of ``source``, whose handlers were killed behind its first attempt; no verdict was given, so that it cannot
    have ended."""
    pairs = [word for name, size in sizes.items() for word in ("--set", f"{name}={size}")]
    with Crew(home, HANDLERS__ACK_WAIT_S="1") as crew:
        begun = agent0("run", "start", *QUICK, *pairs, flag, str(source), "--detach", "--json", home=home)
        run = begun.json["run"]
        crew.start("others", "handlers", "run", *(name for name in handlers() if name != "verify_result"))
        while not any(recorded.type == "TaskAttempted" for recorded in facts(crew, run)):
            time.sleep(0.1)
        crew.kill("others")
        yield crew, run
