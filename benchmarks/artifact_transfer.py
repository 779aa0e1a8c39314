"""How fast artifacts come to hosts that share no folder, and whether one ever comes in part.

``python -m benchmarks.artifact_transfer`` puts ``--megabytes`` from one data folder through a nats-server of this
machine and gets them in ``--hosts`` other processes at once, beside as many plain copies (read, written, fsynced) and
nats-py's own object store (``--peer-megabytes``). Then ``--cuts`` transfers of a few megabytes, each through a
connection that is ended at a random moment.
"""

import argparse
import asyncio
import hashlib
import io
import os
import random
import shutil
import tempfile
import time
from collections.abc import Awaitable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from agent0.events.values import Artifact
from agent0.infra.log.artifacts.chunks import ArtifactChunks
from agent0.infra.log.connection import connect
from agent0.infra.log.nats_server import Server, open_server
from agent0.infra.log.streams import Topology, init
from agent0.infra.storage.files import file_digest
from agent0.settings import HandlerSettings, NatsSettings
from tests.test_log import Proxy

MB = 1 << 20
SLOW_S = 60.0
"""How long nats-py's own store is waited for."""


async def timed(work: Awaitable[object]) -> float:
    """Seconds of wall time that ``work`` takes."""
    begun = time.perf_counter()
    await work
    return time.perf_counter() - begun


def written(folder: Path, size: int) -> tuple[Artifact, Path]:
    """A file of random bytes, and what names it."""
    data = os.urandom(size)
    path = folder / hashlib.sha256(data).hexdigest()
    path.write_bytes(data)
    return Artifact(sha256=path.name, size=size), path


def copied(path: Path, to: Path) -> None:
    """A plain copy, on the disk when this returns."""
    shutil.copyfile(path, to)
    with to.open("rb") as file:
        os.fsync(file.fileno())


def host(login: NatsSettings, artifact: Artifact, to: Path) -> None:
    """What a host does to get an artifact: a connection of its own, the chunks, the digest, the disk."""

    async def fetch() -> None:
        server = Server(login)
        chunks = ArtifactChunks(await connect(server, "app"), server)
        await chunks.get(artifact, to)
        await chunks.close()

    asyncio.run(fetch())
    with to.open("rb") as file:
        os.fsync(file.fileno())


async def large(server: Server, folder: Path, megabytes: int, hosts: int) -> None:
    """One large artifact to several hosts, beside plain copies."""
    artifact, path = written(folder, megabytes * MB)
    link, loop = await connect(server, "app"), asyncio.get_running_loop()
    put = await timed(ArtifactChunks(link, Server(NatsSettings(url=server.url))).put(artifact, path))
    login = NatsSettings(url=server.url, user="app", password=server.password("app"))
    with ProcessPoolExecutor(hosts) as pool:
        await asyncio.gather(*(loop.run_in_executor(pool, time.sleep, 0.5) for _ in range(hosts)))  # all have begun
        gets = [loop.run_in_executor(pool, host, login, artifact, folder / f"host-{n}") for n in range(hosts)]
        got = await timed(asyncio.gather(*gets))
        copies = [loop.run_in_executor(pool, copied, path, folder / f"copy-{n}") for n in range(hosts)]
        copy = await timed(asyncio.gather(*copies))
    await link.close()
    print(f"{megabytes} MB to {hosts} hosts: put {put:.2f} s, get {got:.2f} s; {hosts} plain copies {copy:.2f} s;")
    print(f"all of it {(put + got) / copy:.1f} times the copies, the hosts' part {got / copy:.1f} times")
    for n in range(hosts):
        assert file_digest(folder / f"host-{n}") == artifact.sha256
        (folder / f"host-{n}").unlink()
        (folder / f"copy-{n}").unlink()


async def peer(server: Server, megabytes: int) -> None:
    """The object store of nats-py: put, then get into memory and into a file."""
    link = await connect(server, "admin")
    store = await link.client.jetstream().create_object_store("peer")
    data = os.urandom(megabytes * MB)
    put = await timed(store.put("x", io.BytesIO(data)))
    tries: dict[str, str] = {}
    with tempfile.TemporaryFile() as file:
        for name, target in (("memory", None), ("a file", file)):
            try:
                async with asyncio.timeout(SLOW_S):
                    tries[name] = f"{await timed(store.get('x', target)):.1f} s"
            except TimeoutError:
                tries[name] = f"not in {SLOW_S:.0f} s"
    print(f"nats-py's own store, {megabytes} MB: put {put:.1f} s, get into memory {tries['memory']}, ", end="")
    print(f"into a file {tries['a file']}")
    await link.close()


async def cuts(server: Server, folder: Path, times: int, seed: int) -> None:
    """Transfers whose connections are ended at a random moment: how many were cut, and how many came otherwise."""
    rng, cut, wrong = random.Random(seed), 0, 0
    artifact, path = written(folder, 6 * MB + 1)
    async with Proxy(int(server.url.rpartition(":")[2])) as proxy:
        password = server.password("app")
        through = Server(NatsSettings(url=proxy.url, user="app", password=password))
        link = await connect(through, "app")
        chunks, usual = ArtifactChunks(link, through), 0.05
        await chunks.put(artifact, path)
        for _ in range(times):
            to = folder / "cut"
            transfer = asyncio.ensure_future(chunks.get(artifact, to))
            begun = time.perf_counter()
            await asyncio.wait([transfer], timeout=rng.uniform(0, usual))
            if not transfer.done():
                proxy.cut()
                cut += 1
            else:
                usual = 0.9 * usual + 0.1 * (time.perf_counter() - begun)
            await transfer
            wrong += file_digest(to) != artifact.sha256
            to.unlink()
        await link.close()
    print(f"{times} transfers of 6 MB, {cut} of them cut in the middle: {wrong} came truncated or otherwise than put")


async def main() -> None:
    """All of it."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--megabytes", type=int, default=200)
    flags.add_argument("--peer-megabytes", type=int, default=32)
    flags.add_argument("--hosts", type=int, default=4)
    flags.add_argument("--cuts", type=int, default=1000)
    flags.add_argument("--seed", type=int, default=0)
    chosen = flags.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, nats = Path(name), NatsSettings(max_bytes=4 << 30)
        server = await open_server(folder / "home", nats)
        await init(
            server,
            Topology(nats.model_copy(update={"max_bytes": 1 << 28}), HandlerSettings(), artifact_bytes=1 << 30),
            (),
        )
        await large(server, folder, chosen.megabytes, chosen.hosts)
        await cuts(server, folder, chosen.cuts, chosen.seed)
        await peer(server, chosen.peer_megabytes)
        await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
