"""Tables as of any moment, from the log or from an archive: what the live ones were then; nothing else is touched."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.log.access import open_log
from agent0.assembly.log.export import export
from agent0.assembly.replay.stored_experiments import Progress
from agent0.assembly.replay.tables_at import Build, build, moment
from agent0.errors import LogError, NotFoundError
from agent0.events.base import decode
from agent0.infra.integrity.archive_place import DamagedError
from agent0.infra.storage.sqlite import connect
from agent0.projections import Position, Projector, tables
from agent0.projections import build as build_file
from agent0.projections.views import digests
from agent0.settings import Settings
from tests.archive.logs import bodies, flipped, segment, sums
from tests.terminal import agent0 as call

Stored = list[tuple[int, bytes]]


def cut(stored: Stored) -> dict[str, str]:
    """Digests of the tables of a log that holds just this."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        Projector(Path("memory"), lambda _: db, tables(), "stream").apply(stored)
        return digests(db, tables())


def held(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file but those of the log's server, which is a process of its own."""
    found = (path for path in folder.rglob("*") if path.is_file() and "nats" not in path.parts)
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


async def last_seq(home: Settings) -> int:
    async with open_log(home, "reader") as log:
        return await log.last_seq()


@pytest.fixture(scope="module")
def stored(filled: Settings) -> Stored:
    return asyncio.run(bodies(filled))


async def test_to_the_end_they_are_the_live_ones_from_the_log_and_from_an_archive(
    filled: Settings, exported: Path, tmp_path: Path
) -> None:
    sha256, last, packed = sums(filled), await last_seq(filled), tmp_path / "log.tar"
    await export(filled, packed)
    before = held(filled.home)
    told: list[Progress] = []
    live = await build(filled, Build(tmp_path / "live.db"), told.append)
    assert (live["sha256"], live["seq"], live["events"]) == (sha256, last, last)
    assert [(at.done, at.all) for at in told][-1] == (last, last) and told[-1].left_s == 0
    nowhere = filled.model_copy(update={"home": tmp_path / "nowhere"})
    for number, path in enumerate((exported, packed)):
        assert (await build(nowhere, Build(tmp_path / f"{number}.db", archive=path)))["sha256"] == sha256
    assert held(filled.home) == before and await last_seq(filled) == last and not nowhere.home.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.db", "1.db", "live.db", "log.tar"]


@pytest.mark.parametrize("part", [0.0, 0.4, 0.9])
async def test_up_to_an_event_they_are_those_of_a_log_that_ends_there(
    filled: Settings, exported: Path, stored: Stored, tmp_path: Path, part: float
) -> None:
    seq = 1 + int(part * len(stored))
    from_log = await build(filled, Build(tmp_path / "log.db", seq=seq))
    from_archive = await build(filled, Build(tmp_path / "archive.db", seq=seq, archive=exported))
    assert from_log["sha256"] == from_archive["sha256"] == cut(stored[:seq])
    assert from_log["seq"] == from_archive["seq"] == seq


@settings(max_examples=8)
@given(after=st.floats(-0.1, 1.1))
def test_up_to_a_moment_they_end_before_the_first_event_that_is_later(
    filled: Settings, exported: Path, stored: Stored, tmp_path_factory: pytest.TempPathFactory, after: float
) -> None:
    times = [decode(body).time for _, body in stored]
    assert times[:-9] == sorted(times[:-9])
    time = times[0] + after * (times[-9] - times[0])
    due = next((n for n, one in enumerate(times) if one > time), len(times))
    path = tmp_path_factory.mktemp("moment") / "file.db"
    asked = Build(path, ("events", "tasks"), time=time.astimezone(timezone(timedelta(hours=5))), archive=exported)
    if due:
        built = asyncio.run(build(filled, asked))
        assert built["seq"] == due and built["sha256"] == {n: cut(stored[:due])[n] for n in ("events", "tasks")}
    else:
        with pytest.raises(NotFoundError, match="Nothing had happened"):
            asyncio.run(build(filled, asked))
        assert not [*path.parent.iterdir()]


def test_a_moment_without_a_zone_is_utc() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    same = ("2026-11-21T12:00", "2026-11-21T12:00:00Z", "2026-11-21 13:00+01:00", "20261121T120000")
    assert {moment(text) for text in same} == {noon}
    assert moment("2026-11-21") == noon.replace(hour=0)


@settings(max_examples=12)
@given(data=st.data())
def test_whatever_cannot_be_read_leaves_no_file(
    stored: Stored, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    place = data.draw(st.integers(1, len(stored) - 1))
    spoilt = data.draw(st.sampled_from([[(place + 1, b"{}")], [], [(place + 1, stored[place][1][:-1])]]))
    altered = [*stored[:place], *spoilt, *stored[place + 1 :]]
    folder = tmp_path_factory.mktemp("spoilt")

    async def read(_: int) -> AsyncIterator[Stored]:
        for start in range(0, len(altered), 7):
            yield altered[start : start + 7]

    work = build_file(folder / "file.db", connect, tables(), Position("stream"), read)
    if place == len(stored) - 1 and not spoilt:  # nothing tells that a log goes on
        assert asyncio.run(work).seq == place
        return
    with pytest.raises(LogError):
        asyncio.run(work)
    assert not [*folder.iterdir()]


async def test_a_damaged_archive_is_named_and_leaves_no_file(filled: Settings, exported: Path, tmp_path: Path) -> None:
    lost = segment(exported, -1)
    whole = lost.read_bytes()
    try:
        flipped(lost)
        with pytest.raises(DamagedError, match=f"{lost.name}.*digest"):
            await build(filled, Build(tmp_path / "file.db", archive=exported))
        lost.unlink()
        with pytest.raises(DamagedError, match=f"{lost.name}.*missing"):
            await build(filled, Build(tmp_path / "file.db", archive=exported))
    finally:
        lost.write_bytes(whole)
    assert not [*tmp_path.iterdir()]


def test_a_person_builds_some_and_asks_them(filled: Settings, stored: Stored, tmp_path: Path) -> None:
    path, seq = tmp_path / "then.db", len(stored) // 2
    asked = ("--into", str(path), "--table", "events", "--table", "tasks", "--until-seq", str(seq), "--json")
    said = call("projections", "build", *asked, home=filled.home)
    assert said.code == 0 and f"{seq:,} of {seq:,} events" in said.err
    assert said.json["sha256"] == {name: cut(stored[:seq])[name] for name in ("events", "tasks")}
    count = "SELECT max(seq) AS last, count(*) AS n FROM events"
    assert call("projections", "query", count, "--file", str(path), "--json").json == [{"last": seq, "n": seq}]
    assert call("projections", "query", "SELECT 1 FROM verdicts", "--file", str(path)).code == 1
    assert call("projections", "query", "DELETE FROM events", "--file", str(path)).code == 2
    assert call("projections", "query", count, "--file", str(tmp_path / "none.db")).code == 1


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--table", "task"), 1, "There is no table 'task'. Did you mean tasks"),
        (("--until-seq", "99999"), 1, "There is no event 99999. There are 1 to"),
        (("--until-seq", "0"), 2, ""),
        (("--until-time", "2000-01-01"), 1, "Nothing had happened at 2000-01-01"),
        (("--until-time", "yesterday"), 2, "'yesterday' is no time"),
        (("--until-time", "2026-01-01", "--until-seq", "3"), 2, "exclude each other"),
        (("--from", "nowhere"), 1, "There is no archive nowhere"),
        (("--from", "."), 1, "is no archive"),
        (("--into", "{home}/tables/view-9.db"), 2, "The live tables are in that folder"),
        (("--into", "{tmp}/none/file.db"), 2, "There is no folder"),
        (("--into", "{tmp}"), 2, "is there already"),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(
    filled: Settings, tmp_path: Path, more: tuple[str, ...], code: int, words: str
) -> None:
    before = held(filled.home)
    wanted = [part.format(home=filled.home, tmp=tmp_path) for part in more]
    said = call("projections", "build", "--into", str(tmp_path / "file.db"), *wanted, home=filled.home)
    assert said.code == code and words in said.err, said.err
    assert not [*tmp_path.iterdir()] and held(filled.home) == before
