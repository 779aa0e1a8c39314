"""A student solves a submitted task with its tools, and the answer is judged: one reaction, of a repository one a
turn."""

from collections.abc import Mapping

from agent0.events.base import Event
from agent0.events.submissions import TaskSubmitted
from agent0.events.tasks import TaskAttempted, TurnCompleted
from agent0.handlers import on, require_plugins
from agent0.ports.models import Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.ports.web import Web
from agent0.rollout.attempt_events import beginning, conditions, to_events
from agent0.rollout.claim_check import get_progress
from agent0.rollout.student import step
from agent0.tools.cache import ToolCache
from agent0.tools.definition import Tool
from agent0.verification.submitted import as_request, state_of, stated, submission_verdict


@on(TaskSubmitted, in_flight=8, long=True)
async def solve_submission(
    event: TaskSubmitted,
    models: Models,
    sandbox: Sandbox,
    verifier_sandbox: Sandbox,
    tool_cache: ToolCache,
    artifacts: Artifacts,
    web: Web,
    tools: Mapping[str, Tool],
) -> list[Event]:
    """Attempt the task as its run's student attempts a run's; returns every tool call, the attempt and its verdict. On
    a repository each turn is stored, and submits the next."""
    run, request = state_of(event), as_request(event)
    require_plugins(run.config)
    ports = conditions(request, run, models, sandbox, tool_cache, artifacts, web, tools)
    if event.progress:
        attempt = await get_progress(event.progress, artifacts)
    else:
        task = await stated(event.proposal, verifier_sandbox, artifacts)
        attempt = beginning(task, ports)
    already = len(attempt.called)
    attempt = await step(attempt, ports)
    while attempt.end is None and not ports.by_files:
        attempt = await step(attempt, ports)
    events = await to_events(request, attempt, artifacts, already)
    if isinstance(last := events[-1], TurnCompleted):
        return [*events, event.model_copy(update={"turn": last.turn, "progress": last.progress})]
    attempted = next(effect for effect in events if isinstance(effect, TaskAttempted))
    verdict = await submission_verdict(event, attempted, run.config.verification, verifier_sandbox, artifacts)
    return [*events, verdict]
