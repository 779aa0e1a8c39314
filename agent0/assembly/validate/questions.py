"""Part of the rim: the file of questions that a run begins with."""

from collections.abc import Collection, Sequence
from pathlib import Path

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows.question_file import CHECK, begun, questions
from agent0.evaluation.benchmarks.rows.question_rows import Repetition
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import QuestionsConfig, RunConfig

NAMED = 5
"""Rows that a start names."""


def with_questions(run: RunConfig, typed: Collection[str] = ()) -> RunConfig:
    """Return ``run`` with what its file of questions decides: its absolute path, digest and domain, and held-out sets
    that it has rows for; ``run`` itself where it names none. ``typed``: dotted keys of what a person set.

    Raises:
        ConfigError: there is no such file, or rows that are none.
        DependencyError: the file has another digest than ``run`` names.
    """
    if not run.questions.file:
        return run
    return begun(LocalQuestions(), run.model_copy(update={"questions": located(run.questions)}), typed)


def located(plan: QuestionsConfig) -> QuestionsConfig:
    """Return ``plan`` with the absolute paths of its files.

    Raises:
        ConfigError: there is no such file.
    """
    names = {"file": (plan.file, plan.sha256), "heldout": (plan.heldout, plan.heldout_sha256)}
    paths = {key: Path(name).expanduser().absolute() for key, (name, _) in names.items() if name}
    for key, path in paths.items():
        if not path.exists() and not names[key][1]:
            raise ConfigError(f"There is no file {path}.", f"It is to hold the questions (run.questions.{key}).")
    return plan.model_copy(update={key: str(path) for key, path in paths.items()})


def forked_questions(parent: RunConfig, run: RunConfig, changes: Collection[str]) -> RunConfig:
    """Return ``run``, a fork of ``parent`` with ``changes`` of its settings (dotted keys), as ``with_questions``. What
    the former file decided counts for it alone."""
    typed = {f"run.{key.removeprefix('run.')}" for key in changes}
    stale = ["sha256", "domain"] * (run.questions.file != parent.questions.file)
    stale += ["heldout_sha256"] * (run.questions.heldout != parent.questions.heldout)
    if former := {name: "" for name in stale if f"run.questions.{name}" not in typed}:
        run = run.model_copy(update={"questions": run.questions.model_copy(update=former)})
    return with_questions(run, typed)


def question_notes(plan: QuestionsConfig) -> list[str]:
    """Say which rows of the file of ``plan`` are not asked, or asked once for several; nothing where it names none."""
    if not plan.file:
        return []
    read = questions(LocalQuestions(), plan)
    counted = (
        ("repeat an earlier row, and are asked once", read.duplicates),
        ("repeat a held-out row, and are not trained on", read.copies),
    )
    return [_note(Path(plan.file).name, what, rows) for what, rows in counted if rows]


def _note(file: str, what: str, rows: Sequence[Repetition]) -> str:
    names = ", ".join(row.location.rpartition(", ")[2] for row in rows[:NAMED])
    return f"{file}: {len(rows)} rows {what}: {names}{' …' * (len(rows) > NAMED)}. All of them: {CHECK} FILE"
