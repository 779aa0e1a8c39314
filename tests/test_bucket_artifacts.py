"""Artifacts in a bucket that speaks S3: whole or not there, whatever breaks in the middle. ``make bucket`` tries
them on a server that others wrote, too."""

import asyncio
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from agent0.assembly.log.artifact_store import artifact_store
from agent0.config.loading import load
from agent0.errors import AuthError, ConfigError, DependencyError, LogError, NotFoundError
from agent0.events.values import Artifact
from agent0.infra.log.artifacts import objects
from agent0.infra.log.artifacts.objects import PART, ArtifactObjects
from agent0.infra.log.artifacts.shared import SharedArtifacts, SharedStore
from tests.bucket_server import Bucket, serving
from tests.clusters import _free_ports
from tests.patience import PATIENCE_S
from tests.test_log import Proxy

MOTO = Path(__file__).parents[1] / "build" / "bucket" / "bin" / "moto_server"
SMALL = 64 << 10


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setattr(objects, "PART", SMALL)
    with serving(made := Bucket()) as url:
        point(monkeypatch, url)
        yield made


def point(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """As the environment of every client of S3 names a store."""
    for name, value in {"ENDPOINT_URL": url, "ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "hunter2"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@contextmanager
def host(home: Path, patience_s: float = PATIENCE_S) -> Iterator[SharedArtifacts]:
    """A data folder that shares nothing but the bucket."""

    async def connected() -> SharedStore:
        return ArtifactObjects("s3://bucket/of/ours", patience_s)

    opened = SharedArtifacts(home, connected)
    yield opened
    opened.close()


def files(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("*") if path.is_file())


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("size", [0, 1, SMALL, SMALL + 1, 20 * SMALL + 5])
async def test_what_one_host_put_another_gets(size: int, tmp_path: Path) -> None:
    data = random.Random(size).randbytes(size)
    with host(tmp_path / "here") as here, host(tmp_path / "there") as there:
        artifact = here.put(data)
        with pytest.raises(NotFoundError, match="not in the shared store"):
            there.get(artifact)
        assert there.verify(artifact) == "missing"
        await here.share()
        assert there.get(artifact) == data and there.verify(artifact) == ""
        assert files(tmp_path / "there") == [artifact.sha256[2:]], "no part of it is left over"


async def test_what_is_there_is_not_sent_again(bucket: Bucket, tmp_path: Path) -> None:
    data = os.urandom(3 * SMALL)
    with host(tmp_path / "one") as one, host(tmp_path / "two") as two:
        one.put(data)
        await one.share()
        sent = [method for method, _ in bucket.requests]
        assert sent.count("PUT") == 3
        two.put(data)
        await two.share()
        assert [method for method, _ in bucket.requests[len(sent) :]] == ["HEAD"]
    assert list(bucket.objects) == [f"of/ours/{Artifact(sha256=one.put(data).sha256, size=0).sha256}"]


async def test_cut_again_and_again_it_comes_whole(bucket: Bucket, tmp_path: Path) -> None:
    data = os.urandom(40 * SMALL + 7)
    with host(tmp_path / "here") as here, host(tmp_path / "there") as there:
        artifact = here.put(data)
        bucket.cuts = 8
        await here.share()
        assert bucket.cuts < 8
        bucket.cuts = 8
        assert await asyncio.to_thread(there.get, artifact) == data and bucket.cuts < 8


async def test_what_came_is_kept_and_the_rest_is_fetched(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, broken, part = os.urandom(40 * SMALL), True, ArtifactObjects._part

    async def breaking(self: ArtifactObjects, artifact: Artifact, start: int) -> memoryview:
        if broken and start == 35 * SMALL:
            raise DependencyError("shared artifact store", "cut")
        return await part(self, artifact, start)

    monkeypatch.setattr(ArtifactObjects, "_part", breaking)
    with host(tmp_path / "here") as here, host(tmp_path / "there") as there:
        artifact = here.put(data)
        await here.share()
        with pytest.raises(DependencyError):
            there.get(artifact)
        assert not there.path(artifact).exists()
        broken, before = False, len(bucket.requests)
        assert there.get(artifact) == data
        assert sum(method == "GET" for method, _ in bucket.requests[before:]) < 40


async def test_an_answer_that_is_lost_is_no_loss(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All parts are there; who asks again hears that there is no such transfer any more."""
    complete = bucket.multipart
    lost: list[str] = []

    def losing(query: dict[str, str], key: str, body: bytes) -> bytes:
        answer = complete(query, key, body)
        if b"Complete" in answer and not lost:
            lost.append(key)
            bucket.cuts = 2
        return answer

    monkeypatch.setattr(bucket, "multipart", losing)
    data = os.urandom(3 * SMALL)
    with host(tmp_path / "here") as here, host(tmp_path / "there") as there:
        artifact = here.put(data)
        await here.share()
        assert lost and there.get(artifact) == data


@pytest.mark.parametrize("harm", ["a byte", "its end", "more"])
async def test_other_bytes_under_its_name_are_refused_and_not_kept(harm: str, bucket: Bucket, tmp_path: Path) -> None:
    with host(tmp_path / "here") as here, host(tmp_path / "there") as there:
        artifact = here.put(os.urandom(3 * SMALL))
        await here.share()
        [key] = bucket.objects
        wrong = bytearray(bucket.objects[key])
        wrong[SMALL] ^= 1
        bucket.objects[key] = {"a byte": bytes(wrong), "its end": bytes(wrong[:-1]), "more": bytes(wrong) + b"x"}[harm]
        with pytest.raises(LogError, match="damaged in the shared store"):
            there.get(artifact)
        assert files(tmp_path / "there") == []


@pytest.mark.parametrize(
    ("status", "error", "sentence"),
    [
        (403, AuthError, "refused.*AWS_ACCESS_KEY_ID"),
        (507, DependencyError, "507.*what came so far is kept"),
        (404, DependencyError, "404.*Make the bucket"),
    ],
)
async def test_a_store_that_takes_nothing_says_why_in_one_sentence(
    status: int, error: type[Exception], sentence: str, bucket: Bucket, tmp_path: Path
) -> None:
    with host(tmp_path, patience_s=0) as here:
        here.put(b"x")
        bucket.refuse = status
        with pytest.raises(error, match=f"(?s){sentence}") as refused:
            await here.share()
        assert "\n" not in str(refused.value) and "hunter2" not in str(refused.value)
        bucket.refuse = 0
        await here.share()
        assert bucket.objects, "it is sent when the store takes it again"


async def test_a_store_that_keeps_less_than_it_took_is_given_a_pause(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short(dict[str, bytes]):
        def __setitem__(self, key: str, body: bytes) -> None:
            super().__setitem__(key, body if pauses else body[:-1])

    async def pause(seconds: float) -> None:
        pauses.extend([seconds] if seconds else [])

    pauses, bucket.objects = list[float](), Short()
    monkeypatch.setattr(objects, "asyncio", SimpleNamespace(sleep=pause))
    with host(tmp_path, patience_s=5) as here:
        here.put(b"abc")
        await here.share()
    assert pauses == [objects.PAUSE_S] and [*bucket.objects.values()] == [b"abc"]


async def test_what_no_event_names_is_collected_when_it_is_old(bucket: Bucket, tmp_path: Path) -> None:
    with host(tmp_path / "here") as here:
        named, left = here.put(b"named"), here.put(b"left")
        await here.share()
        [folder] = {key.rpartition("/")[0] for key in bucket.objects}
        others = {f"{folder}/report.csv", f"{folder}/x/{'0' * 64}", "0" * 64} - {"0" * 64 if not folder else ""}
        bucket.objects |= dict.fromkeys(others, b"somebody else's")
        old, older = datetime(2026, 1, 2, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
        assert await here.collect([named.sha256], older, True) == 0, "young"
        assert await here.collect([named.sha256], old, False) == 1 and len(bucket.objects) == 2 + len(others)
        assert await here.collect([named.sha256], old, True) == 1
        assert [here.verify(named), here.verify(left)] == ["", "missing"]
    assert bucket.objects.keys() - others == {f"{folder}/{named.sha256}"} and others <= bucket.objects.keys()
    assert named.sha256 != left.sha256


@pytest.mark.usefixtures("bucket")
async def test_a_setting_names_it(tmp_path: Path) -> None:
    settings = load("scripted", {"home": str(tmp_path), "artifacts.store": "s3://bucket"}, {})
    store = artifact_store(settings)
    assert isinstance(store, SharedArtifacts) and artifact_store(settings) is store
    artifact = store.put(b"x")
    await store.share()
    store.path(artifact).unlink()
    assert store.get(artifact) == b"x"
    store.close()
    for name in ("s3://", "s3://B", "http://x", "s3://bucket?x"):
        with pytest.raises(ConfigError, match=r"artifacts\.store"):
            load("scripted", {"home": str(tmp_path), "artifacts.store": name}, {})


@pytest.mark.skipif(not MOTO.exists(), reason="make bucket installs a server of others")
async def test_a_server_of_others_is_spoken_to_as_it_wants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several parts, with connections that are ended again and again, and with a wrong byte."""
    [port] = _free_ports(1)
    with subprocess.Popen([str(MOTO), "-p", str(port)], stderr=subprocess.DEVNULL) as server:
        try:
            await asyncio.to_thread(_made, f"http://127.0.0.1:{port}/bucket")
            async with Proxy(port) as proxy:
                point(monkeypatch, proxy.url.replace("nats", "http"))
                await _transferred(tmp_path, proxy)
            point(monkeypatch, f"http://127.0.0.1:{port}")
            with host(tmp_path / "here") as here, host(tmp_path / "third") as third:
                artifact, other = here.put(os.urandom(99)), here.put(os.urandom(99))
                await here.share()
                here.path(artifact).write_bytes(here.get(other))
                await ArtifactObjects("s3://bucket/of/ours").remove(artifact.sha256)
                await ArtifactObjects("s3://bucket/of/ours").put(artifact, here.path(artifact))
                with pytest.raises(LogError, match="damaged"):
                    third.get(artifact)
                later = datetime.now(UTC) + timedelta(hours=1)
                assert await here.collect([other.sha256], later, True) == 2
                with pytest.raises(NotFoundError):
                    third.get(artifact)
        finally:
            server.kill()


async def _transferred(folder: Path, proxy: Proxy) -> None:
    rng, data, cuts = random.Random(3), os.urandom(3 * PART + 7), 0
    with host(folder / "here") as here, host(folder / "there") as there:
        artifact = here.put(data)
        for work in (here.share(), asyncio.to_thread(there.get, artifact)):
            transfer = asyncio.ensure_future(work)
            while not transfer.done():
                await asyncio.wait([transfer], timeout=rng.uniform(0.02, 0.3))
                if cuts < 12 and not transfer.done():
                    proxy.cut()
                    cuts += 1
            await transfer
        assert there.get(artifact) == data and cuts >= 2


def _made(url: str) -> None:
    """Wait for the server, and make a bucket."""
    deadline = monotonic() + PATIENCE_S
    while True:
        try:
            urlopen(Request(url, method="PUT")).close()
            return
        except (URLError, ConnectionError):
            assert monotonic() < deadline
