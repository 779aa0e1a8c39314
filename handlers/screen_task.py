"""Screens proposals: accepts those that are well-formed, not reserved for held-out sets, no benchmark item, and new,
and whose own program, tests or checker can judge an answer."""

import asyncio

from agent0.evaluation.suite import made_suites
from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.benchmarks import BenchmarksIndexed
from agent0.events.tasks import TaskAccepted, TaskProposed, TaskRejected
from agent0.events.values import Task
from agent0.handlers import on
from agent0.ports.models import Embedder, Embedders
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Contamination, History
from agent0.run.lifecycle import RunState
from agent0.settings import CurriculumConfig
from agent0.state.run_state import index_digest
from agent0.tasks.answer_length import too_long
from agent0.tasks.families import task_length
from agent0.tasks.novelty_archive import archive_of
from agent0.tasks.screening import Decision, Proposed, decide_batch
from agent0.verification.task_fault import task_fault


@on(TaskProposed, ReactionDropped, long=True)
async def screen_task(
    event: TaskProposed | ReactionDropped,
    run: RunState,
    embedders: Embedders,
    history: History,
    contamination: Contamination,
    verifier_sandbox: Sandbox,
) -> list[Event]:
    """Screen a whole batch when its last proposal is in, so that siblings are compared in slot order; one in place of
    tasks without contrast is compared with those that the iteration accepted before, too."""
    if isinstance(event, ReactionDropped) and event.failed_handler != "propose_task":
        return []
    if len(run.tasks) != run.tasks_asked or not all(t.proposed for t in run.tasks.values()):
        return []
    waiting = {name: t for name, t in run.tasks.items() if not (t.accepted or t.rejected or t.closed)}
    if not waiting:
        return []
    batch = [
        Proposed(name, t.slot, t.domain, t.proposal, t.problem, task_length(t.family)) for name, t in waiting.items()
    ]
    plan = run.config.curriculum
    embedder = embedders.open(plan.embedder)
    proposals = {p.task: p.proposal for p in batch if p.proposal}
    before = [t.proposal for t in run.tasks.values() if run.task_target and t.accepted and t.proposal]
    vectors, earlier = await _embedded(embedder, proposals, before)
    archive = await archive_of(run, history, embedder, proposals, vectors)
    suites = made_suites(run.config.evaluation)
    facts = await contamination.facts(plan, embedder, suites)
    matches = await contamination.overlaps(list(proposals.values()), list(vectors.values()), plan, embedder, suites)
    overlaps = dict(zip(proposals, matches, strict=True))
    longest = {name: too_long(task, run.config.student.max_tokens) for name, task in proposals.items()}
    faults = await asyncio.gather(*(task_fault(task, verifier_sandbox) for task in proposals.values()))
    programs = dict(zip(proposals, faults, strict=True))
    decisions = decide_batch(batch, archive, vectors, plan.similarity_limit, overlaps, longest, programs, earlier)
    effects = [
        _effect(run, d, proposals.get(d.task), archive.position, embedder.version, vectors.get(d.task, []))
        for d in decisions
    ]
    return [facts or _nothing(plan, embedder), *effects] if index_digest(facts) != run.indexed else effects


async def _embedded(
    embedder: Embedder, proposals: dict[str, Task], before: list[Task]
) -> tuple[dict[str, list[float]], list[tuple[str, list[float]]]]:
    """The vectors of ``proposals`` by task id, and identity and vector of each task ``before`` them."""
    texts = [task.question for task in (*proposals.values(), *before)]
    vectors = await embedder.embed(texts) if texts else []
    earlier = zip((task.canonical for task in before), vectors[len(proposals) :], strict=True)
    return dict(zip(proposals, vectors, strict=False)), [*earlier]


def _nothing(plan: CurriculumConfig, embedder: Embedder) -> BenchmarksIndexed:
    """Tasks were compared with something before, and no longer are."""
    return BenchmarksIndexed(
        benchmarks=(),
        files={},
        items=0,
        ngram=plan.overlap_ngram,
        limit=plan.overlap_limit,
        embedder=embedder.version,
    )


def _effect(
    run: RunState, decision: Decision, proposal: Task | None, position: int, version: str, vector: list[float]
) -> Event:
    if decision.reason or proposal is None:
        return TaskRejected(
            task=decision.task,
            iteration=run.iteration,
            slot=decision.slot,
            reason=decision.reason or "malformed",
            detail=decision.detail,
            novelty=decision.novelty,
            position=position,
            embedder=version,
        )
    return TaskAccepted(
        task=decision.task,
        iteration=run.iteration,
        slot=decision.slot,
        proposal=proposal,
        novelty=1.0 if decision.novelty is None else decision.novelty,
        against=decision.against,
        position=position,
        embedder=version,
        embedding=tuple(round(x, 5) for x in vector),
    )
