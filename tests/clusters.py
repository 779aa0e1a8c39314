"""Three nats-servers on loopback that hold one log: with the users, rights and limits of those in containers."""

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.errors import Error

from agent0.assembly.log.access import provision
from agent0.config.loading import load
from agent0.errors import DependencyError
from agent0.events.alarms import AlarmRaised
from agent0.events.base import Recorded, record
from agent0.infra.log.connection import connect
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import ROLES, Server, binary
from agent0.settings import Settings
from tests.patience import PATIENCE_S

IMAGES = Path(__file__).parents[1] / "infra" / "images"
NODES = ("nats-1", "nats-2", "nats-3")


@dataclass(frozen=True)
class Host:
    """Where a server runs: its address, and what its command begins with."""

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()


class Cluster:
    """The servers below ``folder``, by name, all on loopback unless ``hosts`` names others; each may be killed and
    started again."""

    def __init__(self, folder: Path, hosts: Mapping[str, Host] | None = None) -> None:
        self.folder = folder
        self.hosts = hosts or dict.fromkeys(NODES, Host())
        ports = _free_ports(2 * len(NODES))
        self.ports = dict(zip(NODES, ports, strict=False))
        self._routes = dict(zip(NODES, ports[len(NODES) :], strict=True))
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Cluster":
        for node in NODES:
            self.start(node)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            process.kill()
        for process in self.running.values():
            process.wait()

    @property
    def url(self) -> str:
        """All of them, as ``AGENT0_NATS_URL`` names them."""
        return ",".join(f"nats://{self.hosts[node].address}:{port}" for node, port in self.ports.items())

    def settings(self, home: Path, role: str = "app", **more: str) -> Settings:
        """Of a process that connects as ``role``; the log is to stand on every server."""
        names = {f"AGENT0_{key}": value for key, value in self.env(role, **more).items()}
        return load("scripted", {"home": str(home)}, names)

    def env(self, role: str = "app", **more: str) -> dict[str, str]:
        """The same as AGENT0_* names without the prefix."""
        return {"NATS_URL": self.url, "NATS__USER": role, "NATS__PASSWORD": f"p-{role}", "NATS__REPLICAS": "3", **more}

    def start(self, node: str) -> None:
        """Begin a server, for the first time or after its death."""
        text = (IMAGES / "nats.conf").read_text()
        host = self.hosts[node]
        text = text.replace("0.0.0.0:4222", f"{host.address}:{self.ports[node]}").replace('http: "0.0.0.0:8222"', "")
        routes = ", ".join(f'"nats://{self.hosts[name].address}:{port}"' for name, port in self._routes.items())
        text = text.replace('"/data"', json.dumps(str(self.folder / node)))
        text += f'cluster {{ name: agent0, listen: "{host.address}:{self._routes[node]}", routes: [{routes}] }}\n'
        config = self.folder / f"{node}.conf"
        config.write_text(text)
        secrets = {f"NATS_{role.upper()}_PASSWORD": f"p-{role}" for role in ROLES}
        command = [*host.prefix, str(binary()), "-c", str(config), "-l", str(self.folder / f"{node}.log")]
        self.running[node] = subprocess.Popen(command, env={"NATS_NAME": node, **secrets})

    def kill(self, node: str) -> None:
        """kill -9."""
        process = self.running.pop(node)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    async def connect(self, home: Path, role: str = "app") -> Log:
        """A connection as a process of ours has it."""
        return await Log.connect(Server(self.settings(home, role).nats))

    async def provision(self, home: Path, **more: str) -> None:
        """Make the log, as soon as the servers have chosen who of them gives out streams."""
        held = self.settings(home, "admin", **more)
        link = await connect(Server(held.nats), "admin")
        async with asyncio.timeout(PATIENCE_S):
            while not (await _told(link.client, "$JS.API.INFO")).get("limits"):
                await asyncio.sleep(0.05)
        await link.close()
        await provision(held)

    async def leader(self, log: Log) -> str:
        """The server that takes what is published, once there is one."""
        async with asyncio.timeout(PATIENCE_S):
            while not (name := (await self._members(log)).get("leader")):
                await asyncio.sleep(0.05)
        return str(name)

    async def whole(self, log: Log) -> None:
        """Until every server has everything."""
        async with asyncio.timeout(PATIENCE_S):
            while not self._agree(await self._members(log)):
                await asyncio.sleep(0.1)

    def _agree(self, members: dict[str, Any]) -> bool:
        others = members.get("replicas", [])
        return len(others) == len(NODES) - 1 and all(one["current"] and not one.get("lag") for one in others)

    async def _members(self, log: Log) -> dict[str, Any]:
        return dict((await _told(log.client, "$JS.API.STREAM.INFO.A0_EV")).get("cluster", {}))


async def _told(client: Client, subject: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((await client.request(subject, b"", timeout=1)).data)
    except (Error, TimeoutError):
        return {}
    return found


@dataclass
class Published:
    """What writers were told is stored, id -> sequence, what is stored, and the seconds for which nobody was answered
    after each kill."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    stored: list[Recorded] = field(default_factory=list)
    silences: list[float] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Acknowledged events that are not where they were said to be."""
        at = {r.id: r.seq for r in self.stored}
        return sum(at.get(id) != seq for id, seq in self.acknowledged.items())

    @property
    def twice(self) -> int:
        """Events stored a second time."""
        return len(self.stored) - len({r.id for r in self.stored})


async def publish(cluster: Cluster, home: Path, kills: int, rng: random.Random) -> Published:
    """Four writers append single events and batches; the leader is killed ``kills`` times meanwhile. Each but the last
    is started again, and the next is killed when all servers have everything."""
    found = Published()
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        logs = [await stack.enter_async_context(await cluster.connect(home)) for _ in range(4)]
        writing = [asyncio.create_task(_write(log, n, rng.random(), found, stop)) for n, log in enumerate(logs)]
        for number in range(kills):
            await _more(found, writing)
            await asyncio.sleep(rng.uniform(0.1, 0.5))
            leader = await cluster.leader(logs[0])
            cluster.kill(leader)
            begun = time.monotonic()
            await _more(found, writing)
            found.silences.append(time.monotonic() - begun)
            if number < kills - 1:
                cluster.start(leader)
                await cluster.whole(logs[0])
        stop.set()
        await asyncio.gather(*writing)
        found.stored = [r async for r in logs[0].read()]
    return found


async def _more(found: Published, writing: Sequence[asyncio.Task[None]], events: int = 200) -> None:
    wanted = len(found.acknowledged) + events
    while len(found.acknowledged) < wanted:
        for task in writing:
            if task.done():
                task.result()
        await asyncio.sleep(0.02)


async def _write(log: Log, writer: int, seed: float, found: Published, stop: asyncio.Event) -> None:
    rng, number = random.Random(seed), 0
    while not stop.is_set():
        batch = []
        for _ in range(rng.choice((1, 1, 2, 5, 40))):
            number += 1
            event = AlarmRaised(alarm=f"a{writer}-{number}", severity="info", message="m")
            batch.append(record(event, run=f"w{writer}", time=datetime.now(UTC)))
        seqs = await _stored(log, batch)
        found.acknowledged |= {r.id: seq for r, seq in zip(batch, seqs, strict=True)}
        await asyncio.sleep(0.002)  # the servers want some of this machine, too


async def _stored(log: Log, batch: Sequence[Recorded]) -> list[int]:
    """As those who commit for handlers do: as long as there is no leader, again."""
    while True:
        try:
            return await log.append(batch)
        except DependencyError:
            await asyncio.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    """Free ones, all different."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
