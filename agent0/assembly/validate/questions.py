"""Part of the rim: the file of questions that a run begins with."""

from collections.abc import Collection
from pathlib import Path

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows.question_file import begun
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import QuestionsConfig, RunConfig


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
    """Return ``plan`` with the absolute path of its file.

    Raises:
        ConfigError: there is no such file.
    """
    path = Path(plan.file).expanduser().absolute()
    if not path.exists() and not plan.sha256:
        raise ConfigError(f"There is no file {path}.", "It is to hold the questions (run.questions.file).")
    return plan.model_copy(update={"file": str(path)})


def forked_questions(parent: RunConfig, run: RunConfig, changes: Collection[str]) -> RunConfig:
    """Return ``run``, a fork of ``parent`` with ``changes`` of its settings (dotted keys), as ``with_questions``. What
    the former file decided counts for it alone."""
    typed = {f"run.{key.removeprefix('run.')}" for key in changes}
    if run.questions.file != parent.questions.file:
        former = {name: "" for name in ("sha256", "domain") if f"run.questions.{name}" not in typed}
        run = run.model_copy(update={"questions": run.questions.model_copy(update=former)})
    return with_questions(run, typed)
