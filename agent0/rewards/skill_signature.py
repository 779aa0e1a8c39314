"""The skill behind a solution as a short digest: equal for the same way of solving, whatever the names and numbers.

A program is reduced to the shape of its syntax tree, an expression to its algebraic shape, an attempt to the sequence
of its useful calls. The patterns are those of ``agent0.rollout.solution_diversity``.
"""

from collections.abc import Iterable, Sequence

from agent0.events.base import sha256
from agent0.rewards.tool_utility import useful
from agent0.rollout.solution_diversity import signature
from agent0.rollout.tool_patterns import Call
from agent0.state.run_state import TaskState, ToolCallRecord

LENGTH = 16
"""Hexadecimal digits of a signature: 64 bits, so that a million skills hold no two alike by chance."""


def of_program(source: str) -> str:
    """Signature of a program's shape: variables by order of appearance, constants by type."""
    return _digest(signature([Call("python", "ok", {"code": source})]))


def of_calls(calls: Iterable[ToolCallRecord]) -> str:
    """Signature of an attempt: which tools were called with arguments of which shape, in order; empty
    without a call."""
    trace = [Call(call.name, "ok", dict(call.arguments)) for call in calls]
    return _digest(signature(trace)) if trace else ""


def of_task(task: TaskState) -> str:
    """Signature of the skill that solved a task; empty where no attempt did.

    The shortest sequence of useful calls among right attempts (the first of equals), else the shape of its checker
    or checking program, else family and level.
    """
    right = [attempt for attempt in task.attempts.values() if attempt.correct]
    traces: list[Sequence[ToolCallRecord]] = sorted(
        (useful(a.calls) for a in sorted(right, key=lambda a: a.number)), key=len
    )
    shortest = next((trace for trace in traces if trace), None)
    if shortest:
        return of_calls(shortest)
    if right and task.proposal and (program := task.proposal.checker or task.proposal.program):
        return of_program(program)
    return _digest(f"head {task.family} {task.level}") if right else ""


def _digest(text: str) -> str:
    return sha256(text)[:LENGTH]
