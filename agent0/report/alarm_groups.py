"""Alarms for people: one line for each kind however often it was raised, with what shows it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from agent0.projections.base import Row
from agent0.run.diagnosis.case import Iteration, Observation
from agent0.run.diagnosis.causes.environment import FULL

_WORST = ("critical", "warning", "info")


class AlarmKind(TypedDict):
    """Alarms of one kind: the worst severity, how often, the newest message and when, and what shows it."""

    alarm: str
    severity: str
    times: int
    message: str
    raised: str
    evidence: str


def grouped(alarms: Iterable[Row], iterations: Sequence[Iteration] = ()) -> list[AlarmKind]:
    """Group ``alarms``, newest first, by kind (``kind_of``); the worst first."""
    groups: dict[str, list[tuple[Row, Observation | None]]] = {}
    for alarm in alarms:
        kind, example = kind_of(str(alarm["alarm"]), str(alarm["message"]), iterations)
        groups.setdefault(kind, []).append((alarm, example))
    rows: list[AlarmKind] = [
        {
            "alarm": kind,
            "severity": min((str(alarm["severity"]) for alarm, _ in members), key=_rank),
            "times": sum(alarm["times"] or 1 for alarm, _ in members),
            "message": members[0][0]["message"],
            "raised": members[0][0]["raised"],
            "evidence": shown_by(*members[0]),
        }
        for kind, members in groups.items()
    ]
    return sorted(rows, key=lambda row: _rank(row["severity"]))


def shown_by(alarm: Row, example: Observation | None = None) -> str:
    """Task or attempt and event that show an alarm, in words; empty where nothing is recorded."""
    facts = alarm.get("facts") or {}
    named = [str(facts[name]) for name in ("attempt", "task", "failure") if facts.get(name)]
    named += [example.attempt or example.task] if example else []
    return ", ".join([*dict.fromkeys(named), *([f"event {alarm['seq']}"] if alarm.get("seq") else [])])


def alarm_lines(groups: Iterable[AlarmKind]) -> list[str]:
    """Write a line for each kind of alarm that stands."""
    return [
        f"{group['alarm']} ({group['severity']}{_times(group['times'])}): {group['message']}"
        + (f" [{group['evidence']}]" if group["evidence"] else "")
        for group in groups
    ]


def _times(times: int) -> str:
    return f", {times} times" if times > 1 else ""


def _rank(severity: str) -> int:
    return _WORST.index(severity) if severity in _WORST else len(_WORST)


MOST = 0.5
"""Share of an iteration's tasks."""
_OF_ONE = re.compile(r"-(?:(?:student|teacher)-\d+|[a-z_]+-\d+)$")
"""What an alarm's name ends with where it is of one checkpoint, or of one reaction."""
_UNTRAINED = re.compile(r"no-signal-(student|teacher)-(\d+)")


def kind_of(alarm: str, message: str, iterations: Sequence[Iteration] = ()) -> tuple[str, Observation | None]:
    """Name the kind of an alarm by its name and message: ``unreadable-tasks``, ``known-tasks``, ``refused-tasks``,
    ``no-contrast``, ``gave-up``, ``disk``, ``dependency/<name>``; any other is its name, without the checkpoint that it
    is of. Returns an example with it, where the iteration of a training that had nothing to learn from is known."""
    if alarm.startswith("dependency/"):
        full = any(text in message.lower() for text in FULL)
        return "disk" if full else alarm.rpartition("/")[0], None
    if alarm.startswith("failure-"):
        return "gave-up", None
    if match := _UNTRAINED.fullmatch(alarm):
        counts = {iteration.number: iteration for iteration in iterations}
        return _untrained(counts.get(int(match[2])))
    return _OF_ONE.sub("", alarm), None


def _untrained(iteration: Iteration | None) -> tuple[str, Observation | None]:
    if iteration is None or not iteration.screened:
        return "no-contrast", None
    if iteration.unreadable >= MOST * iteration.screened:
        return "unreadable-tasks", iteration.examples.get("malformed")
    if iteration.accepted:
        return "no-contrast", iteration.examples.get("wrong") or iteration.examples.get("right")
    if iteration.repeats >= MOST * iteration.screened:
        return "known-tasks", _example(iteration.examples, "similar", "duplicate")
    return "refused-tasks", _example(iteration.examples, *iteration.refused)


def _example(examples: Mapping[str, Observation], *names: str) -> Observation | None:
    return next((examples[name] for name in names if name in examples), None)
