"""Functions written more complicated than they need be, with the same values: what a student is to simplify. The same
draw makes the same changes. Some changes are for functions of lists of whole numbers alone."""

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


def complicated_function(source: bytes, name: str, changes: int, rng: random.Random) -> bytes:
    """Return a Python file with so many changes of its function ``name``, all else byte for byte as it was."""
    lines = source.decode().split("\n")
    function = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == name)
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    end = function.end_lineno or first
    block: list[ast.stmt] = [function]
    for number in [at for at in range(1000) if f"case_{at}" not in source.decode()][:changes]:
        places = [*_places(block[0], number, _GENERAL)]
        if isinstance(block[0], ast.FunctionDef) and (copied := _branched_by_type(block[0])):
            places.append(("body copied", block, 0, copied))
        if not places:
            break
        kind = rng.choice(sorted({kind for kind, *_ in places}))
        _, body, at, statements = rng.choice([place for place in places if place[0] == kind])
        body[at : at + 1] = statements
    text = ast.unparse(ast.fix_missing_locations(block[0])).split("\n")
    return "\n".join([*lines[: first - 1], *text, *lines[end:]]).encode()


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


def _places(
    tree: ast.AST, number: int, changes: "Mapping[str, Change] | None" = None
) -> Iterator[tuple[str, list[ast.stmt], int, list[ast.stmt]]]:
    """(kind, block, place in it, what stands there afterwards) of every change that a module can have."""
    for block in _blocks(tree):
        for at, statement in enumerate(block):
            for kind, change in (_CHANGES if changes is None else changes).items():
                if (statements := change(statement, number)) is not None:
                    yield kind, block, at, statements


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """All lists of statements of a module or a function."""
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


def _branched_by_type(function: ast.FunctionDef) -> list[ast.stmt] | None:
    """The body again for an argument that is a list or a tuple; once a function."""
    start = 1 if ast.get_docstring(function) is not None else 0
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    body = function.body[start:]
    is_scoped = any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(function))
    if not names or not body or is_scoped or isinstance(body[-1], ast.If):
        return None
    test = ast.parse(f"isinstance({names[0]}, (list, tuple))", mode="eval").body
    copy = deepcopy(function)
    copy.body = [*function.body[:start], ast.If(test, deepcopy(body), deepcopy(body))]
    return [copy]


def _either_apart(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """Where either of two conditions is enough each has a branch of its own."""
    if not isinstance(statement, ast.If) or not isinstance(statement.test, ast.BoolOp):
        return None
    if not isinstance(statement.test.op, ast.Or):
        return None
    first, *others = statement.test.values
    second = others[0] if len(others) == 1 else ast.BoolOp(ast.Or(), others)
    return [ast.If(first, deepcopy(statement.body), [ast.If(second, deepcopy(statement.body), statement.orelse)])]


def _flagged_once(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """As ``_flagged``, but no flag is kept in another."""
    match statement:
        case ast.If(body=[ast.Assign(targets=[ast.Name(id=name)])]) if name.startswith("case_"):
            return None
    return _flagged(statement, number)


def _looked_at(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """What is returned is asked first whether it is nothing."""
    if (
        not isinstance(statement, ast.Return)
        or statement.value is None
        or isinstance(statement.value, ast.Constant | ast.Name)
    ):
        return None
    lines = ast.parse(f"case_{number} = 0\nif case_{number} is None:\n    pass\npass").body
    kept, branch, _ = lines
    assert isinstance(kept, ast.Assign) and isinstance(branch, ast.If)  # noqa: S101 - as written above
    kept.value, branch.body = statement.value, [ast.Return(ast.Constant(None))]
    return [kept, branch, ast.Return(ast.Name(f"case_{number}", ast.Load()))]


def _asked_inside(statement: ast.stmt, number: int) -> list[ast.stmt] | None:
    """A loop goes on for ever, and its condition ends it from inside."""
    if not isinstance(statement, ast.While) or statement.orelse or isinstance(statement.test, ast.Constant):
        return None
    end = ast.If(ast.UnaryOp(ast.Not(), statement.test), [ast.Break()], [])
    return [ast.While(ast.Constant(True), [end, *deepcopy(statement.body)], [])]


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
_GENERAL: Mapping[str, Change] = {
    "condition kept": _flagged_once,
    "either apart": _either_apart,
    "loop asked inside": _asked_inside,
    "return looked at": _looked_at,
}
"""Changes of any function, beside its body copied."""
