"""Part of the rim: the file of questions and the folder of documents that a run begins with."""

from collections.abc import Collection, Sequence
from pathlib import Path

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows.question_file import CHECK, QuestionSet, begun, questions
from agent0.evaluation.benchmarks.rows.question_rows import Repetition
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import DocumentsConfig, QuestionsConfig, RunConfig
from agent0.tasks.documents import SHORTEST, by_split, passages_of

NAMED = 5
"""Rows that a start names."""


def with_questions(run: RunConfig, typed: Collection[str] = ()) -> RunConfig:
    """Return ``run`` with what its file of questions decides: its absolute path, digest and domain, and held-out sets
    that it has rows for; and with path and digest of its documents. ``run`` itself where it names neither. ``typed``:
    dotted keys of what a person set.

    Raises:
        ConfigError: there is no such file or folder, rows that are none, or no text to ask about.
        DependencyError: the file, or a document, has another digest than ``run`` names.
    """
    run = run.model_copy(update={"documents": _with_digest(run.documents)})
    if not (run.questions.file or run.questions.heldout):
        return run
    return begun(LocalQuestions(), run.model_copy(update={"questions": located(run.questions)}), typed)


def _with_digest(plan: DocumentsConfig) -> DocumentsConfig:
    if not plan.folder:
        return plan
    path = Path(plan.folder).expanduser().absolute()
    plan = plan.model_copy(update={"folder": str(path)})
    if not path.is_dir() and not plan.sha256:
        raise ConfigError(f"There is no folder {path}.", "It is to hold the documents (run.documents.folder).")
    folder = LocalQuestions().documents(plan)
    if not passages_of(folder, "train"):
        why = f"None of its {len(folder.documents)} documents for training has {SHORTEST} characters."
        raise ConfigError(f"{path} has no passage to ask about.", why, "Add documents.")
    return plan.model_copy(update={"sha256": folder.sha256})


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
    typed |= {"run.rewards.set"} if run.questions.file == parent.questions.file else set()
    stale = ["sha256", "domain"] * (run.questions.file != parent.questions.file)
    stale += ["heldout_sha256"] * (run.questions.heldout != parent.questions.heldout)
    if run.documents.folder != parent.documents.folder and "run.documents.sha256" not in typed:
        run = run.model_copy(update={"documents": run.documents.model_copy(update={"sha256": ""})})
    if former := {name: "" for name in stale if f"run.questions.{name}" not in typed}:
        run = run.model_copy(update={"questions": run.questions.model_copy(update=former)})
    return with_questions(run, typed)


def question_notes(plan: QuestionsConfig) -> list[str]:
    """Say which rows of the file of ``plan`` are not asked, or asked once for several; nothing where it names none."""
    if not plan.file:
        return []
    read = questions(LocalQuestions(), plan)
    repeated = (
        ("repeats an earlier row, and is asked once", "repeat an earlier row, and are asked once", read.duplicates),
        (*copied_words(read), read.copies),
    )
    return [_note(Path(plan.file).name, counted_rows(rows, one, many), rows) for one, many, rows in repeated if rows]


def copied_words(read: QuestionSet) -> tuple[str, str]:
    """Say of one row, and of several, that they nearly copy held-out rows, and what becomes of them."""
    trained = "trained on all the same: so is most of the file" if read.of_template else "not trained on"
    return f"nearly copies a held-out row, and is {trained}", f"nearly copy held-out rows, and are {trained}"


def counted_rows(rows: Sequence[Repetition], one: str, many: str) -> str:
    """Say how many ``rows`` do something: ``1 row repeats …``, ``2 rows repeat …``."""
    return f"1 row {one}" if len(rows) == 1 else f"{len(rows)} rows {many}"


def document_notes(plan: DocumentsConfig) -> list[str]:
    """Say what a folder of documents holds, and which of its files are left out; nothing where ``plan`` names none."""
    if not plan.folder:
        return []
    folder = LocalQuestions().documents(plan)
    splits, passages = by_split(folder), passages_of(folder, "train")
    heldout = len(folder.documents) - len(splits["train"])
    notes = [f"{folder.name}: {len(passages)} passages of {len(splits['train'])} documents; {heldout} held out."]
    if out := folder.left_out:
        named = ", ".join(f"{name} ({why})" for name, why in out[:NAMED])
        notes.append(f"{folder.name}: {len(out)} files are left out: {named}{' …' * (len(out) > NAMED)}.")
    return notes


def _note(file: str, what: str, rows: Sequence[Repetition]) -> str:
    names = ", ".join(row.location.rpartition(", ")[2] for row in rows[:NAMED])
    return f"{file}: {what}: {names}{' …' * (len(rows) > NAMED)}. All of them: {CHECK} FILE"
