"""A submitted task: as the attempt that a run would request of its student, and the verdict on it, which has no
siblings to compare it with."""

import json

from agent0.errors import TransientError
from agent0.events.submissions import TaskSubmitted
from agent0.events.tasks import AttemptRequested, ResultVerified, TaskAttempted
from agent0.events.values import SOLUTION, Task
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.rollout.teacher import read_proposal
from agent0.settings import RunConfig, VerificationConfig
from agent0.state.run_state import RunState
from agent0.tools.snapshots import load
from agent0.verification.panel import VerificationContext
from agent0.verification.solutions.repository_job import RepositoryJob, job_statement, refusal
from agent0.verification.verifiers import Verdict, compare_answer, credit_of, graded, verifier_for

EXPECTED = "expected"
"""The verifier that compares with the answer which came with the task."""
NOTHING = "nothing computes the answer, and none was given to compare it with"
OUTSIDE = -1
"""The iteration of what belongs to none."""


def read_question(question: str, domain: str) -> tuple[Task | None, str]:
    """Read a person's question as a task: that of a family which can parse it, else an open one of ``domain`` without a
    program. Returns (task, "") or (None, why not)."""
    return read_proposal(json.dumps({"question": question}), domain, "", 1, unchecked=True)


def as_request(event: TaskSubmitted) -> AttemptRequested:
    """The request of its one attempt, as a run would make it."""
    return AttemptRequested(
        task=event.task,
        attempt=event.attempt,
        iteration=OUTSIDE,
        number=0,
        proposal=event.proposal,
        seed=event.seed,
        student=event.student,
        adapter=event.adapter,
        state_sha="",
    )


def state_of(event: TaskSubmitted) -> RunState:
    """The state of a run that has only begun, by the settings of its source: its calls are the source's expense."""
    return RunState(run=event.source, seq=0, config=RunConfig.recorded(event.config), config_sha="")


async def stated(task: Task, sandbox: Sandbox, artifacts: Artifacts) -> Task:
    """``task`` as a student is asked it: of one on a person's repository the check is run first.

    Raises:
        OperationError: by how its check ends now, the work cannot begin.
        TransientError: the sandbox failed. SandboxUnavailableError: there is none.
    """
    repository = task.row.repository if task.row else None
    if repository is None or repository.format != SOLUTION:
        return task
    job = RepositoryJob.model_validate_json(artifacts.get(repository.hidden))
    files = load(job.tree, artifacts)
    before = await job.runs.run(files, sandbox)
    if before.sandbox_failed:
        raise TransientError("The check was not run.", before.problem)
    if error := refusal(job, before):
        raise error
    return task.model_copy(update={"question": job_statement(job, before, files)})


async def submission_verdict(
    event: TaskSubmitted, attempted: TaskAttempted, rules: VerificationConfig, sandbox: Sandbox, artifacts: Artifacts
) -> ResultVerified:
    """Verify ``attempted`` by the answer that came with the task, else by computing it; undecided where neither can be.

    Raises:
        SandboxUnavailableError: something would have to be run, and there is no sandbox.
    """
    context, task = VerificationContext((attempted.computed,), rules, artifacts=artifacts), event.proposal
    judge = verifier_for(task, rules.unchecked)
    if event.expected:
        verdict = await compare_answer(event.expected, attempted.answer, sandbox)
    elif judge.collective:
        verdict = Verdict(None, NOTHING, "", (attempted.answer or "")[:200])
    else:
        [verdict] = await judge.judge(task, [attempted.answer], sandbox, context)
    subgoals = await graded(judge, task, attempted.subgoals, verdict, sandbox, context)
    return ResultVerified(
        task=event.task,
        attempt=event.attempt,
        iteration=attempted.iteration,
        correct=verdict.correct,
        verifier=EXPECTED if event.expected else judge.name,
        reason=verdict.reason,
        expected=verdict.expected,
        got=verdict.got,
        votes=verdict.votes,
        subgoals=subgoals,
        credit=credit_of(subgoals),
    )
