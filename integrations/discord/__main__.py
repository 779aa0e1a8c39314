"""A bot for Discord: ``python -m integrations.discord --channel ID --allow ID,…``. DISCORD_TOKEN is in the
environment."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from agent0.errors import ConfigError
from integrations.chat.answers import VERDICTS, CommandAnswers
from integrations.chat.bot import EventPoster, Options, UnsureError, main, options, secret
from integrations.chat.core import ChatMessage, Row, event_of

try:
    import aiohttp
    import discord
except ModuleNotFoundError:
    sys.exit("agent0: Discord's package is not installed. Install it: pip install 'agent0-train[discord]'")

MOST, NAME, VALUE = 2000, 100, 100
"""Characters of a message, of a thread's name, and of a button's id."""
HAS_THREAD = 160004
"""Discord's code of the error that a message has a thread already."""


class DiscordChannel:
    """One channel. A thread has the id of the message that it was opened from. discord.py waits where it is told to."""

    def __init__(self, client: discord.Client, channel: int) -> None:
        self._client, self._channel = client, channel

    async def open(self, message: ChatMessage) -> str:
        """As ``ChatChannel.open``."""
        channel = self._client.get_partial_messageable(self._channel)
        sent = await _sent(channel, message)
        try:
            await self._opened(sent.id, message.run)
        except (OSError, aiohttp.ClientError, discord.HTTPException) as error:
            raise _refusal(error) from None
        return str(sent.id)

    async def post(self, thread: str, message: ChatMessage) -> None:
        """As ``ChatChannel.post``."""
        await _sent(self._client.get_partial_messageable(int(thread)), message)

    async def newest(self, thread: str) -> Sequence[tuple[str, str]]:
        """As ``ChatChannel.own``. A message in the channel whose thread was not opened any more gets it now."""
        channel, user = self._client.get_partial_messageable(int(thread or self._channel)), self._client.user
        try:
            rows = [row async for row in channel.history(limit=100) if user and row.author.id == user.id]
            for row in rows:
                if not thread and event_of(row.content) and not row.flags.has_thread:
                    await self._opened(row.id, row.content.partition("\n")[0].replace("\\", ""))
        except (OSError, aiohttp.ClientError, discord.HTTPException) as error:
            raise _refusal(error) from None
        return [(str(row.id), row.content) for row in rows]

    async def _opened(self, message: int, name: str) -> None:
        """Open the thread of a message, unless it has one."""
        try:
            more = {"name": name[:NAME], "auto_archive_duration": 10080}
            await self._client.http.start_thread_with_message(self._channel, message, **more)
        except discord.HTTPException as error:
            if error.code != HAS_THREAD:
                raise


async def _sent(channel: Any, message: ChatMessage) -> discord.Message:
    """Post into ``place``; its nonce keeps what discord.py sends again from coming twice."""
    more = {"view": buttons(message)} if message.attempt else {}
    nonce = f"{message.seq}-{message.run}"[:25]
    try:
        sent: discord.Message = await channel.send(content_of(message), nonce=nonce, **quiet(), **more)
        return sent
    except (OSError, aiohttp.ClientError, discord.HTTPException) as error:
        raise _refusal(error) from None


def quiet() -> Row:
    """What keeps a message from mentioning anybody and from showing what it links to."""
    return {"allowed_mentions": discord.AllowedMentions.none(), "suppress_embeds": True}


def content_of(message: ChatMessage) -> str:
    """The text of ``message`` with Discord's marks escaped, cut in front of its last line where it is too long."""
    text, _, tail = message.whole.rpartition("\n")
    return f"{discord.utils.escape_markdown(text)[: MOST - len(tail) - 1]}\n{tail}"


def buttons(message: ChatMessage) -> discord.ui.View:
    """A button a verdict."""
    view = discord.ui.View(timeout=None)
    for verdict in VERDICTS:
        value = f"{verdict} {message.run} {message.attempt}"
        if len(value) <= VALUE:
            view.add_item(discord.ui.Button(label=verdict, custom_id=value))
    view.stop()  # else discord.py would answer a button itself
    return view


def _refusal(error: Exception) -> Exception:
    if isinstance(error, discord.HTTPException) and error.status < 500:
        fix = "Look at what the bot may do in --channel: send messages, make threads, read the history."
        return ConfigError(f"Discord refuses: {error.status} {error.text[:200]}.", fix=fix)
    return UnsureError(f"Discord is away: {type(error).__name__}")


class Bot(discord.Client):
    """Follows the server once it is connected, and answers `/agent0 WORDS` and buttons."""

    def __init__(self, chosen: Options) -> None:
        super().__init__(intents=discord.Intents(guilds=True), max_ratelimit_timeout=None)
        try:
            number = int(chosen.channel)
        except ValueError:
            raise ConfigError(f"{chosen.channel[:40]} is no id of a channel.", fix="Copy it: a number.") from None
        self._commands: CommandAnswers = chosen.commands
        self._poster = EventPoster(chosen.commands.link, DiscordChannel(self, number), chosen.state_file)
        self._following: asyncio.Task[None] | None = None
        self.failure: BaseException | None = None

    async def setup_hook(self) -> None:
        """Register the command."""
        option = {"type": 3, "name": "words", "description": "help, why RUN, start TEMPLATE …", "required": False}
        command = {"type": 1, "name": "agent0", "description": "Runs of Agent0", "options": [option]}
        await self.http.bulk_upsert_global_commands(self.application_id, [command])

    async def on_ready(self) -> None:
        """Begin to follow, once: a connection may come again."""
        if self._following is None:
            self._following = asyncio.create_task(self._poster.follow())
            self._following.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            self.failure = task.exception()
            asyncio.get_running_loop().create_task(self.close())

    async def close(self) -> None:
        """Stop to follow, then disconnect."""
        if self._following is not None:
            self._following.cancel()
        await super().close()

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        """Answer a command or a button."""
        data: Any = interaction.data or {}
        user, again = str(interaction.user.id), f"discord-{interaction.id}"
        if interaction.type is discord.InteractionType.component:
            await interaction.response.defer()
            text = await self._commands.verdict(data.get("custom_id", ""), user, str(interaction.user), again)
        elif interaction.type is discord.InteractionType.application_command:
            await interaction.response.defer(ephemeral=True)
            typed = next((option["value"] for option in data.get("options", ()) if option["name"] == "words"), "")
            thread = str(interaction.channel_id)
            run = next((r for r, opened in self._poster.state.threads.items() if opened == thread), "")
            text = await self._commands.reply(typed, user, again, run)
        else:
            return
        await interaction.followup.send(discord.utils.escape_markdown(text)[:MOST], **quiet())


async def serve(chosen: Options) -> None:
    """Run the bot until it is cancelled.

    Raises:
        ConfigError: the token is missing or refused.
    """
    token = secret("DISCORD_TOKEN")
    async with Bot(chosen) as bot:
        try:
            await bot.start(token)
        except (discord.LoginFailure, discord.PrivilegedIntentsRequired) as error:
            raise ConfigError("Discord refuses.", str(error)[:200], "Look at DISCORD_TOKEN.") from None
        if bot.failure is not None:
            raise bot.failure


if __name__ == "__main__":
    main(lambda: serve(options("discord", sys.argv[1:])))
