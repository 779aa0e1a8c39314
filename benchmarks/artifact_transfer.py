"""How fast artifacts come to hosts that share no folder, and whether one ever comes in part.

``python -m benchmarks.artifact_transfer [--write]`` puts ``--megabytes`` from one data folder through a nats-server of
this machine and gets them in ``--hosts`` other processes at once, beside as many plain copies (read, written, fsynced)
and nats-py's own object store, into files as well. Then ``--cuts`` transfers of a few megabytes, each through a
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
from collections.abc import Awaitable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from agent0.assembly.runtime.stamping import code_rev
from agent0.events.values import Artifact
from agent0.infra.log.artifacts.chunks import ArtifactChunks
from agent0.infra.log.connection import connect
from agent0.infra.log.nats_server import Server, open_server
from agent0.infra.log.streams import Topology, init
from agent0.infra.storage.files import file_digest
from agent0.settings import HandlerSettings, NatsSettings
from benchmarks.measured_page import write
from tests.test_log import Proxy

MB = 1 << 20
Seconds = tuple[float, float, int]
"""Of a put, of the gets, for so many megabytes."""


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


def peer_host(login: NatsSettings, to: Path) -> None:
    """The same by nats-py's own object store, which looks at the digest at the end."""

    async def fetch() -> None:
        link = await connect(Server(login), "admin")
        with to.open("wb") as file:
            await (await link.client.jetstream().object_store("peer")).get("x", file)
            os.fsync(file.fileno())
        await link.close()

    asyncio.run(fetch())


async def by_all(pool: ProcessPoolExecutor, hosts: int, *call: Any) -> float:
    """Seconds until all processes have done ``call(*arguments, to)`` at once, each to a file of its own; what came is
    what was put."""
    loop, (work, *arguments, to, digest) = asyncio.get_running_loop(), call
    files = [to / f"{work.__name__}-{n}" for n in range(hosts)]
    seconds = await timed(asyncio.gather(*(loop.run_in_executor(pool, work, *arguments, file) for file in files)))
    for file in files:
        assert file_digest(file) == digest
        file.unlink()
    return seconds


async def large(server: Server, folder: Path, megabytes: int, hosts: int, peer_megabytes: int) -> dict[str, Seconds]:
    """Seconds to put one large artifact, and to get it in several processes: by a copy, by chunks, by nats-py, which is
    given less."""
    artifact, path = written(folder, megabytes * MB)
    smaller, smaller_path = written(folder, peer_megabytes * MB)
    link, loop = await connect(server, "app"), asyncio.get_running_loop()
    put = await timed(ArtifactChunks(link, Server(NatsSettings(url=server.url))).put(artifact, path))
    await link.close()
    link = await connect(server, "admin")
    peer = await link.client.jetstream().create_object_store("peer")
    peer_put = await timed(peer.put("x", io.BytesIO(smaller_path.read_bytes())))
    await link.close()
    app, admin = (NatsSettings(url=server.url, user=role, password=server.password(role)) for role in ("app", "admin"))
    with ProcessPoolExecutor(hosts) as pool:
        await asyncio.gather(*(loop.run_in_executor(pool, time.sleep, 0.5) for _ in range(hosts)))  # all have begun
        end = folder, artifact.sha256
        copies = await by_all(pool, hosts, copied, path, *end)
        got = await by_all(pool, hosts, host, app, artifact, *end)
        peer_got = await by_all(pool, hosts, peer_host, admin, folder, smaller.sha256)
        return {
            f"plain copies, {megabytes} MB": (0.0, copies, megabytes),
            f"chunks (ours), {megabytes} MB": (put, got, megabytes),
            f"nats-py's object store, {peer_megabytes} MB": (peer_put, peer_got, peer_megabytes),
        }


async def cuts(server: Server, folder: Path, times: int, seed: int) -> str:
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
    return f"{times:,} transfers of 6 MB, {cut} of them cut in the middle: {wrong} came otherwise than put."


def page(hosts: int, seconds: Mapping[str, Seconds], cut: str) -> str:
    """What was measured, in Markdown; times are by megabyte."""
    floor = next(get / size for _, get, size in seconds.values())
    rows = [
        f"| {name} | {put:.1f} | {get:.1f} | {(put + get) / size / floor:.1f} |"
        for name, (put, get, size) in seconds.items()
    ]
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {code_rev()}."
    return "\n".join(
        [
            f"| to {hosts} processes | put, s | get, s | a MB, in copies |",
            "|---|--:|--:|--:|",
            *rows,
            "",
            cut,
            "",
            machine,
            "",
        ]
    )


async def main() -> None:
    """All of it."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--megabytes", type=int, default=200)
    flags.add_argument("--peer-megabytes", type=int, default=16)
    flags.add_argument("--hosts", type=int, default=4)
    flags.add_argument("--cuts", type=int, default=1000)
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--write", action="store_true", help="Write docs/results/cluster.md.")
    chosen = flags.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, nats = Path(name), NatsSettings(max_bytes=4 << 30)
        server = await open_server(folder / "home", nats)
        await init(
            server,
            Topology(nats.model_copy(update={"max_bytes": 1 << 28}), HandlerSettings(), artifact_bytes=1 << 30),
            (),
        )
        seconds = await large(server, folder, chosen.megabytes, chosen.hosts, chosen.peer_megabytes)
        cut = await cuts(server, folder, chosen.cuts, chosen.seed)
        await server.stop()
    text = page(chosen.hosts, seconds, cut)
    print(text)
    if chosen.write:
        write("cluster.md", text, "transfer")


if __name__ == "__main__":
    asyncio.run(main())
