"""Functions of lists of whole numbers written more complicated than they need be, with the same values: what a student
is to simplify. The same draw makes the same changes."""

import ast
import random
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

CHANGES: Mapping[int, int] = {1: 3, 2: 4, 3: 5, 4: 8}
"""Changes of a repository, by level."""
_IMPORT = re.compile(r"from \.(\w+) import (.+)\n")
_ORDERS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Lt,
    ast.LtE: ast.Lt,
    ast.Gt: ast.Gt,
    ast.GtE: ast.Gt,
}
"""Comparisons of order, each with the one that leaves out what is equal."""
_CONDITIONS = ("not values", "len(values) > 3", "len(values) % 2 == 0", "sum(values) > 8")
Change = Callable[[ast.stmt, int], "list[ast.stmt] | None"]
"""From a statement and a number that makes names unique to what stands in its place; None where it does not apply."""


def complicated(modules: Mapping[str, str], changes: int, rng: random.Random) -> dict[str, str]:
    """Return ``modules`` by name with so many changes, and functions of other modules copied where they were
    imported."""
    texts = {name: _with_copies(text, modules) for name, text in modules.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    for number in range(changes):
        places = [place for name in sorted(trees) for place in _places(trees[name], number)]
        kinds = sorted({kind for kind, *_ in places})
        if not kinds:
            break
        kind = rng.choice(kinds)
        _, block, at, statements = rng.choice([place for place in places if place[0] == kind])
        block[at : at + 1] = statements
    return {name: ast.unparse(ast.fix_missing_locations(tree)) + "\n" for name, tree in trees.items()}


def _with_copies(text: str, modules: Mapping[str, str]) -> str:
    """``text`` with private copies of the functions that it imports."""
    copies = []
    for module, names in _IMPORT.findall(text):
        for node in ast.parse(modules[module]).body:
            if isinstance(node, ast.FunctionDef) and node.name in names.split(", "):
                copies.append(ast.unparse(node))
                text = re.sub(rf"\b{node.name}\(", f"_{node.name}(", text)
                copies[-1] = copies[-1].replace(f"def {node.name}(", f"def _{node.name}(")
    return "\n\n".join([*copies, _IMPORT.sub("", text)])


def _places(tree: ast.Module, number: int) -> Iterator[tuple[str, list[ast.stmt], int, list[ast.stmt]]]:
    """(kind, block, place in it, what stands there afterwards) of every change that a module can have."""
    for block in _blocks(tree):
        for at, statement in enumerate(block):
            for kind, change in _CHANGES.items():
                if (statements := change(statement, number)) is not None:
                    yield kind, block, at, statements


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """All lists of statements of a module."""
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                yield block


def _branched(function: ast.stmt, number: int) -> list[ast.stmt] | None:
    """The whole body behind a condition that does not matter, and again where it does not hold; once a function."""
    if not isinstance(function, ast.FunctionDef):
        return None
    start = 1 if ast.get_docstring(function) is not None else 0
    body = function.body[start:]
    if [argument.arg for argument in function.args.args] != ["values"] or isinstance(body[-1], ast.If):
        return None
    test = ast.parse(_CONDITIONS[(number + len(body)) % len(_CONDITIONS)], mode="eval").body
    copy = deepcopy(function)
    copy.body = [*function.body[:start], ast.If(test, deepcopy(body), deepcopy(body))]
    return [copy]


def _flagged(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """A condition is kept in a variable, which is asked once for each branch."""
    if not isinstance(statement, ast.If) or isinstance(statement.test, ast.Name | ast.UnaryOp):
        return None
    name = f"case_{number}"
    lines = ast.parse(f"{name} = False\nif 0:\n    {name} = True\nif {name}:\n    pass\nif not {name}:\n    pass").body
    _, asked, first, second = lines
    assert isinstance(asked, ast.If) and isinstance(first, ast.If) and isinstance(second, ast.If)  # noqa: S101 - above
    asked.test, first.body = statement.test, deepcopy(statement.body)
    second.body = deepcopy(statement.orelse)
    return lines if statement.orelse else lines[:3]


def _split(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """A comparison of order is made in two: what is equal has a branch of its own."""
    if not isinstance(statement, ast.If) or not isinstance(statement.test, ast.Compare) or len(statement.test.ops) > 1:
        return None
    strict = _ORDERS.get(type(statement.test.ops[0]))
    if strict is None:
        return None
    left, (right,) = statement.test.left, statement.test.comparators
    other = statement.orelse or [ast.Pass()]
    equal = other if isinstance(statement.test.ops[0], ast.Lt | ast.Gt) else statement.body
    first, second = (ast.Compare(deepcopy(left), [operator()], [deepcopy(right)]) for operator in (strict, ast.Eq))
    last = ast.If(second, deepcopy(equal), deepcopy(other))
    return [ast.If(first, deepcopy(statement.body), [last])]


def _signed(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """What is added is looked at first: below zero its opposite is subtracted."""
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, ast.Add):
        return None
    if not isinstance(statement.value, ast.Name | ast.BinOp) or not isinstance(statement.target, ast.Name):
        return None
    test = ast.Compare(deepcopy(statement.value), [ast.Lt()], [ast.Constant(0)])
    opposite = ast.UnaryOp(ast.USub(), deepcopy(statement.value))
    return [ast.If(test, [ast.AugAssign(deepcopy(statement.target), ast.Sub(), opposite)], [deepcopy(statement)])]


def _appended(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """Something is appended another way to a list that is empty."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
        return None
    if not isinstance(call.func.value, ast.Name):
        return None
    inserted = deepcopy(call)
    inserted.func, inserted.args = ast.Attribute(call.func.value, "insert"), [ast.Constant(0), *inserted.args]
    test = ast.parse(f"len({call.func.value.id}) == 0", mode="eval").body
    return [ast.If(test, [ast.Expr(inserted)], [deepcopy(statement)])]


def _first_apart(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """The first value has a loop of its own."""
    if not isinstance(statement, ast.For) or not isinstance(statement.iter, ast.Name) or statement.iter.id != "values":
        return None
    if any(isinstance(node, ast.Break) for node in ast.walk(statement)):
        return None
    first, others = deepcopy(statement), deepcopy(statement)
    first.iter, others.iter = (ast.parse(text, mode="eval").body for text in ("values[:1]", "values[1:]"))
    return [first, others]


_CHANGES: Mapping[str, Change] = {
    "body copied": _branched,
    "condition kept": _flagged,
    "comparison split": _split,
    "sign apart": _signed,
    "append apart": _appended,
    "first apart": _first_apart,
}
