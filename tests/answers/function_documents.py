"""Answers to tasks that ask for the docstring of a function of a published package."""

import ast

from agent0.assembly.mining.functions.documents import with_docstring
from agent0.verification.repositories.determining_examples import DeterminingExamples, HiddenDocstring, parameters
from tests.answers import Answers, DomainTask


def _hidden(task: DomainTask) -> HiddenDocstring:
    assert isinstance(task.hidden, DeterminingExamples)
    return task.hidden.hidden


def _parts(task: DomainTask) -> tuple[str, list[str], str]:
    """Words that name all parameters, examples that decide, and the file without them."""
    hidden = _hidden(task)
    before = task.tree[hidden.path]
    nodes = [each for each in ast.parse(before).body if isinstance(each, ast.FunctionDef) and each.name == hidden.name]
    words = "Use " + ", ".join(sorted(parameters(nodes[0]))) + " as they are meant."
    return words, [f">>> {call}\n{value}" for call, value in hidden.calls[:15]], before.decode()


def _written(task: DomainTask, *parts: str) -> dict[str, bytes]:
    hidden = _hidden(task)
    return {hidden.path: with_docstring(task.tree[hidden.path], hidden.name, "\n\n".join(parts))}


def right(task: DomainTask) -> Answers:
    """Other words, and calls that the package's tests make as examples."""
    words, examples, _ = _parts(task)
    answers: Answers = {
        "other words": _written(task, words, *examples),
        "examples first": _written(task, *examples, words),
        "examples without gaps": _written(task, words, "\n".join(examples)),
        "other files": {**_written(task, words, *examples), "README.txt": b"more", "sums/other.py": b"def"},
    }
    return answers


def wrong(task: DomainTask) -> Answers:
    """What has no words, no examples or false ones, holds code, or changes something else."""
    hidden, (words, examples, before) = _hidden(task), _parts(task)
    body = "\n".join(line for line in before.splitlines() if line.strip().startswith(("return", "if ", "for ")))
    first = hidden.calls[0][0]
    answers: Answers = {
        "no words": _written(task, *examples),
        "no examples": _written(task, words),
        "a false example": _written(task, words, *examples, f">>> {first}\n'nothing'"),
        "an example of nothing": _written(task, words, ">>> 1 + 1\n2"),
        "an example that imports": _written(task, words, *examples, ">>> import os"),
        "an example of another": _written(task, words, *examples, ">>> len([1])\n1"),
        "an example that runs": _written(task, words, f">>> {hidden.name}(__import__('os').getpid())\n1"),
        "an error": _written(task, words, f">>> {hidden.name}()\nTraceback (most recent call last):\nTypeError: no"),
        "one example": _written(task, words, f">>> {hidden.calls[-1][0]}\n{hidden.calls[-1][1]}"),
        "the code": _written(task, words, body, *examples),
        "code in a line": _written(task, words, "return value", *examples),
        "too long": _written(task, words * 400, *examples),
        "too many": _written(task, words, *(examples * 30)[:30]),
        "the code changed": {hidden.path: _written(task, words, *examples)[hidden.path] + b"\nmore = 1\n"},
        "no Python": {hidden.path: b"def"},
        "the checker edited": {**_written(task, words), "docstring.json": b"{}", "doctest.py": b""},
        "in another file": {"docs/sums.txt": _written(task, words, *examples)[hidden.path]},
    }
    return answers
