"""What each event changes in a run's state: one small pure function an event class."""

from collections.abc import Callable
from typing import Any

from agent0.events import alarms, benchmarks, checkpoints, runs, tasks
from agent0.events.base import Event
from agent0.events.values import ToolState
from agent0.rewards import waits_for_group
from agent0.run.measured_gains import gain_measured, gain_requested, unmeasured
from agent0.run.requests import pending_ids
from agent0.run.run_failure import wait_counted
from agent0.state.measurements import EvaluationState
from agent0.state.replace import changed
from agent0.state.reward_history import with_receipt
from agent0.state.run_state import (
    AttemptState,
    Checkpoint,
    RunState,
    Status,
    TaskState,
    TestedTeacher,
    ToolCallRecord,
    ValidationScore,
    attempt_id,
    index_digest,
    suite_key,
)
from agent0.training.selection import left_out
from agent0.verification.human_review import awaits_person
from agent0.verification.panel import disputed


def _status(state: RunState, event: Event) -> RunState:
    if state.status in ("finished", "cancelled") or (state.status == "failed" and isinstance(event, runs.RunPaused)):
        return state
    return changed(state, status=_STATUS[type(event)])


def _run_resumed(state: RunState, event: runs.RunResumed) -> RunState:
    """Resume the run; losses that made it fail are not counted again, and its servers may be others."""
    if event.servers:
        state = changed(state, config=state.config.served_by(event.servers))
    if state.status == "failed":
        state = changed(state, lost=(), untrained=0)
    return _status(changed(state, overdue=0), event)


_STATUS: dict[type[Event], Status] = {
    runs.RunPaused: "paused",
    runs.RunResumed: "running",
    runs.RunCancelled: "cancelled",
    runs.RunFailed: "failed",
    runs.RunFinished: "finished",
}


def _requested(state: RunState, event: tasks.TaskRequested) -> RunState:
    if event.iteration != state.iteration or event.task in state.tasks:
        return state
    new = TaskState(event.slot, event.domain, event.family, event.level)
    return changed(state, tasks={**state.tasks, event.task: new}, task_count=state.task_count + 1)


def _on_task(state: RunState, task: str, change: Callable[[TaskState], TaskState]) -> RunState:
    task_state = state.tasks.get(task)
    if task_state is None:
        return state
    new = change(task_state)
    resolved = task if new.resolved and not task_state.resolved else ""
    return changed(state, tasks={**state.tasks, task: new}, just_settled=resolved)


def _on_attempt(state: RunState, task: str, attempt: str, **changes: Any) -> RunState:
    def change(task_state: TaskState) -> TaskState:
        record = task_state.attempts.get(attempt)
        return (
            task_state
            if record is None
            else changed(task_state, attempts={**task_state.attempts, attempt: changed(record, **changes)})
        )

    return _on_task(state, task, change)


def _proposed(state: RunState, event: tasks.TaskProposed) -> RunState:
    def change(task_state: TaskState) -> TaskState:
        return changed(task_state, proposed=True, proposal=event.proposal, problem=event.problem, text=event.text)

    return _on_task(state, event.task, change)


def _accepted(state: RunState, event: tasks.TaskAccepted) -> RunState:
    number = event.attempts or state.config.attempts
    attempts = {attempt_id(event.task, n): AttemptState(n) for n in range(number)}

    def change(task_state: TaskState) -> TaskState:
        if task_state.accepted:
            return task_state
        return changed(task_state, accepted=True, proposal=event.proposal, novelty=event.novelty, attempts=attempts)

    fresh = event.task in state.tasks and not state.tasks[event.task].accepted
    after = _on_task(state, event.task, change)
    return changed(after, attempt_count=after.attempt_count + number * fresh)


def _rejected(state: RunState, event: tasks.TaskRejected) -> RunState:
    return _on_task(state, event.task, lambda t: changed(t, rejected=True, novelty=event.novelty))


def _called(state: RunState, event: tasks.ToolCalled) -> RunState:
    task_state = state.tasks.get(event.task)
    attempt = task_state.attempts.get(event.attempt) if task_state else None
    if attempt is None:
        return state
    call = ToolCallRecord(
        event.call.name, event.call.arguments, event.result.state is ToolState.OK, event.result.output
    )
    return _on_attempt(state, event.task, event.attempt, calls=(*attempt.calls, call))


def _attempted(state: RunState, event: tasks.TaskAttempted) -> RunState:
    return _on_attempt(
        state,
        event.task,
        event.attempt,
        attempted=True,
        answer=event.answer,
        tool_calls=event.tool_calls,
        tool_ok=event.tool_ok,
        parse_errors=event.parse_errors,
        grounded=event.grounded,
        computed=event.computed,
        tokens=event.usage.completion_tokens,
        mean_logprob=event.mean_logprob,
        signals=event.signals,
        wall_s=event.wall_s,
        cut_off=event.end == "length",
    )


def _verified(state: RunState, event: tasks.ResultVerified) -> RunState:
    """The first verdict counts; one that is undecided does not, where the run asks a person then."""
    task_state = state.tasks.get(event.task)
    attempt = task_state.attempts.get(event.attempt) if task_state else None
    if attempt is None or attempt.verified:
        return state
    doubted = attempt.disputed or disputed(event.votes)
    if awaits_person(event, state.config):
        return _on_attempt(state, event.task, event.attempt, awaits_review=True, disputed=doubted)
    return _on_attempt(
        state,
        event.task,
        event.attempt,
        verified=True,
        correct=event.correct,
        credit=event.credit,
        changed_lines=event.changed_lines,
        judge=event.verifier,
        votes=event.votes,
        disputed=doubted,
    )


def _rewarded(state: RunState, event: tasks.RewardAssigned) -> RunState:
    ledger = with_receipt(state.ledger, event)
    state = state if ledger is state.ledger else changed(state, ledger=ledger)
    if event.role == "student":
        return _on_attempt(state, event.task, event.attempt, reward=event.total)
    task_state = state.tasks.get(event.task)
    if task_state is None or task_state.closed:
        return state
    rate = event.facts.get("solve_rate")
    return _on_task(state, event.task, lambda t: changed(t, closed=True, paid=True, solve_rate=rate))


def _trained(state: RunState, event: checkpoints.CheckpointTrained) -> RunState:
    if event.checkpoint not in state.pending:
        return state
    after = changed(state, pending=state.pending - {event.checkpoint})
    if event.adapter is None:
        return changed(after, trouble=f"{event.checkpoint} had nothing to learn from ({left_out(event.skipped)})")
    after = changed(after, untrained=0)
    checkpoint = Checkpoint(event.checkpoint, event.adapter, optimizer=event.optimizer)
    return changed(after, teacher=checkpoint) if event.role == "teacher" else changed(after, candidate=checkpoint)


def _evaluation_requested(state: RunState, event: checkpoints.EvaluationRequested) -> RunState:
    if event.evaluation not in state.pending:
        return state
    return changed(state, evaluations={**state.evaluations, event.evaluation: EvaluationState(event, event.n)})


def _item_requested(state: RunState, event: checkpoints.EvaluationItemRequested) -> RunState:
    """What a benchmark's items are is known from the first request on."""
    evaluation = state.evaluations.get(event.evaluation)
    if evaluation is None or not event.rows:
        return state
    key = suite_key(evaluation.request.benchmark, evaluation.request.n, evaluation.request.seed)
    evaluations = {**state.evaluations, event.evaluation: changed(evaluation, size=event.of)}
    return changed(state, evaluations=evaluations, benchmark_rows={key: event.rows, **state.benchmark_rows})


def _item_scored(state: RunState, event: checkpoints.EvaluationItemScored) -> RunState:
    evaluation = state.evaluations.get(event.evaluation)
    if evaluation is None:
        return state
    return changed(
        state, evaluations={**state.evaluations, event.evaluation: changed(evaluation, scored=evaluation.scored + 1)}
    )


def _without_evaluation(state: RunState, evaluation: str) -> RunState:
    """Wait for it no longer, and take in no more of its items."""
    left = {name: waiting for name, waiting in state.evaluations.items() if name != evaluation}
    return changed(state, pending=state.pending - {evaluation}, evaluations=left)


def _evaluated(state: RunState, event: checkpoints.CheckpointEvaluated) -> RunState:
    if event.evaluation not in state.pending:
        return state
    after = _without_evaluation(state, event.evaluation)
    if event.benchmark:
        return _benchmark_scored(after, state.evaluations.get(event.evaluation), event)
    if event.split != "validation" or event.forced_tool:
        return after
    score = ValidationScore(event.accuracy, event.outcomes, event.confidences)
    if state.phase == "baseline":
        return changed(after, promoted=(*state.promoted[:-1], changed(state.student, score=score)))
    return changed(after, candidate=state.candidate and changed(state.candidate, score=score))


def _benchmark_scored(
    state: RunState, evaluation: EvaluationState | None, event: checkpoints.CheckpointEvaluated
) -> RunState:
    """Keep the score with the checkpoint, to compare later ones with."""
    if evaluation is None:
        return state
    key = suite_key(event.benchmark, evaluation.request.n, evaluation.request.seed)
    score = ValidationScore(event.accuracy, event.outcomes)

    def scored(checkpoint: Checkpoint) -> Checkpoint:
        return (
            changed(checkpoint, benchmarks={**checkpoint.benchmarks, key: score})
            if checkpoint.id == event.checkpoint
            else checkpoint
        )

    candidate = scored(state.candidate) if state.candidate else None
    return changed(state, candidate=candidate, promoted=tuple(map(scored, state.promoted)))


def _judged(state: RunState, event: checkpoints.CheckpointPromoted | checkpoints.CheckpointRejected) -> RunState:
    if isinstance(event, checkpoints.CheckpointPromoted) and event.by == "person":
        promoted = Checkpoint(event.checkpoint, event.adapter, ValidationScore(event.accuracy))
        return changed(state, promoted=(*state.promoted, promoted))
    if state.phase != "judging" or event.iteration != state.iteration:
        return state
    after = changed(state, candidate=None, pending=frozenset())
    if isinstance(event, checkpoints.CheckpointRejected) or state.candidate is None:
        return after
    return changed(after, promoted=(*state.promoted, state.candidate))


def _teacher_judged(state: RunState, event: checkpoints.TeacherJudged) -> RunState:
    if not state.teacher_waits or event.checkpoint != state.teacher.id:
        return state
    return _teacher_stays(state) if event.promoted else changed(state, refused_teacher=event.checkpoint)


def _teacher_stays(state: RunState) -> RunState:
    return changed(state, tested_teacher=TestedTeacher(state.teacher, state.proposals))


def _rolled_back(state: RunState, event: checkpoints.CheckpointRolledBack) -> RunState:
    """What was promoted after the checkpoint that a person wants back is no longer compared with either."""
    places = [position for position, checkpoint in enumerate(state.promoted, 1) if checkpoint.id == event.to]
    return changed(state, promoted=state.promoted[: places[0]]) if places else state


def _indexed(state: RunState, event: benchmarks.BenchmarksIndexed) -> RunState:
    return changed(state, indexed=index_digest(event))


def _measured(state: RunState, event: runs.IterationMeasured) -> RunState:
    return changed(state, measures=(*state.measures, event.measures))


def _failed(state: RunState, event: alarms.ReactionFailed) -> RunState:
    trouble = f"{event.failed_handler}: {event.error}: {event.message}"
    return changed(state, failures=state.failures | {event.failure}, trouble=trouble)


def _retried(state: RunState, event: alarms.ReactionRetried) -> RunState:
    return changed(state, failures=state.failures - {event.failure})


def _dropped(state: RunState, event: alarms.ReactionDropped) -> RunState:
    state = changed(state, failures=state.failures - {event.failure})
    return unmeasured(state, event) if state.phase == "measuring" else _settled_without(state, event)


def _settled_without(state: RunState, event: alarms.ReactionDropped) -> RunState:
    """Whatever the reaction would have settled counts as settled without it."""
    match event.failed_handler:
        case "verify_result" if event.cause_type == "ReactionDropped":
            return _on_task(state, event.cause_task, _unjudged)
        case "attempt_task" | "continue_attempt" | "verify_result":
            return _on_attempt(state, event.cause_task, event.cause_attempt, dropped=True)
        case "assign_reward":
            state = _on_attempt(state, event.cause_task, event.cause_attempt, dropped=True)
            state = _on_task(state, event.cause_task, lambda t: changed(t, closed=t.closed or _last_word(t, event)))
            return _on_task(state, event.cause_task, _unpaid) if waits_for_group(state.config.rewards) else state
        case "propose_task":
            return _on_task(state, event.cause_task, lambda t: changed(t, proposed=True, closed=True))
        case "screen_task":
            open_tasks = {k: changed(t, closed=t.closed or not t.accepted) for k, t in state.tasks.items()}
            return changed(state, tasks=open_tasks)
        case "train_checkpoint" | "evaluate_checkpoint" | "evaluate_item":
            return _not_made(state, event)
        case "judge_checkpoint" | "judge_teacher":
            return _unjudged_checkpoint(state, event.failed_handler)
    return state


def _not_made(state: RunState, event: alarms.ReactionDropped) -> RunState:
    """A training was given up, or an evaluation with any of its items."""
    if event.failed_handler != "train_checkpoint" and event.cause_task != "-":
        return _without_evaluation(state, event.cause_task)
    # one at a time, in the order asked for, so it is the first still waited for
    given_up = [name for name in pending_ids(state) if name in state.pending][:1]
    return changed(state, pending=state.pending.difference(given_up))


def _unjudged_checkpoint(state: RunState, gate: str) -> RunState:
    """A gate's verdict was given up: the former student goes on, and so does the new teacher."""
    if gate == "judge_teacher":
        return _teacher_stays(state) if state.teacher_waits else state
    return changed(state, pending=frozenset()) if state.phase == "judging" else state


def _unjudged(task_state: TaskState) -> TaskState:
    """A verdict over all attempts was given up."""
    return changed(
        task_state,
        attempts={n: changed(a, dropped=a.dropped or not a.verified) for n, a in task_state.attempts.items()},
    )


def _unpaid(task_state: TaskState) -> TaskState:
    """Receipts of all attempts were given up together with that of the last one."""
    if not task_state.resolved:
        return task_state
    return changed(
        task_state,
        attempts={n: changed(a, dropped=a.dropped or a.reward is None) for n, a in task_state.attempts.items()},
    )


def _last_word(task_state: TaskState, event: alarms.ReactionDropped) -> bool:
    """Whether the teacher's reward was given up, as far as no attempt's reward tells (see ``TaskState.done``)."""
    return task_state.rejected or (task_state.resolved and event.cause_type == "ReactionDropped")


FOLDS: dict[type[Event], Callable[[RunState, Any], RunState]] = {
    runs.RunPaused: _status,
    runs.RunResumed: _run_resumed,
    runs.RunCancelled: _status,
    runs.RunFailed: _status,
    runs.RunFinished: _status,
    runs.IterationMeasured: _measured,
    tasks.TaskRequested: _requested,
    tasks.TaskProposed: _proposed,
    tasks.TaskAccepted: _accepted,
    tasks.TaskRejected: _rejected,
    tasks.ToolCalled: _called,
    tasks.TaskAttempted: _attempted,
    tasks.ResultVerified: _verified,
    tasks.RewardAssigned: _rewarded,
    checkpoints.CheckpointTrained: _trained,
    checkpoints.EvaluationRequested: _evaluation_requested,
    checkpoints.EvaluationItemRequested: _item_requested,
    checkpoints.EvaluationItemScored: _item_scored,
    checkpoints.CheckpointEvaluated: _evaluated,
    tasks.GainRequested: gain_requested,
    tasks.ProbeSelected: gain_measured,
    tasks.SubsetMeasured: gain_measured,
    checkpoints.CheckpointPromoted: _judged,
    checkpoints.CheckpointRejected: _judged,
    checkpoints.CheckpointRolledBack: _rolled_back,
    checkpoints.TeacherJudged: _teacher_judged,
    benchmarks.BenchmarksIndexed: _indexed,
    alarms.DependencyLost: wait_counted,
    alarms.ReactionFailed: _failed,
    alarms.ReactionRetried: _retried,
    alarms.ReactionDropped: _dropped,
}
