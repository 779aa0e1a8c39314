"""Part of the rim: which student a name stands for, and its weights."""

import sqlite3

from agent0.errors import NotFoundError, OperationError
from agent0.events.values import Artifact
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections.base import Row
from agent0.projections.checkpoints import find_student
from agent0.projections.runs import resolve, show_run

MEDIA = "application/x-tar"


def student(db: sqlite3.Connection, reference: str) -> tuple[str, Row]:
    """(run, checkpoint) of RUN/CHECKPOINT, RUN/base or a digest.

    Raises:
        NotFoundError: there is none. OperationError: it is a teacher's.
    """
    run, slash, checkpoint = reference.partition("/")
    row = find_student(db, f"{resolve(db, run)}/{checkpoint}" if slash else reference)
    if row.get("role", "student") != "student":
        raise OperationError(f"{reference[:80]} is a teacher's.", "It writes tasks.", "See: GET /v1/models")
    return str(row["run"]), row


def present_student(db: sqlite3.Connection, reference: str) -> tuple[str, Row]:
    """The same, where ``reference`` may also be a run, whose student of now it is.

    Raises:
        NotFoundError: there is none. OperationError: it is a teacher's.
    """
    if "/" not in reference:
        try:
            row = show_run(db, reference)
        except NotFoundError:
            return student(db, reference)
        reference = f"{row['run']}/{row['student']}"
    return student(db, reference)


def adapter_of(artifacts: FileArtifacts, name: str, row: Row) -> Artifact | None:
    """Its weights; None for the base, and for a checkpoint whose training changed nothing.

    Raises:
        NotFoundError: they were pruned, or are not in the store.
    """
    if not row.get("adapter"):
        return None
    adapter = Artifact(sha256=row["adapter"], size=row["adapter_bytes"], media=MEDIA)
    if artifacts.verify(adapter):
        fix = "Copy the folder artifacts/ of the machine that wrote it, or retrain it: agent0 experiment retrain"
        raise NotFoundError(f"The weights of {name} are not in the store.", f"Artifact {adapter.sha256[:12]}.", fix)
    return adapter
