"""The student takes the next turn of a long task, in whichever process the last one was taken."""

from collections.abc import Mapping

from agent0.events.base import Event
from agent0.events.tasks import TurnCompleted
from agent0.handlers import on
from agent0.ports.models import Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.ports.web import Web
from agent0.rollout.attempt_events import conditions, to_events
from agent0.rollout.claim_check import get_progress
from agent0.rollout.student import step
from agent0.run.lifecycle import RunState
from agent0.tools.cache import ToolCache
from agent0.tools.definition import Tool


@on(TurnCompleted, in_flight=128, long=True)
async def continue_attempt(
    event: TurnCompleted,
    run: RunState,
    models: Models,
    sandbox: Sandbox,
    tool_cache: ToolCache,
    artifacts: Artifacts,
    web: Web,
    tools: Mapping[str, Tool],
) -> list[Event]:
    """Run one more turn; returns its tool calls, then that the turn or the attempt ended."""
    ports = conditions(event, run, models, sandbox, tool_cache, artifacts, web, tools)
    before = await get_progress(event.progress, artifacts)
    return await to_events(event, await step(before, ports), artifacts, already=len(before.called))
