"""Verifies work folders by the tests of a Harbor task: right is the full reward, whatever else they give is named."""

from collections.abc import Sequence
from functools import partial

from agent0.events.values import HARBOR, Repository, Task
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.tools.snapshots import answered_folder, load
from agent0.verification.panel import VerificationContext
from agent0.verification.repositories.harbor_tests import FULL, harbor_reward
from agent0.verification.repositories.mined_task import MinedSolution
from agent0.verification.verifiers import Verdict, verifier
from agent0.verification.work_folders import folder_verdicts


def _of_harbor(task: Task) -> bool:
    return bool(task.row and task.row.repository and task.row.repository.format == HARBOR)


@verifier("harbor", applies=_of_harbor, rank=0, informed=True)
async def harbor(
    task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext
) -> list[Verdict]:
    """Run the task's tests on each work folder; equal folders are judged once."""
    return await folder_verdicts(task, answers, context.artifacts, partial(_verdict, sandbox))


async def _verdict(sandbox: Sandbox, repository: Repository, answer: str | None, artifacts: Artifacts) -> Verdict:
    solution = MinedSolution.model_validate_json(artifacts.get(repository.hidden))
    work, tests = load(answered_folder(answer), artifacts), load(solution.frame, artifacts)
    result = await harbor_reward(solution.script, work, tests, sandbox, solution.seconds)
    if result.sandbox_failed:
        return Verdict(None, result.why)
    return Verdict(result.reward is not None and result.reward >= FULL, result.why)
