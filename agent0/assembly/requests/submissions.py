"""Part of the rim: a person's task for a student, as the event to append."""

import secrets
import sqlite3
from dataclasses import dataclass

from agent0.assembly.models.students import adapter_of, present_student
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import ConfigError
from agent0.events.base import Recorded
from agent0.events.submissions import PREFIX, TaskSubmitted
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.projections.runs import show_run
from agent0.settings import RunConfig
from agent0.verification.submitted import read_question

TASK, ATTEMPT = "t0", "t0-a0"


@dataclass(frozen=True)
class Submission:
    """What a person asks: ``model`` as RUN (its student of now), RUN/CHECKPOINT or a digest; ``domain`` empty: the
    first of the run's; ``expected``: the right answer, empty where it is to be computed; ``seed`` None: any."""

    question: str
    model: str = "LAST"
    expected: str = ""
    domain: str = ""
    seed: int | None = None


def submitted(db: sqlite3.Connection, artifacts: FileArtifacts, submission: Submission, by: str = "") -> Recorded:
    """The event that asks a student to solve a task; ``by`` is whose doing it is.

    Raises:
        ConfigError: the question is none, or the run has no such domain.
        NotFoundError: no such student, or its weights are gone. OperationError: a teacher's.
    """
    run, checkpoint = present_student(db, submission.model)
    config = show_run(db, run)["config"]
    domains = RunConfig.recorded(config).curriculum.domains
    if submission.domain and submission.domain not in domains:
        raise ConfigError(f"Run {run} has no domain {submission.domain[:80]!r}.", f"Known: {', '.join(domains)}.")
    task, problem = read_question(submission.question, submission.domain or domains[0])
    if task is None:
        raise ConfigError("The question cannot be asked.", f"There is {problem}." if problem else "")
    event = TaskSubmitted(
        task=TASK,
        attempt=ATTEMPT,
        source=run,
        student=checkpoint["checkpoint"],
        adapter=adapter_of(artifacts, f"{run}/{checkpoint['checkpoint']}", checkpoint),
        proposal=task,
        expected=submission.expected.strip(),
        config=config,
        seed=secrets.randbits(31) if submission.seed is None else submission.seed,
        by=by,
    )
    return recorded(f"{PREFIX}{secrets.token_hex(3)}", event)
