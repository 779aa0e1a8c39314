"""Alarms for people: one line for each kind however often it was raised, with what shows it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

Row = dict[str, Any]

_KIND = re.compile(r"-(?:(?:student|teacher)-\d+|\d+)$")
"""What an alarm's name ends with where it is of one checkpoint, or of one event."""
_WORST = ("critical", "warning", "info")


def grouped(alarms: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Group alarms, newest first, by kind: ``alarm`` (the kind), the worst ``severity``, ``times``, the newest
    ``message`` and when it was ``raised``, ``evidence`` in words; the worst first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in alarms:
        groups.setdefault(kind_of(str(one["alarm"])), []).append(one)
    rows = [
        {
            "alarm": kind,
            "severity": min((str(one["severity"]) for one in held), key=_rank),
            "times": sum(one["times"] or 1 for one in held),
            "message": held[0]["message"],
            "raised": held[0]["raised"],
            "evidence": evidence_of(held[0]),
        }
        for kind, held in groups.items()
    ]
    return sorted(rows, key=lambda row: _rank(row["severity"]))


def kind_of(alarm: str) -> str:
    """The kind of an alarm: its name without the checkpoint, event or handler that it is of."""
    if alarm.startswith("dependency/"):
        return alarm.rpartition("/")[0]
    return _KIND.sub("", alarm)


def evidence_of(alarm: Mapping[str, Any]) -> str:
    """Task, attempt, checkpoint and event that show it, in words; empty where nothing is recorded."""
    facts = alarm.get("facts") or {}
    parts = [str(facts[name]) for name in ("checkpoint", "attempt", "task") if facts.get(name)]
    parts += [", ".join(map(str, facts["tasks"]))] if facts.get("tasks") else []
    event = facts.get("event") or alarm.get("seq")
    return ", ".join([*parts, *([f"event {event}"] if event else [])])


def alarm_lines(alarms: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line each kind of alarm."""
    return [
        f"{one['alarm']} ({one['severity']}{_times(one['times'])}): {one['message']}"
        + (f" [{one['evidence']}]" if one["evidence"] else "")
        for one in grouped(alarms)
    ]


def _times(times: int) -> str:
    return f", {times} times" if times > 1 else ""


def _rank(severity: str) -> int:
    return _WORST.index(severity) if severity in _WORST else len(_WORST)
