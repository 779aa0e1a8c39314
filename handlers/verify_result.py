"""Decides whether an attempt is right, by computing where the task allows it."""

from agent0.panel import Evidence
from agent0.panel.opinion import asking
from agent0.ports import Models, Sandbox
from agent0.run import RunState
from agent0.state import AttemptState, TaskState
from agent0.verifiers import credit_of, graded, verifier_for
from events.alarms import ReactionDropped
from events.base import Event
from events.tasks import ResultVerified, TaskAttempted
from handlers import on


@on(TaskAttempted, ReactionDropped, long=True)
async def verify_result(
    event: TaskAttempted | ReactionDropped, run: RunState, verifier_sandbox: Sandbox, models: Models
) -> list[Event]:
    """One verdict an attempt; a collective verifier gives all of a task's verdicts when its last attempt is in."""
    task = event.task if isinstance(event, TaskAttempted) else event.cause_task
    held = run.tasks.get(task)
    if held is None or held.proposal is None:
        return []
    rules, proposal = run.config.verification, held.proposal
    judge = verifier_for(proposal, rules.unchecked)
    attempts = _seen(event, held, judge.collective)
    ask = asking(models, rules.judge, run.config.seed, run.run) if judge.collective else None
    evidence = Evidence(tuple(a.computed for a in attempts.values()), rules, ask)
    answers = [a.answer for a in attempts.values()]
    verdicts = await judge.judge(proposal, answers, verifier_sandbox, evidence) if attempts else []
    given = event.subgoals if isinstance(event, TaskAttempted) else ()
    effects: list[Event] = []
    for (attempt, state), verdict in zip(attempts.items(), verdicts, strict=True):
        if state.settled:
            continue
        subgoals = await graded(judge, proposal, given, verdict, verifier_sandbox)
        told = {name: getattr(verdict, name) for name in ("correct", "reason", "expected", "got", "votes")}
        steps = {"subgoals": subgoals, "credit": credit_of(subgoals)}
        facts = {"task": task, "attempt": attempt, "iteration": run.iteration, "verifier": judge.name}
        effects.append(ResultVerified.model_validate({**facts, **told, **steps}))
    return effects


_ENDING = ("attempt_task", "continue_attempt", "verify_result")
"""Handlers without whose effect nothing more becomes of an attempt."""


def _seen(event: TaskAttempted | ReactionDropped, held: TaskState, collective: bool) -> dict[str, AttemptState]:
    """The attempts that are looked at: at this event one, or all where the last of them is in."""
    if not collective:
        own = held.attempts.get(event.attempt) if isinstance(event, TaskAttempted) else None
        return {event.attempt: own} if own and isinstance(event, TaskAttempted) else {}
    if not all(a.attempted or a.dropped for a in held.attempts.values()):
        return {}
    if isinstance(event, ReactionDropped) and event.failed_handler not in _ENDING:
        return {}
    return {name: a for name, a in held.attempts.items() if a.attempted}
