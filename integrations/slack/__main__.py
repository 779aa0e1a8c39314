"""A bot for Slack by Socket Mode: ``python -m integrations.slack --channel C… --allow U…``. SLACK_BOT_TOKEN and
SLACK_APP_TOKEN are in the environment."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from agent0.errors import ConfigError
from integrations.chat.answers import VERDICTS, CommandAnswers
from integrations.chat.bot import EventPoster, Options, UnsureError, main, options, secret
from integrations.chat.core import ChatMessage, Row

try:
    import aiohttp
    from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
    from slack_bolt.async_app import AsyncApp
    from slack_sdk.errors import SlackApiError
    from slack_sdk.web.async_client import AsyncWebClient
except ModuleNotFoundError:
    sys.exit("agent0: Slack's packages are not installed. Install them: pip install 'agent0-train[slack]'")

LOST = frozenset({"internal_error", "fatal_error", "request_timeout", "service_unavailable", "team_added_to_org"})
"""Errors behind which nobody knows whether a message was taken."""
T = TypeVar("T")


class SlackChannel:
    """One channel. A thread is the time stamp of its first message."""

    def __init__(self, client: AsyncWebClient, channel: str) -> None:
        self._client, self._channel = client, channel
        self.user = ""

    async def enter(self) -> None:
        """Learn who this bot is.

        Raises:
            ConfigError: the token is none.
        """
        self.user = (await called(self._client.auth_test))["user_id"]

    async def open(self, message: ChatMessage) -> str:
        """As ``ChatChannel.open``."""
        return await self._posted(message, "")

    async def post(self, thread: str, message: ChatMessage) -> None:
        """As ``ChatChannel.post``."""
        await self._posted(message, thread)

    async def newest(self, thread: str) -> Sequence[tuple[str, str]]:
        """As ``ChatChannel.own``: who wrote a message is Slack's word, so nobody else's counts."""
        if thread:
            pages = await called(
                lambda: self._client.conversations_replies(channel=self._channel, ts=thread, limit=999)
            )
        else:
            pages = await called(lambda: self._client.conversations_history(channel=self._channel, limit=200))
        rows = [row for row in pages["messages"] if row.get("user") == self.user and row["ts"] != thread]
        return [(row["ts"], row["text"]) for row in rows]

    async def _posted(self, message: ChatMessage, thread: str) -> str:
        body = body_of(message)
        answer = await called(
            lambda: self._client.chat_postMessage(
                channel=self._channel, **({"thread_ts": thread} if thread else {}), **body
            )
        )
        return str(answer["ts"])


def body_of(message: ChatMessage) -> Row:
    """Fields of chat.postMessage: the text stands in a block of plain text, which makes no links and mentions nobody;
    in ``text``, which notifications show, Slack's marks are escaped."""
    blocks: list[Row] = [{"type": "section", "text": plain(message.whole)}]
    if message.attempt:
        elements = [
            {
                "type": "button",
                "action_id": f"agent0-{verdict}",
                "text": plain(verdict),
                "value": f"{verdict} {message.run} {message.attempt}",
            }
            for verdict in VERDICTS
        ]
        blocks.append({"type": "actions", "elements": elements})
    quiet = {"unfurl_links": False, "unfurl_media": False, "link_names": False, "mrkdwn": False, "parse": "none"}
    return {"text": marked(message.whole), "blocks": blocks, **quiet}


def plain(text: str) -> Row:
    """A text object without marks."""
    return {"type": "plain_text", "text": text[:2900], "emoji": False}


def marked(text: str) -> str:
    """``text`` with Slack's three characters escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


async def called(call: Callable[[], Awaitable[T]]) -> T:
    """What a call of Slack's API answers; where it asks to wait, it is waited for and asked again.

    Raises:
        ConfigError: it refuses. UnsureError: nobody knows what it did.
    """
    while True:
        try:
            return await call()
        except SlackApiError as error:
            answer = error.response
            if answer.status_code == 429:
                await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))
                continue
            reason = str(answer.get("error", "") if isinstance(answer.data, dict) else "")
            if answer.status_code >= 500 or reason in LOST:
                raise UnsureError(f"Slack answers {answer.status_code} {reason}") from None
            fix = "Look at SLACK_BOT_TOKEN, SLACK_APP_TOKEN, its scopes and --channel."
            raise ConfigError(f"Slack refuses: {answer.status_code} {reason}.", fix=fix) from None
        except (TimeoutError, OSError, aiohttp.ClientError) as error:
            raise UnsureError(f"Slack is away: {type(error).__name__}") from None


def application(
    client: AsyncWebClient, channel: SlackChannel, commands: CommandAnswers, run_of: Callable[[str], str]
) -> AsyncApp:
    """Slack's commands, mentions and buttons, answered by ``commands``; each is acknowledged first."""
    app = AsyncApp(client=client, token=client.token)

    @app.command("/agent0")
    async def command(ack: Any, respond: Any, body: Row) -> None:
        await ack()
        text = await commands.reply(body.get("text", ""), body["user_id"], f"slack-{body['trigger_id']}")
        await respond(text=marked(text), blocks=[{"type": "section", "text": plain(text)}])

    @app.event("app_mention")
    async def mention(event: Row) -> None:
        thread = event.get("thread_ts", event["ts"])
        typed = event["text"].partition(">")[2]
        text = await commands.reply(typed, event["user"], f"slack-{event['channel']}-{event['ts']}", run_of(thread))
        body = {"text": marked(text), "blocks": [{"type": "section", "text": plain(text)}]}
        await called(lambda: client.chat_postMessage(channel=event["channel"], thread_ts=thread, **body))

    async def press(ack: Any, respond: Any, body: Row) -> None:
        await ack()
        user = body["user"]
        action, name = body["actions"][0], user.get("username", user["id"])
        text = await commands.verdict(action["value"], user["id"], name, body["trigger_id"])
        await respond(text=marked(text), replace_original=False, response_type="in_channel", thread_ts=_thread(body))

    for verdict in VERDICTS:
        app.action(f"agent0-{verdict}")(press)
    return app


def _thread(body: Row) -> str | None:
    return body.get("container", {}).get("thread_ts") or body.get("message", {}).get("thread_ts")


async def serve(chosen: Options, address: str = "https://slack.com/api/") -> None:
    """Run the bot until it is cancelled. ``address``: of Slack's API.

    Raises:
        ConfigError: a token is missing or refused.
    """
    bot_token, app_token = secret("SLACK_BOT_TOKEN"), secret("SLACK_APP_TOKEN")
    client = AsyncWebClient(token=bot_token, base_url=address, retry_handlers=[])  # a post again could be a second one
    channel = SlackChannel(client, chosen.channel)
    poster = EventPoster(chosen.commands.link, channel, chosen.state_file)

    def run_of(thread: str) -> str:
        return next((run for run, opened in poster.state.threads.items() if opened == thread), "")

    await channel.enter()
    await called(lambda: client.apps_connections_open(app_token=app_token))
    handler = AsyncSocketModeHandler(
        application(client, channel, chosen.commands, run_of), app_token, web_client=client
    )
    try:
        await handler.connect_async()
        await poster.follow()
    finally:
        await handler.close_async()


if __name__ == "__main__":
    main(lambda: serve(options("slack", sys.argv[1:])))
