"""Where in a run: an event's sequence, ``+500`` events after its first, or the beginning of an iteration."""

import re
import sqlite3

from agent0.cli import lookup
from agent0.errors import ConfigError, NotFoundError
from agent0.projections.events import begun_in_parent, extent_of, iteration_starts, nth_event
from agent0.projections.runs import show_run

HELP = "SEQ of an event, +N events after the run's first, or iteration:N (where its iteration N began, from 0)"
_SHAPE = re.compile(r"(?P<seq>\d{1,18})|\+(?P<after>\d{1,18})|iteration:(?P<iteration>\d{1,9})")


def sequence(run: str, at: str, option: str = "--at") -> int:
    """The sequence of the event that ``at`` names in the run with the id ``run``; 0, where it says so, is its end.

    Raises:
        ConfigError: it is written as none of the three.
        NotFoundError: the run has no such event or iteration; its range is named.
    """
    match = _SHAPE.fullmatch(at)
    if match is None:
        raise ConfigError(f"{option} {at[:80]!r} names no event.", fix=f"Write {HELP}.")
    if match["seq"] is not None:
        return int(match["seq"])
    with lookup.tables() as db:
        if match["after"] is not None:
            return _counted(db, run, int(match["after"]))
        return _iteration(db, run, int(match["iteration"]))


def _counted(db: sqlite3.Connection, run: str, after: int) -> int:
    seq = nth_event(db, run, after)
    if seq is None:
        (first, last), count = extent_of(db, run), show_run(db, run)["events"]
        why = f"It has +0 to +{count - 1:,}: event {first} to event {last}."
        raise NotFoundError(f"Run {run} has no event +{after}.", why)
    return seq


def _iteration(db: sqlite3.Connection, run: str, number: int) -> int:
    starts = iteration_starts(db, run)
    if number in starts:
        return starts[number]
    if begun := begun_in_parent(db, run, number):
        parent, seq = begun
        why = f"It began in its parent {parent}, at event {seq}."
        raise NotFoundError(f"Run {run} has not begun iteration:{number} itself.", why, f"Name {parent} and {seq}.")
    first, last = extent_of(db, run)
    has = f"It has begun iteration:{min(starts)} to iteration:{max(starts)}" if starts else "It has begun none"
    raise NotFoundError(f"Run {run} has no iteration:{number}.", f"{has}, within its events {first} to {last}.")
