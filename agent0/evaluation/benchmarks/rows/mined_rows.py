"""The tasks of a mined folder as rows. A row's answer is the work folder of its reference."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import answers
from agent0.evaluation.benchmarks.rows import RowError
from agent0.evaluation.benchmarks.rows.question_columns import Columns
from agent0.evaluation.benchmarks.rows.question_rows import LONGEST, QuestionRows, RowTask
from agent0.events.episodes import STEPS
from agent0.events.values import (
    DOCUMENTING,
    HARBOR,
    QUESTIONS,
    REFACTORING,
    REPAIR,
    REVIEWING,
    TESTING,
    Artifact,
    Repository,
    SourceRow,
    Task,
)
from agent0.ports.storage import Dataset
from agent0.rollout.teacher import normal
from agent0.settings import QuestionsConfig
from agent0.tools.snapshots import as_answer
from agent0.verification.repositories.mined_task import EpisodeTask, Kind, MinedTask

COLUMNS = Columns(replace(answers.MATH, name="mined", source="agent0 task mine"), {})
LEVELS: Mapping[Kind, int] = {"change": 2}
"""Levels of tasks that state none, where it is not 1."""
DOMAINS: Mapping[Kind, str] = {
    "document": DOCUMENTING,
    "harbor": HARBOR,
    "refactor": REFACTORING,
    "review": REVIEWING,
    "tests": TESTING,
}


def read_mined_rows(rows: Dataset, plan: QuestionsConfig) -> QuestionRows:
    """Read every task of a mined folder, each of the domain of its kind.

    Raises:
        ConfigError: there is none, or ``plan`` names columns, which it does not have.
    """
    if plan.columns or plan.template:
        raise ConfigError(f"{rows.name} has no columns.", "It is a folder of mined tasks.", "Leave --columns out.")
    lines = rows.text.splitlines()
    if not lines:
        raise ConfigError(f"{rows.name} has no tasks.", "Nothing was accepted.", "See: agent0 task mine --help")
    faults: list[RowError] = []
    tasks = tuple(_tasks(lines, rows.name, plan.domain, faults))
    return QuestionRows(rows.name, COLUMNS, len(lines), tasks, tuple(faults), ())


def _tasks(lines: list[str], name: str, domain: str, faults: list[RowError]) -> Iterator[RowTask]:
    for number, line in enumerate(lines, 1):
        location = f"{name}, task {number}"
        try:
            written = json.loads(line)
            if "episode" in written["task"]:
                yield RowTask(location, _of_episode(EpisodeTask.model_validate(written["task"]), domain))
                continue
            mined = MinedTask.model_validate(written["task"])
            reference, hidden = (Artifact.model_validate(written[part]) for part in ("reference", "hidden"))
        except ValueError as error:
            why = f"{type(error).__name__}: {error}"[:200]
            faults.append(RowError(location, "", "no mined task.", why, "Mine it again."))
            continue
        if len(mined.statement) > LONGEST:
            why = f"Its statement has {len(mined.statement):,} characters."
            faults.append(RowError(location, "", "it is too long for a task.", why, "Take its file out of tasks/."))
            continue
        form = HARBOR if mined.kind == HARBOR else ""
        repository = Repository(package=mined.package, tree=mined.tree, hidden=hidden, format=form)
        row = SourceRow(id=mined.id, answer=as_answer(reference) or "", repository=repository)
        yield RowTask(
            location,
            Task(
                question=mined.statement,
                domain=DOMAINS.get(mined.kind, REPAIR),
                family=QUESTIONS,
                level=mined.level or LEVELS.get(mined.kind, 1),
                canonical=f"{QUESTIONS} {mined.package} {mined.id}",
                kind="long",
                row=row,
            ),
        )


def _of_episode(asked: EpisodeTask, domain: str) -> Task:
    """The first observation of an episode as a question; its environment decides, and has told no answer. Of one that
    runs here, its number is what it is: two may begin alike, and hide different states."""
    steps, begin = bool(asked.episode.tools), f"{asked.episode.url} {asked.episode.seed}"
    return Task(
        question=asked.statement,
        domain=STEPS if steps else domain or "math",
        family=QUESTIONS,
        level=1,
        canonical=f"{QUESTIONS} {begin if asked.episode.program else normal(asked.statement)}",
        kind="long" if steps else "short",
        row=SourceRow(id=asked.id, answer="", episode=asked.episode),
    )
