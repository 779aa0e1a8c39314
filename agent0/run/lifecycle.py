"""A run's life cycle: ``evolve`` folds its events into a state, ``decide`` requests what comes next.

Both are pure, so that any past state can be rebuilt and any past decision checked.
"""

from itertools import chain, islice

from agent0.events import alarms, runs, tasks
from agent0.events.base import Event, Recorded
from agent0.run.forking import adopt
from agent0.run.reducers import FOLDS
from agent0.run.refill import refilled
from agent0.run.requests import REQUESTS, attempt_requests, drop, pending_ids
from agent0.run.run_failure import counts_as_training, lost_attempts, run_failed
from agent0.settings import RunConfig
from agent0.state.replace import changed
from agent0.state.rules import recorded_versions
from agent0.state.run_clock import RunClock, ticked
from agent0.state.run_state import BASE, Checkpoint, Phase, RunState, TaskState, TestedTeacher
from agent0.tasks.curriculum.sampler import remember

__all__ = ["BASE", "RunState", "decide", "evolve"]


def evolve(state: RunState | None, recorded: Recorded) -> RunState | None:
    """Fold one event into the state. An event at or before ``state.seq`` changes nothing, so a fold is idempotent.

    None until the run has started.
    """
    if state is None:
        return _initial(recorded) if isinstance(recorded.event, runs.RunStarted) else None
    if _forks(state, recorded):
        return _resumed(adopt(state, recorded))
    if recorded.run != state.run or recorded.seq <= state.seq:
        return state
    state = changed(state, just_settled="") if state.just_settled else state
    fold = FOLDS.get(type(recorded.event))
    after = fold(state, recorded.event) if fold else state
    moved = after is not state
    after = changed(after, seq=recorded.seq, clock=_clock(after, recorded))
    if state.status == "failed" and after.status == "running" and run_failed(state):
        return changed(after, entered=recorded.seq)  # its phase had begun, and nothing was requested
    return _advance(after) if moved and _may_complete(after, recorded.task) else after


def decide(state: RunState, event: Event) -> list[Event]:
    """What to request, given the state just after ``event``: the requests of a phase that it began, or that the run
    failed; the attempts of a task it accepted; a drop where policy says so."""
    if isinstance(event, alarms.ReactionFailed):
        # without its own requests a run would wait for ever: those are for a person to retry
        given_up = state.config.on_failure == "drop" and event.failed_handler != "advance_run"
        return [drop(event)] if given_up and not event.waits else []
    requested: list[Event] = []
    if isinstance(event, tasks.TaskAccepted) and event.iteration == state.iteration:
        requested += attempt_requests(state, event)
    if state.entered == state.seq:
        requested += run_failed(state) or REQUESTS[state.phase](state)
    return requested


def _may_complete(state: RunState, task: str) -> bool:
    """False where this event's own task is not done: the most common case, told without a look at all others."""
    task_state = state.tasks.get(task)
    return state.phase != "tasks" or task_state is None or _is_done(state, task_state)


def _initial(recorded: Recorded) -> RunState:
    event = recorded.event
    assert isinstance(event, runs.RunStarted)  # noqa: S101 - the caller matched the type
    config = RunConfig.recorded(event.config, event.servers)
    rules = recorded_versions(event.rules)
    state = RunState(run=recorded.run, seq=recorded.seq, config=config, config_sha=event.config_sha, rules=rules)
    state = changed(state, promoted=(Checkpoint(adapter=event.student_adapter),))
    return _enter(changed(state, clock=_clock(state, recorded)), "baseline")


def _clock(state: RunState, recorded: Recorded) -> RunClock:
    """The clock after an event; as it was in a run whose length no time decides."""
    if not state.config.time_limit:
        return state.clock
    resumed = isinstance(recorded.event, runs.RunResumed)
    return ticked(state.clock, recorded.time.timestamp(), working=state.status == "running", resumed=resumed)


def _forks(state: RunState, recorded: Recorded) -> bool:
    """Whether this begins a run in the middle of the one that ``state`` is of."""
    event = recorded.event
    return isinstance(event, runs.RunStarted) and event.parent == state.run and recorded.run != state.run


def _resumed(state: RunState) -> RunState:
    """A fork goes on from where it began: a longer one from its parent's end, too."""
    if state.phase in ("final", "done") and not state.last_iteration:
        return _next(state)
    return state if state.phase in ("tasks", "done") or state.pending else _advance(state)


def _advance(state: RunState) -> RunState:
    """Enter the next phase where the present one is complete at this event."""
    match state.phase:
        case "tasks" if len(state.tasks) == state.tasks_asked:
            return _after_tasks(state)
        case "measuring" if not state.pending and all(task.closed for task in state.tasks.values()):
            return _enter(_tasks_done(state), "training")
        case "baseline" | "judging" if not state.pending:
            return _next(state)
        case "training" if not state.pending:
            return _enter(state, "evaluating") if state.candidate else _next(state)
        case "evaluating" if not state.pending and not state.evaluated:
            return _next(state)  # its evaluation was given up: the former student goes on
        case "evaluating" if not state.pending:
            return changed(state, phase="judging", entered=state.seq, pending=frozenset({"verdict"}))
        case "final" if not state.pending:
            return _enter(state, "done")
    return state


def _open_task(state: RunState) -> str:
    """A task that is not done, empty where all are. That of the state before is looked at first, then those of higher
    slots: while tasks are done in about the order of their slots, each is passed over about once."""
    task_state = state.tasks.get(state.open_task)
    if task_state is not None and not _is_done(state, task_state):
        return state.open_task
    following = islice(state.tasks.items(), task_state.slot if task_state else 0, None)
    for name, task in chain(following, state.tasks.items()):
        if not _is_done(state, task):
            return name
    return ""


def _is_done(state: RunState, task: TaskState) -> bool:
    """Whether an iteration waits no longer for ``task``: for its teacher's reward only where that needs no measurement
    of all tasks."""
    return task.ready if state.measures_gain else task.done


def _after_tasks(state: RunState) -> RunState:
    """Go on where no task is waited for, nor the verdict on a teacher: to tasks in place of those without contrast, to
    a measurement that teacher's rewards wait for, if there are any, or else to the training."""
    if open_task := _open_task(state):
        return state if open_task == state.open_task else changed(state, open_task=open_task)
    if state.teacher_waits:
        return state
    if (asked := refilled(state)) > state.tasks_asked:
        return _enter(changed(state, task_target=asked), "tasks")
    unpaid = state.measures_gain and any(not task.closed for task in state.tasks.values())
    return _enter(state, "measuring") if unpaid else _enter(_tasks_done(state), "training")


def _tasks_done(state: RunState) -> RunState:
    """What is remembered of an iteration's tasks: by the curriculum, and of its teacher unless the gate refused it."""
    state = changed(state, arms=remember(state), lost=lost_attempts(state))
    refused = state.teacher.id == state.refused_teacher
    if state.config.evaluation.teacher_gate == "open":
        return changed(state, tested_teacher=None)
    if refused or not state.proposals.screened:
        return state
    return changed(state, tested_teacher=TestedTeacher(state.teacher, state.proposals))


def _next(state: RunState) -> RunState:
    state = changed(state, candidate=None, teacher=state.promoted_teacher, refused_teacher="")
    if state.last_iteration:
        return _enter(state, "final")
    following = changed(
        state,
        iteration=state.iteration + 1,
        tasks={},
        task_target=0,
        gain=None,
        starts=(*state.starts, state.seq),
        rows_before=state.rows_asked,
    )
    return _enter(following, "tasks")


def _enter(state: RunState, phase: Phase) -> RunState:
    """Begin ``phase``; one that has nothing to wait for is passed through at once."""
    entered = changed(state, phase=phase, entered=state.seq)
    entered = changed(entered, pending=frozenset(pending_ids(entered)))
    entered = changed(entered, untrained=entered.untrained + counts_as_training(entered))
    return entered if phase in ("tasks", "done") or entered.pending else _advance(entered)
