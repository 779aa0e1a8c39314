"""When a run fails: what it makes would be worth little. Pure; ``lifecycle`` counts, and asks at each new phase."""

from typing import Literal

from agent0.events.alarms import DependencyLost
from agent0.events.base import Event
from agent0.events.runs import RunFailed
from agent0.run.requests import trained_roles
from agent0.state.replace import changed
from agent0.state.run_state import RunState

LONGEST = 400
"""Characters of a cause."""


def lost_attempts(state: RunState) -> tuple[int, ...]:
    """Count the attempts of the iteration that were given up: (given up, of how many).

    Where a task's proposal or screening was given up, all its attempts were. Empty where the share is at most
    ``run.max_given_up``.
    """
    tasks = state.tasks.values()
    never = state.config.attempts * sum(task.closed and not (task.accepted or task.rejected) for task in tasks)
    dropped = [attempt.dropped for task in tasks for attempt in task.attempts.values()]
    lost, of = never + sum(dropped), never + len(dropped)
    return (lost, of) if lost > state.config.max_given_up * of else ()


def counts_as_training(state: RunState) -> bool:
    """Whether the state's phase is a training that is meant to change a role: not where no objective learns."""
    recipes = {"student": state.config.training.student, "teacher": state.config.training.teacher}
    learns = any(recipes[role].objective != "none" for role in trained_roles(state))
    return state.phase == "training" and learns and state.config.max_untrained > 0


def run_failed(state: RunState) -> list[Event]:
    """The event that ends a run which failed as of the phase that begins; none where it goes on."""
    ended = state.iteration - (state.phase == "tasks")
    if state.lost:
        lost, of = state.lost
        cause = f"{lost} of {of} attempts of iteration {ended} were given up"
        return [
            _failed(
                state, "given_up", ended, f"{cause} (run.max_given_up is {state.config.max_given_up:g})", state.trouble
            )
        ]
    limit, untrained = state.config.max_untrained, state.untrained
    if state.learning and state.phase == "tasks":
        untrained -= counts_as_training(state.in_training)  # it is under way
    if limit and untrained >= limit and state.phase != "training":
        cause = f"nothing could be trained on for {untrained} iterations in a row, the last of them {ended}"
        return [_failed(state, "untrained", ended, f"{cause} (run.max_untrained is {limit})", state.trouble)]
    return []


def wait_counted(state: RunState, event: DependencyLost) -> RunState:
    """The state with one more wait of ``run.give_up_after`` or longer, where this is one."""
    limit = state.config.give_up_after
    return changed(state, overdue=state.overdue + 1) if limit and event.waited_s >= limit else state


def dependency_failed(state: RunState, event: DependencyLost) -> list[Event]:
    """The event that ends a run which waited for a dependency for ``run.give_up_after``; none where it goes on, or
    where another handler's wait has ended it: that would end it again once it is resumed."""
    limit = state.config.give_up_after
    if state.status != "running" or state.overdue != 1 or event.waited_s < limit:
        return []
    cause = f"{event.waiting} waited {event.waited_s:.0f} s for {event.dependency} (run.give_up_after is {limit:g})"
    return [_failed(state, "dependency", state.iteration, cause, event.message)]


def _failed(
    state: RunState, kind: Literal["given_up", "untrained", "dependency"], iteration: int, cause: str, trouble: str
) -> Event:
    text = f"{cause}: {trouble}" if trouble else cause
    reason = " ".join(text.split())[:LONGEST]
    return RunFailed(reason=reason, cause_kind=kind, iteration=iteration, state_sha=state.digest)
