"""Measures the diversity of solutions. Two solutions have one pattern where they make the same calls in the same order,
with arguments of the same form.

The form of Python (and of expressions that Python can parse) is its syntax tree with every constant replaced by its
type (a list of constants: by their types), every name that it binds replaced by its place, and the operands of + and *
sorted. Other text keeps its words; numbers and quoted text become marks. A solution without a call is identified by the
kind of its task alone.
"""

import ast
import builtins
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent0.rollout.tool_patterns import Call

LONGEST = 20_000
"""Characters of an argument that are looked at."""

_BUILTIN = frozenset(dir(builtins))
_quoted = re.compile(r"""'[^'\n]*'|"[^"\n]*\"""")
_digits = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Variety:
    """The number of distinct patterns among solved tasks.

    ``per_1000``: for that many tasks where there are as many (the mean of all draws, Hurlbert 1971), in proportion
    where there are fewer; None without a solved task. ``effective``: as many equally frequent patterns would be as
    diverse (exp of Shannon's entropy).
    """

    tasks: int
    patterns: int
    per_1000: float | None
    effective: float


def variety(signatures: Sequence[str]) -> Variety:
    """Measure the diversity of the ``signatures`` of solved tasks, one each."""
    counts = Counter(signatures)
    n = len(signatures)
    if not n:
        return Variety(0, 0, None, 0.0)
    per = expected_patterns(list(counts.values()), 1000) if n >= 1000 else 1000 * len(counts) / n
    entropy = -sum(c / n * math.log(c / n) for c in counts.values())
    return Variety(n, len(counts), per, math.exp(entropy))


def expected_patterns(counts: Sequence[int], size: int) -> float:
    """How many patterns ``size`` of these tasks hold on average, drawn without replacement (Hurlbert 1971)."""
    total = sum(counts)
    size = min(size, total)
    return sum(1 - math.exp(_log_choose(total - count, size) - _log_choose(total, size)) for count in counts)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) if 0 <= k <= n else -math.inf


def signature(calls: Iterable[Call], kind: str = "") -> str:
    """The pattern of a solution as text; ``kind`` distinguishes solutions without a call. Defined for any arguments."""
    steps = [f"{call.tool}({_form(call.arguments)})" for call in calls]
    return " > ".join(steps) if steps else f"no call: {kind}"


def _form(value: Any) -> str:
    match value:
        case dict():
            return ", ".join(f"{key}={_form(value[key])}" for key in sorted(value, key=str))
        case list() | tuple():
            return f"[{', '.join(sorted({_form(element) for element in value}))}]"
        case str():
            return _text(value[:LONGEST])
        case _:
            return type(value).__name__


def _text(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a student's code may hold what Python warns of
            tree = ast.parse(text.strip())
        if any(isinstance(node, _SHAPED) for node in ast.walk(tree)):
            return _Form(tree).text()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return " ".join(_digits.sub("#", _quoted.sub("''", text)).split())


_SHAPED = (ast.operator, ast.Call, ast.cmpop, ast.Assign, ast.stmt)


class _Form:
    """A syntax tree as text, free of what does not matter."""

    def __init__(self, tree: ast.AST) -> None:
        self._tree = tree
        self._own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _stored(node)}
        self._own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self._own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        self._places: dict[str, int] = {}

    def text(self) -> str:
        """The normalised tree as text."""
        return self._normalised(self._tree)

    def _normalised(self, node: Any) -> str:
        match node:
            case ast.Constant():
                return type(node.value).__name__
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as inner):
                return self._normalised(inner)
            case ast.List(elts=held) | ast.Tuple(elts=held) | ast.Set(elts=held) if all(map(_constant, held)):
                return f"{type(node).__name__}({' '.join(sorted({self._normalised(element) for element in held}))})"
            case ast.Name(id=name) | ast.arg(arg=name):
                return self._name(name)
            case ast.BinOp(op=ast.Add() | ast.Mult() as op):
                operands = [self._normalised(operand) for operand in _flat(node, type(op))]
                return f"{type(op).__name__}({', '.join(sorted(operands))})"
            case ast.AST():
                return f"{type(node).__name__}({', '.join(self._parts(node))})"
            case list():
                return f"[{'; '.join(self._normalised(child) for child in node)}]"
            case _:
                return str(node)

    def _parts(self, node: ast.AST) -> Iterator[str]:
        for name, value in ast.iter_fields(node):
            if name in _SILENT or value is None or value == []:
                continue
            is_function_name = name == "name" and isinstance(value, str)
            yield self._name(value) if is_function_name else self._normalised(value)

    def _name(self, name: str) -> str:
        """Names that the code gives itself are told by their place; builtins and imports are what they are."""
        if name not in self._own or name in _BUILTIN:
            return name
        return f"v{self._places.setdefault(name, len(self._places))}"


_SILENT = ("ctx", "type_comment", "type_ignores", "kind", "returns", "annotation")


def _constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _flat(node: ast.expr, op: type[ast.operator]) -> Iterator[ast.expr]:
    """Operands of a chain of one commutative operator, however it is bracketed."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, op):
        yield from _flat(node.left, op)
        yield from _flat(node.right, op)
    else:
        yield node
