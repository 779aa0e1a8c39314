"""The student tries a task with its tools."""

from agent0.ports import Artifacts, Models, Sandbox
from agent0.prompts import prompt
from agent0.run import RunState
from agent0.storing import claim, claim_turns
from agent0.student import Solved, solve
from agent0.tools.cache import ToolCache
from events.base import Event
from events.tasks import AttemptRequested, TaskAttempted, ToolCalled
from handlers import on


@on(AttemptRequested, in_flight=512, long=True)
async def attempt_task(
    event: AttemptRequested,
    run: RunState,
    models: Models,
    sandbox: Sandbox,
    tool_cache: ToolCache,
    artifacts: Artifacts,
) -> list[Event]:
    """Every tool call, then the attempt: they land together or not at all."""
    actor = run.config.student
    words = prompt(actor.prompts, event.proposal.domain, "student")
    solved = await solve(
        models.open(actor),
        event.proposal,
        config=actor,
        sandbox=sandbox,
        prompt=words,
        seed=event.seed,
        adapter=event.adapter,
        group=run.run,
        cache=tool_cache,
    )
    calls: list[Event] = [
        ToolCalled(task=event.task, attempt=event.attempt, turn=turn, number=n, call=call, result=result)
        for n, (turn, call, result) in enumerate(solved.tool_calls)
    ]
    return [*calls, _attempted(event, solved, words.version, artifacts)]


def _attempted(event: AttemptRequested, solved: Solved, version: str, artifacts: Artifacts) -> TaskAttempted:
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
        mean_logprob=solved.mean_logprob,
        prompt=version,
        usage=solved.usage,
        model=solved.model,
        seed=event.seed,
        wall_s=solved.wall_s,
    )
