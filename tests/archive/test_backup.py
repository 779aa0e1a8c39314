"""A backup of a live log is the log at one event, and comes back elsewhere: on this host, or on servers of others."""

import asyncio
import json
import tomllib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_check import verify
from agent0.assembly.log.backup import back_up, restore_backup
from agent0.assembly.log.restore import bring
from agent0.assembly.runtime.read_models import catch_up
from agent0.config.loading import load, public
from agent0.errors import DependencyError, OperationError
from agent0.infra.bus.processes import Processes
from agent0.infra.integrity import archive as archives
from agent0.infra.integrity.archive import events_of, manifest_of
from agent0.infra.integrity.archive_place import open_archive
from agent0.infra.log import restore as log_restore
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import Server, open_server
from agent0.infra.log.streams import Topology, init
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.settings import HandlerSettings, NatsSettings, Settings
from tests.archive.logs import bodies, empty, naming, settings_of, sound, sums
from tests.kept_open import attached
from tests.terminal import agent0
from tests.test_golden_archive import ARCHIVE


async def written(settings: Settings, stop: asyncio.Event) -> None:
    """Runs that go on: an artifact, then the event that names it, again and again."""
    store = FileArtifacts(settings.home)
    async with open_log(settings) as log:
        for number in count():
            if stop.is_set():
                return
            artifact = store.put(b"%d" % number * 999)
            await log.append([naming(artifact, f"live-{number}"), naming(artifact, f"more-{number}")])
            await asyncio.sleep(0.005)


def on(server: Server, home: Path, **more: str) -> Settings:
    """Settings of a host that uses ``server`` from outside, as its administrator."""
    names = {"home": str(home), "nats.url": server.url, "nats.user": "admin", **more}
    return load("scripted", names, {"AGENT0_NATS__PASSWORD": server.password("admin").get_secret_value()})


async def test_while_others_write_it_is_the_log_at_one_event_with_all_that_is_named(
    over: Settings, tmp_path: Path
) -> None:
    stop, before = asyncio.Event(), await back_up(over, tmp_path / "before")
    writing = asyncio.create_task(written(over, stop))
    await asyncio.sleep(0.05)
    facts = await back_up(over, tmp_path / "backup.tar")
    again = await back_up(over, tmp_path / "later")
    stop.set()
    await writing
    new = settings_of(tmp_path / "new")
    restored = await restore_backup(new, tmp_path / "backup.tar")
    last = restored["last"]
    assert isinstance(last, int) and facts["last"] == last and restored["tables_at"] == last
    everything = await bodies(over)
    assert last < len(everything) and await bodies(new) == everything[:last] and await sound(new)
    assert isinstance(again["last"], int) and again["last"] >= last
    assert facts["absent"] == again["absent"] == before["absent"]
    rebuilt = await tables_at(over, last, tmp_path)
    assert sums(new) == rebuilt


async def tables_at(settings: Settings, last: int, folder: Path) -> object:
    """Digest of each table, made of the first ``last`` events of the log in a server of their own."""
    host = settings_of(folder / "counted")
    server = await open_server(host.home, host.nats)
    await init(server, Topology(host.nats, HandlerSettings()), ())
    await log_restore.restore(server, iter([(await bodies(settings))[:last]]))
    async with open_log(host, "reader") as log:
        await catch_up(host, log)
    await server.stop()
    return sums(host)


async def test_settings_come_as_a_profile_and_keys_stay_here(filled: Settings, tmp_path: Path) -> None:
    own = {"run.tasks": "7", "run.student.tools": '["python"]', "run.training.student.lr": "0.002"}
    secret = {"AGENT0_NATS__USER": "me", "AGENT0_NATS__PASSWORD": "hunter2"}
    live = load("scripted", {"home": str(filled.home), **own}, secret)
    await back_up(live, tmp_path / "log")
    assert "hunter2" not in (tmp_path / "log" / "manifest.json").read_text()
    new = settings_of(tmp_path / "new")
    restored = await restore_backup(new, tmp_path / "log")
    profile = Path(str(restored["profile"]))
    assert not {"password", "user", "url"} & set(tomllib.loads(profile.read_text()).get("nats", {}))
    loaded = public(load(str(profile), {"home": str(new.home)}, {}))
    expected = public(live) | {"home": str(new.home), "profile": "restored"}
    expected["nats"] = loaded["nats"]
    assert loaded == expected


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Sizes of what was stored, after two of which the restore is cut."""
    parts: list[int] = []
    store = log_restore._store

    async def once(link: object, part: list[tuple[int, bytes]]) -> None:
        if len(parts) == 2:
            raise DependencyError("log", "It went away.")
        await store(link, part)  # type: ignore[arg-type]
        parts.append(len(part))

    monkeypatch.setattr(log_restore, "_store", once)
    yield parts
    monkeypatch.undo()


async def test_on_servers_a_cut_restore_goes_on_behind_what_is_there(
    exported: Path,
    filled: Settings,
    tmp_path: Path,
    nats_server: Server,
    cut: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its artifacts, for hosts that share no folder."""
    host = on(nats_server, tmp_path / "host", **{"artifacts.store": "nats", "artifacts.max_bytes": str(1 << 28)})
    with pytest.raises(DependencyError):
        await restore_backup(host, exported)
    monkeypatch.undo()
    async with await Log.connect(nats_server) as log:
        assert 0 < await log.last_seq() == sum(cut) < len(await bodies(filled))
    restored = await restore_backup(host, exported)
    assert await bodies(host) == await bodies(filled) and await sound(host) and sums(host) == sums(filled)
    there = on(nats_server, tmp_path / "there", **{"artifacts.store": "nats", "artifacts.max_bytes": str(1 << 28)})
    there.home.mkdir()
    found = await verify(there)
    assert set(found["missing"]) <= set(restored["absent"]) and not found["damaged"]  # type: ignore[call-overload]
    assert restored["artifacts"] == 4 and found["artifacts"] > 4
    with pytest.raises(OperationError, match="has a log already"):
        await restore_backup(host, exported)


async def test_servers_with_another_log_or_at_work_are_left_as_they_are(
    exported: Path, tmp_path: Path, nats_server: Server
) -> None:
    host = on(nats_server, tmp_path / "host")
    await init(nats_server, Topology(NatsSettings(), HandlerSettings()), ())
    async with await Log.connect(nats_server) as log:
        process = Processes(log, ["attempt_task"], {})
        await process.start()
        with pytest.raises(OperationError, match=r"Others react.*Stop them first"):
            await bring(host, exported)
        await process.stop()
        assert await log.last_seq() == 0
        await log.append([naming(FileArtifacts(tmp_path).put(b"own"))])
        with pytest.raises(OperationError, match=r"another log.*up to event 1"):
            await bring(host, exported)
        assert await log.last_seq() == 1
    assert empty(host.home)


def test_a_run_goes_on_where_its_backup_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that ended in the middle of an iteration."""
    monkeypatch.setattr(archives, "EVENTS", 5000)
    archive = open_archive(ARCHIVE)
    every = [stored for chunk in events_of(archive, manifest_of(archive)) for stored in chunk]
    verdict = next(seq for seq, body in every if b'"type":"ResultVerified"' in body)
    old, new = settings_of(tmp_path / "old"), settings_of(tmp_path / "new")
    asyncio.run(_backed_up(old, every[:verdict], tmp_path / "log.tar"))
    restored = agent0("restore", str(tmp_path / "log.tar"), "--json", home=new.home)
    assert restored.code == 0, restored.err
    with attached(new.home):
        resumed = agent0("run", "resume", "LAST", home=new.home)
        assert resumed.code == 0 and "finished" in resumed.out + resumed.err, resumed.err
        after = asyncio.run(bodies(new))
    assert after[:verdict] == every[:verdict]
    assert any(b'"type":"RewardAssigned"' in body for _, body in after)
    assert len({json.loads(body)["id"] for _, body in after}) == len(after)


def test_a_folder_whose_server_others_use_is_left_alone(tmp_path: Path) -> None:
    """Before a log is made there, too: their server would go on over a folder that is gone."""
    old, new = settings_of(tmp_path / "old"), settings_of(tmp_path / "new")
    asyncio.run(_backed_up(old, [], tmp_path / "log.tar"))
    with attached(new.home):
        refused = agent0("restore", str(tmp_path / "log.tar"), home=new.home)
    assert refused.code != 0 and "Others use this data folder's log." in refused.err
    assert agent0("restore", str(tmp_path / "log.tar"), home=new.home).code == 0


async def _backed_up(settings: Settings, events: list[tuple[int, bytes]], path: Path) -> None:
    server = await open_server(settings.home, settings.nats)
    await init(server, Topology(settings.nats, HandlerSettings()), ())
    await log_restore.restore(server, iter([events]))
    await back_up(settings, path)
    await server.stop()
