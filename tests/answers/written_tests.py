"""Answers to tasks that ask for tests."""

import re

from agent0.verification.repositories.wrong_versions import TESTS
from tests.answers import Answers, DomainTask
from tests.test_generated_tests import NO_TESTS

_TEST = re.compile(r"def test_\d+\(\):\n    assert (.*?) == (.*)\n")
EARNING_NOTHING = frozenset(NO_TESTS)


def _asserts(task: DomainTask) -> list[tuple[str, str]]:
    """Calls of the reference with their values."""
    return _TEST.findall(task.reference[TESTS].decode())


def _written(asserts: list[tuple[str, str]], name: str = "test_{}") -> str:
    return "\n\n".join(
        f"def {name.format(at)}():\n    assert {call} == {value}\n" for at, (call, value) in enumerate(asserts)
    )


def right(task: DomainTask) -> Answers:
    """The same calls in other tests."""
    asserts = _asserts(task)
    lines = "".join(f"    assert {call} == {value}\n" for call, value in asserts)
    values = [(call, f"({value})" if not value.startswith("(") else value) for call, value in asserts]
    texts = {
        "other names": _written(asserts, "test_of_{}"),
        "other order": _written(asserts[::-1]),
        "one test": f"def test_all():\n{lines}",
        "one test with a docstring": f'def test_all():\n    """All calls."""\n{lines}',
        "values in brackets": _written(values),
        "imports": "import pytest\n\n" + _written(asserts),
        "comments": "# Tests.\n" + _written(asserts),
        "a call twice": f"def test_all():\n{lines}{lines.splitlines()[0]}\n",
    }
    return {name: {TESTS: text.encode()} for name, text in texts.items()}


def wrong(task: DomainTask) -> Answers:
    """What is no test, what a version survives, and what the package itself fails."""
    asserts, call = _asserts(task), _asserts(task)[0][0]
    texts = {
        name: text.replace("{call}", call).replace("{name}", call.partition("(")[0]) for name, text in NO_TESTS.items()
    }
    for at in range(len(asserts)):
        texts[f"one left out {at}"] = _written([*asserts[:at], *asserts[at + 1 :]])
        texts[f"one wrong {at}"] = _written([*asserts[:at], (asserts[at][0], "'nothing'"), *asserts[at + 1 :]])
    many = [asserts[0]] * (len(task.hidden.tests) + len(asserts))
    texts["a heap of the same"] = _written([*asserts, *many])
    if shown := task.tree.get("tests/test_series.py"):
        texts["what the folder has"] = shown.decode()
    answers: Answers = {name: {TESTS: text.encode()} for name, text in texts.items()}
    answers["in another file"] = {"tests/test_other.py": task.reference[TESTS]}
    answers["the package changed"] = {
        TESTS: _written([(call, "0")]).encode(),
        **dict.fromkeys(task.code(task.tree), b""),
    }
    answers["the checker edited"] = {"versions.json": b"[]", TESTS: b"def test():\n    assert True\n"}
    return answers
