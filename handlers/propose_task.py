"""The teacher proposes a task on request."""

from agent0.events.base import Event
from agent0.events.tasks import TaskProposed, TaskRequested
from agent0.handlers import on
from agent0.ports.models import Models
from agent0.ports.storage import Artifacts
from agent0.rollout.claim_check import claim
from agent0.rollout.prompts import prompt
from agent0.rollout.teacher import exploring_bias, propose
from agent0.run.lifecycle import RunState
from agent0.tasks.families import task_length


@on(TaskRequested, in_flight=128, long=True, roles=("teacher",))
async def propose_task(event: TaskRequested, run: RunState, models: Models, artifacts: Artifacts) -> list[Event]:
    """Generate one proposal; text that holds no task is recorded with its problem, not raised."""
    actor = run.config.teacher
    instructions = prompt(actor.prompts, event.domain, "teacher", long=task_length(event.family) == "long")
    draft = await propose(
        models.open(actor),
        instructions,
        domain=event.domain,
        family=event.family,
        level=event.level,
        config=actor,
        seed=event.seed,
        adapter=event.adapter,
        group=run.run,
        task=event.task,
        unchecked=run.config.verification.unchecked != "refuse",
        bias=exploring_bias(actor, event.slot, run.config.tasks),
    )
    inline, stored = claim(draft.trajectory, artifacts)
    return [
        TaskProposed(
            task=event.task,
            iteration=event.iteration,
            slot=event.slot,
            teacher=event.teacher,
            text=draft.text,
            proposal=draft.proposal,
            problem=draft.problem,
            prompt=instructions.version,
            trajectory=inline,
            trajectory_artifact=stored,
            trajectory_problem=draft.trajectory_problem,
            capture=draft.capture,
            usage=draft.usage,
            model=draft.model,
            seed=event.seed,
        )
    ]
