"""What a run came to that takes reading all its attempts: why it went badly, and which targets it met. Of large runs it
is read beside, and kept until it is worth reading again, so that a page never waits for it."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import RLock
from time import monotonic

from agent0.projections.events import extent_of
from agent0.projections.runs import show_run
from agent0.report.overview import DeepParts, deep_parts

Tables = Callable[[int], AbstractContextManager[sqlite3.Connection]]
"""The tables as they were behind an event; 0: as they are."""
SMALL = 2_000
"""Attempts up to which a run is read at once."""
SHARE = 30.0
"""What was read serves for so many times as long as reading it took: at most a thirtieth of the time goes into it."""
KEPT = 64


@dataclass(frozen=True)
class Deep:
    """``parts`` as of the run's event ``seq``, read in ``took_s`` until ``read_at``."""

    parts: DeepParts
    seq: int
    took_s: float
    read_at: float


class DeepReadings:
    """Keeps what one server read of its large runs. ``clock`` counts seconds."""

    def __init__(self, tables: Tables, clock: Callable[[], float] = monotonic) -> None:
        self._tables, self._clock = tables, clock
        self._held: dict[tuple[str, int], Deep] = {}
        self._under_way: dict[tuple[str, int], Future[Deep]] = {}
        self._lock, self._reader = RLock(), ThreadPoolExecutor(1, "deep")

    def look(self, run: str, at: int = 0) -> Deep | None:
        """What is known of ``run``: read at once where it is small; of a large one what was read last, None where it is
        being read for the first time."""
        if self._is_small(run, at):
            return self._read(run, at)
        reading, last = self._held.get((run, at)), self._last(run, at)
        fresh = reading is not None and (
            reading.seq == last or self._clock() < reading.read_at + SHARE * reading.took_s
        )
        if not fresh:
            self._begin(run, at)
        return reading

    def wait(self, run: str, at: int = 0) -> Deep:
        """What ``run`` came to as of now, however long reading it takes."""
        if self._is_small(run, at):
            return self._read(run, at)
        reading, last = self._held.get((run, at)), self._last(run, at)
        while reading is None or reading.seq < last:  # one that began before may end before
            reading = self._begin(run, at).result()
        return reading

    def close(self) -> None:
        """Begin nothing more."""
        self._reader.shutdown(wait=False, cancel_futures=True)

    def _begin(self, run: str, at: int) -> Future[Deep]:
        """Read ``run`` beside; one that is being read already is not read twice."""
        key = run, at
        with self._lock:
            if key not in self._under_way:
                self._under_way[key] = future = self._reader.submit(self._keep, run, at)
                future.add_done_callback(lambda _: self._under_way.pop(key, None))
                return future
            return self._under_way[key]

    def _keep(self, run: str, at: int) -> Deep:
        reading = self._read(run, at)
        self._held[run, at] = reading
        while len(self._held) > KEPT:
            self._held.pop(next(iter(self._held)))
        return reading

    def _read(self, run: str, at: int) -> Deep:
        begun = self._clock()
        with self._tables(at) as db:
            last = extent_of(db, run)[1]
            parts = deep_parts(db, run)
        return Deep(parts, last, self._clock() - begun, self._clock())

    def _is_small(self, run: str, at: int) -> bool:
        with self._tables(at) as db:
            return int(show_run(db, run)["attempts"] or 0) <= SMALL

    def _last(self, run: str, at: int) -> int:
        with self._tables(at) as db:
            return extent_of(db, run)[1]
