"""Scores a student checkpoint on held-out tasks, greedily and with its tools."""

import asyncio
import json

from agent0.attempts import Solved
from agent0.folders import Scratch
from agent0.heldout import heldout
from agent0.ports import Artifacts, Models, Sandbox, Web
from agent0.prompts import prompt
from agent0.run import RunState
from agent0.scoring import Item, score
from agent0.student import Conditions, solve
from agent0.tools.cache import ToolCache
from agent0.verifiers import verifier_for
from events.base import Event
from events.checkpoints import EvaluationRequested
from events.values import Task
from handlers import on

FORCED = "<tool_call>"
"""What every answer must begin with in the forced-tool control."""


@on(EvaluationRequested, in_flight=1, long=True)
async def evaluate_checkpoint(
    event: EvaluationRequested,
    run: RunState,
    models: Models,
    sandbox: Sandbox,
    verifier_sandbox: Sandbox,
    tool_cache: ToolCache,
    artifacts: Artifacts,
    web: Web,
) -> list[Event]:
    """All items at once, so that the model batches them. The items themselves become an artifact."""
    actor = run.config.student
    model = models.open(actor)

    async def attempt(number: int, task: Task) -> Item:
        given = Conditions(
            model,
            actor,
            sandbox,
            Scratch(),
            seed=number,
            adapter=event.adapter,
            group=run.run,
            temperature=0.0,
            prefill=FORCED if event.forced_tool else "",
            cache=tool_cache,
            policy=run.config.policy,
            web=web,
        )
        solved = await solve(task, prompt(actor.prompts, task.domain, "student"), given)
        verdict = (await verifier_for(task).judge(task, [solved.answer], verifier_sandbox))[0]
        return _item(task, solved, verdict.correct)

    held = heldout(event.split, event.n, event.seed, domains=run.config.curriculum.domains)
    items = await asyncio.gather(*(attempt(n, task) for n, task in enumerate(held)))
    lines = "\n".join(json.dumps(item.__dict__, sort_keys=True) for item in items)
    return [score(event, items, artifacts.put(lines.encode(), "application/jsonl"))]


def _item(task: Task, solved: Solved, correct: bool | None) -> Item:
    return Item(
        task=task.canonical,
        domain=task.domain,
        level=task.level,
        question=task.question,
        answer=solved.answer,
        correct=correct,
        tool_ok=solved.tool_ok,
        tokens=solved.usage.completion_tokens,
        seconds=solved.wall_s,
        signals=solved.signals,
    )
