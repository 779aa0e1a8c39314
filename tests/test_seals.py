"""What is changed, taken out, put elsewhere or cut off is noticed, and its place is named; who would write to such a
log is refused. On real stores, damaged as disks and strangers damage them."""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent0.assembly.log.access import open_log, provision
from agent0.assembly.log.integrity import look, sealer, topology, verify
from agent0.assembly.runtime.read_models import catch_up, live_path
from agent0.config.loading import load
from agent0.errors import LogError
from agent0.events.alarms import LOG, AlarmRaised, EventRedacted, LogSealed
from agent0.events.base import Event, Recorded, record, sha256
from agent0.events.runs import RunPaused
from agent0.infra.integrity import sealer as seals
from agent0.infra.integrity.seal_journal import SealFile, Stream
from agent0.infra.integrity.sealer import BrokenLogError, Sealer
from agent0.infra.log.event_log import Log
from agent0.infra.log.nats_server import open_server
from agent0.provenance.hash_chain import Chain, LogMismatch, Seal, digest_of, localise, seal_of
from agent0.settings import Settings
from tests.terminal import agent0 as call

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Bodies = list[tuple[int, bytes]]


def told(event: Event, run: str = "r1", id: str = "") -> Recorded:
    return record(event, run=run, time=NOON, id=id)


def alarm(name: str, size: int = 1) -> Recorded:
    return told(AlarmRaised(alarm=name, severity="info", message="m" * size))


# --- the chain, alone -------------------------------------------------------------------------------------------------


def sealed_log(cuts: list[int]) -> Bodies:
    """Events numbered from 1; a seal stands wherever ``cuts`` says, over all before it that is not sealed yet."""
    chain, out = Chain(), Bodies()

    def put(recorded: Recorded) -> None:
        out.append((len(out) + 1, recorded.to_json()))
        assert chain.feed(*out[-1]) == []

    for number, cut in enumerate(cuts):
        for n in range(cut):
            put(alarm(f"a{number}-{n}"))
        put(told(chain.proposal(), LOG))
    return out


def differences(bodies: Bodies) -> list[LogMismatch]:
    chain = Chain()
    return [one for seq, body in bodies for one in chain.feed(seq, body)]


CUTS = st.lists(st.integers(1, 6), min_size=2, max_size=5)


@example(cuts=[1, 1], at=1, bit=0, place=7288)  # in the key that a seal's own data stand under
@given(cuts=CUTS, at=st.integers(0, 10**6), bit=st.integers(0, 7), place=st.integers(0, 10**6))
def test_a_flipped_bit_is_found_in_its_segment(cuts: list[int], at: int, bit: int, place: int) -> None:
    log = sealed_log(cuts)
    sealed = [(seq, body) for seq, body in log[:-1] if seq <= log[-2][0]]
    seq, body = sealed[at % len(sealed)]
    flipped = bytearray(body)
    flipped[place % len(body)] ^= 1 << bit
    found = differences([(s, bytes(flipped) if s == seq else b) for s, b in log])
    assert any(one.first <= seq <= one.last for one in found), (seq, found)


@given(cuts=CUTS, pair=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)))
def test_two_events_in_each_others_place_are_found(cuts: list[int], pair: tuple[int, int]) -> None:
    log = sealed_log(cuts)
    one, other = (p % (len(log) - 1) for p in pair)
    swapped = list(log)
    swapped[one], swapped[other] = (log[one][0], log[other][1]), (log[other][0], log[one][1])
    assert bool(differences(swapped)) == (one != other)


@given(cuts=CUTS, at=st.integers(0, 10**6))
def test_a_missing_event_is_named_and_nothing_else(cuts: list[int], at: int) -> None:
    log = sealed_log(cuts)
    gone = at % (len(log) - 1) + 1
    found = differences([(seq, body) for seq, body in log if seq != gone])
    assert (found[0].problem, found[0].first, found[0].last) == ("missing", gone, gone)
    assert seal_of(*log[gone - 1]) or len(found) == 1  # a seal that is missing leaves its segment to nobody


@given(cuts=CUTS, at=st.integers(0, 10**6))
def test_a_tombstone_keeps_the_seals_and_is_told(cuts: list[int], at: int) -> None:
    log = sealed_log(cuts)
    seq, body = [one for one in log if not seal_of(*one)][at % sum(cuts)]
    tomb = told(EventRedacted(sha256=sha256(body), was="AlarmRaised"), id="t").to_json()
    chain = Chain()
    assert [d for s, b in log for d in chain.feed(s, tomb if s == seq else b)] == []
    assert chain.redacted == [seq]
    false = told(EventRedacted(sha256=sha256("another")), id="t").to_json()
    assert differences([(s, false if s == seq else b) for s, b in log])


def test_a_run_cannot_seal_the_log_and_no_seal_covers_what_comes_after_it() -> None:
    forged = LogSealed(first=1, last=1, sha256="0" * 64)
    assert differences([(1, alarm("a").to_json()), (2, told(forged, "r1").to_json())]) == []
    [found] = differences([(1, alarm("a").to_json()), (2, told(forged, LOG).to_json())])
    assert (found.problem, found.first, found.last) == ("changed", 1, 1)
    ahead = LogSealed(first=1, last=9, sha256="0" * 64)
    assert [d.problem for d in differences([(1, alarm("a").to_json()), (2, told(ahead, LOG).to_json())])] == ["seal"]


def test_a_copy_tells_which_events_of_a_segment_changed() -> None:
    known = {seq: digest_of(alarm(f"a{seq}").to_json()) for seq in range(1, 6)}
    held = known | {2: known[4], 4: known[2], 5: b"x" * 32}
    found = localise(LogMismatch("changed", 1, 5, "differs"), held, known)
    assert [(one.problem, one.first) for one in found] == [("swapped", 2), ("swapped", 4), ("changed", 5)]
    assert localise(LogMismatch("changed", 1, 5, "differs"), held, {}) == [LogMismatch("changed", 1, 5, "differs")]


# --- what is noted outside --------------------------------------------------------------------------------------------


def test_a_line_that_a_crash_cut_off_counts_for_nothing_and_is_written_again(tmp_path: Path) -> None:
    file, one, two = SealFile(tmp_path), Seal(6, 1, 5, "a" * 64), Seal(9, 6, 8, "b" * 64, "a" * 64)
    file.note(Stream("now"), one, two)
    whole = file.path.read_bytes()
    for end in range(0, len(whole), 11):
        file.path.write_bytes(whole[:end])
        held = file.read()
        assert held.seals == (one, two)[: len(held.seals)]
        file.note(Stream("now"), one, two)
        assert file.read().seals == (one, two)
        assert file.path.read_bytes() == whole
    file.note(one)
    assert file.path.read_bytes() == whole
    file.path.write_bytes(whole.replace(b'"what":"seal"', b'"what":"sea!"', 1))
    with pytest.raises(LogError, match=r"Line 2 of .*seals\.jsonl is damaged"):
        file.read()


# --- the real log -----------------------------------------------------------------------------------------------------


@pytest.fixture
def held(tmp_path: Path) -> Settings:
    return load("scripted", {"home": str(tmp_path / "home"), "nats.seal_every": "20"}, {})


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a filled log; nobody changes it."""
    home = tmp_path_factory.mktemp("kept") / "home"
    asyncio.run(fill(load("scripted", {"home": str(home), "nats.seal_every": "20"}, {})))
    return home


@pytest.fixture
def filled(held: Settings, kept: Path) -> Settings:
    """A copy of it."""
    shutil.copytree(kept, held.home, symlinks=True)
    return held


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Heartbeats sooner: silence is what a damaged block sounds like."""
    monkeypatch.setattr("agent0.infra.log.reader.HEARTBEAT_S", 0.2)
    yield


async def fill(held: Settings, events: int = 50, size: int = 10, tail: int = 0) -> None:
    """A log of ``events`` alarms, sealed, then ``tail`` more; carried into the tables."""
    async with open_log(held, make=True) as log:
        await log.append([alarm(f"needle{n}!", size) for n in range(events)])
        async with sealer(held, log):
            pass  # its end seals what there is
        await log.append([alarm(f"tail{n}!", size) for n in range(tail)])
        await catch_up(held, log)
        log.wrote = False  # as of a process that is killed: nobody seals the tail


def blocks(held: Settings) -> list[Path]:
    return sorted((held.home / "nats").rglob("streams/A0_EV/msgs/*.blk"))


def flip(path: Path, what: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[data.index(what)] ^= 0xFF
    path.write_bytes(data)


def forge(path: Path, old: bytes, new: bytes) -> None:
    """Change a stored body and the checksum behind it, as somebody would who knows how the server stores."""
    data = path.read_bytes()
    assert data.count(old) == 1 and len(old) == len(new)
    path.write_bytes(data.replace(old, new))


@asynccontextmanager
async def reader(held: Settings) -> AsyncIterator[Log]:
    async with open_log(held, "reader") as log:
        yield log


async def verified(held: Settings) -> list[tuple[str, int, int]]:
    async with reader(held) as log:
        return [
            (difference.problem, difference.first, difference.last)
            for difference in (await verify(held, log)).differences
        ]


async def test_segments_follow_one_another_and_are_noted_outside(held: Settings) -> None:
    await fill(held, 50)
    async with open_log(held) as log:
        found = await verify(held, log)
        assert (found.first, found.last, found.seals, found.sealed, found.differences) == (1, 53, 3, 50, ())
        told = [seal_of(r.seq, await log.body(r.seq)) async for r in log.read(LOG)]
        assert [(seal.first, seal.last) for seal in told if seal] == [(1, 20), (21, 40), (41, 50)]
        assert SealFile(held.home).read().seals == tuple(told)
        await log.append([told_paused()])
        again = sealer(held, log)
        await again.step()  # a run came to rest: due, though few
        await again.finish()
        assert (await verify(held, log)).sealed == 54
        await again.finish()
        assert await log.last_seq() == 55  # seals alone are no reason for another one


def told_paused() -> Recorded:
    return told(RunPaused())


async def test_two_who_seal_at_once_write_one_chain(held: Settings, tmp_path: Path) -> None:
    await fill(held, 5)
    async with open_log(held) as log:
        stamp = lambda event: told(event, LOG)  # noqa: E731
        folders = [tmp_path / name for name in ("one", "two")]  # of two machines: neither lock helps
        for folder in folders:
            SealFile(folder).note(*SealFile(held.home).read().streams)
        both = [Sealer(log, SealFile(folder), 20, stamp) for folder in folders]
        for turn in range(6):
            await log.append([alarm(f"b{turn}-{n}") for n in range(30)])
            await both[turn % 2].step()
            await both[turn % 2 - 1].step(all=True)
        for one in both:
            await one.step(all=True)
            await one.finish()
        assert (await verify(held, log)).differences == ()


async def test_a_flipped_byte_is_named(filled: Settings) -> None:
    flip(blocks(filled)[0], b"needle30!")
    assert await verified(filled) == [("missing", 31, 31)]
    for _ in range(2):  # nobody killed the server; but somebody touched its store while it was down
        with pytest.raises(BrokenLogError, match="Event 31: not in the log"):
            async with open_log(filled):
                raise AssertionError("it went on")


async def test_a_flip_and_a_lost_index_is_a_log_that_was_cut_off(filled: Settings) -> None:
    flip(blocks(filled)[0], b"needle30!")
    (blocks(filled)[0].parent / "index.db").unlink()
    assert await verified(filled) == [("truncated", 31, 53)]
    for opening in (open_log(filled, make=True), open_log(filled)):
        with pytest.raises(BrokenLogError, match=r"Events 31 to 53: the log ends before them.*events verify.*import"):
            async with opening:
                raise AssertionError("it went on")


async def test_a_cut_tail_is_named(held: Settings) -> None:
    await fill(held, tail=3)
    last = blocks(held)[-1]
    last.write_bytes(last.read_bytes()[:-40])
    assert await verified(held) == [("unreadable", 56, 56)]
    with pytest.raises(BrokenLogError, match="Event 56: the server holds it and cannot read it"):
        async with open_log(held):
            raise AssertionError("it went on")


@pytest.mark.slow  # part of make crash
async def test_a_block_that_cannot_be_read_is_bounded(held: Settings) -> None:
    """Blocks that are full are compressed, and one bit spoils all of one."""
    async with open_log(held, make=True) as log:
        await log.append([alarm(os.urandom(8).hex(), 15_000) for n in range(600)])
        async with sealer(held, log):
            pass
    data = bytearray(blocks(held)[0].read_bytes())
    data[len(data) // 2] ^= 0xFF
    assert len(blocks(held)) > 1
    blocks(held)[0].write_bytes(data)
    [found] = await verified(held)
    assert found[0] == "unreadable" and found[1] == 1 and 1 < found[2] < 600


async def test_a_log_that_is_gone_is_not_made_anew(filled: Settings) -> None:
    for path in (filled.home / "nats").rglob("streams/A0_EV/meta.*"):
        path.unlink()
    for opening in (open_log(filled, make=True).__aenter__(), provision(filled)):
        with pytest.raises(LogError, match=r"The log is gone.*events import"):
            await opening


async def test_another_stream_is_told_by_when_it_was_made(filled: Settings, tmp_path: Path) -> None:
    other = load("scripted", {"home": str(tmp_path / "other"), "nats.seal_every": "20"}, {})
    await fill(other, 60)
    (other.home / "seals.jsonl").write_bytes((filled.home / "seals.jsonl").read_bytes())
    assert (await verified(other))[0][0] == "replaced"
    with pytest.raises(BrokenLogError, match="another stream: made at"):
        async with open_log(other):
            raise AssertionError("it went on")


async def test_after_a_stop_that_was_none_the_whole_log_is_read(
    filled: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    whole = seals.verify

    async def counted(log: Log, *args: object) -> seals.Verified:
        looks.append(1)
        return await whole(log, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(seals, "verify", counted)
    for killed in (False, True):
        server = await open_server(filled.home, filled.nats)
        if killed:
            os.kill(server.pid, signal.SIGKILL)
            while server.pid:
                os.sched_yield()
        await server.stop()
    assert (filled.home / "nats" / "running").exists()
    flip(blocks(filled)[0], b"needle3!")
    with pytest.raises(BrokenLogError):
        async with open_log(filled):
            raise AssertionError("it went on")
    flip(blocks(filled)[0], b"\x91eedle3!")
    for _ in range(2):
        async with open_log(filled):
            assert not (filled.home / "nats" / "unclean").exists()
    assert looks == [1, 1]  # refused, passed, and then no more


async def test_a_changed_body_is_named_with_the_help_of_the_tables(filled: Settings) -> None:
    """As somebody would change it who writes the server's checksum too: here, the tables' copy is what differs."""
    import sqlite3

    with sqlite3.connect(live_path(filled).resolve()) as db:
        db.execute("UPDATE events SET body = replace(body, 'needle6!', 'needle7!') WHERE seq = 7")
    async with reader(filled) as log:
        chain = Chain()
        found = [d async for d in seals.through(log, chain, 53)]
        assert found == []
        forged = LogMismatch("changed", 1, 20, "differs")
        from agent0.assembly.log.integrity import _Copy

        [one] = await seals._localised(log, forged, _Copy(filled))
        assert (one.problem, one.first, one.last) == ("changed", 7, 7)


def test_the_command_says_where_and_ends_with_1(held: Settings) -> None:
    import asyncio

    asyncio.run(fill(held))
    fine = call("events", "verify", "--json", home=held.home)
    assert (fine.code, fine.json["state"], fine.json["seals"]) == (0, "whole", 3)
    flip(blocks(held)[0], b"needle30!")
    said = call("events", "verify", "--json", home=held.home)
    assert (said.code, said.json["state"]) == (1, "broken")
    assert [d["first"] for d in said.json["differences"]] == [31]
    assert "event 31" in call("events", "verify", home=held.home).err


async def test_the_look_before_work_costs_no_whole_log(held: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(held, 200, tail=5)
    async with open_log(held) as log:
        asked: list[int] = []
        read = Log.read_bodies

        def counted(self: Log, after: int = 0, *args: object, **more: object) -> object:
            asked.append(after)
            return read(self, after, *args, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(Log, "read_bodies", counted)
        await look(held, log)
        assert asked == [200]
    assert topology(held).has_events
