"""The events of a foreign run: attempts of another framework's file as tasks, attempts, verdicts and rewards of a run
of its own. Every id follows from the file, so that a file is one run however often it is imported."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows import RowError
from agent0.evaluation.benchmarks.rows.question_rows import LONGEST
from agent0.events.base import Event, Recorded, effect_id, record
from agent0.events.runs import RunFinished, RunStarted
from agent0.events.tasks import (
    AttemptRequested,
    ResultVerified,
    RewardAssigned,
    TaskAccepted,
    TaskAttempted,
    TaskRequested,
    ToolCalled,
)
from agent0.events.values import QUESTIONS, ForeignLine, ImportedFile, SourceRow, Task, ToolState, ToolUse
from agent0.experiments.interchange import ForeignAttempt
from agent0.experiments.rescore import HANDLER as REWARDING
from agent0.grading.extraction import answer_in
from agent0.grading.normal_form import same
from agent0.ports.storage import Artifacts
from agent0.rollout.claim_check import claim, claim_turns
from agent0.rollout.teacher import normal
from agent0.settings import RunConfig
from agent0.settings.roles import StudentConfig
from agent0.state.rules import VERSIONS
from agent0.state.run_state import BASE, attempt_id, task_id
from agent0.tasks.families import families
from agent0.tasks.splits import task_of

FOREIGN = "imported"
"""The profile of a foreign run, and how its verdicts and reward sets are called, with the format behind the latter."""
FOREIGN_ID = re.compile(rf"{FOREIGN}-[0-9a-f]{{12}}")
"""What the id of a foreign run is like."""
IMPORT = "import_trajectories"
"""What stands in the place of a handler's name in the events of a foreign run."""
MOST_TASKS, MOST_ATTEMPTS = 20_000, 100_000
"""Of a file."""
SPLIT = "Split it, and import the parts."
LARGEST = 900_000
"""Bytes of an event: what the log's server takes."""


@dataclass(frozen=True)
class ForeignFile:
    """A file that was read: its name, digest and format, and its attempts in order."""

    name: str
    sha256: str
    format: str
    attempts: tuple[ForeignAttempt, ...]

    @property
    def run(self) -> str:
        """The run that it is imported as."""
        return f"{FOREIGN}-{self.sha256[:12]}"


@dataclass(frozen=True)
class ForeignTask:
    """A task of a foreign run with the attempts at it."""

    task: Task
    attempts: tuple[ForeignAttempt, ...]


def foreign_tasks(file: ForeignFile) -> list[ForeignTask]:
    """Group the attempts of ``file`` by the tasks that they are at, both in the order of the file.

    Raises:
        RowError: an attempt without a question, or with one that no event holds. ConfigError: too many, or none.
    """
    if not file.attempts:
        raise ConfigError(f"{file.name} has no attempts.", "Nothing is imported.")
    if len(file.attempts) > MOST_ATTEMPTS:
        raise ConfigError(
            f"{file.name} has {len(file.attempts):,} attempts.", f"{MOST_ATTEMPTS:,} are the most.", SPLIT
        )
    groups: dict[tuple[str, str], list[ForeignAttempt]] = {}
    for attempt in file.attempts:
        if not attempt.question.strip():
            raise RowError(attempt.location, "", f"no row of {file.format}.", "It asks nothing: no user's message.")
        if (length := len(attempt.question) + len(attempt.expected)) > LONGEST:
            why = f"Question and answer have {length:,} characters, and {LONGEST:,} are the most."
            raise RowError(attempt.location, "question", f"no row of {file.format}.", why, "Leave out this row.")
        groups.setdefault((attempt.group, attempt.expected), []).append(attempt)
    if len(groups) > MOST_TASKS:
        raise ConfigError(f"{file.name} has {len(groups):,} tasks.", f"{MOST_TASKS:,} are the most.", SPLIT)
    return [ForeignTask(_task(group[0], number), tuple(group)) for number, group in enumerate(groups.values())]


def _task(attempt: ForeignAttempt, number: int) -> Task:
    """What our own export named, where it still holds; else a question with the file's answer, or one that a family of
    ours reads; else a question that nothing computes."""
    entries = families(long=None)
    if noted := attempt.task:
        entry = entries.get(noted.family)
        task = task_of(entry, noted.question) if entry else noted
        if task is not None and task.canonical == noted.canonical:
            return task
    if not attempt.expected:
        for entry in entries.values():
            if (computed := task_of(entry, attempt.question)) is not None:
                return computed
    row = SourceRow(id=f"{number + 1}", answer=attempt.expected) if attempt.expected else None
    canonical = f"{QUESTIONS} {normal(attempt.question)}"
    return Task(question=attempt.question, domain=QUESTIONS, family=QUESTIONS, level=1, canonical=canonical, row=row)


def events_of(file: ForeignFile, artifacts: Artifacts, time: datetime, code_rev: str) -> list[Recorded]:
    """The events of the run that ``file`` is, in order; what is too large for an event is stored first.

    Raises:
        RowError, ConfigError: an attempt that no event holds, or no attempt at all.
    """
    tasks = foreign_tasks(file)
    writer = _EventWriter(file.run, time, code_rev)
    start = writer.write(_started(file, tasks), "start")
    for slot, of_task in enumerate(tasks):
        _write_task(writer, file, task_id(0, slot), slot, of_task, artifacts, start)
    attempts = sum(len(of_task.attempts) for of_task in tasks)
    writer.write(RunFinished(iterations=1, tasks=len(tasks), attempts=attempts, state_sha=""), "end", cause=start)
    return writer.events


class _EventWriter:
    """Events of one run, each under an id that follows from what it is."""

    def __init__(self, run: str, time: datetime, code_rev: str) -> None:
        self.run, self.events = run, list[Recorded]()
        self._time, self._code_rev = time, code_rev

    def write(self, event: Event, name: str, cause: str = "", location: str = "", id: str = "") -> str:
        """Add an event; returns its id.

        Raises:
            RowError: it is too large.
        """
        id = id or effect_id(self.run, name, 0)
        about = {"run": self.run, "time": self._time, "code_rev": self._code_rev, "id": id}
        recorded = record(event, **about, cause=cause, handler=IMPORT if cause else "")  # type: ignore[arg-type]
        if len(recorded.to_json()) > LARGEST:
            why = f"As a {recorded.type} it has more than {LARGEST:,} bytes."
            raise RowError(location, "", "no row that the log holds.", why, "Leave out this row.")
        self.events.append(recorded)
        return id


def _started(file: ForeignFile, tasks: Sequence[ForeignTask]) -> RunStarted:
    models = {attempt.model for attempt in file.attempts}
    student = StudentConfig(model=next(iter(models))[:200] if len(models) == 1 else "")
    sizes = {"tasks": min(len(tasks), 1000), "attempts": min(max(len(each.attempts) for each in tasks), 1000)}
    config, digest = RunConfig(iterations=1, student=student, **sizes).to_record()
    return RunStarted(
        name=file.name,
        profile=FOREIGN,
        seed=0,
        config=config,
        config_sha=digest,
        rules=dict(VERSIONS),
        imported=ImportedFile(name=file.name, sha256=file.sha256, format=file.format, attempts=len(file.attempts)),
    )


def _write_task(
    writer: _EventWriter,
    file: ForeignFile,
    name: str,
    slot: int,
    of_task: ForeignTask,
    artifacts: Artifacts,
    cause: str,
) -> None:
    task, first = of_task.task, of_task.attempts[0].location
    request = TaskRequested(
        task=name,
        iteration=0,
        slot=slot,
        domain=task.domain,
        family=task.family,
        level=task.level,
        seed=0,
        teacher=BASE,
        state_sha="",
    )
    requested = writer.write(request, f"{name} requested", cause, first)
    accepted = TaskAccepted(
        task=name,
        iteration=0,
        slot=slot,
        proposal=task,
        novelty=1.0,
        against=0,
        position=0,
        embedder="",
        attempts=len(of_task.attempts),
    )
    accepted_id = writer.write(accepted, f"{name} accepted", requested, first)
    slots = [_AttemptSlot(name, attempt_id(name, n), n, task, each) for n, each in enumerate(of_task.attempts)]
    attempted = [_write_attempt(writer, attempt_slot, artifacts, accepted_id) for attempt_slot in slots]
    for attempt_slot, cause in zip(slots, attempted, strict=True):  # a verifier may look at all attempts together
        _write_verdict(writer, file, attempt_slot, cause)


@dataclass(frozen=True)
class _AttemptSlot:
    task: str
    attempt: str
    number: int
    proposal: Task
    foreign: ForeignAttempt


def _write_attempt(writer: _EventWriter, attempt_slot: _AttemptSlot, artifacts: Artifacts, cause: str) -> str:
    """Its request, its calls and its end; returns the id of the last."""
    of, at = attempt_slot.attempt, attempt_slot.foreign.location
    request = AttemptRequested(
        task=attempt_slot.task,
        attempt=of,
        iteration=0,
        number=attempt_slot.number,
        proposal=attempt_slot.proposal,
        seed=0,
        student=BASE,
        state_sha="",
    )
    cause = writer.write(request, f"{of} requested", cause, at)
    for number, use in enumerate(attempt_slot.foreign.calls):
        call = ToolCalled(
            task=attempt_slot.task, attempt=of, turn=use.turn, number=number, call=use.call, result=use.result
        )
        writer.write(call, f"{of} call {number}", cause, at)
    return writer.write(_attempted(attempt_slot, artifacts), f"{of} attempted", cause, at)


def _write_verdict(writer: _EventWriter, file: ForeignFile, attempt_slot: _AttemptSlot, cause: str) -> None:
    """The file's verdict, and its reward where it has one."""
    attempt, of = attempt_slot.foreign, attempt_slot.attempt
    correct, reason = _verdict(attempt)
    verdict = ResultVerified(
        task=attempt_slot.task,
        attempt=of,
        iteration=0,
        correct=correct,
        verifier=FOREIGN,
        reason=reason,
        got=(_answer(attempt) or "")[:200],
    )
    decided = writer.write(verdict, f"{of} verified", cause, attempt.location)
    if attempt.total is None:
        return
    reward = RewardAssigned(
        task=attempt_slot.task,
        attempt=of,
        iteration=0,
        role="student",
        set=f"{FOREIGN}-{file.format}",
        parts=attempt.parts,
        total=attempt.total,
        checkpoint=BASE,
        facts={"correct": correct},
    )
    writer.write(reward, f"{of} rewarded", decided, attempt.location, effect_id(decided, REWARDING, 0))


def _verdict(attempt: ForeignAttempt) -> tuple[bool | None, str]:
    """What the file says, and how. Where it has no field for that, a reward of exactly 1 or 0 is read as right or
    wrong, and any other as undecided."""
    if attempt.correct is not None or attempt.task is not None:
        return attempt.correct, "as the file says"
    if attempt.total in (0, 1):
        return attempt.total == 1, f"its reward is {attempt.total:g}"
    return None, "the file says nothing of right or wrong"


def _answer(attempt: ForeignAttempt) -> str | None:
    """The answer that the file names apart, or that its last assistant's turn gives."""
    written = [turn.content for turn in attempt.transcript if turn.role == "assistant"]
    apart = attempt.answer is not None or attempt.task is not None
    return attempt.answer if apart or not written else answer_in(written[-1])


def _attempted(attempt_slot: _AttemptSlot, artifacts: Artifacts) -> TaskAttempted:
    attempt, answer = attempt_slot.foreign, _answer(attempt_slot.foreign)
    good = [use for use in attempt.calls if use.result.state is ToolState.OK]
    transcript, transcript_stored = claim_turns(attempt.transcript, artifacts)
    trajectory, trajectory_stored = claim(attempt.trajectory, artifacts)
    sampled = _sampled(attempt)
    return TaskAttempted(
        task=attempt_slot.task,
        attempt=attempt_slot.attempt,
        iteration=0,
        number=attempt_slot.number,
        student=BASE,
        answer=answer,
        end="no_answer" if answer is None else "answered",
        turns=sum(turn.role == "assistant" for turn in attempt.transcript),
        tool_calls=len(attempt.calls),
        tool_ok=len(good),
        grounded=answer is not None and any(_printed(use, answer) for use in good),
        transcript=transcript,
        transcript_artifact=transcript_stored,
        trajectory=trajectory,
        trajectory_artifact=trajectory_stored,
        trajectory_problem="" if attempt.trajectory else attempt.problem or "the file has no token ids",
        mean_logprob=sum(sampled) / len(sampled) if sampled else None,
        prompt="",
        usage=attempt.usage,
        model=attempt.model,
        capture="tokens" if attempt.trajectory else "text",
        foreign=ForeignLine(location=attempt.location, losses=attempt.losses),
    )


def _sampled(attempt: ForeignAttempt) -> list[float]:
    if attempt.trajectory is None:
        return []
    pairs = zip(attempt.trajectory.logprobs, attempt.trajectory.mask, strict=True)
    return [logprob for logprob, sampled in pairs if sampled]


def _printed(use: ToolUse, answer: str) -> bool:
    return same(answer, use.result.output.strip()[-1000:])
