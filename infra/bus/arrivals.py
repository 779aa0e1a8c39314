"""What a handler's consumers deliver: one consumer for each run, and one for what belongs to no run.

A process asks for as many messages as it has free slots, whatever has arrived is given out at once, and runs share the
slots by their weights (``agent0.infra.bus.shares``). Requests stay open, since one a message costs more than most
reactions; only where fewer slots are free than runs have work, the run whose turn it is is asked alone, at once.
"""

import asyncio
import contextlib
import json
from collections import Counter, deque
from collections.abc import Collection, Mapping
from time import monotonic
from typing import Any

from nats.aio.msg import Msg
from nats.errors import Error
from nats.errors import TimeoutError as NothingError
from nats.js import JetStreamContext

from agent0.infra.bus.shares import Shares
from agent0.infra.log.connection import Link, apart

REFUSED_S = 1.0
"""Wait after the server refused a request: its consumer may just be made again."""
CLOSE_S = 1.0
HOLD_S = 1.0
"""For so long a message waits for a slot of this process; then others may have it."""


class RunConsumer:
    """A subscription to one consumer: what was asked of it and what has arrived."""

    def __init__(self, link: Link, stream: str, durable: str, wake: asyncio.Event) -> None:
        self._link, self._wake = link, wake
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"
        self._inbox = ""
        self._subscription: Any = None
        self._generation = link.generation
        self._expires = self._patient_until = 0.0
        self.arrived: deque[Msg] = deque()
        self.requested = 0
        """Messages asked for and not delivered yet."""
        self.hurried = False
        """Whether the newest request is answered at once."""
        self.refused = False
        self.active = False
        """Whether the newest request brought something."""

    async def open(self) -> None:
        """Subscribe to where messages will be sent."""
        self._inbox, self.requested = self._link.client.new_inbox(), 0
        self._subscription = await self._link.client.subscribe(
            self._inbox, cb=self._receive, pending_msgs_limit=-1, pending_bytes_limit=-1
        )

    async def close(self) -> None:
        """Ask for nothing more, and give back what nobody took: the server forgets requests that nobody listens to, and
        what it had sent by then is given back, too."""
        subscription, self._subscription = self._subscription, None
        if subscription:
            await apart(self._end(subscription))
        while self.arrived:
            await self.arrived.popleft().nak()

    async def _end(self, subscription: Any) -> None:
        with contextlib.suppress(Error, TimeoutError):  # without a server nothing is on its way
            async with asyncio.timeout(CLOSE_S):
                await (subscription.drain() if self._link.client.is_connected else subscription.unsubscribe())

    async def ask(self, count: int, timeout: float, at_once: bool = False) -> None:
        """Have ``count`` messages asked for, where fewer than half of them are; ``at_once``: of those that wait now."""
        at = monotonic()
        if self.outstanding > count // 2 or at < self._patient_until:
            return
        body: dict[str, object] = {"batch": count - self.requested}
        body |= {"no_wait": True} if at_once else {"expires": int(timeout * 10**9) - 10**5}
        self.requested, self._expires, self.hurried = count, at + timeout, at_once
        await self._link.client.publish(self._next, json.dumps(body).encode(), reply=self._inbox)

    @property
    def outstanding(self) -> int:
        """Messages asked for that may still come."""
        if self._generation != self._link.generation:  # a request over an earlier connection is gone
            self._generation, self.requested = self._link.generation, 0
        if monotonic() > self._expires + CLOSE_S:
            self.requested = 0
        return self.requested

    async def _receive(self, message: Msg) -> None:
        if not message.reply.startswith("$JS.ACK"):
            self._note(message.headers or {})
        elif self._subscription is None:
            await message.nak()
        else:
            self.requested, self.active, self.refused = max(0, self.requested - 1), True, False
            self.arrived.append(message)
        self._wake.set()

    def _note(self, status: dict[str, str]) -> None:
        """An expired request is asked again, as is one that found nothing; another end of one is a refusal."""
        if status.get("Status") in ("404", "408"):
            left = int(status.get("Nats-Pending-Messages", self.requested))
            self.active, self.refused = self.active and left < self.requested, False
            self.requested = max(0, self.requested - left)
        elif status.get("Status") != "100":
            self.requested, self.refused, self._patient_until = 0, True, monotonic() + REFUSED_S


class Arrivals:
    """The consumers of one handler; FastStream's pull subscriber calls ``fetch`` and ``unsubscribe``."""

    def __init__(self, link: Link, stream: str, durable: str, slots: int) -> None:
        """``slots``: messages that this process handles at a time."""
        self._link, self._stream, self._durable, self._slots = link, stream, durable, slots
        self._consumers: dict[str, RunConsumer] = {}
        self._shares = Shares(slots)
        self._left: Collection[str] = ()
        self._wake = asyncio.Event()
        self._running: dict[str, str] = {}
        """Of messages that were given out and are not done, by where they are acknowledged, the run."""
        self._unstarted: dict[str, Msg] = {}
        """Those that were given out and that nobody has begun."""
        self._full_since: float | None = None

    def share(self, weights: Mapping[str, float], left: Collection[str] = ()) -> None:
        """Divide the slots between runs by ``weights`` from now on, and ask for nothing of those ``left`` to other
        processes."""
        self._shares.weights, self._left = weights, left
        self._wake.set()

    async def open(self) -> None:
        """Subscribe to what belongs to no run."""
        self._link.watch(self._wake)
        await self.add("", self._durable)

    async def add(self, run: str, durable: str) -> None:
        """Take the messages of ``run``, too, from a consumer that exists."""
        if run not in self._consumers:
            consumer = self._consumers[run] = RunConsumer(self._link, self._stream, durable, self._wake)
            await consumer.open()
            self._wake.set()

    async def remove(self, run: str) -> None:
        """Take no message of ``run`` any more, and give back those that nobody has begun."""
        if consumer := self._consumers.pop(run, None):
            self._shares.forget(run)
            await consumer.close()

    def refused(self, run: str) -> bool:
        """Whether the server refused the newest request for messages of ``run``: its consumer may be gone."""
        consumer = self._consumers.get(run)
        return consumer is not None and consumer.refused

    async def unsubscribe(self) -> None:
        """Take nothing more, and give back what nobody has begun."""
        self._link.unwatch(self._wake)
        for run in list(self._consumers):
            await self.remove(run)
        while self._unstarted:
            await self._unstarted.popitem()[1].nak()

    def begin(self, message: Msg) -> None:
        """Note that ``message`` is handled from now on, and will be acknowledged or given back."""
        self._unstarted.pop(message.reply, None)

    def end(self, message: Msg) -> None:
        """Note that ``message`` is done: its slot is free."""
        self._running.pop(message.reply, None)
        self._wake.set()

    @property
    def in_hand(self) -> int:
        """Messages that were delivered here and are neither acknowledged nor given back."""
        return len(self._running) + sum(len(consumer.arrived) for consumer in self._consumers.values())

    async def fetch(self, batch: int, timeout: float) -> list[Msg]:
        """What has arrived, as far as there are free slots; of nothing the first that arrives within ``timeout``
        seconds. Who has some already and asks for more (``batch`` less than all slots) does not wait.

        Raises:
            nats.errors.TimeoutError: there is nothing.
        """
        until = monotonic() + timeout
        while not (messages := self._take(batch)):
            if batch < self._slots or monotonic() >= until:
                raise NothingError
            await self._ask(timeout)
            await self._make_room()
            try:
                async with asyncio.timeout(min(until - monotonic(), HOLD_S if self._full_since else timeout)):
                    await self._wake.wait()
            except TimeoutError:
                continue
        return messages

    @property
    def _free(self) -> int:
        return self._slots - len(self._running)

    def _take(self, batch: int) -> list[Msg]:
        """Messages that have arrived, for the free slots."""
        self._wake.clear()
        messages, count = list[Msg](), Counter(self._running.values())
        while len(messages) < batch and self._free > 0:
            waiting = [run for run, consumer in self._consumers.items() if consumer.arrived]
            if not waiting:
                break
            run = self._shares.next(waiting, count)
            self._shares.give(run, [r for r, c in self._consumers.items() if c.arrived or c.active])
            message = self._consumers[run].arrived.popleft()
            count[run] += 1
            self._running[message.reply], self._unstarted[message.reply] = run, message
            messages.append(message)
        return messages

    async def _ask(self, timeout: float) -> None:
        """Ask each run for its share of the free slots, and one message of those that had nothing to do."""
        free = self._free - sum(len(consumer.arrived) for consumer in self._consumers.values())
        if free <= 0:
            return
        asked = {run: consumer for run, consumer in self._consumers.items() if run not in self._left}
        active = [run for run, consumer in asked.items() if consumer.active]
        total = sum(map(self._shares.weight, active))
        if len(active) > free:
            hurried = sum(consumer.outstanding for consumer in asked.values() if consumer.hurried)
            await self._ask_next(
                {run: asked[run] for run in active if not asked[run].outstanding}, free - hurried, timeout
            )
        for run, consumer in asked.items():
            if not consumer.active:
                await consumer.ask(1, timeout)
            elif len(active) <= free:
                await consumer.ask(max(1, int(free * self._shares.weight(run) / total)), timeout)

    async def _ask_next(self, consumers: dict[str, RunConsumer], free: int, timeout: float) -> None:
        """Ask the runs whose turn it is for a message each. What comes of a request to all of them would wait here, and
        each time that it is given back counts as a delivery."""
        count = Counter(self._running.values())
        for _ in range(min(free, len(consumers))):
            run = self._shares.next(consumers, count)
            await consumers.pop(run).ask(1, timeout, at_once=True)

    async def _make_room(self) -> None:
        """Where no slot becomes free, give back what waits for one, and take back what was asked for."""
        if self._free > 0:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = monotonic()
        elif monotonic() - self._full_since > HOLD_S:
            for consumer in list(self._consumers.values()):
                if consumer.arrived or consumer.requested:
                    await consumer.close()
                    await consumer.open()


class Pulling(JetStreamContext):
    """FastStream's context for subscriptions, where a pull subscription is ``Arrivals``."""

    def __init__(self, link: Link, slots: dict[str, int]) -> None:
        """``slots``: messages that are handled at a time, by durable."""
        super().__init__(link.client)
        self._link, self._slots = link, slots
        self.arrivals: dict[str, Arrivals] = {}
        """By durable."""

    async def pull_subscribe(self, subject: str, durable: Any = None, stream: Any = None, *_: Any, **__: Any) -> Any:
        """Subscribe to ``durable``, which exists."""
        arrivals = self.arrivals[durable] = Arrivals(self._link, stream, durable, self._slots[durable])
        await arrivals.open()
        return arrivals
