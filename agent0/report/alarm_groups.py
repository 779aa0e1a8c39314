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
    for one in alarms:
        kind, example = kind_of(str(one["alarm"]), str(one["message"]), iterations)
        groups.setdefault(kind, []).append((one, example))
    rows = [
        {
            "alarm": kind,
            "severity": min((str(one["severity"]) for one, _ in held), key=_rank),
            "times": sum(one["times"] or 1 for one, _ in held),
            "message": held[0][0]["message"],
            "raised": held[0][0]["raised"],
            "evidence": shown_by(*held[0]),
        }
        for kind, held in groups.items()
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
        f"{one['alarm']} ({one['severity']}{_times(one['times'])}): {one['message']}"
        + (f" [{one['evidence']}]" if one["evidence"] else "")
        for one in groups
    ]


def _times(times: int) -> str:
    return f", {times} times" if times > 1 else ""


def _rank(severity: str) -> int:
    return _WORST.index(severity) if severity in _WORST else len(_WORST)
