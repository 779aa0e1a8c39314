"""Alarms for people: one line for each kind however often it was raised, with what shows it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent0.run.diagnosis.alarm_kinds import kind_of
from agent0.run.diagnosis.case import Iteration, Observation

Row = dict[str, Any]
_WORST = ("critical", "warning", "info")


def grouped(alarms: Iterable[Mapping[str, Any]], iterations: Sequence[Iteration] = ()) -> list[Row]:
    """Group alarms, newest first, by kind (``agent0.run.diagnosis.alarm_kinds``).

    Returns a row each: ``alarm`` (the kind), the worst ``severity``, ``times``, the newest ``message`` and when it was
    ``raised``, ``evidence`` in words; the worst first.
    """
    groups: dict[str, list[tuple[Mapping[str, Any], Observation | None]]] = {}
    for alarm in alarms:
        kind, example = kind_of(str(alarm["alarm"]), str(alarm["message"]), iterations)
        groups.setdefault(kind, []).append((alarm, example))
    rows = [
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


def shown_by(alarm: Mapping[str, Any], example: Observation | None = None) -> str:
    """Task or attempt and event that show an alarm, in words; empty where nothing is recorded."""
    facts = alarm.get("facts") or {}
    named = [str(facts[name]) for name in ("attempt", "task", "failure") if facts.get(name)]
    named += [example.attempt or example.task] if example else []
    return ", ".join([*dict.fromkeys(named), *([f"event {alarm['seq']}"] if alarm.get("seq") else [])])


def alarm_lines(groups: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line each kind of alarm, of what ``grouped`` returns."""
    return [
        f"{group['alarm']} ({group['severity']}{_times(group['times'])}): {group['message']}"
        + (f" [{group['evidence']}]" if group["evidence"] else "")
        for group in groups
    ]


def _times(times: int) -> str:
    return f", {times} times" if times > 1 else ""


def _rank(severity: str) -> int:
    return _WORST.index(severity) if severity in _WORST else len(_WORST)
