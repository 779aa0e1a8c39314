"""Part of the rim: a training on attempts that were imported. It is asked for by a flag, and its tokens must be those
of the model that is trained."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import ConfigError, OperationError
from agent0.events.base import Recorded, effect_id
from agent0.events.checkpoints import TrainingRequested
from agent0.events.runs import RunStarted
from agent0.events.tasks import TaskAttempted
from agent0.events.values import ImportedFile, Role, Trajectory, Turn
from agent0.infra.engine.folder_template import span_text
from agent0.infra.log.event_log import Log
from agent0.ports.storage import Artifacts
from agent0.rollout.claim_check import redeem, redeem_turns
from agent0.rollout.trajectories import token_fault
from agent0.settings import ActorConfig, RunConfig
from agent0.state.run_state import BASE, checkpoint_id

CALLED = "<tool_call>"
"""Where a text goes on with a call, which an import may have written in our form."""


def require_asked(run: str, start: RunStarted, roles: Sequence[Role], imported: bool) -> None:
    """Require that a training of ``roles`` on ``run`` was asked for as what it is.

    Raises:
        OperationError: its attempts were imported, and the flag that says so is not there. ConfigError: it is there
            without need, or a teacher is to be trained, which such a run has not.
    """
    if not start.imported and imported:
        raise ConfigError(f"Run {run} was not imported.", "It has models of its own.", "Leave --imported out.")
    if start.imported and not imported:
        why = "The run never trained a student; imported attempts are trained on by the flag --imported alone."
        fix = "Add: --imported PROFILE, whose model learns"
        raise OperationError(f"The attempts of run {run} were imported.", why, fix)
    if start.imported and "teacher" in roles:
        raise ConfigError(f"Run {run} was imported: it has no teacher.", "", "Leave --roles out.")


def foreign_request(run: str, until: int, seed: int) -> Recorded:
    """The request to train a first student on all attempts of ``run``, whose last event is ``until``: none is in the
    log, since nothing of such a run was executed."""
    request = TrainingRequested(
        checkpoint=checkpoint_id("student", 0),
        role="student",
        iteration=0,
        parent=BASE,
        after=0,
        until=until,
        replay_after=0,
        seed=seed,
        state_sha="",
    )
    return recorded(run, request).model_copy(update={"id": effect_id(run, "training", 0), "seq": until})


async def require_own_tokens(log: Log, run: str, file: ImportedFile, plan: RunConfig, artifacts: Artifacts) -> None:
    """Require that attempts of ``run`` have token ids, sound ones, and that the tokenizer of the student of ``plan``
    reads them as the text that the file has.

    Raises:
        OperationError: none has, or some are of another tokenizer. ConfigError: the student has no tokenizer here.
    """
    name, folder = _model(plan.student), _folder(plan.student)
    attempts, whole, why = 0, 0, ""
    async for stored in log.read(run, ["TaskAttempted"]):
        event = stored.event
        assert isinstance(event, TaskAttempted)  # noqa: S101 - only these are read
        attempts += 1
        trajectory = redeem(event.trajectory, event.trajectory_artifact, artifacts)
        if trajectory is None:
            why = event.trajectory_problem
            continue
        if fault := token_fault(trajectory, event.turns, event.usage.completion_tokens):
            raise _refusal(run, file, f"Attempt {event.attempt} does not hold token by token: {fault}.")
        texts = [turn.content for turn in _turns(event, artifacts) if turn.role == "assistant"]
        whole += 1
        if not _is_read(folder, trajectory, texts):
            theirs = f"those of {event.model}" if event.model else "those that the file has"
            fault = f"The token ids of {event.attempt}, {theirs}, are not its text in the tokenizer of {name}."
            raise _refusal(run, file, fault)
    if not whole:
        raise _refusal(run, file, f"None of its {attempts:,} attempts has token ids: {why}.")


def _turns(event: TaskAttempted, artifacts: Artifacts) -> tuple[Turn, ...]:
    return redeem_turns(event.transcript, event.transcript_artifact, artifacts)


def _refusal(run: str, file: ImportedFile, why: str) -> OperationError:
    what = f"Nothing is trained on run {run}, imported from {file.name}."
    return OperationError(what, why, f"Judge or reward it again instead: agent0 experiment reverify {run}")


def _model(actor: ActorConfig) -> str:
    return f"{actor.provider} {actor.model}".strip()


def _folder(actor: ActorConfig) -> Path:
    folder_of = provider_of(actor).folder
    folder = folder_of(actor) if folder_of else None
    if folder is None or not (folder / "tokenizer.json").is_file():
        why = f"{_model(actor)} has no tokenizer on this machine, with which token ids would be compared."
        raise ConfigError("Nothing is trained on attempts that were imported.", why, "Name another profile.")
    return folder


def _is_read(folder: Path, trajectory: Trajectory, texts: list[str]) -> bool:
    """Whether each text of an assistant is in what was sampled, in order; one that begins with a call has none.
    Earlier ones are worked examples of the prompt."""
    spans, at = [span_text(folder, ids) for ids in _sampled(trajectory)], 0
    if not spans or None in spans:
        return False
    written, compared = "".join(span or "" for span in spans), 0
    for text in texts[-len(spans) :]:
        before = text.partition(CALLED)[0].strip()
        start = written.find(before, at)
        if start < 0:
            return False
        at, compared = start + len(before), compared + len(before)
    return compared > 0


def _sampled(trajectory: Trajectory) -> Iterator[list[int]]:
    marked = zip(trajectory.token_ids, trajectory.mask, strict=True)
    for sampled, pairs in groupby(marked, key=lambda pair: pair[1]):
        if sampled:
            yield [token for token, _ in pairs]
