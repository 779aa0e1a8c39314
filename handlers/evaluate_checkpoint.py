"""Evaluates a student checkpoint on held-out tasks: greedily and with its tools, and where answers can be checked,
pass@k with the verifier as selector too."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent0.evaluation.checkpoint_score import Item, score
from agent0.ports.models import Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.ports.web import Web
from agent0.rollout.attempt import AttemptResult
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, solve
from agent0.rollout.workspace_store import Scratch
from agent0.run.lifecycle import RunState
from agent0.tasks.families import families
from agent0.tasks.seeds import derive_seed
from agent0.tasks.splits import heldout
from agent0.tools.cache import ToolCache
from agent0.tools.definition import Tool
from agent0.verification.panel import VerificationContext
from agent0.verification.verifiers import verifier_for
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
    tools: Mapping[str, Tool],
) -> list[Event]:
    """Attempt all items concurrently, so that the model batches them; the items become an artifact."""
    actor, checked, plan = run.config.student, run.config.evaluation.checked, run.config.curriculum
    given = Conditions(
        models.open(actor),
        actor,
        sandbox,
        Scratch(),
        seed=0,
        adapter=event.adapter,
        group=run.run,
        prefill=FORCED if event.forced_tool else "",
        cache=tool_cache,
        policy=run.config.policy,
        web=web,
        tools=tools,
    )
    verify = Verify(verifier_sandbox, VerificationContext(rules=run.config.verification))
    levels = run.config.evaluation.levels
    held = heldout(
        event.split, event.n, event.seed, plan.domains, names=plan.families, levels=levels, rule=plan.split_rule
    )
    seeds = [[derive_seed("checked", event.seed, event.split, n, k) for k in range(checked)] for n in range(len(held))]
    attempts = [_scored(task, replace(given, seed=n), seeds[n], verify) for n, task in enumerate(held)]
    items = await asyncio.gather(*attempts)
    lines = "\n".join(json.dumps(item.row(), sort_keys=True) for item in items)
    return [score(event, items, artifacts.put(lines.encode(), "application/jsonl"), checked, run.config.rewards)]


@dataclass(frozen=True)
class Verify:
    """How an answer is verified: by the verifiers and rules of the run."""

    sandbox: Sandbox
    context: VerificationContext

    async def correct(self, task: Task, answer: str | None) -> bool | None:
        """Verify one answer: right, wrong or undecided (None)."""
        return (await verifier_for(task).judge(task, [answer], self.sandbox, self.context))[0].correct


async def _scored(task: Task, given: Conditions, seeds: list[int], verify: Verify) -> Item:
    """A greedy attempt; beside it, where answers can be checked, a sampled one for each seed until one is right."""
    solved, correct = await _solved(task, replace(given, temperature=0.0), verify)
    item = _item(task, solved, correct)
    if not seeds or families()[task.family].check is None:
        return item
    within, tried = await _within(task, given, seeds, verify)
    return replace(item, within=within, tries=len(tried), tried=tried)


async def _solved(task: Task, given: Conditions, verify: Verify) -> tuple[AttemptResult, bool | None]:
    """An attempt and its verdict."""
    solved = await solve(task, prompt(given.config.prompts, task.domain, "student"), given)
    return solved, await verify.correct(task, solved.answer)


async def _within(
    task: Task, given: Conditions, seeds: list[int], verify: Verify
) -> tuple[int, tuple[str | None, ...]]:
    """The number, from 1, of the first attempt that the check accepts, 0 where none is; and the answers of all that
    were made. A student at temperature 0 would only repeat itself."""
    seeds, tried = seeds if given.config.temperature else seeds[:1], list[str | None]()
    for number, seed in enumerate(seeds, 1):
        solved, correct = await _solved(task, replace(given, seed=seed), verify)
        tried.append(solved.answer)
        if correct:
            return number, tuple(tried)
    return 0, tuple(tried)


def _item(task: Task, solved: AttemptResult, correct: bool | None) -> Item:
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
