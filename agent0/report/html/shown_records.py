"""The tasks, attempts, receipts and events that a run's page shows, each under an anchor that the others lead to."""

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from markupsafe import Markup

from agent0.projections.attempts import show_attempt
from agent0.projections.events import list_events, list_named
from agent0.projections.rewards import explain_rewards
from agent0.projections.tasks import show_task
from agent0.report.html.rendering import visible

Row = dict[str, Any]
MOST = 24
"""Tasks and attempts that are shown for being named; a page that names more shows the first."""
EVENTS = 60
"""Events of a task that are listed; the log has the rest."""
NAMED = re.compile(r"\b(?:(?P<attempt>t\d+-\d{3,}-a\d+)|(?P<task>t\d+-\d{3,})|event (?P<event>\d+))\b")
"""Attempts, tasks and events as texts name them."""


def shown_records(db: sqlite3.Connection, run: str, picked: Sequence[str], texts: Iterable[str]) -> Row:
    """Collect the attempts ``picked`` and those that ``texts`` name, the tasks of both, their receipts and events, and
    the other events that ``texts`` name.

    Returns ``attempts``, ``tasks``, ``events`` (rows each) and ``link``, which makes the names in a text lead there.
    """
    named = [found for text in texts for found in NAMED.finditer(text)]
    known = {kind: [one[kind] for one in named if one[kind]] for kind in ("attempt", "task", "event")}
    shown = dict.fromkeys([*picked, *_there(db, run, "attempts", "attempt", known["attempt"])])
    attempts = [{**show_attempt(db, run, one), "receipts": _receipts(db, run, attempt=one)} for one in shown]
    wanted = dict.fromkeys([*(one["task"] for one in attempts), *_there(db, run, "tasks", "task", known["task"])])
    tasks = [_task(db, run, one, shown) for one in sorted(wanted)]
    held = {event["seq"] for task in tasks for event in task["events"]}
    others = list_named(db, run, sorted({int(seq) for seq in known["event"]} - held))
    anchors = {one["attempt"] for one in attempts} | {*wanted}
    anchors |= {f"event {seq}" for seq in (*held, *(one["seq"] for one in others))}
    return {"attempts": attempts, "tasks": tasks, "events": others, "link": _linker(anchors)}


def _there(db: sqlite3.Connection, run: str, table: str, column: str, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that the run has, the first ``MOST`` of them."""
    sql = f"SELECT 1 FROM {table} WHERE run = ? AND {column} = ?"  # noqa: S608 - made of constants
    return [name for name in dict.fromkeys(names) if db.execute(sql, (run, name)).fetchone()][:MOST]


def _task(db: sqlite3.Connection, run: str, task: str, attempts: Collection[str]) -> Row:
    """A task with the teacher's receipts and its events, each with the position of its cause; ``elsewhere``: the first
    of its attempts that is not among ``attempts``, those of the page."""
    events = list_events(db, run, task=task, limit=EVENTS)
    seqs = {one["id"]: one["seq"] for one in events}
    rows = [
        {
            "seq": one["seq"],
            "event": f"event {one['seq']}",
            "type": one["type"],
            "attempt": "" if one["attempt"] == "-" else one["attempt"],
            "because_of": f"event {seqs[one['cause']]}" if one["cause"] in seqs else "",
        }
        for one in events
    ]
    receipts = [one for one in _receipts(db, run, task) if one["role"] == "teacher"]
    held = show_task(db, run, task)
    elsewhere = next((one["attempt"] for one in held["attempts"] if one["attempt"] not in attempts), None)
    return {**held, "receipts": receipts, "events": rows, "elsewhere": elsewhere}


def _receipts(db: sqlite3.Connection, run: str, task: str = "", attempt: str = "") -> list[Row]:
    """Receipts of a task or an attempt, each with the position of its event and ``of``: what was rewarded."""
    found = explain_rewards(db, run, task, attempt)
    events = list_events(db, run, "RewardAssigned", found[0]["task"], limit=EVENTS) if found else []
    seqs = {(one["time"], one["attempt"]): one["seq"] for one in events}
    rewarded = [one["task"] if one["attempt"] == "-" else one["attempt"] for one in found]
    places = [seqs.get((one["time"], one["attempt"])) for one in found]
    return [{**one, "seq": seq, "of": of} for one, seq, of in zip(found, places, rewarded, strict=True)]


def _linker(anchors: set[str]) -> Callable[[Any], Markup]:
    """A function that escapes a text and makes the names of ``anchors`` in it lead to them."""

    def lead(found: re.Match[str]) -> str:
        name = found[0]
        return f'<a href="#{anchor(name)}">{name}</a>' if name in anchors else name

    def link(text: Any) -> Markup:
        safe = str(Markup.escape(visible(str(text))))
        return Markup(NAMED.sub(lead, safe))  # noqa: S704 - escaped before, and what is added is made of digits

    return link


def anchor(name: str) -> str:
    """The anchor of a task, an attempt or an event: ``event 7`` is at ``event-7``."""
    return name.replace(" ", "-")
