"""Verdicts on attempts. Pure, so that they can be decided again, by other rules, from the log."""

from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.tasks import ResultVerified, TaskAttempted
from agent0.events.values import Task
from agent0.ports.environments import Environments
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.settings import VerificationConfig
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.verification.panel import Opinion, Reader, VerificationContext
from agent0.verification.verifiers import Verdict, credit_of, graded, verifier_for

HANDLER = "verify_result"
DECIDING = (TaskAttempted, ReactionDropped)
"""Events after which something may have to be decided."""
_ENDING = ("attempt_task", "continue_attempt", HANDLER)
"""Handlers without whose effect nothing more becomes of an attempt."""


async def verdicts(
    event: Event,
    run: RunState,
    sandbox: Sandbox,
    ask: Opinion | None,
    artifacts: Artifacts,
    rules: VerificationConfig | None = None,
    environments: Environments | None = None,
    again: bool = False,
    read: Reader | None = None,
) -> list[ResultVerified]:
    """Verify the attempts that ``event`` completes; returns one ``ResultVerified`` each.

    A collective verifier gives all of a task's verdicts when its last attempt is in. ``run`` is the state just after
    ``event``, ``ask`` how to query the judge model and ``read`` how to have it read docstrings, ``artifacts`` hold work
    folders; ``rules`` None: the run's own. ``environments`` None: what only an environment decides is undecided.
    ``again``: they were verified before.

    Raises:
        SandboxUnavailableError: something would have to be run, and there is no sandbox.
        DependencyError: an environment is away.
    """
    rules = rules or run.config.verification
    attempts = attempts_to_verify(event, run, rules)
    if not attempts:
        return []
    name, proposal = task_of(event), _proposal(event, run)
    judge = verifier_for(proposal, rules.unchecked)
    computed = tuple(attempt.computed for attempt in attempts.values())
    context = VerificationContext(computed, rules, ask, artifacts, environments, again, read)
    answers = [a.answer for a in attempts.values()]
    judged = await judge.judge(proposal, answers, sandbox, context)
    subgoal_answers = event.subgoals if isinstance(event, TaskAttempted) else ()
    effects = []
    for (attempt, state), verdict in zip(attempts.items(), judged, strict=True):
        if not state.resolved:
            subgoals = await graded(judge, proposal, subgoal_answers, verdict, sandbox, context)
            facts = {"task": name, "attempt": attempt, "iteration": run.iteration, "verifier": judge.name}
            effects.append(_to_event(facts, verdict, subgoals))
    return effects


def attempts_to_verify(event: Event, run: RunState, rules: VerificationConfig | None = None) -> dict[str, AttemptState]:
    """The attempts to verify at this event: its own, or all of the task where a collective verifier waits
    for the last."""
    task_state = run.tasks.get(task_of(event))
    if task_state is None or task_state.proposal is None:
        return {}
    unchecked = (rules or run.config.verification).unchecked
    if verifier_for(task_state.proposal, unchecked).collective:
        return _all(event, task_state)
    attempt = task_state.attempts.get(event.attempt) if isinstance(event, TaskAttempted) else None
    return {event.attempt: attempt} if attempt and isinstance(event, TaskAttempted) else {}


def task_of(event: Event) -> str:
    """The task that ``event`` may decide something about; empty for none."""
    match event:
        case TaskAttempted(task=task) | ReactionDropped(cause_task=task):
            return task
    return ""


def _all(event: Event, task_state: TaskState) -> dict[str, AttemptState]:
    if not all(a.attempted or a.dropped for a in task_state.attempts.values()):
        return {}
    if isinstance(event, ReactionDropped) and event.failed_handler not in _ENDING:
        return {}
    return {name: a for name, a in task_state.attempts.items() if a.attempted}


def _proposal(event: Event, run: RunState) -> Task:
    proposal = run.tasks[task_of(event)].proposal
    assert proposal is not None  # noqa: S101 - its attempts are looked at
    return proposal


def _to_event(facts: dict[str, object], verdict: Verdict, subgoals: tuple[bool | None, ...]) -> ResultVerified:
    fields = {
        name: getattr(verdict, name) for name in ("correct", "reason", "expected", "got", "votes", "changed_lines")
    }
    credit = credit_of(subgoals) if subgoals else verdict.credit
    return ResultVerified.model_validate({**facts, **fields, "subgoals": subgoals, "credit": credit})
