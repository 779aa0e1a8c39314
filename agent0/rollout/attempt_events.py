"""Between events and attempts: the conditions that a request and its run set, the events that a turn results in, and an
attempt rebuilt from these."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby
from typing import TypedDict

from agent0.errors import DependencyError
from agent0.events.base import Event
from agent0.events.tasks import AttemptRequested, TaskAttempted, ToolCalled, TurnCompleted
from agent0.events.values import Artifact, Conversation, End, Task, Trajectory, Turn
from agent0.ports.environments import Environments
from agent0.ports.models import GenerateRequest, Generation, Model, Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.ports.web import Web
from agent0.rollout.attempt import AttemptProgress, AttemptResult
from agent0.rollout.claim_check import claim, claim_turns, put_progress
from agent0.rollout.student import Conditions, begin_in_folder, conclude, start_folder, step, student_of, student_prompt
from agent0.rollout.tool_patterns import repeated
from agent0.rollout.users.modelled import ModelledUser
from agent0.settings import RunConfig
from agent0.state.run_state import RunState
from agent0.tools.cache import ToolCache
from agent0.tools.definition import Tool
from agent0.tools.episode import check_begun, episode_tools


def conditions(
    event: AttemptRequested | TurnCompleted,
    run: RunState,
    models: Models,
    sandbox: Sandbox,
    cache: ToolCache,
    artifacts: Artifacts,
    web: Web,
    tools: Mapping[str, Tool],
) -> Conditions:
    """The conditions of every turn of the attempt that ``event`` belongs to."""
    start = start_folder(event.proposal)
    return Conditions(
        models.open(run.config.student.in_rollouts()),
        student_of(run.config.student, event.proposal),
        sandbox,
        artifacts,
        seed=event.seed,
        adapter=event.adapter,
        group=run.run,
        cache=cache,
        policy=run.config.policy,
        web=web,
        tools=tools,
        start=start,
        by_files=start is not None,
        joint=True,
        task=event.task,
        attempt=event.attempt,
        user=user_model(models, run.config),
    )


@asynccontextmanager
async def in_episode(
    task: Task, conditions: Conditions, environments: Environments | None
) -> AsyncIterator[Conditions]:
    """Yield the conditions of an attempt at ``task``: where it is an episode of steps, that is begun anew, with its
    tools alone; those of any other task stay as they are.

    Raises:
        DependencyError: the environment is away, or another than when it was added.
        EnvironmentFaultError: what it answers is no begin of an episode.
    """
    episode = task.row.episode if task.row else None
    if episode is None or not episode.tools:
        yield conditions
        return
    if environments is None:
        raise DependencyError(f"The environment at {episode.url}", "This command reaches none.")
    async with environments.opened(episode) as session:
        check_begun(session, episode, task.question)
        tools = episode_tools(ModelledUser(session, episode, conditions) if episode.user else session)
        config = conditions.config.model_copy(update={"tools": tuple(tools), "program_answers": False})
        yield replace(conditions, config=config, tools=tools, by_steps=True, messages=episode.action)


def user_model(models: Models, config: RunConfig) -> Model | None:
    """The model that plays users: the judge's, None where none is named."""
    judge = config.verification.judge
    return models.open(judge) if judge.provider else None


async def to_events(
    event: AttemptRequested | TurnCompleted, progress: AttemptProgress, artifacts: Artifacts, already: int = 0
) -> list[Event]:
    """Turn an attempt's progress into events: the calls after the first ``already``, then its turn or its end.

    Artifacts that these name are stored first.
    """
    last = await _turn(event, progress, artifacts) if progress.end is None else _attempted(event, progress, artifacts)
    return [*_calls(event, progress, already), last]


def _calls(event: AttemptRequested | TurnCompleted, progress: AttemptProgress, already: int) -> list[Event]:
    return [
        ToolCalled(
            task=event.task,
            attempt=event.attempt,
            turn=use.turn,
            number=number,
            call=use.call,
            result=use.result,
            inner=use.inner,
        )
        for number, use in enumerate(progress.called)
        if number >= already
    ]


async def _turn(
    event: AttemptRequested | TurnCompleted, progress: AttemptProgress, artifacts: Artifacts
) -> TurnCompleted:
    return TurnCompleted(
        task=event.task,
        attempt=event.attempt,
        iteration=event.iteration,
        number=event.number,
        turn=len(progress.written),
        student=event.student,
        adapter=event.adapter,
        proposal=event.proposal,
        subgoals=progress.subgoals,
        progress=await put_progress(progress, artifacts),
        seed=event.seed,
    )


def _attempted(
    event: AttemptRequested | TurnCompleted, progress: AttemptProgress, artifacts: Artifacts
) -> TaskAttempted:
    solved = conclude(progress)
    inline, stored = claim(solved.trajectory, artifacts)
    transcript, transcript_stored = claim_turns(solved.transcript, artifacts)
    return TaskAttempted(
        task=event.task,
        attempt=event.attempt,
        iteration=event.iteration,
        number=event.number,
        student=event.student,
        answer=solved.answer,
        end=solved.end,
        turns=solved.turns,
        tool_calls=len(solved.tool_calls),
        tool_ok=solved.tool_ok,
        parse_errors=solved.parse_errors,
        grounded=solved.grounded,
        transcript=transcript,
        transcript_artifact=transcript_stored,
        trajectory=inline,
        trajectory_artifact=stored,
        trajectory_problem=solved.trajectory_problem,
        capture=solved.capture,
        mean_logprob=solved.mean_logprob,
        prompt=solved.prompt,
        usage=solved.usage,
        model=solved.model,
        seed=event.seed,
        seeds=solved.seeds,
        authors=dict(solved.authors),
        wall_s=solved.wall_s,
        subgoals=solved.subgoals,
        work=solved.work,
        signals=solved.signals,
        critique=solved.critique,
        compacted=solved.compacted,
        computed=solved.grounded and not repeated(solved.answer or "", solved.transcript),
    )


def conversation_of(result: AttemptResult) -> Conversation:
    """What was said and done in an attempt that no training reads: without token ids, and without the manifests of work
    folders, which are not kept for it."""
    turns = (turn.model_copy(update={"token_ids": ()}) for turn in result.transcript)
    calls = (
        use.model_copy(update={"result": use.result.model_copy(update={"work": None})}) for use in result.tool_calls
    )
    return Conversation(transcript=tuple(turns), calls=tuple(calls))


class ConversationFields(TypedDict):
    """The fields that ``EvaluationItemScored`` and ``ItemScored`` have of how an attempt went."""

    end: End
    turns: int
    tool_calls: int
    tool_ok: int
    parse_errors: int
    conversation: Conversation | None
    conversation_artifact: Artifact | None


def conversation_fields(result: AttemptResult, artifacts: Artifacts) -> ConversationFields:
    """Make the fields of an attempt's event. A conversation over 64 KB is stored as an artifact first."""
    inline, stored = claim(conversation_of(result), artifacts)
    return {
        "end": result.end,
        "turns": result.turns,
        "tool_calls": len(result.tool_calls),
        "tool_ok": result.tool_ok,
        "parse_errors": result.parse_errors,
        "conversation": inline,
        "conversation_artifact": stored,
    }


class RecordedTurns:
    """Plays ``agent0.ports.models.Model`` for one attempt: writes the turns that it wrote."""

    name = "recorded"

    def __init__(self, turns: Sequence[Generation]) -> None:
        self._turns = list(turns)

    async def generate(self, request: GenerateRequest) -> Generation:
        """The next turn, whatever is asked."""
        return self._turns.pop(0)

    async def close(self) -> None:
        """Nothing is open."""


def beginning(task: Task, conditions: Conditions) -> AttemptProgress:
    """The attempt at ``task`` under ``conditions`` before its first turn."""
    prompt = student_prompt(conditions.config, task.domain, long=task.kind == "long")
    return begin_in_folder(task, prompt, conditions)


async def replayed(
    task: Task, transcript: Sequence[Turn], trajectory: Trajectory | None, turns: int, keep: int, conditions: Conditions
) -> tuple[AttemptProgress, int]:
    """Make the first ``keep`` of an attempt's ``turns`` turns again: recorded texts, tool calls carried out anew in a
    fresh work folder. Returns the attempt with the recorded messages, and how many tool outputs came out otherwise.

    Raises:
        DependencyError, TransientError: as for ``step``.
        ValueError: the attempt ends before, or has other messages: its settings are not those it was made under.
    """
    written = [turn for turn in transcript if turn.role == "assistant"][-turns:]
    conditions = replace(conditions, model=RecordedTurns(_generations(written, trajectory)))
    progress = beginning(task, conditions)
    while len(progress.written) < keep and progress.end is None:
        progress = await step(progress, conditions)
    recorded = transcript[: len(progress.transcript)]
    if progress.end or [turn.role for turn in recorded] != [turn.role for turn in progress.transcript]:
        raise ValueError("its calls come out otherwise")
    pairs = [*zip(progress.transcript, recorded, strict=True)]
    kept = tuple(again.model_copy(update={"content": before.content}) for again, before in pairs)
    return progress.but(transcript=kept), sum(again.content != before.content for again, before in pairs)


def _generations(written: Sequence[Turn], trajectory: Trajectory | None) -> list[Generation]:
    """The recorded turns, with their tokens where each is one stretch of the trajectory."""
    stretches = _stretches(trajectory.mask) if trajectory else []
    if trajectory is None or len(stretches) != len(written):
        return [Generation(turn.content) for turn in written]
    return [
        Generation(
            turn.content, trajectory.token_ids[a:b], trajectory.logprobs[a:b], prompt_ids=trajectory.token_ids[:a]
        )
        for turn, (a, b) in zip(written, stretches, strict=True)
    ]


def _stretches(mask: Sequence[int]) -> list[tuple[int, int]]:
    """Where each stretch of sampled tokens begins and ends."""
    at, stretches = 0, list[tuple[int, int]]()
    for sampled, group in groupby(mask):
        size = len([*group])
        stretches += [(at, at + size)] if sampled else []
        at += size
    return stretches
