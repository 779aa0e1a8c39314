"""What the checks of both bots share: a server with a run whose answers await a person, all of its texts hostile, and
a budget that runs low. With ``SHOT``, a file for a picture, texts are as models write them."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import recorded
from agent0.config.loading import load
from agent0.events.base import Recorded
from agent0.events.budgets import DOLLAR, BudgetChanged
from agent0.infra.web.agent0_server import ServerLink
from integrations.chat.answers import CommandAnswers
from integrations.chat.bot import Options, Redacting, StateFile
from integrations.chat.core import BotState, event_of
from tests.api.test_up import standing
from tests.story_hostile import hostile_words
from tests.test_reviewing import waiting_run

PATIENCE_S = 240.0
TEMPLATES = {"small": {"profile": "scripted", "settings": {"run.tasks": "4"}}}
SHOT = os.environ.get("SHOT", "")


def story() -> list[Recorded]:
    """The events that are told."""
    low = BudgetChanged(scope="day", name="2026-11-30", kind="cap", cap=5 * DOLLAR, spent=4 * DOLLAR, level="near")
    events = waiting_run() if SHOT else [hostile_words(event) for event in waiting_run()]
    return [*events, recorded("r1", low)]


@asynccontextmanager
async def trial(home: Path, channel: str, user: str) -> AsyncIterator[Options]:
    """Options of a bot beside such a server: ``user`` may decide, and everything from the first event on is told."""
    settings = load("scripted", {"home": str(home / "data"), "api.port": "0"})
    async with open_log(settings, make=True) as log:
        await log.append(story())
    async with standing(settings, handlers=False) as client:
        link = ServerLink(str(client.base_url).rstrip("/"), "", 5.0)
        state_file = StateFile(home / "state.json")
        state_file.save(BotState(0))
        yield Options(link, channel, CommandAnswers(link, frozenset({user}), TEMPLATES), state_file)


async def until(condition: Callable[[], bool], what: str, *tasks: "asyncio.Task[None]") -> None:
    """Wait until ``condition`` holds; ``tasks`` must go on meanwhile."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                for task in tasks:
                    if task.done():
                        task.result()
                        raise AssertionError(f"a bot ended before {what}")
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"there is no {what}") from None


def told_all(options: Options) -> bool:
    """Whether everything was told that the run has."""
    state, last = options.state_file.load(), len(story())
    return state is not None and state.seq >= last and not state.sending


def require_once(texts: Iterable[str]) -> None:
    """Check that no event is told twice, and that no text can do anything."""
    events = [event_of(text) for text in texts]
    assert len(events) > 5 and sorted(set(events)) == events and 0 not in events, events
    for text in texts:
        assert not set("@\x1b\u202e") & set(text) and "://" not in text, text


class LogLines(logging.Handler):
    """Keeps what a bot logs, as it would be written."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(Redacting())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep ``record``."""
        self.lines.append(self.format(record))
