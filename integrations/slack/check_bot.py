"""The bot with Slack's own client against a stand-in of Socket Mode and the Web API, with faults."""

import asyncio
import itertools
import json
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web

from agent0.errors import ConfigError
from integrations.chat.core import Row, event_of
from integrations.chat.picture import ShownMessage, draw, few_reviews
from integrations.chat.trial import SHOT, LogLines, require_once, told_all, trial, until
from integrations.slack.__main__ import serve

TOKENS = {"SLACK_BOT_TOKEN": "xoxb-canary-0042", "SLACK_APP_TOKEN": "xapp-canary-0042"}


class SlackStandIn:
    """Slack as its documents have it: apps.connections.open, envelopes with acks, chat.postMessage and history."""

    def __init__(self) -> None:
        self.messages: list[Row] = []
        self.answers: list[Row] = []
        self.talk: list[ShownMessage] = []
        self.acks: list[str] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.faults = {1: "limit", 3: "lost", 5: "away"}
        self.waits: list[float] = []
        self.opened = self.posts = 0
        self.refused: float | None = None
        self._numbers = itertools.count(1)
        self.address = ""

    async def start(self) -> web.AppRunner:
        """Listen on a free port."""
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self.call)
        app.router.add_post("/respond", self.respond)
        app.router.add_get("/socket", self.socket)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.address = f"http://{host}:{port}"
        return runner

    async def call(self, request: web.Request) -> web.StreamResponse:
        """A method of the Web API."""
        method = request.match_info["method"]
        body = await request.json() if "json" in request.content_type else await request.post()
        fields: Row = {**request.query, **body}
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or fields.get("token")
        expected = TOKENS["SLACK_APP_TOKEN" if method == "apps.connections.open" else "SLACK_BOT_TOKEN"]
        if token != expected:
            return web.json_response({"ok": False, "error": "invalid_auth"})
        match method:
            case "auth.test":
                who = {"user_id": "UBOT", "bot_id": "BBOT", "team_id": "T1", "user": "agent0", "team": "t", "url": "u"}
                return web.json_response({"ok": True, **who})
            case "apps.connections.open":
                self.opened += 1
                return web.json_response({"ok": True, "url": self.address.replace("http", "ws") + "/socket"})
            case "chat.postMessage":
                return await self._post(request, fields)
            case "conversations.history":
                rows = [row for row in reversed(self.messages) if not row.get("thread_ts")]
                return web.json_response({"ok": True, "messages": rows})
            case "conversations.replies":
                rows = [row for row in self.messages if fields["ts"] in (row.get("thread_ts"), row["ts"])]
                return web.json_response({"ok": True, "messages": rows})
        return web.json_response({"ok": False, "error": "unknown_method"})

    async def _post(self, request: web.Request, fields: Row) -> web.StreamResponse:
        self.posts += 1
        fault = self.faults.get(self.posts)
        if self.refused is not None:
            self.waits.append(time.monotonic() - self.refused)
            self.refused = None
        if fault == "limit":
            self.refused = time.monotonic()
            return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": "2"})
        if fault == "away":
            return web.Response(status=503, text="<html>away</html>")
        row = {**fields, "user": "UBOT", "ts": f"{next(self._numbers)}.000100"}
        row["blocks"] = json.loads(fields["blocks"]) if isinstance(fields.get("blocks"), str) else fields.get("blocks")
        self.messages.append(row)
        if fault == "lost":
            assert request.transport is not None
            request.transport.close()
        return web.json_response({"ok": True, "ts": row["ts"], "channel": "C1", "message": row})

    async def respond(self, request: web.Request) -> web.Response:
        """What a response_url takes."""
        self.answers.append(await request.json())
        return web.Response(text="ok")

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        """A connection of Socket Mode."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}})
        async for message in socket:
            if message.type is WSMsgType.TEXT and "envelope_id" in message.data:
                self.acks.append(json.loads(message.data)["envelope_id"])
        return socket

    async def push(self, kind: str, **payload: Any) -> str:
        """Send an envelope; its id."""
        name = f"envelope-{next(self._numbers)}"
        payload = {"token": "t", "api_app_id": "A1", "trigger_id": name, "team_id": "T1", **payload}
        payload |= {"response_url": f"{self.address}/respond"}
        body = {"envelope_id": name, "type": kind, "accepts_response_payload": True, "payload": payload}
        await self.sockets[-1].send_json(body)
        return name

    async def command(self, text: str, user: str, *tasks: "asyncio.Task[None]") -> str:
        """Type `/agent0 TEXT`; what is answered, once it is acknowledged."""
        before = len(self.answers)
        who = {"user_id": user, "user_name": user.lower(), "channel_id": "C1", "channel_name": "c"}
        name = await self.push("slash_commands", command="/agent0", text=text, **who)
        await until(lambda: name in self.acks and len(self.answers) > before, f"answer to {text}", *tasks)
        self.talk.append(ShownMessage("ann" if user == "U1" else "eve", f"/agent0 {text}"))
        self.talk.append(ShownMessage("agent0", self.answers[-1]["blocks"][0]["text"]["text"]))
        return str(self.answers[-1]["text"])

    def shown(self) -> list[ShownMessage]:
        """The first thread with its buttons, as it was posted."""
        rows: list[Row] = [
            row for row in self.messages if row["thread_ts" if row.get("thread_ts") else "ts"] == "1.000100"
        ]
        labels = [
            [each["text"]["text"] for each in row["blocks"][1]["elements"]] if row["blocks"][1:] else [] for row in rows
        ]
        return [
            ShownMessage("agent0", row["blocks"][0]["text"]["text"], tuple(buttons), bool(row.get("thread_ts")))
            for row, buttons in zip(rows, labels, strict=True)
        ]

    def texts(self, *, threads: bool) -> list[str]:
        """Blocks of the messages in threads, or of those in the channel."""
        rows = [row for row in self.messages if bool(row.get("thread_ts")) == threads]
        return [row["blocks"][0]["text"]["text"] for row in rows]


async def main(home: Path) -> None:
    """One bot, and the same again after its end."""
    lines, slack = LogLines(), SlackStandIn()
    logging.basicConfig(level=logging.WARNING, handlers=[lines])
    runner = await slack.start()
    async with trial(home, "C1", "U1") as options:
        for name in TOKENS:
            os.environ |= {**TOKENS, name: "xoxb-wrong-canary"}
            try:
                await serve(options, f"{slack.address}/api/")
                raise AssertionError("a wrong token is refused")
            except ConfigError as error:
                assert "invalid_auth" in str(error) and "canary" not in str(error) and "\n" not in str(error)
        os.environ |= TOKENS
        bot = asyncio.create_task(serve(options, f"{slack.address}/api/"))
        await until(lambda: told_all(options), "review", bot)
        require_once(slack.texts(threads=True))
        assert len(slack.texts(threads=False)) == 1 and all(wait >= 2 for wait in slack.waits) and slack.waits
        assert slack.posts > len(slack.messages)
        for row in slack.messages:
            assert row["blocks"][0]["text"]["type"] == "plain_text" and not set("<>") & set(row["text"])

        assert "may not" in await slack.command("start small", "U2", bot)
        assert "r1: " in await slack.command("why r1", "U2", bot)
        assert "spent of $5.00 near" in await slack.command("budget", "U2", bot)
        assert (await slack.command("start small", "U1", bot)).startswith("started scripted")
        await until(lambda: len(slack.texts(threads=False)) == 2, "thread of the new run", bot)

        review = next(row for row in slack.messages if len(row["blocks"]) > 1)
        button = review["blocks"][1]["elements"][0]
        press = {"type": "block_actions", "user": {"id": "U1", "username": "ann"}, "team": {"id": "T1"}}
        press |= {"channel": {"id": "C1"}, "container": {"thread_ts": review["thread_ts"], "channel_id": "C1"}}
        before = len(slack.answers)
        name = await slack.push("interactive", **press, actions=[{"type": "button", "block_id": "b", **button}])
        await until(lambda: name in slack.acks and len(slack.answers) > before, "verdict", bot)
        assert slack.answers[-1]["text"].startswith("ann: ") and slack.answers[-1]["thread_ts"] == review["thread_ts"]
        reviews = (await options.link.get("/v1/events", {"run": "r1", "type": "TaskReviewed"}))["data"]
        assert [row["data"]["reviewer"] for row in reviews] == ["ann"]

        if SHOT:
            asked = ShownMessage("ann", "presses right", below=True)
            answer = ShownMessage("agent0", slack.answers[-1]["text"], below=True)
            draw(Path(SHOT), "#training", [*few_reviews(slack.shown()), asked, answer, *slack.talk])
        opened = slack.opened
        await slack.sockets[-1].close()
        await until(lambda: slack.opened > opened and not slack.sockets[-1].closed, "connection again", bot)
        mention = {"type": "app_mention", "user": "U2", "text": "<@UBOT> status", "ts": "900.1", "channel": "C1"}
        posted = len(slack.messages)
        await slack.push(
            "events_api", type="event_callback", event_id="E1", event={**mention, "thread_ts": review["thread_ts"]}
        )
        await until(lambda: len(slack.messages) > posted, "answer to a mention", bot)
        assert (
            slack.messages[-1]["text"].startswith("r1: running")
            and slack.messages[-1]["thread_ts"] == review["thread_ts"]
        )

        bot.cancel()
        await asyncio.wait([bot])
        posted, before = [text for text in slack.texts(threads=True) if event_of(text)], slack.posts
        again = asyncio.create_task(serve(options, f"{slack.address}/api/"))
        connections = len(slack.sockets)
        await until(lambda: len(slack.sockets) > connections, "second life", again)
        assert (await slack.command("runs", "U2", again)).startswith("scripted")
        assert slack.posts == before and [text for text in slack.texts(threads=True) if event_of(text)] == posted
        again.cancel()
        await asyncio.wait([again])
    await runner.cleanup()
    assert "canary" not in "\n".join(lines.lines), lines.lines
    print(f"slack: {len(posted)} messages, each once, in {slack.posts} tries; waited {slack.waits[0]:.1f} s as told")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
