"""Why a run went badly, in one object and in lines: what ``run why`` prints and others put on top."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from agent0.errors import sentence
from agent0.report.columns import shown_iteration
from agent0.report.diagnosis.case import case_of, event_of, written_by_student, written_by_teacher
from agent0.run.diagnosis import Case, Cause, diagnose
from agent0.run.diagnosis.case import NEVER, Observation

WROTE = 200
"""Characters of what a model wrote that are told."""
SETTINGS = 12
"""Settings that differ, at most, in lines; JSON has all."""


def diagnosis(db: sqlite3.Connection, run: str, here: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Say why ``run`` went badly. ``here``: what this machine says now (``agent0.run.diagnosis.Case``).

    Returns ``run``, ``status``, ``well`` (whether nothing went badly), ``conclusion`` (the first line), ``cause`` (its
    name), ``step`` (iteration, checkpoint, event), ``evidence``, ``replies`` (how items of its newest validation
    failed, None where none did), ``settings`` (those that differ), ``mend``, ``advice``, and ``also``: other causes,
    in order.

    Raises:
        NotFoundError: there is no such run.
    """
    case = case_of(db, run, here)
    found = diagnose(case)
    root = found[0] if found else None
    seen = [_with_event(db, case.run, one) for one in root.observations] if root else []
    return {
        "run": case.run,
        "status": case.status,
        "well": root is None,
        "conclusion": _conclusion(case, root),
        "cause": root.name if root else None,
        "fatal": bool(root and root.fatal),
        "step": {**_step(root), "event": root.event or _first_event(db, case, root, seen)} if root else None,
        "evidence": [asdict(_with_writing(db, case.run, one)) for one in seen],
        "replies": _replies(case),
        "settings": [asdict(one) for one in case.changes],
        "mend": root.mend if root else "",
        "advice": root.advice if root else "",
        "also": [
            {"cause": one.name, "conclusion": one.conclusion, "step": _step(one), "mend": one.mend} for one in found[1:]
        ],
    }


def why_lines(found: Mapping[str, Any]) -> list[str]:
    """At most three lines: the cause, the first bad step, the command that mends it."""
    if found["well"]:
        return [found["conclusion"]]
    mend = [f"To mend it: {found['mend']}"] if found["mend"] else []
    return [found["conclusion"], f"First bad step: {step_words(found['step'])}", *mend]


def step_words(step: Mapping[str, Any]) -> str:
    """An iteration, a checkpoint and an event in words."""
    number = step["iteration"]
    where = ["before the first iteration" if number == NEVER else f"iteration {shown_iteration(number)}"]
    where += [f"checkpoint {step['checkpoint']}"] if step["checkpoint"] else []
    return ", ".join([*where, *([f"event {step['event']}"] if step["event"] else [])])


def observation_lines(observations: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line each: where it was seen, what, and what a model wrote there."""
    lines = []
    for one in observations:
        named = [one["attempt"] or one["task"], one["checkpoint"], f"event {one['event']}" if one["event"] else ""]
        where = ", ".join(name for name in named if name)
        wrote = f"; wrote: {one['wrote']}" if one["wrote"] else ""
        lines.append(f"{where}: {one['text']}{wrote}" if where else f"{one['text']}{wrote}")
    return lines


def setting_lines(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line each, those that say how large the run is last."""
    from agent0.run.diagnosis.case import Setting

    lines = [str(Setting(**one)) for one in settings[:SETTINGS]]
    left = len(settings) - SETTINGS
    return [*lines, f"and {left} more: --json has all"] if left > 0 else lines


def _conclusion(case: Case, root: Cause | None) -> str:
    if root is not None:
        return sentence(f"{case.run}: {root.conclusion}")
    held = [one.accuracy for one in case.validations() if one.accuracy is not None]
    scores = f"; validation {held[0]:.3f} first, {held[-1]:.3f} last" if len(held) > 1 else ""
    if case.status == "running" and (case.here.get("carried") or "idle_s" in case.here):
        return f"{case.run}: it runs{_progress(case)}: no sign that anything went badly{scores}."
    return f"{case.run}: no sign that anything went badly ({case.status}{scores})."


def _progress(case: Case) -> str:
    """In which iteration a running run is, what it waits for, and when its last event was."""
    idle = case.here.get("idle_s")
    waits = [*case.open_work, *([str(case.here["waits"])] if case.here.get("waits") else [])]
    parts = ["" if case.iteration == NEVER else f"iteration {shown_iteration(case.iteration)}"]
    parts += [f"it waits for {_joined(waits)}" if waits else ""]
    parts += ["" if idle is None else f"its last event was {idle:,.0f} s ago"]
    return "".join(f", {part}" for part in parts if part)


def _joined(parts: Sequence[str]) -> str:
    """Join parts as people do: a, b and c."""
    return " and ".join([*([", ".join(parts[:-1])] if parts[1:] else []), parts[-1]])


def _replies(case: Case) -> dict[str, Any] | None:
    """How items failed, with the examples' texts shortened."""
    if case.replies is None:
        return None
    examples = [asdict(replace(one, wrote=_shortened(one.wrote))) for one in case.replies.examples]
    return {**asdict(case.replies), "examples": examples}


def _step(one: Cause) -> dict[str, Any]:
    return {"iteration": one.iteration, "checkpoint": one.checkpoint, "event": one.event}


def _first_event(db: sqlite3.Connection, case: Case, one: Cause, seen: Sequence[Observation]) -> int:
    """The event of what shows a cause that names none, else the first of its iteration, else 0."""
    if shown := [held.event for held in seen if held.event]:
        return shown[0]
    return event_of(db, "SELECT min(requested_seq) FROM tasks WHERE run = ? AND iteration = ?", case.run, one.iteration)


def _with_event(db: sqlite3.Connection, run: str, one: Observation) -> Observation:
    """The evidence with the event of its attempt, or of what became of its task, where it names none."""
    if one.event or not (one.attempt or one.task):
        return one
    if one.attempt:
        query = "SELECT attempted_seq FROM attempts WHERE run = ? AND attempt = ?"
        return replace(one, event=event_of(db, query, run, one.attempt))
    query = "SELECT max(seq) FROM events WHERE run = ? AND task = ? AND type IN ('TaskRejected', 'TaskAccepted')"
    return replace(one, event=event_of(db, query, run, one.task))


def _with_writing(db: sqlite3.Connection, run: str, one: Observation) -> Observation:
    """The evidence with what was written there, shortened."""
    text = ""
    if one.attempt:
        text = written_by_student(db, run, one.attempt)
    elif one.task:
        text = written_by_teacher(db, run, one.task)
    return replace(one, wrote=_shortened(text))


def _shortened(text: str) -> str:
    """``text`` in one line, cut where it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= WROTE else f"{flat[:WROTE]}…"
