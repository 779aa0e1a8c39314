"""How a fork begins: in its parent's state, with unfinished work requested again."""

from dataclasses import replace

from agent0.events.base import Recorded
from agent0.events.runs import RunStarted
from agent0.run.requests import pending_ids
from agent0.settings import RunConfig
from agent0.state.rules import recorded_versions
from agent0.state.run_clock import RunClock
from agent0.state.run_state import Checkpoint, RunState


def has_another_base(state: RunState, config: RunConfig) -> bool:
    """Whether a fork of ``state`` with ``config`` has another student model, and no checkpoint of the one before."""
    before, after = state.config.student, config.student
    candidate = state.in_training.candidate
    checkpoints = (*state.promoted, *([candidate] if candidate else []))
    renamed = (before.provider, before.model) != (after.provider, after.model)
    return renamed and all(checkpoint.adapter is None for checkpoint in checkpoints)


def redone(state: RunState, config: RunConfig, *, another_base: bool = False) -> tuple[str, ...]:
    """Tasks of ``state`` that a fork with ``config`` requests again: those not done, or all of the iteration where it
    would have requested others, or has ``another_base``."""
    if state.phase != "tasks":
        return ()
    if _is_ahead(state):
        return tuple(sorted(state.tasks))
    whole = another_base or _shape(state.config) != _shape(config)
    measured = state.measures_gain and config.rewards.gain.subsets > 0  # then rewards come after all tasks
    done = {name for name, task in state.tasks.items() if (task.ready if measured else task.done)}
    return tuple(sorted(name for name in state.tasks if whole or name not in done))


def _is_ahead(state: RunState) -> bool:
    """Whether tasks are attempted while the iteration before trains, is evaluated or judged."""
    return state.learning is not None and state.learning.phase != "done"


def _without_ahead(state: RunState) -> RunState:
    """The state before the next iteration was begun beside a training: a fork begins it again, after that."""
    if not _is_ahead(state):
        return replace(state, learning=None)
    return replace(
        state.in_training,
        learning=None,
        starts=state.starts[:-1],
        task_count=state.task_count - len(state.tasks),
        attempt_count=state.attempt_count - sum(len(task.attempts) for task in state.tasks.values()),
    )


def _shape(config: RunConfig) -> tuple[object, ...]:
    sizes = config.seed, config.tasks, config.refill, config.attempts
    return *sizes, config.curriculum, config.questions, config.documents


def _same_order(before: RunConfig, after: RunConfig) -> bool:
    """Whether rows of a file go on where they were; those of another file, or in another order, begin anew."""
    orders = ((plan.seed, plan.questions.order, plan.curriculum.kind == "rising") for plan in (before, after))
    return next(orders) == next(orders)


def _held_out_rows(config: RunConfig) -> tuple[object, ...]:
    """What decides which rows are scored: scores on others are compared with none."""
    plan = config.questions
    return (plan.heldout_sha256 or plan.sha256, plan.share) if plan.file or plan.heldout else ()


def adopt(parent: RunState, recorded: Recorded) -> RunState:
    """The state of a fork just after its start. Its phase begins here with what is still to be requested."""
    event = recorded.event
    assert isinstance(event, RunStarted)  # noqa: S101 - the caller matched the type
    config = RunConfig.recorded(event.config, event.servers)
    names = redone(parent, config, another_base=event.another_base)
    parent = _without_ahead(parent)
    again = [parent.tasks[name] for name in names if name in parent.tasks]
    left = {name: task for name, task in parent.tasks.items() if name not in names}
    state = replace(
        parent,
        run=recorded.run,
        seq=recorded.seq,
        entered=recorded.seq,
        config=config,
        config_sha=event.config_sha,
        rules=recorded_versions(event.rules),
        clock=RunClock(since=recorded.time.timestamp(), last=recorded.time.timestamp()),
        status="running",
        failures=frozenset(),
        evaluations={},
        gain=None,
        lost=(),
        untrained=0,
        just_settled="",
        tasks=left,
        task_target=parent.task_target if left else 0,
        rows_before=parent.rows_before if _same_order(parent.config, config) else 0,
        task_count=parent.task_count - len(again),
        attempt_count=parent.attempt_count - sum(len(task.attempts) for task in again),
    )
    if _held_out_rows(parent.config) != _held_out_rows(config):
        promoted = tuple(replace(checkpoint, score=None) for checkpoint in state.promoted)
        state = replace(state, promoted=promoted)
    if event.another_base:
        return _begun_anew(state)
    return replace(state, pending=_pending(state)) if state.phase != "judging" else _examined_again(state)


def _begun_anew(state: RunState) -> RunState:
    """The new base is scored first. What the model before it did teaches neither the curriculum nor anyone in training,
    and an iteration whose tasks were under way, or waited for their gain, begins again."""
    again = state.phase in ("tasks", "measuring")
    state = replace(
        state,
        phase="baseline",
        rows_before=state.rows_before if again else state.rows_asked,
        iteration=(iteration := state.iteration - again),
        starts=(state.seq,) * (iteration + 1),
        tasks={},
        task_target=0,
        arms={},
        promoted=(Checkpoint(),),
        candidate=None,
        measures=state.measures[: iteration + 1],
    )
    return replace(state, pending=frozenset(pending_ids(state)))


def _pending(state: RunState) -> frozenset[str]:
    """What the phase still waits for, under the fork's own settings; gains are measured anew: rewards wait for all."""
    if state.phase == "measuring":
        return frozenset(pending_ids(state))
    return state.pending & frozenset(pending_ids(state))


def _examined_again(state: RunState) -> RunState:
    """A verdict that had not come is asked for by scoring the candidate once more."""
    candidate = replace(state.candidate, score=None, benchmarks={}) if state.candidate else None
    state = replace(state, phase="evaluating", candidate=candidate)
    return replace(state, pending=frozenset(pending_ids(state)))
