"""What follows from a monitor's finding: an alarm where it begins to hold, and the action that the run's
settings name."""

from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.base import Event
from agent0.events.checkpoints import CheckpointRolledBack
from agent0.events.runs import RunPaused
from agent0.run.monitors import Finding, Guard
from agent0.settings import Action
from agent0.state.run_state import Checkpoint, RunState


def guard_effects(name: str, watch: Guard, state: RunState) -> list[Event]:
    """The events that the guard ``name`` causes after the newest measures; a finding that held before raises no alarm
    again."""
    plan = state.config.guards
    action: Action = getattr(plan, name)
    if action == "off" or not state.measures:
        return []
    before = watch(state.measures[:-1], plan) if len(state.measures) > 1 else None
    finding = watch(state.measures, plan)
    if finding is None:
        return [AlarmResolved(alarm=f"guard-{name}", message="it no longer holds")] if before else []
    return [] if before else _begins(name, finding, action, state)


def _begins(name: str, finding: Finding, action: Action, state: RunState) -> list[Event]:
    facts = {**finding.facts, "iteration": state.in_training.iteration}
    raised = AlarmRaised(alarm=f"guard-{name}", severity=finding.severity, message=finding.message, facts=facts)
    why = f"guard {name}: {finding.message}"
    if action == "pause":
        return [raised, RunPaused(reason=why)]
    good = last_good(state)
    if action == "rollback" and good is not None:
        whom = {"checkpoint": state.student.id, "to": good.id, "let_go": state.since(good.id)}
        return [raised, CheckpointRolledBack(**whom, reason=why, cause_kind="guard")]
    return [raised]


def last_good(state: RunState) -> Checkpoint | None:
    """The best checkpoint by validation among those before the present student, the latest of equals.

    None where the student is the first, or better than all of them.
    """
    scored = [
        (checkpoint.score.accuracy, index) for index, checkpoint in enumerate(state.promoted[:-1]) if checkpoint.score
    ]
    if not scored:
        return None
    accuracy, index = max(scored)
    score = state.student.score
    return None if score is not None and score.accuracy > accuracy else state.promoted[index]
