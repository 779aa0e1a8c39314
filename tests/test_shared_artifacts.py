"""Artifacts of hosts that share no folder: whole or not there, whatever breaks in the middle."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agent0.errors import AuthError, DependencyError, LogError, NotFoundError
from agent0.events.alarms import AlarmRaised
from agent0.events.base import record
from agent0.events.values import Artifact
from agent0.infra.log.artifacts import chunks
from agent0.infra.log.artifacts.chunks import CHUNK, ArtifactChunks
from agent0.infra.log.artifacts.shared import SharedArtifacts, SharedStore
from agent0.infra.log.connection import connect
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server
from agent0.infra.log.streams import Topology, init
from agent0.settings import HandlerSettings, NatsSettings
from tests.test_log import Proxy

EVENT = record(AlarmRaised(alarm="a", severity="info", message="m"), run="r1", time=datetime(2026, 1, 1, tzinfo=UTC))


@pytest_asyncio.fixture
async def servers(nats_server: Server, nats_settings: NatsSettings) -> Server:
    """A log's server with the stream of artifacts."""
    await init(nats_server, Topology(nats_settings, HandlerSettings(), artifact_bytes=1 << 28), ())
    return nats_server


class Hosts:
    """Data folders that share nothing but the server at ``url``."""

    def __init__(self, folder: Path, server: Server, url: str = "", patience_s: float = 60.0) -> None:
        password = server.password("app")
        self._folder, self._patience_s = folder, patience_s
        self._nats = NatsSettings(url=url or server.url, user="app", password=password)
        self._hosts: list[SharedArtifacts] = []

    def host(self, name: str) -> SharedArtifacts:
        async def connected() -> SharedStore:
            server = Server(self._nats)
            return ArtifactChunks(await connect(server, "app"), server, self._patience_s)

        self._hosts.append(SharedArtifacts(self._folder / name, connected))
        return self._hosts[-1]

    async def close(self) -> None:
        for host in self._hosts:
            await asyncio.to_thread(host.close)


@pytest_asyncio.fixture
async def hosts(tmp_path: Path, servers: Server) -> AsyncIterator[Hosts]:
    opened = Hosts(tmp_path, servers)
    yield opened
    await opened.close()


async def fetched(host: SharedArtifacts, artifact: Artifact) -> bytes:
    return await asyncio.to_thread(host.get, artifact)


def files(host: SharedArtifacts) -> list[str]:
    return sorted(path.name for path in host._root.rglob("*") if path.is_file())


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
async def test_what_one_host_put_another_gets(size: int, hosts: Hosts) -> None:
    here, there, data = hosts.host("here"), hosts.host("there"), random.Random(size).randbytes(size)
    artifact = here.put(data)
    with pytest.raises(NotFoundError, match="not in the shared store"):
        await fetched(there, artifact)
    await here.share()
    assert await fetched(there, artifact) == data and there.verify(artifact) == ""
    assert files(there) == [artifact.sha256[2:]], "no part of it is left over"


async def test_what_nobody_put_is_missing_and_no_name_leads_elsewhere(hosts: Hosts) -> None:
    host = hosts.host("here")
    unknown = Artifact(sha256="0" * 64, size=CHUNK + 1)
    assert await asyncio.to_thread(host.verify, unknown) == "missing"
    with pytest.raises(NotFoundError, match="no sha256"):
        await fetched(host, Artifact(sha256="../../x", size=1))


async def purge(servers: Server, subjects: str) -> None:
    link = await connect(servers, "admin")
    await link.client.jetstream().purge_stream("A0_ART", subject=subjects)
    await link.close()


async def verified(host: SharedArtifacts, *artifacts: Artifact) -> list[str]:
    return [await asyncio.to_thread(host.verify, artifact) for artifact in artifacts]


async def test_what_the_shared_store_lost_is_missing_though_a_copy_is_here(hosts: Hosts, servers: Server) -> None:
    here = hosts.host("here")
    kept, lost, half = (here.put(os.urandom(2 * CHUNK)) for _ in range(3))
    await here.share()
    await purge(servers, f"a0.art.{lost.sha256}.*")
    await purge(servers, f"a0.art.{half.sha256}.1")
    for host in (here, hosts.host("there")):
        assert await verified(host, kept, lost, half) == ["", "missing", "missing"]


async def test_a_damaged_copy_is_fetched_again_and_kept_where_there_is_no_better(hosts: Hosts, servers: Server) -> None:
    here = hosts.host("here")
    read, checked, alone = (here.put(os.urandom(1000)) for _ in range(3))
    await here.share()
    await purge(servers, f"a0.art.{alone.sha256}.*")
    for artifact in (read, checked, alone):
        here.path(artifact).write_bytes(b"flipped")
    assert len(await fetched(here, read)) == 1000
    assert await verified(here, read, checked, alone) == ["", "", "damaged"]
    with pytest.raises(LogError, match="is damaged"):
        await fetched(here, alone)
    assert here.path(alone).read_bytes() == b"flipped"
    left = [name for name in files(here) if not name.endswith(".part")]
    assert left == sorted(artifact.sha256[2:] for artifact in (read, checked, alone))


async def test_other_sizes_in_the_shared_store_are_damage_and_end_no_check(hosts: Hosts, servers: Server) -> None:
    here, there = hosts.host("here"), hosts.host("there")
    whole, cut = here.put(os.urandom(100)), Artifact(sha256="1" * 64, size=100)
    link = await connect(servers, "app")
    await link.client.jetstream().publish(f"a0.art.{cut.sha256}.0", b"shorter")
    await link.close()
    await here.share()
    assert await verified(there, cut, whole) == ["damaged", ""]


async def test_two_hosts_that_put_the_same_do_no_harm(hosts: Hosts) -> None:
    data = os.urandom(5 * CHUNK)
    one, two, third = (hosts.host(name) for name in ("one", "two", "three"))
    artifact = one.put(data)
    assert two.put(data) == artifact
    await asyncio.gather(one.share(), two.share())
    assert await fetched(third, artifact) == data


async def test_two_processes_of_a_host_fetch_once(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there, same = hosts.host("here"), hosts.host("there"), hosts.host("there")
    artifact = here.put(os.urandom(20 * CHUNK))
    await here.share()
    fetches, get = [], ArtifactChunks.get

    async def counted(self: ArtifactChunks, artifact: Artifact, path: Path) -> None:
        fetches.append(path)
        await get(self, artifact, path)

    monkeypatch.setattr(ArtifactChunks, "get", counted)
    assert (
        len({await x for x in [asyncio.ensure_future(fetched(host, artifact)) for host in (there, same, there)]}) == 1
    )
    assert len(fetches) == 1


async def test_cut_at_random_it_comes_whole(tmp_path: Path, servers: Server) -> None:
    """Every connection is ended again and again, in both directions."""
    rng, data = random.Random(3), os.urandom(48 * CHUNK + 7)
    async with Proxy(int(servers.url.rpartition(":")[2])) as proxy:
        hosts, cuts = Hosts(tmp_path, servers, proxy.url), 0
        here, there = hosts.host("here"), hosts.host("there")
        artifact = here.put(data)
        for work in (here.share(), fetched(there, artifact)):
            transfer = asyncio.ensure_future(work)
            while not transfer.done():
                await asyncio.wait([transfer], timeout=rng.uniform(0.02, 0.4))
                if cuts < 12 and not transfer.done():
                    proxy.cut()
                    cuts += 1
            came = await transfer
        assert came == data and cuts >= 2
        await hosts.close()


async def test_a_transfer_that_broke_off_goes_on_with_what_is_left(
    tmp_path: Path, servers: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, asked, sent = os.urandom(40 * CHUNK), list[int](), list[int]()
    hosts = Hosts(tmp_path, servers, patience_s=0.0)
    here, there = hosts.host("here"), hosts.host("there")
    receive, send = ArtifactChunks._receive, ArtifactChunks._send
    broken = True

    async def receiving(self: ArtifactChunks, artifact: Artifact, number: int) -> bytes:
        asked.append(number)
        if broken and number == 35:
            raise DependencyError("shared artifact store", "cut")
        return await receive(self, artifact, number)

    async def sending(self: ArtifactChunks, artifact: Artifact, number: int, chunk: bytes) -> None:
        sent.append(number)
        if broken and number == 35:
            raise DependencyError("shared artifact store", "cut")
        await send(self, artifact, number, chunk)

    monkeypatch.setattr(ArtifactChunks, "_receive", receiving)
    monkeypatch.setattr(ArtifactChunks, "_send", sending)
    artifact = here.put(data)
    with pytest.raises(DependencyError):
        await here.share()
    broken = False
    sent.clear()
    await here.share()
    assert 35 in sent and len(sent) < 40, "chunks that are there are not sent again"
    broken = True
    with pytest.raises(DependencyError):
        await fetched(there, artifact)
    assert not there.path(artifact).exists()
    broken = False
    asked.clear()
    assert await fetched(there, artifact) == data
    assert min(asked) > 0, "what came is kept"
    await hosts.close()


async def test_other_bytes_under_its_name_are_refused_and_not_kept(hosts: Hosts, servers: Server) -> None:
    here, there = hosts.host("here"), hosts.host("there")
    artifact = here.put(b"what was meant")
    link = await connect(servers, "app")
    await link.client.jetstream().publish(f"a0.art.{artifact.sha256}.0", b"what was forge")
    await link.close()
    await here.share()
    with pytest.raises(LogError, match="damaged in the shared store"):
        await fetched(there, artifact)
    assert files(there) == []


async def test_no_event_is_appended_before_what_it_names_is_shared(tmp_path: Path, servers: Server) -> None:
    hosts = Hosts(tmp_path, servers)
    host, asked = hosts.host("here"), list[Any]()

    class Away(ArtifactChunks):
        def __init__(self) -> None:
            pass

        async def put(self, artifact: Artifact, path: Path) -> None:
            asked.append(artifact)
            raise DependencyError("shared artifact store", "away")

        async def close(self) -> None:
            pass

    async def away() -> SharedStore:
        return Away()

    lonely = SharedArtifacts(tmp_path / "lonely", away)
    async with await Log.connect(servers) as log:
        log.before_append = lonely.share
        artifact = lonely.put(b"x")
        with pytest.raises(DependencyError, match="away"):
            await log.append([EVENT])
        assert asked == [artifact] and await log.last_seq() == 0
        log.before_append = host.share
        host.put(b"x")
        await log.append([EVENT])
        assert await log.last_seq() == 1
    lonely.close()
    assert await fetched(hosts.host("there"), artifact) == b"x"
    await hosts.close()


async def test_a_full_store_says_so_and_takes_the_rest_later(
    tmp_path: Path, nats_server: Server, nats_settings: NatsSettings
) -> None:
    small = Topology(nats_settings, HandlerSettings(), artifact_bytes=2 * CHUNK)
    await init(nats_server, small, ())
    hosts = Hosts(tmp_path, nats_server, patience_s=0.0)
    host = hosts.host("here")
    artifact = host.put(os.urandom(4 * CHUNK))
    with pytest.raises(DependencyError, match="refuses to store"):
        await host.share()
    await init(nats_server, Topology(nats_settings, HandlerSettings(), artifact_bytes=1 << 28), ())
    await host.share()
    assert await fetched(hosts.host("there"), artifact)
    await hosts.close()


async def test_what_no_event_names_is_collected_when_it_is_old_and_by_the_administrator_alone(
    hosts: Hosts, servers: Server
) -> None:
    host = hosts.host("here")
    named, left = host.put(b"named"), host.put(os.urandom(2 * CHUNK))
    await host.share()
    now, earlier = datetime.now(UTC) + timedelta(seconds=5), datetime.now(UTC) - timedelta(hours=1)
    assert await host.collect([named.sha256], earlier, True) == 0, "young"
    assert await host.collect([named.sha256], now, False) == 1
    with pytest.raises(AuthError, match="delete artifacts"):
        await host.collect([named.sha256], now, True)
    link = await connect(servers, "admin")
    administrator = ArtifactChunks(link, Server(NatsSettings(url=servers.url)))
    assert await administrator.unnamed([named.sha256], now) == [left.sha256]
    await administrator.remove(left.sha256)
    await administrator.close()
    there = hosts.host("there")
    assert await fetched(there, named) == b"named"
    with pytest.raises(NotFoundError):
        await fetched(there, left)


def test_a_chunk_fits_a_message() -> None:
    assert chunks.CHUNK < (1 << 20) - 4096
