"""Rewrites tests for a run beside the candidate (``inside.observer``), and judges what that run has seen.

An assertion that compares with a literal is judged here, by a value that crossed as plain data: the candidate's process
never holds the literal. Others are judged there, by comparisons that objects of the candidate cannot bend.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent0.verification.programs.inside import values

OBSERVER = "_observed_"
"""What rewritten tests call the object that watches them."""
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Is: "is",
    ast.IsNot: "is_not", ast.In: "in", ast.NotIn: "not_in",
}  # fmt: skip
_TOGETHER = (ast.AsyncFunctionDef, ast.Lambda, ast.With, ast.ClassDef)
"""What tests have where they hand functions and objects of their own to the candidate."""


@dataclass
class Expected:
    """One assertion: the literal, on which side of which sign it stands; ``always``: each run comes to it."""

    sign: str
    literal: Any
    left: bool
    always: bool


@dataclass
class Rewritten:
    """Tests without the literals of their assertions, and what these were, by place."""

    source: str
    expected: dict[int, Expected] = field(default_factory=dict)


def together(test: str, program: str, names: Sequence[str]) -> bool:
    """Whether ``test`` needs the candidate beside it: it uses one of its classes, or hands it functions."""
    try:
        tests, source = ast.parse(test), ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if any(isinstance(node, _TOGETHER) or getattr(node, "decorator_list", None) for node in ast.walk(tests)):
        return True
    classes = {node.name for node in ast.walk(source) if isinstance(node, ast.ClassDef)}
    return bool(classes & set(names)) or any(name[:1].isupper() for name in names)


def rewritten(test: str) -> Rewritten:
    """Rewrite ``test``, a program that parses, so that its values are observed."""
    tree = ast.parse(test)
    writer = _Writer()
    body = [one for node in tree.body for one in _statements(writer.top(node))]
    source = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    return Rewritten(source, writer.expected)


def judged(found: Rewritten, lines: Sequence[Mapping[str, Any]]) -> tuple[bool | None, str]:
    """Judge the lines that the observer wrote: whether all tests pass (None: an object cannot be compared, or no
    literal shows that the program did anything), and why."""
    seen: set[int] = set()
    for line in lines:
        if "place" not in line:
            break
        place = line["place"]
        if (wanted := found.expected.get(place)) is not None and not _holds(wanted, line.get("value")):
            return False, "AssertionError: "
        seen.add(place)
    end = lines[-1] if lines else {}
    if "failed" in end:
        return False, str(end["failed"])
    if end.get("done") is not True:
        return (
            None,
            f"a value of type {end['opaque']} cannot be compared" if "opaque" in end else "the tests did not end",
        )
    literal = any(place in found.expected for place in seen)
    missed = [place for place, one in found.expected.items() if one.always and place not in seen]
    return (True, "all tests pass") if literal and not missed else (None, "no literal was compared")


_NO_VALUE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, values.OpaqueError)
"""What it raises to read a forged value, or to compare it."""


def _holds(wanted: Expected, packed: Any) -> bool:
    try:
        value = values.unpack(packed)
        left, right = (wanted.literal, value) if wanted.left else (value, wanted.literal)
        return bool(_OPERATIONS[wanted.sign](left, right))
    except _NO_VALUE:
        return False


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "is": lambda left, right: type(left) is type(right) and left == right,
    "is_not": lambda left, right: type(left) is not type(right) or left != right,
    "in": lambda left, right: left in right,
    "not_in": lambda left, right: left not in right,
}


class _Writer(ast.NodeTransformer):
    """Replaces assertions and comparisons by calls of the observer; operands are made plain first."""

    def __init__(self) -> None:
        self.expected: dict[int, Expected] = {}
        self._place, self._always = 0, False

    def top(self, node: ast.stmt) -> Any:
        """Rewrite a statement of the tests' top level."""
        self._always = isinstance(node, ast.Assert)
        return self.visit(node)

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        parts = (
            node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
        )
        return [ast.copy_location(ast.Expr(self._assertion(part)), node) for part in parts]

    def _assertion(self, test: ast.expr) -> ast.expr:
        self._place += 1
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left, right = test.left, test.comparators[0]
            for literal, other, first in ((right, left, False), (left, right, True)):
                value = _literal(literal)
                if value is not _NONE and _literal(other) is _NONE:
                    self.expected[self._place] = Expected(_SIGNS[type(test.ops[0])], value, first, self._always)
                    return _call("seen", ast.Constant(self._place), self.visit(other))
        return _call("held", ast.Constant(self._place), self.visit(test))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        signs = ast.Tuple([ast.Constant(_SIGNS[type(op)]) for op in node.ops], ast.Load())
        return _call("compare", signs, *(self.visit(one) for one in (node.left, *node.comparators)))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        node.left, node.right = (_call("plain", self.visit(one)) for one in (node.left, node.right))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self.visit(node.value)
        if not isinstance(node.slice, ast.Slice | ast.Tuple | ast.Constant):
            node.slice = _call("plain", self.visit(node.slice))
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.func = self.visit(node.func)
        node.args = [self._argument(one) for one in node.args]
        for word in node.keywords:
            word.value = self._argument(word.value) if word.arg else self.visit(word.value)
        return node

    def _argument(self, node: ast.expr) -> ast.expr:
        known = isinstance(node, ast.Starred | ast.Constant | ast.Lambda | ast.GeneratorExp)
        return self.visit(node) if known else _call("plain", self.visit(node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.body = [one for inner in node.body for one in _statements(self.visit(inner))]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        node.value = self.visit(node.value) if node.value else None
        return node


def _statements(found: Any) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found]


def _call(method: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(OBSERVER, ast.Load()), method, ast.Load()), list(args), [])


class _None:
    """Stands for no literal: None is one."""


_NONE = _None()


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not (node.args or node.keywords):
        empty = {"set": set, "list": list, "dict": dict, "tuple": tuple, "frozenset": frozenset}.get(node.func.id)
        return empty() if empty else _NONE
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _NONE
