"""Why a run went badly, in one object and in lines: what ``run why`` prints and others put on top."""

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TypedDict

from agent0.errors import sentence
from agent0.projections.base import Row
from agent0.report.columns import shown_iteration
from agent0.report.diagnosis.case import case_of, event_of, written_by_student, written_by_teacher
from agent0.run.diagnosis import Case, Cause, diagnose
from agent0.run.diagnosis.case import NEVER, Observation, Setting
from agent0.run.diagnosis.local_state import LocalState

WROTE = 200
"""Characters of what a model wrote that are told."""
SETTINGS = 12
"""Settings that differ, at most, in lines; JSON has all."""


class BadStep(TypedDict):
    """The iteration, checkpoint and event at which a run first went badly."""

    iteration: int
    checkpoint: str
    event: int


class Conclusion(TypedDict):
    """Why a run went badly: the first line, the cause's name, where it began and what shows it; ``well``: it did
    not."""

    well: bool
    conclusion: str
    cause: str | None
    step: BadStep | None
    evidence: list[Row]
    mend: str
    advice: str


class Diagnosis(Conclusion):
    """What ``run why --json`` prints. ``replies`` say how items of its newest validation failed, None where none did;
    ``settings`` are those that differ, ``also`` other causes, in order."""

    run: str
    status: str
    fatal: bool
    replies: Row | None
    settings: list[Row]
    also: list[Row]


def diagnosis(db: sqlite3.Connection, run: str, here: LocalState | None = None) -> Diagnosis:
    """Say why ``run`` went badly. ``here``: what this machine says now (``agent0.run.diagnosis.Case``).

    Raises:
        NotFoundError: there is no such run.
    """
    case = case_of(db, run, here)
    causes = diagnose(case)
    root = causes[0] if causes else None
    observations = [_with_event(db, case.run, cause) for cause in root.observations] if root else []
    return {
        "run": case.run,
        "status": case.status,
        "well": root is None,
        "conclusion": _conclusion(case, root),
        "cause": root.name if root else None,
        "fatal": bool(root and root.fatal),
        "step": {**_step(root), "event": root.event or _first_event(db, case, root, observations)} if root else None,
        "evidence": [asdict(_with_writing(db, case.run, observation)) for observation in observations],
        "replies": _replies(case),
        "settings": [asdict(observation) for observation in case.changes],
        "mend": root.mend if root else "",
        "advice": root.advice if root else "",
        "also": [
            {"cause": cause.name, "conclusion": cause.conclusion, "step": _step(cause), "mend": cause.mend}
            for cause in causes[1:]
        ],
    }


def why_lines(results: Diagnosis) -> list[str]:
    """At most three lines: the cause, the first bad step, the command that mends it."""
    if results["well"]:
        return [results["conclusion"]]
    mend = [f"To mend it: {results['mend']}"] if results["mend"] else []
    return [results["conclusion"], f"First bad step: {step_words(results['step'])}", *mend]


def step_words(step: BadStep | None) -> str:
    """An iteration, a checkpoint and an event in words; empty without a step."""
    if step is None:
        return ""
    number = step["iteration"]
    where = ["before the first iteration" if number == NEVER else f"iteration {shown_iteration(number)}"]
    where += [f"checkpoint {step['checkpoint']}"] if step["checkpoint"] else []
    return ", ".join([*where, *([f"event {step['event']}"] if step["event"] else [])])


def observation_lines(observations: Sequence[Row]) -> list[str]:
    """A line each: where it was seen, what, and what a model wrote there."""
    lines = []
    for observation in observations:
        named = [
            observation["attempt"] or observation["task"],
            observation["checkpoint"],
            f"event {observation['event']}" if observation["event"] else "",
        ]
        where = ", ".join(name for name in named if name)
        wrote = f"; wrote: {observation['wrote']}" if observation["wrote"] else ""
        lines.append(f"{where}: {observation['text']}{wrote}" if where else f"{observation['text']}{wrote}")
    return lines


def setting_lines(settings: Sequence[Row]) -> list[str]:
    """A line each, those that say how large the run is last."""
    lines = [str(Setting(**setting)) for setting in settings[:SETTINGS]]
    left = len(settings) - SETTINGS
    return [*lines, f"and {left} more: --json has all"] if left > 0 else lines


def _conclusion(case: Case, root: Cause | None) -> str:
    if root is not None:
        return sentence(f"{case.run}: {root.conclusion}")
    accuracies = [score.accuracy for score in case.validations() if score.accuracy is not None]
    scores = f"; validation {accuracies[0]:.3f} first, {accuracies[-1]:.3f} last" if len(accuracies) > 1 else ""
    if case.status == "running" and (case.here.get("carried") or "idle_s" in case.here):
        return f"{case.run}: it runs{_progress(case)}: no sign that anything went badly{scores}."
    return f"{case.run}: no sign that anything went badly ({case.status}{scores})."


def _progress(case: Case) -> str:
    """In which iteration a running run is, what it waits for, and when its last event was."""
    idle = case.here.get("idle_s")
    waits = [*case.open_work, *([str(case.here["waits"])] if case.here.get("waits") else [])]
    parts = ["" if case.iteration == NEVER else f"iteration {shown_iteration(case.iteration)}"]
    joined = " and ".join([*([", ".join(waits[:-1])] if waits[1:] else []), *waits[-1:]])  # a, b and c
    parts += [f"it waits for {joined}" if waits else ""]
    parts += ["" if idle is None else f"its last event was {idle:,.0f} s ago"]
    return "".join(f", {part}" for part in parts if part)


def _replies(case: Case) -> Row | None:
    """How items failed, with the examples' texts shortened."""
    if case.replies is None:
        return None
    examples = [asdict(replace(example, wrote=_shortened(example.wrote))) for example in case.replies.examples]
    return {**asdict(case.replies), "examples": examples}


def _step(cause: Cause) -> BadStep:
    return {"iteration": cause.iteration, "checkpoint": cause.checkpoint, "event": cause.event}


def _first_event(db: sqlite3.Connection, case: Case, cause: Cause, observations: Sequence[Observation]) -> int:
    """The event of what shows a cause that names none, else the first of its iteration, else 0."""
    if shown := [observation.event for observation in observations if observation.event]:
        return shown[0]
    return event_of(
        db, "SELECT min(requested_seq) FROM tasks WHERE run = ? AND iteration = ?", case.run, cause.iteration
    )


def _with_event(db: sqlite3.Connection, run: str, observation: Observation) -> Observation:
    """The evidence with the event of its attempt, or of what became of its task, where it names none."""
    if observation.event or not (observation.attempt or observation.task):
        return observation
    if observation.attempt:
        query = "SELECT attempted_seq FROM attempts WHERE run = ? AND attempt = ?"
        return replace(observation, event=event_of(db, query, run, observation.attempt))
    query = "SELECT max(seq) FROM events WHERE run = ? AND task = ? AND type IN ('TaskRejected', 'TaskAccepted')"
    return replace(observation, event=event_of(db, query, run, observation.task))


def _with_writing(db: sqlite3.Connection, run: str, observation: Observation) -> Observation:
    """The evidence with what was written there, shortened."""
    text = ""
    if observation.attempt:
        text = written_by_student(db, run, observation.attempt)
    elif observation.task:
        text = written_by_teacher(db, run, observation.task)
    return replace(observation, wrote=_shortened(text))


def _shortened(text: str) -> str:
    """``text`` in one line, cut where it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= WROTE else f"{flat[:WROTE]}…"
