"""Tests that run beside a program, without the literals that they compare with."""

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.verification.labelled_pairs import read_pairs
from agent0.verification.programs import Outcome, Problem, check
from agent0.verification.programs.inside import values
from agent0.verification.programs.observed import judged, rewritten, together
from tests.test_program_verdicts import Folder

_PATH = Path(__file__).parent / "data" / "beside_programs.jsonl"
ROWS = read_pairs(_PATH.read_text(encoding="utf-8"), _PATH.name)
SAMPLE = {(row["category"], row["label"]): row for row in ROWS}
LITERALS = st.recursive(
    st.one_of(st.integers(10**6, 10**9), st.text("xyz", min_size=9)), lambda inner: st.lists(inner, min_size=1)
)
SIGNS = st.sampled_from(["==", "!=", "<", "in"])


def _decided(row: dict[str, Any]) -> Outcome:
    return asyncio.run(check(Problem(row["test"], row["setup"], row["entry_point"]), row["candidate"], Folder()))


@pytest.mark.parametrize("kind", [kind for kind in SAMPLE if kind[0] in ("enum", "coroutine", "context", "functions")])
def test_programs_whose_objects_cannot_cross_are_decided_as_labelled(kind: tuple[str, str]) -> None:
    assert (_decided(SAMPLE[kind]).passed is True) == (kind[1] == "accept")


@pytest.mark.slow  # part of make knockout
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["pair_id"])
def test_all_programs_whose_objects_cannot_cross_are_decided_as_labelled(row: dict[str, Any]) -> None:
    assert (_decided(row).passed is True) == (row["label"] == "accept")


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["category"] == "attacked" and "open(" in row["candidate"]][:1], ids=["forged"]
)
def test_a_forged_record_proves_nothing(row: dict[str, Any]) -> None:
    assert _decided(row).passed is not True


@given(LITERALS, SIGNS, st.booleans())
def test_literals_of_assertions_stay_here(literal: Any, sign: str, turned: bool) -> None:
    sides = (repr(literal), "f(1).x")
    found = rewritten(f"assert {sides[turned]} {sign} {sides[not turned]} and g(2) == {literal!r}")
    ast.parse(found.source)
    assert repr(literal) not in found.source
    assert [one.literal for one in found.expected.values()] == [literal] * 2


@given(LITERALS, LITERALS)
def test_a_value_passes_that_is_the_literal(literal: Any, other: Any) -> None:
    found = rewritten(f"assert f() == {literal!r}")
    line = {"place": 1, "value": values.pack(other)}
    assert judged(found, [line, {"done": True}])[0] is (literal == other)
    assert judged(found, [line])[0] is (None if literal == other else False)


def test_a_run_that_compares_nothing_or_skips_an_assertion_is_undecided() -> None:
    found = rewritten("assert f() == 4\nassert g() == 5")
    assert judged(found, [{"place": 1, "value": values.pack(4)}, {"done": True}])[0] is None
    assert judged(rewritten("assert f()"), [{"place": 1}, {"done": True}])[0] is None
    assert judged(found, [{"place": 1, "value": "forged"}, {"done": True}])[0] is False


def test_tests_of_plain_functions_need_nothing_beside_them() -> None:
    assert not together("assert f(2) == 4", "def f(x): return x", ["f"])
    assert together("assert f(lambda x: x)(2) == 2", "def f(x): return x", ["f"])
    assert together("assert f().x == 4", "class f: x = 4", ["f"])
    assert not together("assert f(2) ==", "", [])


def test_a_program_within_closed_thoughts_is_none() -> None:
    thought = "<think>\n```python\ndef f(x):\n    return 2 * x\n```\n</think>\n"
    problem = Problem("assert f(2) == 4", entry="f")
    assert asyncio.run(check(problem, f"{thought}I give up.", Folder())).passed is False
    assert asyncio.run(check(problem, f"{thought}```\ndef f(x): return x + x\n```", Folder())).passed is True
