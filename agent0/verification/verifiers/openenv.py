"""Verifies answers by the environment that asked: right is its full reward, and what is no reward is undecided."""

from collections.abc import Sequence

from agent0.events.values import OPENENV, Episode, Task
from agent0.ports.environments import EnvironmentFaultError, Environments
from agent0.ports.sandbox import Sandbox
from agent0.verification.panel import VerificationContext
from agent0.verification.verifiers import Verdict, verifier

FULL = 1.0


@verifier(OPENENV, applies=lambda task: bool(task.row and task.row.episode), rank=0, informed=True)
async def openenv(
    task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext
) -> list[Verdict]:
    """Answer the task's episode with each answer; equal answers are judged once."""
    episode = task.row.episode if task.row else None
    if episode is None or context.environments is None:
        return [Verdict(None, "the environment is not at hand") for _ in answers]
    by_answer = {
        answer: await _verdict(episode, task.question, answer, context.environments)
        for answer in dict.fromkeys(answers)
    }
    return [by_answer[answer] for answer in answers]


async def _verdict(episode: Episode, question: str, answer: str | None, environments: Environments) -> Verdict:
    if answer is None:
        return Verdict(False, "there is no answer")
    try:
        reward = await environments.reward(episode, question, answer)
    except EnvironmentFaultError as error:
        return Verdict(None, error.why)
    if reward is None:
        return Verdict(None, "it gives no reward")
    return Verdict(reward >= FULL, f"reward {reward:g}", got=answer[:200])
