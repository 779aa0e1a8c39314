"""The teacher writes a task."""

from agent0.ports import Artifacts, GenerateRequest, Models, Sampling
from agent0.prompts import prompt
from agent0.run import RunState
from agent0.storing import claim
from agent0.teacher import read_proposal, request_turns
from events.base import Event
from events.tasks import TaskProposed, TaskRequested
from events.values import Trajectory
from handlers import on


@on(TaskRequested, in_flight=256, long=True)
async def propose_task(event: TaskRequested, run: RunState, models: Models, artifacts: Artifacts) -> list[Event]:
    """One generation; text that is no task is a fact with its problem, not an error."""
    actor = run.config.teacher
    words = prompt(actor.prompts, event.domain, "teacher")
    written = await models.open(actor).generate(
        GenerateRequest(
            turns=request_turns(words, event.domain, event.family, event.level),
            sampling=Sampling(actor.temperature, actor.top_p, actor.max_tokens, event.seed),
            adapter=event.adapter,
            group=run.run,
        )
    )
    proposal, problem = read_proposal(written.text, event.domain, event.family, event.level)
    asked, sampled = len(written.prompt_ids), len(written.token_ids)
    seen = Trajectory(
        token_ids=written.prompt_ids + written.token_ids,
        mask=(0,) * asked + (1,) * sampled,
        logprobs=(0.0,) * asked + written.logprobs,
    )
    inline, stored = claim(seen if written.logprobs else None, artifacts)
    return [
        TaskProposed(
            task=event.task,
            iteration=event.iteration,
            slot=event.slot,
            teacher=event.teacher,
            text=written.text,
            proposal=proposal,
            problem=problem,
            prompt=words.version,
            trajectory=inline,
            trajectory_artifact=stored,
            usage=written.usage,
            model=written.model,
            seed=event.seed,
        )
    ]
