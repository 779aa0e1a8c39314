"""A bot beside a server of Agent0: it tells a chat what happens, each event once, and answers commands."""

import argparse
import asyncio
import copy
import json
import logging
import os
import sys
import tomllib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from agent0 import connect
from agent0.errors import Agent0Error, ConfigError, DependencyError
from agent0.infra.web.agent0_server import ServerLink
from integrations.chat.answers import CommandAnswers
from integrations.chat.core import (
    TYPES,
    BotState,
    ChatMessage,
    Row,
    event_of,
    harmless,
    message_of,
)

LONGEST_WAIT_S = 60.0


class UnsureError(Exception):
    """The chat did not say whether it took a message."""


class ChatChannel(Protocol):
    """A channel with threads. Each call raises UnsureError where the chat's word is lost, ConfigError where it refuses
    for good; a chat that asks to wait is waited for."""

    async def open(self, message: ChatMessage) -> str:
        """Post into the channel; the thread that answers to it."""
        ...

    async def post(self, thread: str, message: ChatMessage) -> None:
        """Post into a thread, with buttons where ``message.attempt`` awaits a verdict."""
        ...

    async def newest(self, thread: str) -> Sequence[tuple[str, str]]:
        """(thread, text) of the newest messages of this bot in a thread; empty: in the channel."""
        ...


class StateFile:
    """What was told, in a file that is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> BotState | None:
        """What was told before; None at the first start.

        Raises:
            ConfigError: the file holds anything else.
        """
        try:
            return BotState(**json.loads(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            fix = "Remove it: the bot begins at the present end."
            raise ConfigError(f"{self._path} is no state of a bot.", fix=fix) from error

    def save(self, state: BotState) -> None:
        """Replace the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_suffix(".tmp")
        with beside.open("w", encoding="utf-8") as file:
            json.dump(asdict(state), file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)


class EventPoster:
    """Tells ``chat`` what the events of a server are, in their order, each once."""

    def __init__(self, link: ServerLink, chat: ChatChannel, state_file: StateFile, wait_s: float = 1.0) -> None:
        self._link, self._chat, self._state_file, self._wait_s = link, chat, state_file, wait_s
        self._asks: dict[str, bool] = {}
        self.state = BotState(0)

    async def follow(self) -> None:
        """Follow until cancelled; while the server is away, look for it more and more rarely.

        Raises:
            Agent0Error: the server or the chat refuses for good.
        """
        wait = self._wait_s
        while True:
            try:
                await self._begin()
                async for row in self._link.stream({"type": ",".join(TYPES)}, self.state.seq):
                    wait = self._wait_s
                    await self.tell(row)
            except DependencyError as error:
                logging.getLogger("agent0.chat").warning("%s", error)
            await asyncio.sleep(wait)
            wait = min(LONGEST_WAIT_S, 2 * wait)

    async def _begin(self) -> None:
        before = self._state_file.load()
        if before is None:
            before = BotState((await self._link.get("/v1/status"))["tables"] or 0)
            self._state_file.save(before)
        self.state = before

    async def tell(self, row: Row) -> None:
        """Tell of one event, behind those that were told; it is noted before and after. Where nobody knows whether its
        message came, the chat is looked through first."""
        after = copy.deepcopy(self.state)
        message = message_of(row, after, asks=await self._asks_a_person(row))
        if message is not None:
            message = await self._with_answer(message)
            unsure = self.state.sending == row["seq"]
            self.state.sending = row["seq"]
            self._state_file.save(self.state)
            wait = self._wait_s
            while True:
                try:
                    await self._post(after, message, unsure=unsure)
                    break
                except UnsureError as error:
                    logging.getLogger("agent0.chat").warning("event %d: %s", row["seq"], error)
                    unsure = True
                    await asyncio.sleep(wait)
                    wait = min(LONGEST_WAIT_S, 2 * wait)
        after.seq, after.sending = row["seq"], 0
        self.state = after
        self._state_file.save(after)

    async def _post(self, after: BotState, message: ChatMessage, *, unsure: bool) -> None:
        thread = after.threads.get(message.run)
        if thread is not None:
            try:
                return await self._add(thread, message, unsure=unsure)
            except ConfigError as error:  # somebody deleted or locked it; where none can be opened, that is told
                logging.getLogger("agent0.chat").warning("%s gets another thread: %s", message.run, error)
        head = ChatMessage(message.run, message.seq, harmless(message.run))
        thread = await self._sent(head, "") if unsure else None
        after.threads[message.run] = thread = thread or await self._chat.open(head)
        await self._add(thread, message, unsure=unsure)

    async def _add(self, thread: str, message: ChatMessage, *, unsure: bool) -> None:
        if not unsure or await self._sent(message, thread) is None:
            await self._chat.post(thread, message)

    async def _sent(self, message: ChatMessage, thread: str) -> str | None:
        newest = await self._chat.newest(thread)
        return next((opened for opened, text in newest if event_of(text) == message.seq), None)

    async def _asks_a_person(self, row: Row) -> bool:
        if row["type"] != "ResultVerified" or row["data"]["correct"] is not None:
            return False
        if row["run"] not in self._asks:
            config = (await self._link.get(f"/v1/runs/{row['run']}"))["config"]
            self._asks[row["run"]] = config["verification"]["undecided"] == "ask"
        return self._asks[row["run"]]

    async def _with_answer(self, message: ChatMessage) -> ChatMessage:
        if not message.attempt:
            return message
        row = await self._link.get(f"/v1/runs/{message.run}/trajectories/{message.attempt}")
        parts = [f"{name}: {harmless(str(row[name])[:500])}" for name in ("question", "answer")]
        return replace(message, text="\n".join([message.text[:400], *parts]))


@dataclass(frozen=True)
class Options:
    """What the command line and the environment say."""

    link: ServerLink
    channel: str
    commands: CommandAnswers
    state_file: StateFile


def options(name: str, arguments: Sequence[str]) -> Options:
    """Read the command line of the bot ``name``; the key of Agent0 is in AGENT0_KEY.

    Raises:
        ConfigError: the file of templates is none.
    """
    parser = argparse.ArgumentParser(prog=f"python -m integrations.{name}", description=__doc__)
    parser.add_argument("--server", default="http://127.0.0.1:8650")
    parser.add_argument("--channel", required=True, help="id of the channel")
    parser.add_argument("--allow", default="", help="ids of users who may start, decide and review, by commas")
    parser.add_argument("--templates", type=Path, help="TOML: a table a template, with profile and settings")
    parser.add_argument(
        "--state-file", type=Path, default=Path(f"agent0-{name}.json"), help="what was posted is kept here"
    )
    chosen = parser.parse_args(arguments)
    key = os.environ.get("AGENT0_KEY", "")
    connect(chosen.server, key)  # refuses what is no address or no key
    link = ServerLink(chosen.server, key, 30.0)
    allowed = frozenset(user.strip() for user in chosen.allow.split(",") if user.strip())
    commands = CommandAnswers(link, allowed, templates(chosen.templates) if chosen.templates else {})
    return Options(link, chosen.channel, commands, StateFile(chosen.state_file))


def templates(path: Path) -> dict[str, Row]:
    """The bodies of POST /v1/runs that a TOML file has, by name.

    Raises:
        ConfigError: it cannot be read, or a template has anything but a profile and settings.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read.", str(error)) from error
    for name, table in tables.items():
        chosen = table.get("settings", {}) if isinstance(table, dict) else None
        if not isinstance(chosen, dict) or set(table) - {"profile", "settings", "name"}:
            raise ConfigError(f"{name} in {path} is no template.", fix="It has profile, name and a table of settings.")
        table["settings"] = {key: str(value) for key, value in chosen.items()}
    return tables


def secret(name: str) -> str:
    """The value of an environment variable.

    Raises:
        ConfigError: it is not set.
    """
    value = os.environ.get(name, "")
    if not value:
        raise ConfigError(f"{name} is not set.")
    return value


class Redacting(logging.Formatter):
    """Writes a line a record, without tracebacks, and without the secrets of the environment."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of ``record``."""
        return redacted(f"{record.name}: {record.getMessage()}")


def redacted(text: str) -> str:
    """``text`` in one line without any secret of the environment."""
    for name, value in os.environ.items():
        if len(value) >= 8 and name.startswith(("SLACK_", "DISCORD_", "AGENT0_")) and name.endswith(("TOKEN", "KEY")):
            text = text.replace(value, "***")
    return " ".join(text.split())


def main(bot: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run ``bot()`` until it is stopped; what ends it is one line."""
    handler = logging.StreamHandler()
    handler.setFormatter(Redacting())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    try:
        asyncio.run(bot())
    except KeyboardInterrupt:
        pass
    except (Agent0Error, UnsureError) as error:
        sys.exit(redacted(f"agent0: {error}"))
