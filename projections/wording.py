"""One line of text for every event: for stories and tails of the log, and for search."""

from collections.abc import Callable, Sequence
from typing import Any

from agent0.events.base import Recorded

LONGEST = 1000
"""Characters of a line; the whole is in the event's body."""


def describe(e: Recorded) -> str:
    """Describe ``e`` in one line. A type without a description of its own shows its short fields."""
    describe_type = _WORDS.get(e.type, _plain)
    return " ".join(describe_type(e.event)[:LONGEST].split())


def _plain(x: Any) -> str:
    fields = ((name, getattr(x, name)) for name in type(x).model_fields)
    return " ".join(f"{name}={value}" for name, value in fields if isinstance(value, str | int | float) and value != "")


def _number(value: float | None) -> str:
    return "unscored" if value is None else f"{value:.3f}"


def _verdict(correct: bool | None) -> str:
    return {True: "correct", False: "wrong", None: "undecided"}[correct]


def _answered(answers: Sequence[str | None]) -> str:
    return f"{sum(answer is not None for answer in answers)} of {len(answers)}"


def _proposed(x: Any) -> str:
    if x.proposal is None:
        return f"{x.teacher} failed: {x.problem} {x.text}"
    row = x.proposal.row
    who = f"row {row.id}, epoch {row.epoch}" if row else f"{x.teacher} proposed"
    return f"{who}: {x.proposal.question}"


def _rewarded(x: Any) -> str:
    parts = " ".join(f"{p.name}={_number(p.value)}" for p in x.parts)
    return f"{x.role} {x.checkpoint} got {_number(x.total)} by {x.set}: {parts}"


def _reply(x: Any) -> str:
    """What the student wrote last, for search."""
    turns = x.conversation.transcript if x.conversation else ()
    return next((f"-> {turn.content}" for turn in reversed(turns) if turn.role == "assistant"), "")


def _evaluated(x: Any) -> str:
    forced = " with its tool forced" if x.forced_tool else ""
    return f"{x.checkpoint}{forced} solved {x.correct} of {x.n} on {x.split}, tool use {x.tool_use:.2f}"


_WORDS: dict[str, Callable[[Any], str]] = {
    "RunStarted": lambda x: f"run {x.name} started, profile {x.profile}, seed {x.seed}",
    "RunFailed": lambda x: f"run failed: {x.reason}",
    "RunFinished": lambda x: f"run finished: {x.iterations} iterations, {x.tasks} tasks, {x.attempts} attempts",
    "TaskSubmitted": lambda x: (
        f"turn {x.turn + 1} is due" if x.turn else f"{x.student} of {x.source} asked to solve: {x.proposal.question}"
    ),
    "TaskRequested": lambda x: f"{x.teacher} asked for {x.domain} {x.family} level {x.level or 'any'}",
    "TaskProposed": _proposed,
    "TaskAccepted": lambda x: f"accepted, novelty {x.novelty:.3f} against {x.against}: {x.proposal.question}",
    "TaskRejected": lambda x: f"rejected as {x.reason}: {x.detail}",
    "AttemptRequested": lambda x: f"{x.student} asked to try number {x.number}",
    "ToolCalled": lambda x: f"{x.call.name or 'unparsed'} {x.result.state}: {x.call.raw} -> {x.result.output}",
    "TurnCompleted": lambda x: f"{x.student} goes on after turn {x.turn}, {_answered(x.subgoals)} subgoals answered",
    "TaskAttempted": lambda x: f"{x.student} {x.end} {x.answer!r}, {x.turns} turns, {x.tool_ok}/{x.tool_calls} calls",
    "ResultVerified": lambda x: f"{_verdict(x.correct)} by {x.verifier}: {x.reason}, expected {x.expected} got {x.got}",
    "RewardAssigned": _rewarded,
    "TrainingRequested": lambda x: f"train {x.checkpoint} from {x.parent} on events {x.after + 1} to {x.until}",
    "TrainingMeasured": lambda x: f"steps {x.first} to {x.first + len(x.steps) - 1} of the training of {x.checkpoint}",
    "CheckpointTrained": lambda x: f"trained {x.checkpoint} from {x.parent} on {x.samples} samples in {x.wall_s:.1f} s",
    "GainRequested": lambda x: f"measure what parts of iteration {x.iteration} teach {x.student}",
    "ProbeSelected": lambda x: x.problem or f"{len(x.subsets)} parts, {x.n} tasks that the student does not solve",
    "SubsetMeasured": lambda x: f"part {x.number} of {x.measurement} teaches {x.gain:.3f} of the probe",
    "EvaluationRequested": lambda x: f"evaluate {x.checkpoint} on {x.n or 'all'} {x.benchmark or x.split} tasks",
    "EvaluationItemRequested": lambda x: f"attempt item {x.number} of {x.evaluation}",
    "EvaluationItemScored": lambda x: (
        f"{_verdict(x.correct)} {x.answer!r}, item {x.number} of {x.evaluation}: {x.question} {_reply(x)}"
    ),
    "ItemScored": lambda x: f"{_verdict(x.correct)} {x.answer!r}, item {x.item} of {x.benchmark} {x.mode} {_reply(x)}",
    "RowAnswered": lambda x: f"row {x.row} {x.answer!r} {x.error} {_reply(x)}",
    "CheckpointEvaluated": _evaluated,
    "CheckpointPromoted": lambda x: f"promoted {x.checkpoint} at {_number(x.accuracy)}: {x.reason}",
    "CheckpointRejected": lambda x: f"rejected {x.checkpoint} at {_number(x.accuracy)}: {x.reason}",
    "TeacherJudged": lambda x: f"{'promoted' if x.promoted else 'rejected'} {x.checkpoint}: {x.reason}",
    "ReactionFailed": lambda x: f"gave up {x.failed_handler} of {x.cause_type}: {x.error}: {x.message}",
    "ReactionTried": lambda x: f"{x.tried_handler} of {x.cause_type} {x.outcome} {x.error} {x.message}".rstrip(),
    "ReactionDropped": lambda x: f"went on without {x.failed_handler} of {x.cause_type}: {x.reason}",
    "DependencyLost": lambda x: f"{x.waiting} waits for {x.dependency}: {x.message}",
    "PolicyChanged": lambda x: f"{x.profile}: {x.kind} {x.name} {'allowed' if x.allowed else 'denied'} {x.reason}",
    "AlarmRaised": lambda x: f"{x.severity} {x.alarm}: {x.message}",
}
