"""The skill behind a solution, as a few characters: equal for the same way of solving, whatever the names and numbers.

A program is the shape of its syntax tree, an expression the shape that computer algebra gives it, an attempt the trace
of its useful calls. The patterns themselves are those of ``agent0.rollout.solution_diversity``.
"""

import ast
from collections.abc import Iterable, Sequence

from agent0.rewards.tool_utility import useful
from agent0.rollout.solution_diversity import signature
from agent0.rollout.tool_patterns import Call
from agent0.state.run_state import Made, TaskState
from events.base import sha256

LENGTH = 16
"""Hexadecimal digits of a signature: 64 bits, so that a million skills hold no two alike by chance."""


def of_program(source: str) -> str:
    """The shape of a program: variables by their place, constants by their type."""
    return _digest(signature([Call("python", "ok", {"code": source})]))


def of_expression(text: str) -> str:
    """The shape of an expression as sympy would write it: sums and products flat and in order, a - b a sum with a
    product, a / b a product with a power; symbols are alike, and so are numbers. Other text has its words' shape."""
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
        return _digest(f"expression {_algebraic(tree.body)}")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _digest(signature([Call("expression", "ok", {"text": text})]))


def of_calls(calls: Iterable[Made]) -> str:
    """The trace of an attempt: which tools with arguments of which shape, in order; empty without a call."""
    made = [Call(call.name, "ok", dict(call.arguments)) for call in calls]
    return _digest(signature(made)) if made else ""


def of_task(held: TaskState) -> str:
    """The skill that a task took: the shortest trace of useful calls among right attempts (the first of equals), else
    the shape of its checking program; solved without a call, the kind of task. Empty where nothing solved it."""
    right = [attempt for attempt in held.attempts.values() if attempt.correct]
    traces: list[Sequence[Made]] = sorted((useful(a.calls) for a in sorted(right, key=lambda a: a.number)), key=len)
    made = next((trace for trace in traces if trace), None)
    if made:
        return of_calls(made)
    if right and held.proposal and held.proposal.program:
        return of_program(held.proposal.program)
    return _digest(f"head {held.family} {held.level}") if right else ""


def _digest(text: str) -> str:
    return sha256(text)[:LENGTH]


def _algebraic(node: ast.expr) -> str:
    match node:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return _commuting("Add", _terms(node, 1))
        case ast.BinOp(op=ast.Mult() | ast.Div()) | ast.UnaryOp(op=ast.USub()):
            return _commuting("Mul", _factors(node, 1))
        case ast.BinOp(left=left, op=op, right=right):
            return f"{type(op).__name__}({_algebraic(left)}, {_algebraic(right)})"
        case ast.Call(func=func, args=given):
            return f"{ast.unparse(func)}({', '.join(_algebraic(one) for one in given)})"
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = ", ".join(_algebraic(one) for one in (left, *others))
            return f"{'/'.join(type(op).__name__ for op in ops)}({sides})"
    return _LEAVES.get(type(node)) or f"{type(node).__name__}({', '.join(_inner(node))})"


_LEAVES = {ast.Constant: "n", ast.Name: "x"}


def _inner(node: ast.expr) -> list[str]:
    return [_algebraic(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _commuting(name: str, parts: Sequence[tuple[ast.expr, int]]) -> str:
    wrap = "Mul(n, {})" if name == "Add" else "Pow({}, n)"
    told = [_algebraic(one) if sign > 0 else wrap.format(_algebraic(one)) for one, sign in parts]
    told = ["n" if one in ("Mul(n, n)", "Pow(n, n)") else one for one in told]
    return f"{name}({', '.join(sorted(told))})"


def _terms(node: ast.expr, sign: int) -> list[tuple[ast.expr, int]]:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            return _terms(left, sign) + _terms(right, sign if isinstance(op, ast.Add) else -sign)
    return [(node, sign)]


def _factors(node: ast.expr, power: int) -> list[tuple[ast.expr, int]]:
    match node:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            return _factors(left, power) + _factors(right, power if isinstance(op, ast.Mult) else -power)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return [(ast.Constant(-1), 1), *_factors(inner, power)]
    return [(node, power)]
