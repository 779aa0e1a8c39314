"""Verifies attempts, by computing the answer where the task allows it."""

from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.tasks import TaskAttempted
from agent0.handlers import on
from agent0.ports.environments import Environments
from agent0.ports.models import Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.run.lifecycle import RunState
from agent0.verification.panel.opinion import docstring_reader, judge_opinion
from agent0.verification.verdicts import task_of, verdicts


@on(TaskAttempted, ReactionDropped, long=True, roles=("judge",))
async def verify_result(
    event: TaskAttempted | ReactionDropped,
    run: RunState,
    verifier_sandbox: Sandbox,
    models: Models,
    artifacts: Artifacts,
    environments: Environments,
) -> list[Event]:
    """Return a verdict for each attempt that can be decided at this event."""
    judge = (models, run.config.verification.judge, run.config.seed, run.run, task_of(event))
    ask, read = judge_opinion(*judge), docstring_reader(*judge)
    return [*await verdicts(event, run, verifier_sandbox, ask, artifacts, environments=environments, read=read)]
