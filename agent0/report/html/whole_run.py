"""The tasks of a run with all their attempts and what was said in them, as many as one page may hold."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from agent0.errors import Agent0Error
from agent0.events.values import Artifact
from agent0.ports.storage import Artifacts
from agent0.projections.attempts import own_turns, read_transcripts
from agent0.projections.base import Row
from agent0.projections.tasks import questions_of
from agent0.report.html.rendering import LONGEST

MOST = 3_000_000
"""Characters of attempts that a page holds, their markup included."""
_ATTEMPT, _TURN = 400, 120
"""Characters of markup that an attempt and a turn take."""


@dataclass(frozen=True)
class WholeRun:
    """Iterations, each with its ``tasks``, each of these with its ``attempts``: their ``said`` are the student's turns
    and what tools gave, None where the artifact that holds them is not here. ``shown`` attempts are there of ``of``."""

    iterations: list[Row]
    shown: int
    of: int


def whole_run(
    db: sqlite3.Connection,
    artifacts: Artifacts,
    run: str,
    tasks: Sequence[Row],
    attempts: Sequence[Row],
    elsewhere: Collection[str],
) -> WholeRun:
    """Read the attempts of ``run`` until ``MOST`` characters are read: of each iteration in turn, and there one of each
    task before a second. Those that the page has ``elsewhere`` are named and not repeated."""
    questions, read = questions_of(db, run), dict[str, Row]()
    size = 0
    for attempt in read_transcripts(db, run, _order(attempts)):
        said = _said(artifacts, attempt) if attempt["attempt"] not in elsewhere else []
        size += _ATTEMPT + sum(min(len(turn["content"]), LONGEST) + _TURN for turn in said or ())
        if size > MOST:
            break
        read[attempt["attempt"]] = {**attempt, "said": said}
    by_task: dict[str, list[Row]] = defaultdict(list)
    for row in attempts:
        if row["attempt"] in read:
            by_task[row["task"]].append({**row, "said": read[row["attempt"]]["said"]})
    shown = [{**task, "question": questions.get(task["task"]), "attempts": by_task[task["task"]]} for task in tasks]
    numbers = sorted({task["iteration"] for task in tasks})
    grouped = [{"iteration": n, "tasks": [task for task in shown if task["iteration"] == n]} for n in numbers]
    held = [{**one, "tasks": [task for task in one["tasks"] if task["attempts"]]} for one in grouped]
    return WholeRun([one for one in held if one["tasks"]], len(read), len(attempts))


def _order(attempts: Sequence[Row]) -> Iterator[str]:
    """Names of attempts, the iterations taking turns, and in each the tasks."""
    by_iteration: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in attempts:
        by_iteration[row["iteration"]][row["task"]].append(row["attempt"])
    turns = [chain(*zip_longest(*by_task.values())) for by_task in by_iteration.values()]
    return (name for names in zip_longest(*turns) for name in names if name)


def _said(artifacts: Artifacts, attempt: Row) -> list[Row] | None:
    """What the student wrote and what tools gave."""
    if attempt["transcript"] or not attempt["transcript_artifact"]:
        return own_turns({**attempt, "transcript": attempt["transcript"] or []})
    try:
        turns = json.loads(artifacts.get(Artifact(**attempt["transcript_artifact"])))
    except (Agent0Error, ValueError):
        return None
    return own_turns({**attempt, "transcript": turns})
