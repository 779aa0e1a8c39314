"""How a fork begins: in its parent's state, with unfinished work requested again."""

from dataclasses import replace

from agent0.run.requests import pending_ids
from agent0.settings import RunConfig
from agent0.state.run_state import RunState
from events.base import Recorded
from events.runs import RunStarted


def redone(state: RunState, config: RunConfig) -> tuple[str, ...]:
    """Tasks of ``state`` that a fork with ``config`` requests again: those not done, or all of the iteration where it
    would have requested others."""
    if state.phase != "tasks":
        return ()
    return tuple(
        sorted(name for name, task in state.tasks.items() if not task.done or _shape(state.config) != _shape(config))
    )


def _shape(config: RunConfig) -> tuple[object, ...]:
    return config.seed, config.tasks, config.attempts, config.curriculum


def adopt(parent: RunState, recorded: Recorded) -> RunState:
    """The state of a fork just after its start. Its phase begins here with what is still to be requested."""
    event = recorded.event
    assert isinstance(event, RunStarted)  # noqa: S101 - the caller matched the type
    config = RunConfig.recorded(event.config)
    again = [parent.tasks[name] for name in redone(parent, config)]
    left = {name: task for name, task in parent.tasks.items() if name not in redone(parent, config)}
    state = replace(
        parent,
        run=recorded.run,
        seq=recorded.seq,
        entered=recorded.seq,
        config=config,
        config_sha=event.config_sha,
        status="running",
        failures=frozenset(),
        evaluations={},
        lost=(),
        untrained=0,
        just_settled="",
        tasks=left,
        task_count=parent.task_count - len(again),
        attempt_count=parent.attempt_count - sum(len(task.attempts) for task in again),
    )
    return replace(state, pending=_pending(state)) if state.phase != "judging" else _examined_again(state)


def _pending(state: RunState) -> frozenset[str]:
    """What the phase still waits for, under the fork's own settings."""
    return state.pending & frozenset(pending_ids(state))


def _examined_again(state: RunState) -> RunState:
    """A verdict that had not come is asked for by scoring the candidate once more."""
    candidate = replace(state.candidate, score=None, benchmarks={}) if state.candidate else None
    state = replace(state, phase="evaluating", candidate=candidate)
    return replace(state, pending=frozenset(pending_ids(state)))
