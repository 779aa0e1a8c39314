"""Decides whether an attempt is right, by computing where the task allows it."""

from agent0.ports import Sandbox
from agent0.run import RunState
from agent0.state import TaskState
from agent0.verifiers import credit_of, graded, verifier_for
from events.alarms import ReactionDropped
from events.base import Event
from events.tasks import ResultVerified, TaskAttempted
from handlers import on


@on(TaskAttempted, ReactionDropped)
async def verify_result(
    event: TaskAttempted | ReactionDropped, run: RunState, verifier_sandbox: Sandbox
) -> list[Event]:
    """One verdict an attempt; a collective verifier gives all of a task's verdicts when its last attempt is in."""
    task = event.task if isinstance(event, TaskAttempted) else event.cause_task
    held = run.tasks.get(task)
    if held is None or held.proposal is None:
        return []
    judge = verifier_for(held.proposal)
    attempts = _ready(event, held, judge.collective)
    if not attempts:
        return []
    proposal, given = held.proposal, event.subgoals if isinstance(event, TaskAttempted) else ()
    verdicts = await judge.judge(proposal, list(attempts.values()), verifier_sandbox)
    effects: list[Event] = []
    for attempt, verdict in zip(attempts, verdicts, strict=True):
        subgoals = await graded(judge, proposal, given, verdict, verifier_sandbox)
        effects.append(
            ResultVerified(
                task=task,
                attempt=attempt,
                iteration=run.iteration,
                correct=verdict.correct,
                verifier=judge.name,
                reason=verdict.reason,
                expected=verdict.expected,
                got=verdict.got,
                subgoals=subgoals,
                credit=credit_of(subgoals),
            )
        )
    return effects


_ENDING = ("attempt_task", "continue_attempt", "verify_result")
"""Handlers without whose effect nothing more becomes of an attempt."""


def _ready(event: TaskAttempted | ReactionDropped, held: TaskState, collective: bool) -> dict[str, str | None]:
    """The answers to be judged at this event."""
    if not collective:
        return {event.attempt: event.answer} if isinstance(event, TaskAttempted) else {}
    if not all(a.attempted or a.dropped for a in held.attempts.values()):
        return {}
    if isinstance(event, ReactionDropped) and event.failed_handler not in _ENDING:
        return {}
    return {name: a.answer for name, a in held.attempts.items() if a.attempted and not a.settled}
