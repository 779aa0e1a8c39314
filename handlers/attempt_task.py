"""The student attempts a task with its tools: a short one or an episode completely, of a long one the first turn."""

from collections.abc import Mapping

from agent0.events.base import Event
from agent0.events.tasks import AttemptRequested
from agent0.handlers import on
from agent0.ports.environments import Environments
from agent0.ports.models import Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.ports.web import Web
from agent0.rollout.attempt_events import conditions, in_episode, to_events
from agent0.rollout.student import begin, step, student_prompt
from agent0.run.lifecycle import RunState
from agent0.tools.cache import ToolCache
from agent0.tools.definition import Tool
from agent0.verification.verifiers.tests import UNANSWERED, program_of


@on(AttemptRequested, in_flight=128, long=True)
async def attempt_task(
    event: AttemptRequested,
    run: RunState,
    models: Models,
    sandbox: Sandbox,
    tool_cache: ToolCache,
    artifacts: Artifacts,
    web: Web,
    tools: Mapping[str, Tool],
    environments: Environments,
) -> list[Event]:
    """Run the attempt or its first turn; returns every tool call and its end, which land together or not at all."""
    long = event.proposal.kind == "long"
    usual = conditions(event, run, models, sandbox, tool_cache, artifacts, web, tools)
    async with in_episode(event.proposal, usual, environments) as ports:
        prompt = student_prompt(ports.config, event.proposal.domain, long=long)
        attempt = await step(begin(event.proposal, prompt, ports.config, ports.tools).but(work=ports.start), ports)
        while attempt.end is None and (ports.by_steps or not long):
            attempt = await step(attempt, ports)
    if program := program_of(event.proposal, [turn.text for turn in attempt.written]):
        attempt = attempt.but(answer=program, end="answered" if attempt.end in UNANSWERED else attempt.end)
    return await to_events(event, attempt, artifacts)
