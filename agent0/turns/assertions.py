"""Tests of a function and checks of an answer, as language models write them. Parsed, never run."""

import ast
import re
from contextlib import suppress
from itertools import takewhile
from textwrap import dedent
from warnings import catch_warnings

from agent0.turns.programs import is_python

CHECK = "check"
"""The function that says whether an answer is right."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_mark = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+")


def parsed(code: str) -> list[ast.stmt]:
    """Return the statements of ``code``; none where it is no Python."""
    if not is_python(code):
        return []
    with catch_warnings(action="ignore"):
        return ast.parse(code).body


def as_assertions(tests: str) -> str:
    """Return ``tests`` without the marks of a list, and with each comparison that is bare or printed as an
    assertion."""
    tests = dedent(tests).strip("\n")
    lines = [line for line in tests.splitlines() if line.strip()]
    if all(_mark.match(line) for line in lines):
        tests = "\n".join(_mark.sub("", line).strip("` ") for line in lines)
    comparisons = [_comparison(statement) for statement in parsed(tests)]
    if not any(comparisons):
        return tests
    texts = [ast.get_source_segment(tests, statement) or "" for statement in parsed(tests)]
    shown = [ast.get_source_segment(tests, comparison) if comparison else "" for comparison in comparisons]
    return "\n".join(f"assert {bare}" if bare else text for bare, text in zip(shown, texts, strict=True))


def _comparison(statement: ast.stmt) -> ast.Compare | None:
    """The comparison that ``statement`` is, or that it prints; None for any other."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print":
        value = value.args[0] if len(value.args) == 1 else None
    return value if isinstance(value, ast.Compare) else None


def has_assertion(tests: str) -> bool:
    """Return whether ``tests`` assert anything, themselves or by a method named so."""
    nodes = [node for statement in parsed(tests) for node in ast.walk(statement)]
    names = (node.attr for node in nodes if isinstance(node, ast.Attribute))
    return any(isinstance(node, ast.Assert) for node in nodes) or any(name.startswith("assert") for name in names)


def split_tests(program: str) -> tuple[str, str]:
    """Split a function from the tests behind it; no tests where it has none, or prints what it computes."""
    body = parsed(program)
    before = list(takewhile(lambda statement: not _is_test(statement), body))
    definitions = [number for number, statement in enumerate(before, 1) if isinstance(statement, _Definition)]
    if not definitions or prints(program):
        return program, ""
    lines = program.splitlines()
    end = before[definitions[-1] - 1].end_lineno or 0
    tests = "\n".join(lines[end:]).strip("\n")
    return ("\n".join(lines[:end]), tests) if has_assertion(tests) else (program, "")


def _is_test(statement: ast.stmt) -> bool:
    named = isinstance(statement, _Definition) and statement.name.lower().startswith("test")
    return named or isinstance(statement, ast.Assert | ast.If)


def prints(program: str) -> bool:
    """Return whether a statement of ``program`` itself prints a value, not just that all went well."""
    return any(_prints(statement) for statement in parsed(program))


def _prints(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    printing = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
    return printing and not all(isinstance(argument, ast.Constant) for argument in call.args)  # type: ignore[union-attr]


def tested(program: str, tests: str) -> dict[str, str]:
    """Return the functions and classes of ``program`` that ``tests`` use, with the first line of each; where they are
    handed a candidate, its last function."""
    nodes = [node for statement in parsed(tests) for node in ast.walk(statement)]
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    heads = {s.name: _head(s) for s in parsed(program) if isinstance(s, _Definition)}
    chosen = {name: head for name, head in heads.items() if name in used}
    hands_over = any(isinstance(s, ast.FunctionDef) and s.name == CHECK for s in parsed(tests))
    return chosen or dict([*heads.items()][-1:] if hands_over else ())


def _head(definition: _Definition) -> str:
    if isinstance(definition, ast.ClassDef):
        return f"class {definition.name}:"
    asynchronous = "async " * isinstance(definition, ast.AsyncFunctionDef)
    with suppress(RecursionError):
        return f"{asynchronous}def {definition.name}({ast.unparse(definition.args)}):"
    return f"{asynchronous}def {definition.name}(…):"


def as_checker(text: str) -> str:
    """Return a program that defines ``check(answer)`` from one that defines a function of one answer, or from an
    expression of ``answer``; empty where ``text`` is neither."""
    body = parsed(text)
    if len(body) == 1 and isinstance(body[0], ast.Expr):
        return _of_expression(text.strip(), body[0].value)
    definitions = [statement for statement in body if isinstance(statement, ast.FunctionDef)]
    functions = [definition.name for definition in definitions if _takes_one(definition.args)]
    if CHECK in functions or not functions:
        return text if functions or _binds_check(body) else ""
    used = {node.id for definition in definitions for node in ast.walk(definition) if isinstance(node, ast.Name)}
    return f"{text}\n{CHECK} = {next((name for name in functions if name not in used), functions[-1])}"


def _of_expression(text: str, value: ast.expr) -> str:
    if isinstance(value, ast.Lambda):
        return f"{CHECK} = {text}" if _takes_one(value.args) else ""
    uses = any(isinstance(node, ast.Name) and node.id == "answer" for node in ast.walk(value))
    return f"def {CHECK}(answer):\n    return (\n{text}\n)" if uses else ""


def _takes_one(arguments: ast.arguments) -> bool:
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = len(positional) - len(arguments.defaults)
    return needed <= 1 <= len(positional) and all(arguments.kw_defaults)


def _binds_check(body: list[ast.stmt]) -> bool:
    """Whether ``check`` is a lambda."""
    assigned = (s for s in body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Lambda))
    return any(isinstance(target, ast.Name) and target.id == CHECK for s in assigned for target in s.targets)
