"""Sends another system what happens, event by event: what was sent last is kept in a file, so that nothing is lost
while the other one is away or this process ends. What was sent just before an end may be sent again."""

import asyncio
import hashlib
import hmac
import http.client
import json
import logging
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from agent0.assembly.runtime.read_models import NothingError, reading
from agent0.assembly.runtime.stamping import utc_now
from agent0.assembly.telemetry.spans import EXPORTED, Message, discord_message, otlp, slack_message, spans_of
from agent0.config.distribution import installed_version
from agent0.errors import Agent0Error, ConfigError
from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.base import Recorded, decode
from agent0.infra.telemetry.json_logs import about
from agent0.projections import position
from agent0.projections.base import Row
from agent0.projections.events import stored_events
from agent0.projections.wording import describe
from agent0.settings import Settings

LOOK_S, LONGEST_S, TIMEOUT_S = 0.5, 60.0, 10.0
CHUNK = 500
SIGNATURE = "Agent0-Signature"
NOTICES = ("AlarmRaised", "AlarmResolved", "RunFinished", "RunFailed", "RunCancelled", "CheckpointPromoted")
"""Event classes of which a webhook, chats and the log get messages."""
CHATS: Mapping[str, Message] = {"slack": slack_message, "discord": discord_message}
Send = Callable[[Sequence[Recorded]], Awaitable[None]]


@dataclass(frozen=True)
class _Place:
    """The last event that was dealt with, and the ends of alarms that were not sent yet."""

    seq: int
    ends: tuple[Recorded, ...] = ()


class Follower:
    """Sends the events of ``types`` to ``send``, in order, from ``<home>/followers/<name>.json`` on; a new one begins
    at the present end. The end of an alarm is sent once it was not raised again for ``calm_s``."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        types: Sequence[str],
        send: Send,
        calm_s: float = 0,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._settings, self.name, self._types, self._send = settings, name, frozenset(types), send
        self._calm, self._clock = timedelta(seconds=calm_s), clock
        self._path = settings.home / "followers" / f"{name}.json"

    async def run(self) -> None:
        """Follow until cancelled. Where it cannot be sent, it is tried again, more and more rarely."""
        wait = LOOK_S
        while True:
            try:
                more = await self.step()
                wait = LOOK_S
            except (OSError, Agent0Error) as error:
                logging.getLogger(__name__).warning("%s cannot be told: %s", self.name, error)
                more, wait = False, min(LONGEST_S, wait * 2)
            if not more:
                await asyncio.sleep(wait)

    async def step(self) -> bool:
        """Send what is new, up to ``CHUNK`` events; whether there may be more.

        Raises:
            OSError, Agent0Error: it could not be sent. The next step begins there again.
        """
        before = self._before()
        rows = await asyncio.to_thread(self._rows, before.seq)
        new = [decode(str(row["body"]), row["seq"]) for row in rows if row["type"] in self._types]
        news, calm = Calm(self._calm, before.ends).take(new, self._clock())
        if news:
            await self._send(news)
        if rows or news:
            self._keep(_Place(rows[-1]["seq"] if rows else before.seq, calm.ends))
        return len(rows) == CHUNK

    def _rows(self, after: int) -> list[Row]:
        try:
            with reading(self._settings) as db:
                rows = stored_events(db, after=after, limit=CHUNK)
        except NothingError:
            return []
        return [{**row, "type": json.loads(row["body"])["type"]} for row in rows]

    def _before(self) -> _Place:
        try:
            saved = json.loads(self._path.read_bytes())
            return _Place(int(saved["seq"]), tuple(decode(body, seq) for seq, body in saved.get("held", [])))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            pass
        try:
            with reading(self._settings) as db:
                end = position(db).seq
        except NothingError:
            end = 0
        self._keep(_Place(end))
        return _Place(end)

    def _keep(self, position: _Place) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._path.with_suffix(".tmp")
        ends = [(end.seq, json.loads(end.to_json())) for end in position.ends]
        beside.write_text(json.dumps({"seq": position.seq, "held": ends}), encoding="utf-8")
        beside.replace(self._path)


def followers(settings: Settings) -> list[Follower]:
    """Those that ``settings.telemetry`` asks for.

    Raises:
        ConfigError: the webhook has no secret, or a chat's address is none.
    """
    plan, following = settings.telemetry, []
    if plan.otlp_url:
        following.append(Follower(settings, "otlp", EXPORTED, _to_collector(plan.otlp_url)))
    if plan.webhook_url:
        if not (secret := plan.webhook_secret.get_secret_value()):
            fix = "Set AGENT0_TELEMETRY__WEBHOOK_SECRET."
            raise ConfigError("The webhook has no secret to sign with.", "Its receiver could believe nothing.", fix)
        following.append(Follower(settings, "webhook", NOTICES, _to_webhook(plan.webhook_url, secret), plan.calm_s))
    for name, message in CHATS.items():
        if url := getattr(plan, f"{name}_url").get_secret_value():
            following.append(Follower(settings, name, NOTICES, _to_chat(name, url, message), plan.calm_s))
    if plan.log_json:
        following.append(Follower(settings, "log", NOTICES, _to_log, plan.calm_s))
    return following


async def _to_log(news: Sequence[Recorded]) -> None:
    """A line of the process's log for each, a warning where something is wrong."""
    for stored in news:
        level = logging.WARNING if stored.type in ("AlarmRaised", "RunFailed") else logging.INFO
        with about(run=stored.run, event=stored.seq):
            logging.getLogger(__name__).log(level, "%s: %s", stored.type, describe(stored))


def _to_chat(name: str, url: str, message: Message) -> Send:
    """One request for all that is new, so that none is sent again since a later one was refused. The address is a
    secret: no error shows it."""
    if not url.startswith(("https://", "http://")):
        fix = f"Set AGENT0_TELEMETRY__{name.upper()}_URL to the whole address, with https://."
        raise ConfigError(f"telemetry.{name}_url is no address.", fix=fix)

    async def send(news: Sequence[Recorded]) -> None:
        await asyncio.to_thread(post, url, message(news), {})

    return send


def _to_collector(url: str) -> Send:
    async def send(news: Sequence[Recorded]) -> None:
        spans = [span for stored in news for span in spans_of(stored)]
        body = json.dumps(otlp(spans, installed_version())).encode()
        await asyncio.to_thread(post, f"{url.rstrip('/')}/v1/traces", body, {})

    return send


def _to_webhook(url: str, secret: str) -> Send:
    """One request an event, signed: a receiver computes the same over ``<timestamp>.<body>``. Its headers make it a
    CloudEvent 1.0 in binary mode (https://github.com/cloudevents/spec, HTTP binding)."""

    async def send(news: Sequence[Recorded]) -> None:
        for stored in news:
            body = json.dumps({"seq": stored.seq, **json.loads(stored.to_json())}).encode()
            stamp = str(int(stored.time.timestamp()))
            signed = {SIGNATURE: f"t={stamp},v1={signature(secret, stamp, body)}"}
            await asyncio.to_thread(post, url, body, signed | cloud_headers(stored))

    return send


def cloud_headers(stored: Recorded) -> dict[str, str]:
    """Name ``stored`` as a CloudEvent; source and id together are unique."""
    fields = {"specversion": "1.0", "id": stored.id, "source": f"/v1/runs/{quote(stored.run)}"}
    fields |= {"type": f"agent0.{stored.type}", "time": stored.time.isoformat()}
    return {f"ce-{name}": value for name, value in fields.items()}


def signature(secret: str, stamp: str, body: bytes) -> str:
    """Sign ``<stamp>.<body>`` by HMAC-SHA256 under ``secret``; returns it in hex."""
    return hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def post(url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Send ``body`` as JSON.

    Raises:
        OSError: no answer, one that is an error or none of HTTP, or one that leads elsewhere.
    """
    all_headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, body, all_headers, method="POST")  # noqa: S310 - a setting: http or https
    try:
        with _opener.open(request, timeout=TIMEOUT_S) as answer:
            answer.read()
    except http.client.HTTPException as error:
        raise OSError(f"it answers no HTTP: {type(error).__name__}") from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would be followed by GET, without the body: it is an error."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


@dataclass(frozen=True)
class Calm:
    """Ends of alarms that are not sent yet, oldest first: each may be raised again until ``calm`` has passed."""

    calm: timedelta
    ends: tuple[Recorded, ...] = ()

    def take(self, events: Iterable[Recorded], moment: datetime) -> "tuple[list[Recorded], Calm]":
        """Take in ``events``: what is to be sent as of ``moment``, of what waited before too, and what waits since."""
        ends, out = list(self.ends), list[Recorded]()
        for stored in events:
            out += _over(ends, stored.time - self.calm)
            match stored.event:
                case AlarmResolved() if self.calm:
                    ends.append(stored)
                case AlarmRaised() if again := [end for end in ends if _same(end, stored)]:
                    ends = [end for end in ends if end not in again]
                case _:
                    out.append(stored)
        out += _over(ends, moment - self.calm)
        return out, Calm(self.calm, tuple(ends))


def _over(ends: list[Recorded], until: datetime) -> Iterator[Recorded]:
    """Take out what has been held since ``until`` or longer."""
    for end in [end for end in ends if end.time <= until]:
        ends.remove(end)
        yield end


def _same(end: Recorded, begin: Recorded) -> bool:
    ended, begun = end.event, begin.event
    assert isinstance(ended, AlarmResolved)  # noqa: S101 - nothing else is held
    assert isinstance(begun, AlarmRaised)  # noqa: S101 - matched before
    return (end.run, ended.alarm) == (begin.run, begun.alarm)
