"""A view that begins with a snapshot knows what one that folds the whole run knows; what the log does not bear out is
named and not used."""

import asyncio
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from agent0.events.alarms import DependencyLost, ReactionRetried, ReactionTried
from agent0.events.base import Recorded, record, sha256
from agent0.events.runs import RunPaused, RunResumed
from agent0.infra.bus.run_views import Views
from agent0.infra.log.event_log import Log
from agent0.infra.log.folding import state_before, state_until
from agent0.infra.log.state_snapshots import Snapshot, Snapshots
from agent0.infra.storage.state_files import Part, StateFiles
from agent0.run.lifecycle import RunState, evolve
from agent0.state.snapshot import from_text, to_text
from tests.bus.toys import World
from tests.test_run import brief, played, states
from tests.world import NOON

RUN = "r1"
EVERY = 30


@cache
def told() -> tuple[Recorded, ...]:
    """A run in which reactions were tried again, waited for and paused; its own decisions are those of a quiet one."""
    quiet = played(brief(), seed=3)
    picked = random.Random(5)
    done = [one for one in quiet if one.handler and one.task != "-"]
    for _ in range(12):
        place = picked.randrange(20, len(quiet) - 5)
        of = picked.choice(done)
        key: dict[str, Any] = {"cause_id": of.cause, "cause_seq": of.seq}
        tried = partial(ReactionTried, **key, cause_type=of.type, tried_handler=of.handler)
        facts = [
            tried(outcome="failed"),
            tried(outcome="begun"),
            DependencyLost(dependency="model", waiting=of.handler, message="away"),
            RunPaused(),
            RunResumed(),
        ]
        if picked.random() < 0.5:
            facts.insert(2, ReactionRetried(failure="f", failed_handler=of.handler, **key))
        quiet[place:place] = [record(fact, run=RUN, time=NOON) for fact in facts]
    return tuple(one.model_copy(update={"seq": seq}) for seq, one in enumerate(quiet, 1))


def kept(log: Log, home: Path, version: str = "v", every: int = EVERY) -> Snapshots:
    return Snapshots(log, StateFiles(home), version, every)


async def knows(log: Log, snapshots: Snapshots | None, *, every_state: bool = True) -> dict[str, Any]:
    """Everything that a view knows, and where it began."""
    views = Views(log, evolve, snapshots)
    view = await views.get(RUN)
    known = vars(view) | {"began": view._marks[0][0], "status": view.status}
    names = ("seq", "state", "done", "lost", "caught_up", "status", "began")
    found = {name: known[name] for name in names} | {"stopped": view.stopped.is_set()}
    found |= {name: +known[name] for name in ("failed", "crashed")}
    found["states"] = [await view.state_at(one.seq) async for one in log.read(RUN)] if every_state else []
    await views.close()
    return found


knows_quickly = partial(knows, every_state=False)


def positions(home: Path) -> list[int]:
    return StateFiles(home).positions(RUN)


# --- exact ------------------------------------------------------------------------------------------------------------


def test_a_state_comes_back_from_its_text_as_it_was() -> None:
    for state in states(told())[::7]:
        again = from_text(to_text(state), state.config)
        assert again == state and again.digest == state.digest and type(again) is type(state)


def test_a_state_that_would_not_come_back_is_not_written() -> None:
    state = states(told())[-1]
    held = next(iter(state.tasks.values()))
    vars(held)["solve_rate"], before = 1, held.solve_rate
    try:
        with pytest.raises(ValueError, match="cannot be written"):
            to_text(state)
    finally:
        vars(held)["solve_rate"] = before


async def test_from_any_snapshot_a_view_comes_to_what_it_is_from_the_start(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agent0.infra.bus.run_views.RECENT", 40)
    monkeypatch.setattr("agent0.infra.bus.run_views.EVERY", 8)
    await world.put(*told())
    plain = await knows(world.log, None)
    first = await knows(world.log, kept(world.log, tmp_path))
    assert first == plain and plain["began"] == 0 and plain["failed"] and plain["lost"]
    found = positions(tmp_path)
    assert len(found) > 3
    written = content(tmp_path)
    for seq in found:
        for newer in (one for one in found if one > seq):
            StateFiles(tmp_path).path(RUN, newer).unlink()
        for at in (seq - 1, seq, seq + 1):
            held = await state_until(world.log, RUN, at, evolve, kept(world.log, tmp_path))
            assert held == plain["states"][at - 1]
        again = await knows(world.log, kept(world.log, tmp_path))
        assert again == plain | {"began": seq}
        assert content(tmp_path) == written  # whoever goes on from a snapshot writes what was written from the start
    assert not caplog.records


async def test_no_snapshots_are_written_where_none_are_asked_for(world: World, tmp_path: Path) -> None:
    await world.put(*told())
    await knows(world.log, kept(world.log, tmp_path, every=0))
    assert not positions(tmp_path)


# --- never trusted over the log ---------------------------------------------------------------------------------------


def altered(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    """A part whose file is sound and whose content is not what was folded."""

    def apply(path: Path) -> None:
        rest = path.read_bytes()[65:]
        held = json.loads(zlib.decompress(rest))
        change(held)
        rest = zlib.compress(json.dumps(held).encode())
        path.write_bytes(f"{sha256(rest)}\n".encode() + rest)

    return apply


def another_state(held: dict[str, Any]) -> None:
    state = json.loads(held["state"])
    held["state"] = json.dumps(state | {"attempt_count": state["attempt_count"] + 1})


def flipped(at: int) -> Callable[[Path], None]:
    """One bit of the byte ``at`` is another: of the digest, the line feed behind it, or the rest."""

    def apply(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return apply


def beyond(path: Path) -> None:
    altered(lambda held: held.update(seq=10**6))(path)
    path.rename(path.with_stem("000001000000"))


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "cut or altered"),
    "empty": (lambda path: path.write_bytes(b""), "cut or altered"),
    **{f"byte {at} flipped": (flipped(at), "cut or altered") for at in (0, 63, 64, 65, 500, -1)},
    "no snapshot": (altered(lambda held: held.pop("done")), "holds no snapshot"),
    "another state": (altered(another_state), "its state's digest"),
    "a state that is none": (altered(lambda held: held.update(state="[]")), "a state is a JSON object"),
    "another digest": (altered(lambda held: held.update(state_sha="0" * 64)), "does not say what the state was"),
    "another proof": (altered(lambda held: held.update(proof=1)), "does not say what the state was"),
    "another event": (altered(lambda held: held.update(body="0" * 64)), "is another one now"),
    "another log": (altered(lambda held: held.update(log="0" * 64)), "of another log"),
    "another part before": (altered(lambda held: held.update(before="0" * 64)), "is another one"),
    "its own part before": (altered(lambda held: held.update(after=held["seq"])), "out of order"),
    "another run's": (altered(lambda held: held.update(run="r2")), "of event"),
    "other code": (altered(lambda held: held.update(version="w")), "other code"),
    "behind the log's end": (
        beyond,
        "has no event 1000000",
    ),
}


async def test_a_snapshot_that_the_log_does_not_bear_out_is_named_and_not_used(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await world.put(*told())
    first, whole = await knows_quickly(world.log, None), await knows_quickly(world.log, kept(world.log, tmp_path))
    assert first == whole
    newest, before = positions(tmp_path)[:2]
    path = StateFiles(tmp_path).path(RUN, newest)
    sound = path.read_bytes()
    for name, (harm, why) in BAD.items():
        harm(path)
        caplog.clear()
        again = await knows_quickly(world.log, kept(world.log, tmp_path))
        assert again == first | {"began": before}, name
        assert any(f"{RUN} at event" in one.message and why in one.message for one in caplog.records), (
            name,
            caplog.text,
        )
        for left in positions(tmp_path):
            if left > newest:
                StateFiles(tmp_path).path(RUN, left).unlink()
        path.write_bytes(sound)


async def test_a_part_that_was_altered_is_written_anew(world: World, tmp_path: Path) -> None:
    await world.put(*told())
    plain = await knows_quickly(world.log, kept(world.log, tmp_path))
    written = content(tmp_path)
    for seq in positions(tmp_path):
        flipped(-1)(StateFiles(tmp_path).path(RUN, seq))
        await knows_quickly(world.log, kept(world.log, tmp_path))
        assert content(tmp_path) == written
    newest = positions(tmp_path)[0]
    assert await knows_quickly(world.log, kept(world.log, tmp_path)) == plain | {"began": newest}


async def test_deleting_the_folder_or_other_code_means_folding_from_the_start(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await world.put(*told())
    plain = await knows_quickly(world.log, kept(world.log, tmp_path))
    assert await knows_quickly(world.log, kept(world.log, tmp_path, version="w")) == plain
    assert not caplog.records  # nothing is wrong
    shutil.rmtree(tmp_path / "snapshots")
    assert await knows_quickly(world.log, kept(world.log, tmp_path)) == plain and positions(tmp_path)


async def test_who_closes_a_view_finds_the_part_written_that_was_begun(world: World, tmp_path: Path) -> None:
    """A thread cannot be stopped: it would write into a folder that was deleted."""
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow(StateFiles):
        def save(self, part: Part) -> str:
            begun.set()
            assert go.wait(30)
            sha = super().save(part)
            ended.set()
            return sha

    await world.put(*told())
    views = Views(world.log, evolve, Snapshots(world.log, Slow(tmp_path), "v", EVERY))
    reading = asyncio.create_task(views.get(RUN))
    assert await asyncio.to_thread(begun.wait, 30)
    reading.cancel()
    closing = asyncio.create_task(views.close())
    await asyncio.wait([reading, closing], timeout=0.05)
    assert not closing.done()
    go.set()
    await closing
    assert ended.is_set() and positions(tmp_path)


async def test_a_snapshot_of_a_state_that_the_log_did_not_record_is_not_written(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As where the code of today folds the same events to something else."""

    def other(state: RunState | None, recorded: Recorded) -> RunState | None:
        after = evolve(state, recorded)
        return replace(after, indexed="x") if after else None

    await world.put(*told())
    views = Views(world.log, other, kept(world.log, tmp_path))
    await views.get(RUN)
    await views.close()
    assert not positions(tmp_path) and "recorded another state" in caplog.text


# --- forks ------------------------------------------------------------------------------------------------------------


async def test_a_fork_begins_with_its_parents_snapshot(world: World, tmp_path: Path) -> None:
    await world.put(*told())
    await knows_quickly(world.log, kept(world.log, tmp_path))
    at = positions(tmp_path)[1] + 5
    begun = told()[0].event.model_copy(update={"parent": RUN, "parent_seq": at, "redone": ()})
    for run, parent in (("r2", RUN), ("r3", "r2")):
        end = await world.log.last_seq(parent) if parent != RUN else at
        event = begun.model_copy(update={"parent": parent, "parent_seq": end})
        await world.put(record(event, run=run, time=NOON))
        snapshots = Counting(world.log, StateFiles(tmp_path), "v", EVERY)
        held = await state_before(world.log, run, evolve, snapshots)
        assert held == await state_before(world.log, run, evolve)
        assert held.seq == end and snapshots.used[0] == at - 5


class Counting(Snapshots):
    """Remembers what was found."""

    async def newest(self, run: str, until: int = 0) -> Snapshot | None:
        found = await super().newest(run, until)
        self.used = [*getattr(self, "used", []), *([found.seq] if found else [])]
        return found


# --- killed while writing ---------------------------------------------------------------------------------------------

WRITE = """
import sys
from pathlib import Path
from agent0.infra.storage.state_files import Part, StateFiles
files, before = StateFiles(Path(sys.argv[1])), ""
for seq in range(1, 10**6):
    done = {"verify_result": [f"{seq:036d}-{n}" for n in range(20_000)]}
    before = files.save(Part("r1", "v", "l", seq, "b", seq, "s", "{}", done, [], seq - 1, before))
    print(seq, flush=True)
"""


def test_a_process_killed_while_it_writes_leaves_whole_parts_only(tmp_path: Path) -> None:
    files = StateFiles(tmp_path)
    for kill in range(3):
        with subprocess.Popen([sys.executable, "-c", WRITE, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout
            for _ in range(3 + kill):
                last = int(child.stdout.readline())
            child.kill()
        found = files.positions(RUN)
        assert found[0] >= last
        for seq in found:
            files.load(RUN, seq)
    with suppress(OSError):
        for left in files.folder(RUN).glob("*.tmp"):
            os.utime(left, (0, 0))
    files.save(files.load(RUN, 1)[0].__class__(**vars(files.load(RUN, 1)[0]) | {"seq": 10**7}))
    assert not [*files.folder(RUN).glob("*.tmp")]


def content(home: Path) -> dict[int, bytes]:
    return {seq: StateFiles(home).path(RUN, seq).read_bytes() for seq in positions(home)}
