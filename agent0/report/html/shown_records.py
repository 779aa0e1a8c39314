"""The tasks, attempts, receipts and events that a run's page shows, each under an anchor that the others lead to."""

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from agent0.projections.attempts import show_attempt
from agent0.projections.base import Row
from agent0.projections.events import list_events, list_named
from agent0.projections.rewards import explain_rewards
from agent0.projections.tasks import show_task
from agent0.report.html.rendering import visible

MOST = 24
"""Tasks and attempts that are shown for being named; a page that names more shows the first."""
EVENTS = 60
"""Events of a task that are listed; the log has the rest."""
NAMED = re.compile(r"\b(?:(?P<attempt>t\d+-\d{3,}-a\d+)|(?P<task>t\d+-\d{3,})|event (?P<event>\d+))\b")
"""Attempts, tasks and events as texts name them."""


@dataclass(frozen=True)
class ShownRecords:
    """Rows of attempts, tasks and events, and a function that makes the names in a text lead to them."""

    attempts: list[Row]
    tasks: list[Row]
    events: list[Row]
    link: Callable[[object], Markup]


def shown_records(db: sqlite3.Connection, run: str, picked: Sequence[str], texts: Iterable[str]) -> ShownRecords:
    """Collect the attempts ``picked`` and those that ``texts`` name, the tasks of both, their receipts and events, and
    the other events that ``texts`` name."""
    named = [match for text in texts for match in NAMED.finditer(text)]
    by_kind = {kind: [name[kind] for name in named if name[kind]] for kind in ("attempt", "task", "event")}
    shown = dict.fromkeys([*picked, *_there(db, run, "attempts", "attempt", by_kind["attempt"])])
    attempts = [
        {**show_attempt(db, run, attempt), "receipts": _receipts(db, run, attempt=attempt)} for attempt in shown
    ]
    task_names = dict.fromkeys(
        [*(name["task"] for name in attempts), *_there(db, run, "tasks", "task", by_kind["task"])]
    )
    tasks = [_task(db, run, attempt, shown) for attempt in sorted(task_names)]
    sequences = {event["seq"] for task in tasks for event in task["events"]}
    others = list_named(db, run, sorted({int(seq) for seq in by_kind["event"]} - sequences))
    anchors = {event["attempt"] for event in attempts} | {*task_names}
    anchors |= {f"event {seq}" for seq in (*sequences, *(event["seq"] for event in others))}
    return ShownRecords(attempts, tasks, others, _linker(anchors))


def _there(db: sqlite3.Connection, run: str, table: str, column: str, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that the run has, the first ``MOST`` of them."""
    sql = f"SELECT 1 FROM {table} WHERE run = ? AND {column} = ?"  # noqa: S608 - made of constants
    return [name for name in dict.fromkeys(names) if db.execute(sql, (run, name)).fetchone()][:MOST]


def _task(db: sqlite3.Connection, run: str, task: str, attempts: Collection[str]) -> Row:
    """A task with the teacher's receipts and its events, each with the position of its cause; ``elsewhere``: the first
    of its attempts that is not among ``attempts``, those of the page."""
    events = list_events(db, run, task=task, limit=EVENTS)
    seqs = {event["id"]: event["seq"] for event in events}
    rows = [
        {
            "seq": event["seq"],
            "event": f"event {event['seq']}",
            "type": event["type"],
            "attempt": "" if event["attempt"] == "-" else event["attempt"],
            "because_of": f"event {seqs[event['cause']]}" if event["cause"] in seqs else "",
        }
        for event in events
    ]
    receipts = [receipt for receipt in _receipts(db, run, task) if receipt["role"] == "teacher"]
    shown = show_task(db, run, task)
    elsewhere = next((attempt["attempt"] for attempt in shown["attempts"] if attempt["attempt"] not in attempts), None)
    return {**shown, "receipts": receipts, "events": rows, "elsewhere": elsewhere}


def _receipts(db: sqlite3.Connection, run: str, task: str = "", attempt: str = "") -> list[Row]:
    """Receipts of a task or an attempt, each with the position of its event and ``of``: what was rewarded."""
    receipts = explain_rewards(db, run, task, attempt)
    events = list_events(db, run, "RewardAssigned", receipts[0]["task"], limit=EVENTS) if receipts else []
    seqs = {(event["time"], event["attempt"]): event["seq"] for event in events}
    rewarded = [receipt["task"] if receipt["attempt"] == "-" else receipt["attempt"] for receipt in receipts]
    places = [seqs.get((receipt["time"], receipt["attempt"])) for receipt in receipts]
    return [{**receipt, "seq": seq, "of": of} for receipt, seq, of in zip(receipts, places, rewarded, strict=True)]


def _linker(anchors: set[str]) -> Callable[[object], Markup]:
    """A function that escapes a text and makes the names of ``anchors`` in it lead to them."""

    def lead(match: re.Match[str]) -> str:
        name = match[0]
        return f'<a href="#{anchor(name)}">{name}</a>' if name in anchors else name

    def link(text: object) -> Markup:
        safe = str(Markup.escape(visible(str(text))))
        return Markup(NAMED.sub(lead, safe))  # noqa: S704 - escaped before, and what is added is made of digits

    return link


def anchor(name: str) -> str:
    """The anchor of a task, an attempt or an event: ``event 7`` is at ``event-7``."""
    return name.replace(" ", "-")
