"""Alarms about the ways in which a run dies: tasks that nobody can read, tasks that are all known, nothing to learn
from, reactions given up. Each is one alarm however often it happens, and names what shows it. Pure."""

from collections import Counter

from agent0.state.run_state import RunState, TaskState
from events.alarms import AlarmRaised, ReactionFailed
from events.checkpoints import CheckpointTrained

SHOWN = 3
"""Tasks that an alarm names."""
MOST = 0.5
"""Share of an iteration's tasks."""
KNOWN = ("duplicate", "similar")


def untrained_alarm(event: CheckpointTrained, run: RunState) -> AlarmRaised:
    """The alarm of a training that had nothing to learn from, by what became of the iteration's tasks."""
    tasks = run.tasks if event.iteration == run.iteration else {}
    refused = {name: task for name, task in tasks.items() if task.rejected}
    unreadable = [name for name, task in refused.items() if task.proposal is None]
    known = [name for name, task in refused.items() if task.reason in KNOWN]
    left_out = ", ".join(f"{name} {n}" for name, n in sorted(event.skipped.items()))
    if unreadable and len(unreadable) >= MOST * len(tasks):
        alarm, why, shown = "unreadable-tasks", f"{len(unreadable)} of {len(tasks)} texts hold no task", unreadable
    elif known and not _accepted(tasks):
        alarm, why, shown = "known-tasks", f"{len(known)} of {len(tasks)} tasks are refused as known", known
    elif refused and not _accepted(tasks):
        alarm, why, shown = "refused-tasks", f"all {len(refused)} tasks are refused ({_reasons(refused)})", [*refused]
    else:
        alarm, why, shown = "no-contrast", f"no contrast ({left_out})" if left_out else "no attempt to compare", []
    text = f"{event.checkpoint}: nothing to learn from, {event.parent} stays: {why}"
    facts = {"checkpoint": event.checkpoint, "iteration": event.iteration, "skipped": event.skipped}
    return AlarmRaised(alarm=f"{alarm}-{event.role}", severity="warning", message=text,
                       facts=facts | ({"tasks": shown[:SHOWN]} if shown else {}))  # fmt: skip


def given_up_alarm(event: ReactionFailed, run: RunState) -> AlarmRaised:
    """The alarm of reactions that one handler gave up. It is critical only where the run waits for a person."""
    waits = event.waits or run.config.on_failure == "wait" or event.failed_handler == "advance_run"
    text = f"{event.failed_handler} gave up on {event.cause_type}: {event.message}"
    facts = {"failure": event.failure, "event": event.cause_seq}
    facts |= {"task": event.cause_task} if event.cause_task != "-" else {}
    facts |= {"attempt": event.cause_attempt} if event.cause_attempt != "-" else {}
    severity = "critical" if waits else "warning"
    return AlarmRaised(alarm=f"gave-up-{event.failed_handler}", severity=severity, message=text, facts=facts)


def _accepted(tasks: dict[str, TaskState]) -> int:
    return sum(task.accepted for task in tasks.values())


def _reasons(refused: dict[str, TaskState]) -> str:
    counts = Counter(task.reason or "unknown" for task in refused.values())
    return ", ".join(f"{reason} {n}" for reason, n in counts.most_common())
