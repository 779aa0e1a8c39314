"""Lets through what is well-formed, not reserved for held-out sets, and new."""

from agent0.families import kind_of
from agent0.novelty import Archive, Decision, Proposed, decide_batch
from agent0.ports import Embedder, Embedders, History
from agent0.run import RunState
from events.alarms import ReactionDropped
from events.base import Event
from events.tasks import TaskAccepted, TaskProposed, TaskRejected
from events.values import Task
from handlers import on


@on(TaskProposed, ReactionDropped, long=True)
async def screen_task(
    event: TaskProposed | ReactionDropped, run: RunState, embedders: Embedders, history: History
) -> list[Event]:
    """Screens a whole batch when its last proposal is in, so that siblings are compared in slot order."""
    if isinstance(event, ReactionDropped) and event.failed_handler != "propose_task":
        return []
    waiting = {name: t for name, t in run.tasks.items() if not (t.accepted or t.rejected or t.closed)}
    complete = len(run.tasks) == run.config.tasks and all(t.proposed for t in run.tasks.values())
    if not complete or not waiting:
        return []
    batch = [Proposed(name, t.slot, t.domain, t.proposal, t.problem, kind_of(t.family)) for name, t in waiting.items()]
    plan = run.config.curriculum
    embedder = embedders.open(plan.embedder)
    texts = {p.task: p.proposal.question for p in batch if p.proposal}
    vectors = dict(zip(texts, await embedder.embed(list(texts.values())), strict=True)) if texts else {}
    archive = await _archive(run, history, embedder, vectors)
    decisions = decide_batch(batch, archive, vectors, plan.similarity_limit)
    known = {p.task: p.proposal for p in batch}
    return [
        _effect(run, d, known[d.task], archive.position, embedder.version, vectors.get(d.task, [])) for d in decisions
    ]


async def _archive(run: RunState, history: History, embedder: Embedder, vectors: dict[str, list[float]]) -> Archive:
    """Everything accepted before this iteration's tasks were requested."""
    position = run.starts[-1]
    held = [r.event async for r in history.read(run.run, ["TaskAccepted"], until=position)] if run.iteration else []
    accepted = [e for e in held if isinstance(e, TaskAccepted)]
    near = await embedder.nearest(list(vectors.values()), [e.embedding for e in accepted]) if accepted else []
    return Archive(
        canonicals={e.proposal.canonical for e in accepted},
        size=len(accepted),
        nearest=dict(zip(vectors, near, strict=False)),
        position=position,
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
