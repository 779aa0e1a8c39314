"""Tables are a function of the log: however it is cut, killed, rebuilt or swapped, and whoever asks."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.errors import LogError, NotFoundError, OperationError
from agent0.events import event_types
from agent0.events.base import record
from agent0.events.runs import RunStarted
from agent0.infra.log.event_log import Log
from agent0.infra.storage.sqlite import connect, reading
from agent0.projections import (
    Projector,
    StoppedError,
    Views,
    select,
    tables,
    verify,
)
from agent0.projections.views import digests
from tests.story import (
    benchmark_run,
    bodies,
    budget_entries,
    experiment,
    policy_changes,
    whole_run,
)
from tests.story_ends import cancelled_run, deleted_run, failed_run
from tests.story_gains import measured_gains
from tests.story_submissions import batch_run, recorded_turn, submitted_task

TABLES = tables()
RUN = whole_run(iterations=2, tasks=6, attempts=2)
STORY = [*RUN, *policy_changes(after=len(RUN))]
STORY += benchmark_run(after=len(STORY))
STORY += batch_run(after=len(STORY))
STORY += experiment(after=len(STORY))
STORY += budget_entries(after=len(STORY))
STORY += submitted_task(after=len(STORY))
STORY += recorded_turn(after=len(STORY))
STORED = bodies(STORY)
LATE = STORY[-1].time
Stored = list[tuple[int, bytes]]


class Source:
    """Reads a stored log in chunks of seven, as the real one does."""

    def __init__(self, stored: Stored = STORED) -> None:
        self.stored = stored

    async def __call__(self, after: int, until: int = 0) -> AsyncIterator[Stored]:
        wanted = [s for s in self.stored if s[0] > after and (not until or s[0] <= until)]
        for start in range(0, len(wanted), 7):
            yield wanted[start : start + 7]


def in_this_process() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def in_memory(*batches: Stored) -> dict[str, str]:
    """Digests of all tables after these batches."""
    with closing(in_this_process()) as db:
        projector = Projector(Path("memory"), lambda _: db, TABLES, "stream")
        for batch in batches:
            projector.apply(batch)
        return digests(db, TABLES)


@pytest.fixture
def views(tmp_path: Path) -> Views:
    return Views(tmp_path / "views", connect, TABLES, "stream")


async def filled(views: Views, stored: Stored = STORED) -> None:
    projector = views.projector()
    await projector.catch_up(Source(stored))
    projector.close()


WHOLE = in_memory(STORED)


def test_the_told_runs_hold_every_event_class() -> None:
    told = {
        e.type
        for e in [
            *whole_run(iterations=4, tasks=6, attempts=1),
            *cancelled_run(),
            *failed_run(),
            *deleted_run(),
            *policy_changes(),
            *budget_entries(),
            *benchmark_run(),
            *batch_run(),
            *experiment(),
            *submitted_task(),
            *recorded_turn(),
            *measured_gains(),
        ]
    }
    assert told == set(event_types())


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(0, len(STORED)), max_size=5), again=st.integers(0, len(STORED)))
def test_any_split_and_any_repetition_give_the_same_tables(cuts: list[int], again: int) -> None:
    ends = [0, *sorted(cuts), len(STORED)]
    batches = [STORED[a:b] for a, b in pairwise(ends)]
    assert in_memory(*batches, STORED[:again], STORED) == WHOLE


def test_every_table_has_rows_and_reads_only_events_it_declares() -> None:
    with closing(in_this_process()) as db:
        Projector(Path("memory"), lambda _: db, TABLES, "stream").apply(STORED)
        assert {name for name in TABLES if not db.execute(f"SELECT 1 FROM {name}").fetchone()} == set()


# --- the position ----------------------------------------------------------------------------------------------------


def test_a_gap_is_refused_and_changes_nothing(views: Views) -> None:
    projector = views.projector()
    projector.apply(STORED[:10])
    with pytest.raises(LogError, match="event 13 follows 11"):
        projector.apply([STORED[10], STORED[12]])
    assert projector.position.seq == 10
    assert projector.apply(STORED[10:]) == len(STORED)
    projector.close()
    with reading(views.live) as db:
        assert digests(db, TABLES) == WHOLE


UNREADABLE = [b"not json", b"[]", b'{"type":"Nonsense","id":"n1","data":{}}', b'{"type":[]}', STORED[9][1][:-40]]


@pytest.mark.parametrize("body", UNREADABLE)
def test_an_unreadable_body_stops_the_tables_before_it(views: Views, body: bytes) -> None:
    projector = views.projector()
    with pytest.raises(LogError, match=r"Event 10 of the log cannot be read.*agent0 events set-aside 10"):
        projector.apply([*STORED[:9], (10, body), *STORED[10:]])
    assert projector.position.seq == 9
    projector.close()


def test_an_event_that_no_column_holds_is_named(views: Views) -> None:
    poison = record(RunStarted(name="x", profile="tiny", seed=10**23, config={}, config_sha=""), run="r9", time=LATE)
    projector = views.projector()
    for _ in range(2):  # it stays where it is, however often it is tried
        with pytest.raises(StoppedError, match=rf"Event 12 .* RunStarted {poison.id} .*OverflowError") as told:
            projector.apply([*STORED[:11], (12, poison.to_json()), *STORED[12:]])
        assert (told.value.seq, projector.position.seq) == (12, 11)
    projector.close()
    with reading(views.live) as db:
        assert digests(db, TABLES) == in_memory(STORED[:11])


def test_another_history_is_refused(views: Views) -> None:
    projector = views.projector()
    projector.apply(STORED[:10])
    projector.check(10, STORY[9].id)
    with pytest.raises(LogError, match=r"ends at 9.*projections rebuild"):
        projector.check(9, STORY[9].id)
    with pytest.raises(LogError, match="history changed"):
        projector.check(12, STORY[8].id)
    earlier = replace(projector.position, seq=9, event=STORY[8].id)
    projector.check(9, STORY[8].id, earlier)  # asked before another process carried the tables on
    projector.close()
    with pytest.raises(LogError, match="belong to stream 'stream'"):
        Views(views.live.parent, connect, TABLES, "another").projector()
    other = {**TABLES, "verdicts": replace(TABLES["verdicts"], columns={**TABLES["verdicts"].columns, "new": str})}
    with pytest.raises(OperationError, match=r"another version.*projections rebuild"):
        Views(views.live.parent, connect, other, "stream").projector()


def test_two_writers_take_turns(views: Views) -> None:
    one, other = views.projector(), views.projector()
    one.apply(STORED[:20])
    other.apply(STORED[:30])
    one.apply(STORED[20:])
    other.apply(STORED[10:])
    one.close()
    other.close()
    with reading(views.live) as db:
        assert digests(db, TABLES) == WHOLE


KILLED = """
import sys
from tests.test_projections import STORED, TABLES, Views, Path, connect
projector = Views(Path(sys.argv[1]), connect, TABLES, "stream").projector()
for start in range(0, len(STORED), 3):
    projector.apply(STORED[start:start + 3])
    print(start, flush=True)
"""


def test_a_killed_projector_goes_on_where_it_was(views: Views) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    command = [sys.executable, "-c", KILLED, str(views.live.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as killed:
        assert killed.stdout
        for _ in range(5):
            assert killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
    projector = views.projector()
    assert projector.position.seq >= 15
    projector.apply(STORED)
    projector.close()
    with reading(views.live) as db:
        assert digests(db, TABLES) == WHOLE


async def test_the_real_log_feeds_the_tables(log: Log, views: Views) -> None:
    await log.append(STORY)
    info = await log.info()
    projector = views.projector()
    following = asyncio.create_task(projector.follow(lambda after: log.read_stored(after, follow=True)))
    async with asyncio.timeout(20):
        while projector.position.seq < info.last_seq:
            await asyncio.sleep(0.02)
    following.cancel()
    projector.check(info.last_seq, (await log.message(info.last_seq)).id)
    await asyncio.wait([following])
    projector.close()
    with reading(views.live) as db:
        stored = db.execute("SELECT id, body FROM events ORDER BY seq").fetchall()
    assert stored == [(e.id, e.to_json().decode()) for e in STORY]


# --- rebuild, verify, swap -------------------------------------------------------------------------------------------


async def test_rebuilt_tables_equal_the_live_ones(views: Views) -> None:
    await filled(views)
    before = views.live.resolve()
    rebuilt = await views.rebuild(Source(), check=True)
    assert rebuilt.digests == WHOLE
    assert views.live.resolve() == rebuilt.path != before
    assert views.rollback() == before == views.live.resolve()
    with pytest.raises(NotFoundError, match="no earlier"):
        views.rollback()


async def test_a_lagging_view_is_compared_at_its_own_position(views: Views) -> None:
    await filled(views, STORED[:33])
    assert (await views.rebuild(Source(), check=True)).seq == len(STORED)


def test_one_edited_cell_of_any_table_is_found() -> None:
    with closing(in_this_process()) as held, closing(in_this_process()) as other:
        for db in (held, other):
            Projector(Path("memory"), lambda _, db=db: db, TABLES, "stream").apply(STORED)
        for name in TABLES:
            other.execute("BEGIN")
            key, column = edited(other, name)
            found = verify(held, other, TABLES)
            assert found and (found.table, found.key, found.column) == (name, key, column)
            assert float(str(found.right)) == 424242
            other.execute("ROLLBACK")
            assert verify(held, other, TABLES) is None


def edited(db: sqlite3.Connection, name: str) -> tuple[tuple[object, ...], str]:
    """Writes another value into a cell of the last row; the row's key and the column."""
    key = TABLES[name].key
    column = next(c for c in TABLES[name].columns if c not in key)
    last = dict(select(db, f"SELECT rowid, {', '.join(key)} FROM {name} ORDER BY rowid")[-1])
    db.execute(f"UPDATE {name} SET {column} = 424242 WHERE rowid = ?", (next(iter(last.values())),))
    return tuple(last[part] for part in key), column


async def test_an_edited_cell_stops_a_rebuild_that_compares(views: Views) -> None:
    await filled(views)
    live = views.live.resolve()
    with closing(connect(live)) as db:
        key, column = edited(db, "rewards")
    with pytest.raises(OperationError) as refused:
        await views.rebuild(Source(), check=True)
    assert f"table rewards, key ({', '.join(map(str, key))}), column {column}: " in str(refused.value)
    assert views.live.resolve() == live
    assert [p.name for p in live.parent.glob("view-*.db")] == [live.name]
    await views.rebuild(Source())
    with reading(views.live) as db:
        assert digests(db, TABLES) == WHOLE


async def test_a_missing_row_is_named(views: Views) -> None:
    await filled(views)
    with closing(connect(views.live.resolve())) as db:
        db.execute("DELETE FROM verdicts WHERE attempt = 't0-001-a0'")
    with pytest.raises(OperationError, match=r"table verdicts, key \(r1, t0-001-a0, exact@1\).*None against 'present'"):
        await views.rebuild(Source(), check=True)


@pytest.mark.parametrize("kept", [0, 4096])
async def test_damaged_tables_are_rebuilt_without_comparing(views: Views, kept: int) -> None:
    await filled(views)
    assert views.live.parent.stat().st_mode & 0o077 == 0
    body = views.live.read_bytes()
    views.live.resolve().write_bytes(body[:kept] + b"\x5a" * (len(body) - kept))
    with pytest.raises(OperationError, match=r"damaged.*`agent0 projections rebuild`"):
        await views.rebuild(Source(), check=True)
    await views.rebuild(Source())
    with reading(views.live) as db:
        assert digests(db, TABLES) == WHOLE


async def test_a_live_projector_follows_the_swap(views: Views) -> None:
    projector = views.projector()
    await projector.catch_up(Source(STORED[:50]))
    await views.rebuild(Source(STORED[:40]))
    assert await projector.catch_up(Source()) == len(STORED)
    projector.close()
    assert views.live.resolve().name == "view-2.db"
    with reading(views.live) as db:
        assert digests(db, TABLES) == WHOLE


async def test_tables_of_another_version_are_made_anew_and_others_stay(views: Views) -> None:
    verdicts = replace(TABLES["verdicts"], columns={**TABLES["verdicts"].columns, "new": str})
    earlier = Views(views.live.parent, connect, {**TABLES, "verdicts": verdicts}, "stream")
    await filled(earlier)
    await views.update(Source())
    assert views.live.resolve().name == "view-2.db"
    with reading(views.live) as db:
        assert digests(db, TABLES) == WHOLE
    await views.update(Source())
    assert views.live.resolve().name == "view-2.db"


async def test_a_failed_rebuild_leaves_the_live_tables(views: Views) -> None:
    await filled(views)
    with pytest.raises(LogError, match="gap"):
        await views.rebuild(Source(STORED[:20] + STORED[21:]))
    assert [p.name for p in sorted(views.live.parent.iterdir())] == ["view-1.db", "view.db"]
    for _ in range(3):
        await views.rebuild(Source())
    assert [p.name for p in sorted(views.live.parent.iterdir())] == ["view-3.db", "view-4.db", "view.db"]


async def test_a_rebuild_after_a_rollback_keeps_what_was_live(views: Views) -> None:
    await filled(views)
    await views.rebuild(Source())
    first = views.rollback()
    (views.live.parent / "view-3.db").write_bytes(b"left behind by a killed rebuild")
    rebuilt = await views.rebuild(Source())
    assert {p.name for p in views.live.parent.iterdir()} == {first.name, rebuilt.path.name, "view.db"}
    assert views.rollback() == first


def test_equal_databases_have_no_difference() -> None:
    with closing(in_this_process()) as db:
        Projector(Path("memory"), lambda _: db, TABLES, "stream").apply(STORED)
        assert verify(db, db, TABLES) is None
