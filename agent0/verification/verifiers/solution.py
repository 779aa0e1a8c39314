"""Verifies work on a person's own repository by their check, and by what the kind of work is to show."""

from collections.abc import Sequence
from functools import partial

from agent0.events.values import SOLUTION, Repository, Task, Vote
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.tools.snapshots import answered_folder, load
from agent0.verification.panel import VerificationContext
from agent0.verification.solutions.check_runs import SandboxFailedError
from agent0.verification.solutions.repository_job import RepositoryJob
from agent0.verification.solutions.review_claims import review_votes
from agent0.verification.solutions.solution_votes import solution_votes
from agent0.verification.verifiers import Verdict, verifier
from agent0.verification.work_folders import folder_verdicts


def _of_solution(task: Task) -> bool:
    return bool(task.row and task.row.repository and task.row.repository.format == SOLUTION)


@verifier(SOLUTION, applies=_of_solution, rank=0, informed=True)
async def solution(
    task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext
) -> list[Verdict]:
    """Collect the votes on each work folder; equal folders are judged once."""
    return await folder_verdicts(task, answers, context.artifacts, partial(_verdict, sandbox))


async def _verdict(sandbox: Sandbox, repository: Repository, answer: str | None, artifacts: Artifacts) -> Verdict:
    job = RepositoryJob.model_validate_json(artifacts.get(repository.hidden))
    before = load(job.tree, artifacts)
    work = load(answered_folder(answer), artifacts) or before
    try:
        if job.verb == "review":
            votes = await review_votes(job, before, load(job.base, artifacts), work, sandbox)
        else:
            votes = await solution_votes(job, before, work, sandbox)
    except SandboxFailedError as error:
        return Verdict(None, str(error)[:200])
    return _of_votes(votes)


def _of_votes(votes: Sequence[Vote]) -> Verdict:
    """Wrong where one is, undecided where one is."""
    against = next((vote for vote in votes if vote.correct is False), None)
    open_ = next((vote for vote in votes if vote.correct is None), None)
    deciding = against or open_ or votes[-1]
    correct = False if against else None if open_ else True
    return Verdict(correct, f"{deciding.check}: {deciding.reason}"[:200], votes=tuple(votes))
