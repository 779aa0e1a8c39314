"""Verifies episodes by the rewards of their environments, each kind under a name of its own: right is the full reward,
and what is no reward is undecided. Judged again, the steps are made again."""

from collections.abc import Callable, Sequence

from agent0.events.episodes import OPENENV, Episode
from agent0.events.values import Task
from agent0.ports.environments import EnvironmentFaultError, OpenEpisode
from agent0.ports.sandbox import Sandbox
from agent0.tools.episode import EpisodeRecord, check_begun, make_step
from agent0.verification.panel import VerificationContext
from agent0.verification.verifiers import Verdict, verifier

FULL = 1.0
KINDS = (OPENENV, "gym", "verifiers", "tau2")


async def episodes(
    task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext
) -> list[Verdict]:
    """Judge each answer by the task's episode; equal answers are judged once."""
    episode = task.row.episode if task.row else None
    assert episode is not None  # noqa: S101 - as it applies
    by_answer = {answer: await _judged(episode, task.question, answer, context) for answer in dict.fromkeys(answers)}
    return [by_answer[answer] for answer in answers]


def _of(kind: str) -> Callable[[Task], bool]:
    return lambda task: bool(task.row and task.row.episode and task.row.episode.kind == kind)


for _kind in KINDS:
    verifier(_kind, applies=_of(_kind), rank=0, informed=True)(episodes)


async def _judged(episode: Episode, question: str, answer: str | None, context: VerificationContext) -> Verdict:
    if answer is None:
        return Verdict(False, "no step was made" if episode.tools else "there is no answer")
    record = EpisodeRecord.model_validate_json(answer) if episode.tools else None
    if record and not context.again:
        return _verdict(episode, record)
    if context.environments is None:
        return Verdict(None, "the environment is not at hand")
    try:
        async with context.environments.opened(episode) as session:
            check_begun(session, episode, question)
            return await (_again(session, episode, record) if record else _answered(session, episode, answer))
    except EnvironmentFaultError as error:
        return Verdict(None, error.why)


async def _answered(session: OpenEpisode, episode: Episode, answer: str) -> Verdict:
    """The verdict of an episode whose one step is the answer."""
    seen = await session.step("", {episode.action: answer})
    if seen.refused or not seen.done:
        going_on = "It goes on after its answer, and it was added as an episode of one step."
        return Verdict(None, f"It gives {seen.text[:200]}." if seen.refused else going_on)
    if seen.reward is None:
        return Verdict(None, "it gives no reward")
    return Verdict(seen.reward >= _full(episode), f"reward {seen.reward:g}", got=answer[:200])


async def _again(session: OpenEpisode, episode: Episode, record: EpisodeRecord) -> Verdict:
    """The verdict of steps that are made again, and come to the same."""
    if not record.steps:
        return Verdict(None, "its steps are too long to be kept, so they cannot be made again")
    for number, made in enumerate(record.steps, 1):
        came = await make_step(session, made.tool, made.arguments)
        modelled = episode.user and made.tool == episode.action  # a reply that the environment does not read
        if came.step != made.step and not modelled:
            return Verdict(None, f"the environment does not repeat itself: step {number} came to something else")
    return _verdict(episode, record)


def _verdict(episode: Episode, record: EpisodeRecord) -> Verdict:
    if record.fault:
        return Verdict(None, record.fault)
    if record.reward is None:
        return Verdict(None if record.done else False, "it gives no reward" if record.done else "it was not ended")
    left = "" if record.done else ", and it was not ended"
    return Verdict(record.reward >= _full(episode), f"reward {record.reward:g}{left}")


def _full(episode: Episode) -> float:
    return FULL if episode.right is None else episode.right
