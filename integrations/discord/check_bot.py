"""The bot with discord.py against a stand-in of gateway and REST API, with faults."""

import asyncio
import itertools
import json
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import discord
from aiohttp import WSMsgType, web
from yarl import URL

from agent0.errors import ConfigError
from integrations.chat.core import Row, event_of
from integrations.chat.picture import ShownMessage, draw, few_reviews
from integrations.chat.trial import SHOT, LogLines, require_once, told_all, trial, until
from integrations.discord.__main__ import serve

TOKEN = "canary-0042-canary-0042"
CHANNEL, ANN, EVE, APPLICATION, GUILD = 11, 21, 22, 31, "51"
WHO = {"id": "1", "username": "agent0", "discriminator": "0", "avatar": None, "bot": True}


def answered(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """JSON as Discord sends it: discord.py wants no charset."""
    fields = {"Content-Type": "application/json", **(headers or {})}
    return web.Response(body=json.dumps(body).encode(), status=status, headers=fields)


class DiscordStandIn:
    """Discord as its documents have it: hello, identify, heartbeat, resume; messages, threads, interactions."""

    def __init__(self) -> None:
        self.messages: list[Row] = []
        self.answers: list[Row] = []
        self.talk: list[ShownMessage] = []
        self.threads: dict[int, str] = {}
        self.commands: list[Row] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.received: list[int] = []
        self.faults = {1: "limit", 3: "lost", 5: "away", 7: "taken, away"}
        self.waits: list[float] = []
        self.refused: float | None = None
        self.posts = 0
        self._numbers = itertools.count(1000)
        self.address = ""

    async def start(self) -> web.AppRunner:
        """Listen on a free port, and lead discord.py there."""
        app = web.Application()
        route = app.router.add_route
        route("GET", "/api/users/@me", self.me)
        route("GET", "/api/oauth2/applications/@me", self.application)
        route("PUT", "/api/applications/{application}/commands", self.register)
        route("POST", "/api/channels/{channel}/messages", self.post)
        route("GET", "/api/channels/{channel}/messages", self.history)
        route("POST", "/api/channels/{channel}/messages/{message}/threads", self.thread)
        route("POST", "/api/interactions/{id}/{token}/callback", self.callback)
        route("POST", "/api/webhooks/{application}/{token}", self.followup)
        route("GET", "/gateway/", self.gateway)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        self.address = f"http://{host}:{port}"
        discord.http.Route.BASE = f"{self.address}/api"
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = URL(f"ws://{host}:{port}/gateway/")
        return runner

    async def me(self, request: web.Request) -> web.Response:
        """Who the token is."""
        if request.headers["Authorization"] != f"Bot {TOKEN}":
            return answered({"message": "401: Unauthorized", "code": 0}, status=401)
        return answered(WHO)

    async def application(self, request: web.Request) -> web.Response:
        """The bot's application."""
        fields = {"icon": None, "description": "", "rpc_origins": [], "bot_public": False, "verify_key": "k"}
        more = {"bot_require_code_grant": False, "owner": WHO, "team": None, "flags": 0, "summary": ""}
        return answered({"id": str(APPLICATION), "name": "agent0", **fields, **more})

    async def register(self, request: web.Request) -> web.Response:
        """Commands of the application."""
        self.commands = await request.json()
        return answered([])

    async def post(self, request: web.Request) -> web.StreamResponse:
        """A message; one nonce is one message."""
        self.posts += 1
        body, channel = await request.json(), int(request.match_info["channel"])
        fault = self.faults.get(self.posts, "")
        if self.refused is not None:
            self.waits.append(time.monotonic() - self.refused)
            self.refused = None
        if fault == "limit":
            self.refused = time.monotonic()
            limit = {"message": "You are being rate limited.", "retry_after": 2.0, "global": False}
            return answered(limit, status=429, headers={"Retry-After": "2", "Via": "1.1 google"})
        if fault == "away":
            return answered({"message": "away"}, status=503)
        row = next((r for r in self.messages if (r["channel_id"], r["nonce"]) == (str(channel), body["nonce"])), None)
        if row is None:
            row = self.message(channel, body)
            self.messages.append(row)
        if fault == "lost":
            assert request.transport is not None
            request.transport.close()
        if fault == "taken, away":
            return answered({"message": "bad gateway"}, status=502)
        return answered(row)

    def message(self, channel: int, body: Row) -> Row:
        """A message as the API shows it."""
        empty = {name: [] for name in ("mentions", "mention_roles", "attachments", "embeds")}
        when = {"timestamp": "2026-11-30T00:00:00+00:00", "edited_timestamp": None}
        fixed = {"tts": False, "mention_everyone": False, "pinned": False, "type": 0, "author": WHO}
        row = {"id": str(next(self._numbers)), "channel_id": str(channel), "components": [], **empty, **when, **fixed}
        return {**row, "flags": 0, "nonce": None, **body}

    async def history(self, request: web.Request) -> web.Response:
        """The newest messages first."""
        rows = [row for row in reversed(self.messages) if row["channel_id"] == request.match_info["channel"]]
        flags = [32 if int(row["id"]) in self.threads else 0 for row in rows]
        return answered([{**row, "flags": flag} for row, flag in zip(rows, flags, strict=True)])

    async def thread(self, request: web.Request) -> web.Response:
        """A thread of a message."""
        message = int(request.match_info["message"])
        if message in self.threads:
            return answered({"code": 160004, "message": "A thread has already been created"}, status=400)
        self.threads[message] = (await request.json())["name"]
        return answered({"id": str(message), "type": 11, "name": self.threads[message]}, status=201)

    async def callback(self, request: web.Request) -> web.Response:
        """The first answer to an interaction, due within three seconds."""
        self.received.append(int(request.match_info["id"]))
        return answered({"interaction": {"id": request.match_info["id"], "type": 2}})

    async def followup(self, request: web.Request) -> web.Response:
        """What is answered then."""
        row = self.message(CHANNEL, await request.json())
        self.answers.append(row)
        return answered(row)

    async def gateway(self, request: web.Request) -> web.WebSocketResponse:
        """A connection: a new session, or one that goes on."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 2000}, "s": None, "t": None})
        async for message in socket:
            row = message.json() if message.type is WSMsgType.TEXT else {}
            self.received.append(-int(row.get("op", 0)))
            match row.get("op"):
                case 1:
                    await socket.send_json({"op": 11, "d": None, "s": None, "t": None})
                case 2 if row["d"]["token"] == TOKEN:
                    urls = {"resume_gateway_url": str(discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY), "guilds": []}
                    ready = {
                        "v": 10,
                        "user": WHO,
                        "session_id": "s1",
                        "application": {"id": str(APPLICATION), "flags": 0},
                    }
                    await self.dispatch("READY", {**ready, **urls})
                case 6 if row["d"]["session_id"] == "s1":
                    await self.dispatch("RESUMED", {})
        return socket

    async def dispatch(self, name: str, data: Row) -> None:
        """Send an event of the gateway."""
        await self.sockets[-1].send_json({"op": 0, "t": name, "s": next(self._numbers), "d": data})

    def channel_of(self, channel: int) -> Row:
        """The channel, or a thread in it, as an interaction names it."""
        row = {
            "id": str(channel),
            "guild_id": GUILD,
            "name": "c",
            "flags": 0,
            "position": 0,
            "permissions": "0",
            "rate_limit_per_user": 0,
        }
        times = {"archived": False, "auto_archive_duration": 10080, "archive_timestamp": "2026-11-30T00:00:00+00:00"}
        thread = {
            "parent_id": str(CHANNEL),
            "owner_id": WHO["id"],
            "message_count": 1,
            "member_count": 1,
            "thread_metadata": {**times, "locked": False},
        }
        return {**row, "type": 0} if channel == CHANNEL else {**row, "type": 11, **thread}

    async def interact(
        self, kind: int, user: int, data: Row, bot: "asyncio.Task[None]", channel: int = CHANNEL, **more: Any
    ) -> str:
        """Have a user type a command (2) or press a button (3); what is answered."""
        number, before = next(self._numbers), len(self.answers)
        who = {"id": str(user), "username": "ann" if user == ANN else "eve", "discriminator": "0", "avatar": None}
        fixed = {"application_id": str(APPLICATION), "token": f"t{number}", "version": 1, "entitlements": []}
        fixed |= {
            "app_permissions": "0",
            "authorizing_integration_owners": {},
            "attachment_size_limit": 1,
            "context": 1,
        }
        member = {"user": who, "roles": [], "joined_at": "2026-11-30T00:00:00+00:00", "deaf": False, "mute": False}
        guild = {"id": GUILD, "locale": "en-US", "features": []}
        details = {"guild_id": GUILD, "guild": guild, "channel": self.channel_of(channel), "channel_id": str(channel)}
        details |= {"member": {**member, "flags": 0, "permissions": "0"}, **more}
        await self.dispatch("INTERACTION_CREATE", {"id": str(number), "type": kind, "data": data, **fixed, **details})
        await until(lambda: number in self.received and len(self.answers) > before, f"answer to {data}", bot)
        return str(self.answers[-1]["content"]).replace("\\", "")

    async def command(self, typed: str, user: int, bot: "asyncio.Task[None]", channel: int = CHANNEL) -> str:
        """Type `/agent0 words: WORDS`."""
        option = {"name": "words", "type": 3, "value": typed}
        answer = await self.interact(
            2, user, {"id": "41", "name": "agent0", "type": 1, "options": [option]}, bot, channel
        )
        self.talk.append(
            ShownMessage("ann" if user == ANN else "eve", f"/agent0 words: {typed}", (), channel != CHANNEL)
        )
        self.talk.append(ShownMessage("agent0", answer, (), channel != CHANNEL))
        return answer

    def shown(self) -> list[ShownMessage]:
        """The first message and its thread with buttons, as they were posted; marks as Discord shows them."""
        first = self.messages[0]
        rows = [first, *(row for row in self.messages if row["channel_id"] == first["id"])]
        labels = [[each["label"] for part in row["components"] for each in part["components"]] for row in rows]
        return [
            ShownMessage("agent0", row["content"].replace("\\", ""), tuple(buttons), row is not first)
            for row, buttons in zip(rows, labels, strict=True)
        ]

    def texts(self, *, threads: bool) -> list[str]:
        """The messages in threads, or those in the channel."""
        return [row["content"] for row in self.messages if (row["channel_id"] != str(CHANNEL)) == threads]


async def main(home: Path) -> None:
    """One bot, and the same again after its end."""
    lines, stand_in = LogLines(), DiscordStandIn()
    logging.basicConfig(level=logging.WARNING, handlers=[lines])
    runner = await stand_in.start()
    async with trial(home, str(CHANNEL), str(ANN)) as options:
        os.environ["DISCORD_TOKEN"] = "wrong-canary-0042"
        try:
            await serve(options)
            raise AssertionError("a wrong token is refused")
        except ConfigError as error:
            assert "Discord refuses" in str(error) and "canary" not in str(error) and "\n" not in str(error)
        os.environ["DISCORD_TOKEN"] = TOKEN
        bot = asyncio.create_task(serve(options))
        await until(lambda: told_all(options), "review", bot)
        require_once(stand_in.texts(threads=True))
        assert [*stand_in.threads.values()] == ["r1"] and len(stand_in.texts(threads=False)) == 1
        assert all(wait >= 2 for wait in stand_in.waits) and stand_in.waits and stand_in.posts > len(stand_in.messages)
        assert [row["allowed_mentions"]["parse"] for row in stand_in.messages] == [[]] * len(stand_in.messages)
        assert stand_in.commands[0]["name"] == "agent0" and max(map(len, stand_in.texts(threads=True))) <= 2000

        thread = next(iter(stand_in.threads))
        assert "may not" in await stand_in.command("start small", EVE, bot)
        assert (await stand_in.command("why", EVE, bot, thread)).startswith("r1: ")
        assert (await stand_in.command("start small", ANN, bot)).startswith("started scripted")
        await until(lambda: len(stand_in.threads) == 2, "thread of the new run", bot)

        review = next(row for row in stand_in.messages if row["components"])
        button = review["components"][0]["components"][0]
        data = {"component_type": 2, "custom_id": button["custom_id"]}
        answer = await stand_in.interact(3, ANN, data, bot, int(review["channel_id"]), message=review)
        assert answer.startswith("ann: ") and answer.endswith(" is right")
        reviews = (await options.link.get("/v1/events", {"run": "r1", "type": "TaskReviewed"}))["data"]
        assert [row["data"]["reviewer"] for row in reviews] == ["ann"]

        if SHOT:
            pressed = [ShownMessage("ann", "presses right", below=True), ShownMessage("agent0", answer, below=True)]
            draw(Path(SHOT), "#training", [*few_reviews(stand_in.shown()), *pressed, *stand_in.talk])
        for way in ("asked to", "cut"):
            resumed, connections = stand_in.received.count(-6), len(stand_in.sockets)
            if way == "cut":
                await stand_in.sockets[-1].close(code=4000)
            else:
                await stand_in.sockets[-1].send_json({"op": 7, "d": None, "s": None, "t": None})
            again = lambda r=resumed, c=connections: stand_in.received.count(-6) > r and len(stand_in.sockets) > c  # noqa: E731
            await until(again, "session that goes on", bot)
            assert (await stand_in.command("status r1", EVE, bot)).startswith("r1: running")
        assert -1 in stand_in.received, "it beats"

        bot.cancel()
        await asyncio.wait([bot])
        before, texts = stand_in.posts, stand_in.texts(threads=True)
        connections = len(stand_in.sockets)
        second = asyncio.create_task(serve(options))
        await until(lambda: len(stand_in.sockets) > connections, "second life", second)
        await until(lambda: stand_in.received.count(-2) == 2, "second session", second)
        assert (await stand_in.command("runs", EVE, second)).startswith("scripted")
        assert stand_in.posts == before and stand_in.texts(threads=True) == texts
        second.cancel()
        await asyncio.wait([second])
    await runner.cleanup()
    assert "canary" not in "\n".join(lines.lines), lines.lines
    count = sum(event_of(text) > 0 for text in texts)
    print(f"discord: {count} messages, each once, in {stand_in.posts} tries; waited {stand_in.waits[0]:.1f} s as told")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
