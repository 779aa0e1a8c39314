"""Bugs by changes of the syntax tree: one place of a function, the rest of its file byte for byte as it was."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from symtable import symtable
from typing import Any

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

_BLOCKS = (cst.If, cst.For, cst.While, cst.With, cst.Try)
_OPERATORS: Mapping[type[cst.CSTNode], type[cst.CSTNode]] = {
    cst.Add: cst.Subtract,
    cst.Subtract: cst.Add,
    cst.Multiply: cst.Add,
    cst.Divide: cst.Multiply,
    cst.FloorDivide: cst.Multiply,
    cst.Modulo: cst.FloorDivide,
    cst.Power: cst.Multiply,
    cst.BitAnd: cst.BitOr,
    cst.BitOr: cst.BitAnd,
    cst.LeftShift: cst.RightShift,
    cst.RightShift: cst.LeftShift,
    cst.And: cst.Or,
    cst.Or: cst.And,
    cst.AddAssign: cst.SubtractAssign,
    cst.SubtractAssign: cst.AddAssign,
}
_COMPARISONS: Mapping[type[cst.CSTNode], type[cst.CSTNode]] = {
    cst.LessThan: cst.LessThanEqual,
    cst.LessThanEqual: cst.LessThan,
    cst.GreaterThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.GreaterThan,
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
}
_NAMES = {"True": "False", "False": "True", "min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutation:
    """One change: the bytes from ``start`` to ``end`` of the file ``path`` become ``text``. ``function`` is the dotted
    name of the innermost function around it, ``line`` where that begins (its first decorator), ``kind`` the change."""

    kind: str
    path: str
    function: str
    line: int
    start: int
    end: int
    text: str

    @property
    def key(self) -> str:
        """What names it among all of its file."""
        return f"{self.path}:{self.start}-{self.end}:{self.text}"

    def lines(self, source: bytes) -> tuple[int, int]:
        """First and last line of the changed file that read otherwise than in ``source``, the file before."""
        before, after = source[self.start : self.end], self.text.encode()
        same = next((at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(before), len(after)) if same is None else same
        tail = len(after) - same
        for left, right in zip(reversed(before[same:]), reversed(after[same:]), strict=False):
            if left != right:
                break
            tail -= 1
        first = source.count(b"\n", 0, self.start + same) + 1
        return first, first + after.count(b"\n", same, same + max(0, tail))

    def overlaps(self, other: "Mutation") -> bool:
        """Whether both touch the same bytes of one file."""
        return self.path == other.path and self.start < other.end and other.start < self.end


def mutated(source: bytes, mutations: Sequence[Mutation]) -> bytes:
    """Return ``source`` with all ``mutations`` of it, none of which overlap."""
    for mutation in sorted(mutations, key=lambda each: each.start, reverse=True):
        source = source[: mutation.start] + mutation.text.encode() + source[mutation.end :]
    return source


def mutations_of(path: str, source: bytes) -> list[Mutation]:
    """Every mutation of the functions in a Python file, in the order of its bytes; none of what does not parse."""
    try:
        source.decode("utf-8")
        module = cst.parse_module(source)
    except (UnicodeDecodeError, cst.ParserSyntaxError, RecursionError):
        return []
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    collector = _Collector(path, source, wrapper.resolve(ByteSpanPositionProvider), module)
    wrapper.module.visit(collector)
    return collector.mutations


def by_kinds(mutations: Sequence[Mutation], source: random.Random) -> list[Mutation]:
    """All of them in a drawn order in which kinds take turns."""
    kinds: dict[str, list[Mutation]] = {}
    for mutation in source.sample(mutations, len(mutations)):
        kinds.setdefault(mutation.kind, []).append(mutation)
    return [each for turn in zip_longest(*(kinds[kind] for kind in sorted(kinds))) for each in turn if each is not None]


def compiles(source: bytes) -> bool:
    """Whether a file is Python still: scopes too, which a parser alone does not look at. No mutation takes a jump out
    of its loop."""
    try:
        symtable(source.decode(), "mutated", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


class _Collector(cst.CSTVisitor):
    def __init__(self, path: str, source: bytes, spans: Mapping[cst.CSTNode, CodeSpan], module: cst.Module) -> None:
        super().__init__()
        self._path, self._source, self._spans, self._module = path, source, spans, module
        self._names: list[str] = []
        self._lines: list[int] = []
        self._breaks = [0, *(match.end() for match in re.finditer(rb"\n", source))]
        self.mutations: list[Mutation] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Enter everything but annotations, decorators and what stands in a signature."""
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._names.append(node.name.value)
            if isinstance(node, cst.FunctionDef):
                first = node.decorators[0] if node.decorators else node
                self._lines.append(self._source.count(b"\n", 0, self._spans[first].start) + 1)
        elif self._lines:
            for kind, change in _changes(node):
                self._replace(kind, node, change)
            if isinstance(node, cst.If | cst.While | cst.IfExp | cst.CompIf):
                self._replace("condition inverted", node.test, _inverted(node.test))
            self._removals(node)
        return not isinstance(node, cst.Annotation | cst.Decorator | cst.Parameters)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Leave a function or a class."""
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._names.pop()
            if isinstance(original_node, cst.FunctionDef):
                self._lines.pop()

    def _replace(self, kind: str, node: cst.CSTNode, text: "cst.CSTNode | str") -> None:
        """Where a node is written as it reads, so that nothing but the change is changed."""
        span = self._spans[node]
        start, end = span.start, span.start + span.length
        if isinstance(text, cst.CSTNode):
            if self._module.code_for_node(_bare(node)).encode() != self._source[start:end]:
                return
            text = self._module.code_for_node(_bare(text))
        self._add(kind, start, end, text)

    def _removals(self, node: cst.CSTNode) -> None:
        """Statements that have others beside them; what ``else`` does; branches without another."""
        if isinstance(node, cst.If) and isinstance(node.orelse, cst.Else):
            self._remove("branch removed", node.orelse)
        if isinstance(node, cst.IndentedBlock) and len(node.body) > 1:
            for statement in node.body:
                if isinstance(statement, cst.If):
                    if statement.orelse is None:
                        self._remove("branch removed", statement)
                elif isinstance(statement, _BLOCKS) or _is_removable(statement):
                    kind = "statement removed" if isinstance(statement, cst.SimpleStatementLine) else "block removed"
                    self._remove(kind, statement)

    def _remove(self, kind: str, node: cst.CSTNode) -> None:
        """Whole lines, from the first of the node to its last."""
        span = self._spans[node]
        end = span.start + span.length
        start = max(at for at in self._breaks if at <= span.start)
        after = next((at for at in self._breaks if at >= end), len(self._source))
        if not self._source[start : span.start].strip():
            self._add(kind, start, after, "")

    def _add(self, kind: str, start: int, end: int, text: str) -> None:
        if text.encode() != self._source[start:end]:
            name = ".".join(self._names)
            self.mutations.append(Mutation(kind, self._path, name, self._lines[-1], start, end, text))


def _bare(node: cst.CSTNode) -> cst.CSTNode:
    """``node`` without the parentheses around it, which its position leaves out."""
    return node.with_changes(lpar=(), rpar=()) if isinstance(node, cst.BaseExpression) else node


def _is_removable(statement: cst.BaseStatement) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    (only,) = statement.body
    calls = isinstance(only, cst.Expr) and isinstance(only.value, cst.Call | cst.Yield | cst.Await)
    return calls or isinstance(only, cst.Assign | cst.AugAssign | cst.Raise | cst.Return | cst.Del)


def _changes(node: cst.CSTNode) -> Iterator[tuple[str, "cst.CSTNode | str"]]:
    """(kind, what stands in the place of ``node``)."""
    for kind, classes, change in _KINDS:
        if isinstance(node, classes):
            yield from ((kind, changed) for changed in change(node))


def _operator(node: cst.BinaryOperation | cst.BooleanOperation | cst.AugAssign) -> Iterator[cst.CSTNode]:
    other = _OPERATORS.get(type(node.operator))
    if other is not None:
        spaces = {name: getattr(node.operator, name) for name in ("whitespace_before", "whitespace_after")}
        yield node.with_changes(operator=other(**spaces))


def _comparison(node: cst.Comparison) -> Iterator[cst.CSTNode]:
    for at, target in enumerate(node.comparisons):
        other = _COMPARISONS.get(type(target.operator))
        if other is not None:
            spaces = {name: getattr(target.operator, name) for name in ("whitespace_before", "whitespace_after")}
            changed = target.with_changes(operator=other(**spaces))
            yield node.with_changes(comparisons=[*node.comparisons[:at], changed, *node.comparisons[at + 1 :]])


def _constant(node: cst.Integer) -> Iterator[str]:
    value = node.evaluated_value
    yield str(value + 1)
    if value > 0:
        yield str(value - 1)


def _name(node: cst.Name) -> Iterator[str]:
    if node.value in _NAMES:
        yield _NAMES[node.value]


def _inverted(test: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    return cst.UnaryOperation(cst.Not(), _enclosed(test))


def _enclosed(node: cst.BaseExpression) -> cst.BaseExpression:
    simple = cst.Name | cst.Call | cst.Attribute | cst.Subscript | cst.Comparison
    if isinstance(node, simple) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _arguments(node: cst.Call) -> Iterator[cst.CSTNode]:
    """Two positional arguments beside each other change places."""
    for at, (left, right) in enumerate(pairwise(node.args)):
        if not (left.star or right.star or left.keyword or right.keyword):
            swapped = [left.with_changes(value=right.value), right.with_changes(value=left.value)]
            yield node.with_changes(args=[*node.args[:at], *swapped, *node.args[at + 2 :]])


def _bound(node: cst.Call | cst.Slice) -> Iterator[cst.CSTNode]:
    """A loop over ``range`` and a slice end one earlier or one later."""
    for operator in (cst.Add(), cst.Subtract()):
        if isinstance(node, cst.Slice):
            if node.upper is not None:
                yield node.with_changes(upper=_off(node.upper, operator))
        elif isinstance(node.func, cst.Name) and node.func.value == "range" and 1 <= len(node.args) <= 2:
            last = node.args[-1]
            if not last.star:
                yield node.with_changes(args=[*node.args[:-1], last.with_changes(value=_off(last.value, operator))])


def _off(value: cst.BaseExpression, operator: cst.BaseBinaryOp) -> cst.BaseExpression:
    """One more or less; a sum that ends in a number stays, for its number is a constant of its own."""
    if isinstance(value, cst.BinaryOperation):
        return value if isinstance(value.right, cst.Integer) else cst.BinaryOperation(value, operator, cst.Integer("1"))
    return cst.BinaryOperation(_enclosed(value), operator, cst.Integer("1"))


def _jump(node: cst.Continue | cst.Break) -> Iterator[str]:
    yield "break" if isinstance(node, cst.Continue) else "continue"


def _negation(node: cst.UnaryOperation) -> Iterator[cst.CSTNode]:
    if isinstance(node.operator, cst.Not | cst.Minus):
        yield node.expression


Change = Callable[[Any], Iterator["cst.CSTNode | str"]]
"""From a node of the classes beside it."""
_KINDS: tuple[tuple[str, type | tuple[type, ...], Change], ...] = (
    ("operator changed", (cst.BinaryOperation, cst.BooleanOperation, cst.AugAssign), _operator),
    ("comparison changed", cst.Comparison, _comparison),
    ("constant changed", cst.Integer, _constant),
    ("name exchanged", cst.Name, _name),
    ("arguments swapped", cst.Call, _arguments),
    ("bound off by one", (cst.Call, cst.Slice), _bound),
    ("jump exchanged", (cst.Continue, cst.Break), _jump),
    ("sign removed", cst.UnaryOperation, _negation),
)
"""Beside inverted conditions, and removals."""
