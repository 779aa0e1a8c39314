"""Part of the rim: work on a repository as a submitted task: begun, carried on until its verdict, read, accepted."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.routing.billing import check_routing
from agent0.assembly.runtime.app import App, open_app, run_handlers
from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.runtime.read_models import catch_up, reading, run_projector
from agent0.assembly.runtime.stamping import recorded
from agent0.assembly.solving.repository_copy import RepositoryCopy
from agent0.assembly.solving.turn_lines import turn_lines
from agent0.assembly.solving.written_back import write_back
from agent0.assembly.tooling.tool_policy import with_policy
from agent0.assembly.validate.call_forms import with_tool_form
from agent0.errors import ConfigError, DependencyError, GateError, NotFoundError, OperationError
from agent0.evaluation.benchmarks.rows.question_file import folder_student
from agent0.events.alarms import DependencyLost, DependencyRestored, ReactionFailed, ReactionRetried, ReactionTried
from agent0.events.base import Event, Recorded, sha256
from agent0.events.submissions import PREFIX, TaskSubmitted
from agent0.events.tasks import ResultVerified, TaskAttempted, ToolCalled, TurnCompleted
from agent0.events.values import SOLUTION, Artifact, Repository, Vote
from agent0.infra.log.event_log import Log
from agent0.ports.storage import Artifacts
from agent0.projections.submissions import list_submissions
from agent0.rollout.claim_check import get_progress
from agent0.rollout.prompts import FULL
from agent0.settings import RunConfig, Settings
from agent0.tools.snapshots import answered_folder, load, save
from agent0.verification.repositories.seeded_defects import REVIEW
from agent0.verification.solutions.patches import changed_paths, is_text, patched, unified
from agent0.verification.solutions.repository_job import RepositoryJob, Verb, job_task

TASK, ATTEMPT, HANDLER = "t0", "t0-a0", "solve_submission"
LONGEST_CHECK = 500
"""Characters of a check."""
TOOL_S = 30.0
"""Seconds that a student's call may take at least, on a repository: tests take longer than an expression."""
Say = Callable[[str], object]
SOLUTION_EVENTS = (TaskSubmitted, TaskAttempted, ResultVerified, ReactionFailed, ReactionRetried)
"""Events that say how far work on a repository is."""


@dataclass(frozen=True)
class SolutionRequest:
    """What is asked for a repository: the kind of work, and the check, which may take ``seconds`` and import the
    packages ``needs``. Another ``seed`` is another attempt. ``less``: as `RepositoryJob` has it."""

    verb: Verb
    check: str
    seconds: float = 120.0
    needs: tuple[str, ...] = ()
    seed: int = 0
    less: int = 1


@dataclass(frozen=True)
class RepositorySolution:
    """Work on a repository that has its ``verdict``: the student's ``answer`` names the work folder it left."""

    id: str
    job: RepositoryJob
    answer: str | None
    verdict: ResultVerified
    artifacts: Artifacts

    @property
    def solved(self) -> bool:
        """Whether every vote is for it; of a review, that it is one."""
        return self.verdict.correct is True or (self.is_review and self.verdict.correct is None)

    @property
    def is_review(self) -> bool:
        """Whether nothing is to be written."""
        return self.job.verb == "review"

    @property
    def votes(self) -> tuple[Vote, ...]:
        """What was tried of it, the check first."""
        return self.verdict.votes

    @property
    def confirmed(self) -> list[Vote]:
        """Defects that a review names and execution confirms."""
        return [vote for vote in self.votes if self.is_review and vote.correct and vote.check != REVIEW]

    @cached_property
    def before(self) -> dict[str, bytes]:
        """The files of the repository."""
        return load(self.job.tree, self.artifacts)

    @cached_property
    def work(self) -> dict[str, bytes]:
        """The files that the student left."""
        return load(answered_folder(self.answer), self.artifacts) or self.before

    @cached_property
    def after(self) -> dict[str, bytes]:
        """The files of the repository once the changes that count are written."""
        return patched(self.job.verb, self.before, self.work)

    @property
    def diff(self) -> str:
        """The changes as text; of a review its own."""
        if self.is_review:
            review = self.work.get(REVIEW, b"")
            return review.decode() if is_text(review) else ""
        return unified(self.before, self.after)

    @property
    def is_written(self) -> bool:
        """Whether the repository has these changes."""
        folder, paths = Path(self.job.folder), changed_paths(self.before, self.after)
        present = {path: (folder / path).read_bytes() for path in paths if (folder / path).is_file()}
        return bool(paths and self.job.folder) and present == {p: self.after[p] for p in paths if p in self.after}

    def apply(self) -> list[str]:
        """Write the changes into the repository; returns the paths that were written.

        Raises:
            GateError: a vote is against it. OperationError: there is nothing to write, or the repository is not
            as it was. DependencyError: a file cannot be written.
        """
        if self.is_review or not self.job.folder:
            why = "A review changes nothing." if self.is_review else "Its files came from a client, which has them."
            raise OperationError(f"{self.id} has nothing to write.", why)
        if not self.solved:
            raise self.against()
        return write_back(Path(self.job.folder), self.before, self.after)

    def against(self) -> GateError:
        """Make the error that says which vote is against it."""
        work = f"Its files: agent0 sandbox restore {self.answer.split()[1]} FOLDER" if self.answer else ""
        return GateError(f"{self.id} does not {self.job.verb} it: nothing is written.", self.verdict.reason, work)

    def as_row(self) -> dict[str, object]:
        """It as JSON has it."""
        votes = [vote.model_dump(mode="json") for vote in self.votes]
        head = {"id": self.id, "verb": self.job.verb, "check": self.job.check, "solved": self.solved}
        return {**head, "reason": self.verdict.reason, "votes": votes, "diff": self.diff}


def submission_of(
    config: RunConfig,
    artifacts: Artifacts,
    request: SolutionRequest,
    copy: RepositoryCopy,
    student: tuple[str, str, Artifact | None] = ("", "base", None),
    by: str = "",
    folder: str = "",
) -> Recorded:
    """The event that asks the student of ``config`` for work on a repository, under an id that equal requests share.
    ``student``: its run, checkpoint and adapter; ``folder``: where the files are to be written to.

    Raises:
        ConfigError: there is nothing to check or to change it with.
    """
    job = _job(config, artifacts, request, copy, folder)
    run, checkpoint, adapter = student
    plain = _fitted(config).model_dump(mode="json")
    identity = f"{PREFIX}{sha256(f'{job.model_dump_json()} {plain} {student} {request.seed}')[:12]}"
    hidden = artifacts.put(job.model_dump_json().encode(), "application/json")
    event = TaskSubmitted(
        task=TASK,
        attempt=ATTEMPT,
        source=run or identity,
        student=checkpoint,
        adapter=adapter,
        proposal=job_task(job, hidden, copy.folder.name[:80] or "repository"),
        config=plain,
        seed=request.seed,
        by=by,
    )
    return recorded(identity, event)


def _job(
    config: RunConfig, artifacts: Artifacts, request: SolutionRequest, copy: RepositoryCopy, folder: str
) -> RepositoryJob:
    if not request.check.strip() or len(request.check) > LONGEST_CHECK or not request.check.isprintable():
        raise ConfigError("There is no check.", "It is a command line.", 'Write --check "pytest -q"')
    tree = save(copy.files, artifacts)
    if tree is None or not any(path.endswith(".py") for path in copy.files):
        raise ConfigError(f"{copy.folder.name or 'The repository'} holds no Python files.", "", "Name another folder.")
    return RepositoryJob(
        verb=request.verb,
        check=request.check.strip(),
        seconds=request.seconds,
        modules=tuple(dict.fromkeys((*config.policy.modules, *request.needs))),
        tree=tree,
        base=save(copy.base, artifacts) if copy.base else None,
        changed=tuple(changed_paths(copy.base, copy.files)) if copy.base else (),
        folder=folder,
        less=request.less,
    )


def _fitted(config: RunConfig) -> RunConfig:
    """``config`` with a student that changes files, by the prompts for that."""
    student = folder_student(config.student, typed=not config.student.max_calls)
    style = FULL if student.prompts in ("compact", "programs") else student.prompts
    return config.model_copy(update={"student": student.model_copy(update={"prompts": style})})


async def carry_solution(settings: Settings, begin: Recorded | None, run: str, say: Say) -> RepositorySolution:
    """Submit ``begin``, where the log does not have it yet, and carry ``run`` on until its verdict; ``say`` takes the
    plan and calls as they come. Equal requests ask nothing twice.

    Raises:
        OperationError: the check does not serve, or the attempt was given up.
        DependencyError: model or sandbox is away, or a budget used up; the same call goes on.
    """
    settings = await with_policy(settings)
    check_routing(settings)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True))
        if (earlier := await _ended(log, run, settings)) is not None:
            return earlier
        submitted = await _submitted(log, run, begin)
        student = RunConfig.recorded(submitted.config).student
        if check := provider_of(student).check:
            check(student)
        seconds = _job_of(submitted, artifact_store(settings)).seconds
        app = await stack.enter_async_context(open_app(_roomy(settings, seconds), (HANDLER,)))
        await catch_up(settings, app.log)
        since = await _begun_again(app, run)
        for other in _left(settings, run):
            say(f"{other} was left, and goes on in this process, too.")
        if begin is not None and not since:
            await app.log.append([await _with_form(app, begin, say)])
        await _carried(app, run, since, say)
        await catch_up(settings, app.log)
        solution = await _ended(app.log, run, settings)
        assert solution is not None  # noqa: S101 - it was followed to its verdict
        return solution


async def _submitted(log: Log, run: str, begin: Recorded | None) -> TaskSubmitted:
    """What was asked for; of a ``run`` that goes on, as the log has it.

    Raises:
        NotFoundError: there is no work on a repository of that name.
    """
    events = [begin.event] if begin else [r.event async for r in log.read(run, [TaskSubmitted.__name__])]
    for event in events:
        if isinstance(event, TaskSubmitted) and _repository(event) is not None:
            return event
    raise NotFoundError(f"There is no work on a repository named {run[:80]!r}.", fix="See: agent0 solve list")


def _repository(event: TaskSubmitted) -> Repository | None:
    repository = event.proposal.row.repository if event.proposal.row else None
    return repository if repository and repository.format == SOLUTION else None


def _job_of(event: TaskSubmitted, artifacts: Artifacts) -> RepositoryJob:
    repository = _repository(event)
    assert repository is not None  # noqa: S101 - the caller's
    return RepositoryJob.model_validate_json(artifacts.get(repository.hidden))


def _left(settings: Settings, run: str) -> list[str]:
    """Other submitted tasks that have no verdict: whoever reacts to one reacts to all."""
    with reading(settings) as db:
        rows = list_submissions(db, limit=1000)
    return [str(row["submission"]) for row in rows if row["status"] == "submitted" and row["submission"] != run]


async def _begun_again(app: App, run: str) -> int:
    """The last event of ``run``, 0 for none. What it waited for counts as back, so that it is told where it is not."""
    lost: dict[tuple[str, str], None] = {}
    async for stored in app.log.read(run, [DependencyLost.__name__, DependencyRestored.__name__]):
        if isinstance(event := stored.event, DependencyLost):
            lost[event.dependency, event.waiting] = None
        elif isinstance(event, DependencyRestored):
            lost.pop((event.dependency, event.waiting), None)
    back = [recorded(run, DependencyRestored(dependency=name, waiting=handler)) for name, handler in lost]
    if back:
        await app.log.append(back)
    return await app.log.last_seq(run)


def _roomy(settings: Settings, seconds: float) -> Settings:
    """``settings`` under which a check of ``seconds`` is not cut short."""
    limits = settings.sandbox
    longer = {"verifier_wall_s": max(limits.verifier_wall_s, seconds), "wall_s": max(limits.wall_s, TOOL_S)}
    return settings.model_copy(update={"sandbox": limits.model_copy(update=longer)})


async def _with_form(app: App, begin: Recorded, say: Say) -> Recorded:
    """``begin`` with the form in which its student calls tools."""
    event = begin.event
    assert isinstance(event, TaskSubmitted)  # noqa: S101 - the caller's
    config = RunConfig.recorded(event.config)
    student, notice = await with_tool_form(config.student, app.ports["models"])
    if notice:
        say(notice)
    plain = config.model_copy(update={"student": student}).model_dump(mode="json")
    return begin.model_copy(update={"event": event.model_copy(update={"config": plain})})


async def _carried(app: App, run: str, since: int, say: Say) -> None:
    async with asyncio.TaskGroup() as group:
        works = [group.create_task(run_handlers(app)), group.create_task(run_projector(app.settings, app.log))]
        await _followed(app, run, since, say)
        for work in works:
            work.cancel()


async def _followed(app: App, run: str, since: int, say: Say) -> None:
    """Say what came and comes of ``run`` until it has its verdict. Troubles up to ``since`` are over.

    Raises:
        OperationError: it was given up. DependencyError: it waits for something.
    """
    async with aclosing(app.log.tail(0, run)) as events:  # type: ignore[type-var]
        calls: list[ToolCalled] = []
        async for stored in events:
            match stored.event:
                case ToolCalled() as call:
                    calls.append(call)
                case TurnCompleted() | TaskAttempted() as turn:
                    for line in turn_lines(*await _turn_text(turn, app), calls):
                        say(line)
                    calls = []
                case ReactionTried() | ReactionFailed() | DependencyLost() as trouble if stored.seq > since:
                    _tell(trouble, run, say)
                case ResultVerified():
                    return


async def _turn_text(turn: TurnCompleted | TaskAttempted, app: App) -> tuple[int, str]:
    """The number of a turn, and what the student wrote in it."""
    if isinstance(turn, TurnCompleted):
        return turn.turn, (await get_progress(turn.progress, app.artifacts)).written[-1].text
    return turn.turns, next((entry.content for entry in reversed(turn.transcript) if entry.role == "assistant"), "")


def _tell(trouble: ReactionTried | ReactionFailed | DependencyLost, run: str, say: Say) -> None:
    if isinstance(trouble, ReactionFailed):
        raise OperationError(trouble.message)
    if isinstance(trouble, DependencyLost):
        why = trouble.message.removeprefix(f"{trouble.dependency} is not available. ")
        raise DependencyError(trouble.dependency, why, f"Then: agent0 solve resume {run}")
    if trouble.outcome == "failed":
        say(f"Tried again: {trouble.message}")


async def _ended(log: Log, run: str, settings: Settings) -> RepositorySolution | None:
    """The work of ``run`` where it has its verdict.

    Raises:
        OperationError: it was given up.
    """
    kinds = [kind.__name__ for kind in SOLUTION_EVENTS]
    events = [stored.event async for stored in log.read(run, kinds)]
    if isinstance(last := events[-1] if events else None, ReactionFailed):
        raise OperationError(last.message)
    return solution_of(run, events, artifact_store(settings))


def solution_of(run: str, events: Iterable[Event], artifacts: Artifacts) -> RepositorySolution | None:
    """The work on a repository that ``events`` are about; None where they are of something else, or not at its end.

    Raises:
        NotFoundError, LogError: what it is about is missing or damaged.
    """
    submitted = answer = verdict = None
    for event in events:
        match event:
            case TaskSubmitted() if _repository(event) is not None:
                submitted = event
            case TaskAttempted():
                answer = event.answer
            case ResultVerified():
                verdict = event
    if submitted is None or verdict is None:
        return None
    return RepositorySolution(run, _job_of(submitted, artifacts), answer, verdict, artifacts)


async def read_solution(settings: Settings, run: str) -> RepositorySolution:
    """The work on a repository with the id ``run``.

    Raises:
        NotFoundError: there is none. OperationError: it was given up, or has no verdict yet.
    """
    async with open_log(settings, "reader") as log:
        solution = await _ended(log, run, settings)
        if solution is None:
            await _submitted(log, run, None)
            raise OperationError(f"{run} is not done.", "", f"Go on: agent0 solve resume {run}")
    return solution
