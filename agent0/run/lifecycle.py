"""A run's life cycle: ``evolve`` folds its events into a state, ``decide`` requests what comes next.

Both are pure, so that any past state can be rebuilt and any past decision checked.
"""

from itertools import chain, islice

from agent0.events import alarms, checkpoints, runs, tasks
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

__all__ = ["BASE", "RunState", "awaited", "decide", "earliest", "evolve"]


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
    after = _folded(state, recorded.event)
    moved = after is not state
    after = changed(after, seq=recorded.seq, clock=_clock(after, recorded))
    if state.status == "failed" and after.status == "running" and any(map(run_failed, _views(state))):
        return _begun_again(after)  # its phase had begun, and nothing was requested
    if not moved:
        return after
    after = _learned(after) if after.learning else after
    return _advance(after) if _may_complete(after, recorded.task) else after


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
    return requested + (_failed(state) or [request for view in _begun(state) for request in _requests(view, state)])


def _begun(state: RunState) -> list[RunState]:
    """The views of the state in which a phase began at the last event."""
    return [view for view in _views(state) if view.entered == state.seq]


def _views(state: RunState) -> list[RunState]:
    return [state.in_training, state] if state.learning else [state]


def _failed(state: RunState) -> list[Event]:
    """The event that ends a run which failed as of a phase that began."""
    failures = next(filter(None, map(run_failed, _begun(state))), [])
    return [failure.model_copy(update={"state_sha": state.digest}) for failure in failures]


def _requests(view: RunState, state: RunState) -> list[Event]:
    """What the phase that ``view`` sees requests, with the digest of the whole ``state``."""
    if view.learning is None:
        return REQUESTS[view.phase](view)
    requests = [] if view.phase == "done" else REQUESTS[view.phase](view)
    return [request.model_copy(update={"state_sha": state.digest}) for request in requests]


def _begun_again(state: RunState) -> RunState:
    """Every phase that is not over begins at the last event."""
    learning = state.learning
    if learning and learning.phase != "done":
        learning = changed(learning, entered=state.seq)
    return changed(state, entered=state.seq, learning=learning)


def earliest(state: RunState) -> RunState:
    """The run as its earliest iteration that is not over sees it: one that trains is before what is attempted beside
    it."""
    return state.in_training if state.learning and state.learning.phase != "done" else state


def awaited(state: RunState) -> RunState:
    """The run as the iteration sees it that is waited for: the one attempted, until its tasks are done."""
    all_done = len(state.tasks) == state.tasks_asked and not _open_task(state)
    return earliest(state) if state.learning and all_done else state


OF_TRAINING = (
    checkpoints.CheckpointTrained,
    checkpoints.EvaluationRequested,
    checkpoints.EvaluationItemRequested,
    checkpoints.EvaluationItemScored,
    checkpoints.CheckpointEvaluated,
    checkpoints.CheckpointPromoted,
    checkpoints.CheckpointRejected,
)
MAKERS = ("train_checkpoint", "evaluate_checkpoint", "evaluate_item", "judge_checkpoint")


def _folded(state: RunState, event: Event) -> RunState:
    """The state with what an event changes: of a training beside the present iteration, in what that training sees."""
    fold = FOLDS.get(type(event))
    if fold is None:
        return state
    dropped = isinstance(event, alarms.ReactionDropped) and event.failed_handler in MAKERS
    if state.learning is None or not (dropped or isinstance(event, OF_TRAINING)):
        return fold(state, event)
    before = state.in_training
    after = fold(before, event)
    return state if after is before else state.beside(after)


def _learned(state: RunState) -> RunState:
    """Enter the next phase of the training beside the present iteration, where its present one is complete."""
    before = state.in_training
    after = _advance(before)
    return state if after is before else state.beside(after)


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
    state = changed(state, clock=_clock(state, recorded))
    return _enter(_following(state), "tasks") if event.imported else _enter(state, "baseline")


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
            return _training_begun(_tasks_done(state))
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
    if state.learning and state.learning.phase != "done":
        return state  # no student is more than one training behind
    state = changed(state, learning=None)
    unpaid = state.measures_gain and any(not task.closed for task in state.tasks.values())
    return _enter(state, "measuring") if unpaid else _training_begun(_tasks_done(state))


def _training_begun(state: RunState) -> RunState:
    """Train; where students may be behind, the next iteration's tasks are asked for meanwhile."""
    training = _enter(state, "training")
    ahead = state.config.training.steps_off_policy and not state.last_iteration and training.phase == "training"
    if not ahead or training.iteration != state.iteration:
        return training
    following = changed(_following(training), authors=(training.student.id, training.teacher.id))
    return changed(_enter(following, "tasks"), learning=training.as_learning)


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
    if state.learning:  # the next one has begun
        return _enter(changed(state, candidate=None), "done")
    if state.last_iteration:
        return _enter(_without_candidate(state), "final")
    return _enter(_following(state), "tasks")


def _without_candidate(state: RunState) -> RunState:
    return changed(state, candidate=None, teacher=state.promoted_teacher, refused_teacher="")


def _following(state: RunState) -> RunState:
    """The state with the next iteration in the place of the present one."""
    return changed(
        _without_candidate(state),
        iteration=state.iteration + 1,
        tasks={},
        task_target=0,
        gain=None,
        starts=(*state.starts, state.seq),
        rows_before=state.rows_asked,
        authors=(),
    )


def _enter(state: RunState, phase: Phase) -> RunState:
    """Begin ``phase``; one that has nothing to wait for is passed through at once."""
    entered = changed(state, phase=phase, entered=state.seq)
    entered = changed(entered, pending=frozenset(pending_ids(entered)))
    entered = changed(entered, untrained=entered.untrained + counts_as_training(entered))
    return entered if phase in ("tasks", "done") or entered.pending else _advance(entered)
