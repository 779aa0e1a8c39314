"""Programs judged by tests they never share a process with: right ones pass, wrong ones and cheats do not."""

import ast
import asyncio
import json
import random
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.infra.sandbox import Bubblewrap
from agent0.verification.labelled_pairs import read_pairs
from agent0.verification.programs import Problem, ProgramOutcome, check
from agent0.verification.programs.judged import values
from agent0.verification.programs.source import program_of, stands, top_level

ROWS = Path(__file__).parents[3] / "shared" / "benchmarks"
needs_rows = pytest.mark.skipif(not ROWS.is_dir(), reason="needs the benchmark rows beside the checkout")
in_the_sandbox = pytest.mark.asyncio(loop_scope="session")
DOUBLE = Problem("assert double(3) == 6\nassert double('ab') == 'abab'", entry="double")

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | st.fractions()
    | st.decimals(allow_nan=False) | st.complex_numbers(allow_nan=False) | st.builds(range, st.integers(0, 9)),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.lists(inner, max_size=3).map(deque)
    | st.dictionaries(st.integers() | st.text() | st.booleans(), inner, max_size=3)
    | st.sets(st.integers() | st.text(), max_size=3) | st.frozensets(st.integers(), max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(plain)
def test_plain_data_crosses_with_its_types(value: Any) -> None:
    back = values.unpack(values.pack(value))
    assert back == value
    assert type(back) is type(value)
    assert values.pack(back) == values.pack(value)


class Liar(int):
    """Equal to everything, while it is at home."""

    def __eq__(self, _: object) -> bool:
        return True

    __hash__ = int.__hash__


def test_what_lies_at_home_is_plain_abroad_or_stays() -> None:
    assert (values.unpack(values.pack(Liar(3))) == 4) is False
    assert values.unpack(values.pack([Fraction(1, 3), Decimal("0.10")])) == [Fraction(1, 3), Decimal("0.10")]
    endless: list[Any] = []
    endless.append(endless)
    for value in (object(), lambda: 0, iter([1, 2]), endless, [0] * 200_000):
        with pytest.raises(values.OpaqueError):
            values.pack(value)


@pytest.mark.parametrize(
    ("reply", "setup", "entry", "expected"),
    [
        ("Here:\n```python\ndef f(x):\n    return x\n```\nDone.", "", "f", "def f(x):"),
        ("```\ndef g(): pass\n```\n```python\ndef f(x):\n    return 2\n```", "", "f", "return 2"),
        ("    return x + 1\n", "def f(x):\n    '''Add.'''\n", "f", "'''Add.'''\n    return x + 1"),
        ("return x + 1", "def f(x):\n    '''Add.'''\n", "f", "    return x + 1"),
        (
            "def f(x):\n    return h(x)",
            "import math\ndef h(x):\n    return 1\ndef f(x):\n    '''.'''\n",
            "f",
            "def h(x):",
        ),
        ("```python\ndef f(x):\n    return 1", "", "f", "def f(x):\n    return 1"),
    ],
)
def test_a_reply_becomes_a_program(reply: str, setup: str, entry: str, expected: str) -> None:
    assert expected in program_of(reply, setup, entry)
    ast.parse(program_of(reply, setup, entry))


def test_tests_say_what_only_the_candidate_can_define() -> None:
    test = (
        "def check(candidate):\n    assert candidate([1], k=2) == 3\n    assert math.isclose(candidate(x), helper(2))"
    )
    assert stands(test, "", "f") == ["f", "helper", "x"]


DATA = Path(__file__).parents[1] / "data"
ATTEMPTS = [json.loads(line) for line in (DATA / "forging_programs.jsonl").read_text(encoding="utf-8").splitlines()]
EVASIONS = [json.loads(line) for line in (DATA / "evading_programs.jsonl").read_text(encoding="utf-8").splitlines()]
TWINS = [json.loads(line) for line in (DATA / "evading_twins.jsonl").read_text(encoding="utf-8").splitlines()]
HUMANEVAL = [json.loads(line) for line in (DATA / "humaneval_rows.jsonl").read_text(encoding="utf-8").splitlines()]


async def _forged(sandbox: Bubblewrap, rows: list[list[dict[str, Any]]]) -> list[tuple[str, str, ProgramOutcome]]:
    """What is not refused of ``ATTEMPTS``, each at its ``rows``."""
    tried = [(one, row) for one, chosen in zip(ATTEMPTS, rows, strict=True) for row in chosen]
    problems = [Problem(row["test"], row["prompt"], row["entry_point"], wall_s=2.0) for _, row in tried]
    replies = [one["program"].replace("NAME", row["entry_point"]) for one, row in tried]
    outcomes = await _all(sandbox, list(zip(problems, replies, strict=True)))
    found = [(one["attempt"], row["task_id"], out) for (one, row), out in zip(tried, outcomes, strict=True)]
    return [one for one in found if one[2].passed is not False or not one[2].reason]


@in_the_sandbox
async def test_no_program_that_computes_nothing_is_accepted(sandbox: Bubblewrap) -> None:
    assert (
        len(ATTEMPTS) > 50
        and await _forged(sandbox, [[HUMANEVAL[n % len(HUMANEVAL)]] for n in range(len(ATTEMPTS))]) == []
    )


@pytest.mark.slow  # part of make knockout
@in_the_sandbox
async def test_no_program_that_computes_nothing_is_accepted_anywhere(sandbox: Bubblewrap) -> None:
    assert await _forged(sandbox, [HUMANEVAL] * len(ATTEMPTS)) == []


NO_TESTS = (
    "def main():\n    assert sq(3) == 9\n",
    "class Helper:\n    def check(self):\n        assert sq(3) == 9\n",
    "x = 1\n",
    "assert True\n",
    "import unittest\nclass T(unittest.TestCase):\n    def helper(self):\n        self.assertEqual(sq(3), 9)\n",
    "import unittest\nclass T(unittest.TestCase):\n    @unittest.skip('later')\n    def test_it(self):\n"
    "        self.assertEqual(sq(3), 9)\n",
    "import pytest\n@pytest.mark.skip\ndef test_it():\n    assert sq(3) == 9\n",
)
KINDS = read_pairs(
    (DATA / "program_kinds.jsonl").read_text(encoding="utf-8"),
    "program_kinds.jsonl",
)
BESIDE = read_pairs((DATA / "beside_programs.jsonl").read_text(encoding="utf-8"), "beside_programs.jsonl")


def _of_each(rows: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """``number`` rows of each category and label."""
    kinds = sorted({(row["category"], row["label"]) for row in rows})
    return [row for kind in kinds for row in [r for r in rows if (r["category"], r["label"]) == kind][:number]]


@in_the_sandbox
@pytest.mark.parametrize(
    "rows",
    [
        _of_each(KINDS, 3),
        _of_each(BESIDE, 1),
        pytest.param(KINDS, marks=pytest.mark.slow),
        pytest.param(BESIDE, marks=pytest.mark.slow),
    ],
    ids=["some kinds", "some objects", "all kinds", "all objects"],
)
async def test_kinds_of_programs_and_tests_are_decided_as_labelled(
    sandbox: Bubblewrap, rows: list[dict[str, Any]]
) -> None:
    """Texts around a program, classes in its place, tests that are only defined, scripts that ask for input, and values
    of the library and of the prompt's own classes."""
    seconds = {"accept": 30.0, "reject": 2.0}
    problems = [
        (Problem(r["test"], r["setup"], r["entry_point"], wall_s=seconds[r["label"]]), r["candidate"]) for r in rows
    ]
    outcomes = await _all(sandbox, problems)
    wrong = [
        (r["pair_id"], o) for r, o in zip(rows, outcomes, strict=True) if (o.passed is True) != (r["label"] == "accept")
    ]
    assert wrong == []


@in_the_sandbox
@pytest.mark.parametrize("row", EVASIONS, ids=[row["evasion"] for row in EVASIONS])
async def test_what_tests_hand_over_cannot_be_turned_against_them(sandbox: Bubblewrap, row: dict[str, str]) -> None:
    outcome = await check(Problem(row["test"], wall_s=3.0), row["program"], sandbox)
    assert outcome.passed is not True, outcome


@in_the_sandbox
@pytest.mark.parametrize("row", TWINS, ids=[row["twin"] for row in TWINS])
async def test_right_programs_that_look_like_evasions_pass(sandbox: Bubblewrap, row: dict[str, str]) -> None:
    outcome = await check(Problem(row["test"]), row["program"], sandbox)
    assert outcome.passed is True, outcome


@in_the_sandbox
@pytest.mark.parametrize("test", NO_TESTS)
async def test_where_no_test_runs_nothing_is_decided(sandbox: Bubblewrap, test: str) -> None:
    for program in ("def sq(x): return x * x", "def sq(x): return x + x"):
        outcome = await check(Problem(test, entry="sq"), program, sandbox)
        assert outcome.passed is None and "no test ran" in outcome.reason


@in_the_sandbox
async def test_what_cannot_be_compared_is_wrong_and_truth_crosses(sandbox: Bubblewrap) -> None:
    match = "import re\ndef f(x): return re.match('a', x)"
    assert (await check(Problem("assert f('ab')\nassert not f('b')", entry="f"), match, sandbox)).passed is True
    outcome = await check(Problem("assert f('ab') == 3", entry="f"), match, sandbox)
    assert (outcome.passed, "Match" in outcome.reason) == (False, True)


DEEP_LIST = "def deep(n):\n    x = []\n    for _ in range(n):\n        x = [x]\n    return x\n"
OPAQUE = "class Box:\n    pass\ndef f(x): return Box()"
LONG_TEXT = "def f(x): return 'a' * 3 * 10**6"
ENDLESS = "import itertools\ndef f(x): return itertools.count()"


@in_the_sandbox
@pytest.mark.parametrize(
    ("test", "program", "reference", "passed"),
    [
        ("assert f(3) == 6", OPAQUE, "", False),
        ("assert f(3) == 6", OPAQUE, "def f(x): return 2 * x", False),
        ("assert f(3) == 6", OPAQUE, "def f(x): return object()", None),
        ("assert f(3) == 6", OPAQUE, "def f(x): return 5", None),
        ("assert f(3) == 6", ENDLESS, "", False),
        ("assert f(3) == 6", LONG_TEXT, "", False),
        ("assert f(3) == 6", "def f(x): return list(range(10**5 + 1))", "", False),
        ("assert f(3) == 6", f"{DEEP_LIST}def f(x): return deep(5000)", "", False),
        ("assert f(3) == 6", "def f(x):\n    x = [x]\n    x.append(x)\n    return x", "", False),
        ("assert f(3) in (6, 7)", "def f(x): return [[x] * 10**6]", "", False),
        ("assert [f(3), f(4)] == [6, 8]", "def f(x): return 1 << 10**7", "", False),
        ("assert len(f(3)) == 6", LONG_TEXT, "", False),
        ("assert sorted(f(3)) == [1, 2]", "def f(x): return list(range(10**5 + 1))", "", False),
        ("assert abs(f(3) - 6) < 1e-6", "def f(x): return 1 << 10**7", "", False),
        ("assert f(3) != 6 and len(f(3)) == 10**5 + 1", "def f(x): return list(range(10**5 + 1))", "", True),
        ("assert f(3) == 'a' * 3 * 10**6", LONG_TEXT, LONG_TEXT, None),
        ("assert f(3) == 6", ENDLESS, "def f(x): return 2 * x", False),
        ("assert f(f(3)) == 12", OPAQUE, "", False),
        ("assert f(f(3)) == 12", OPAQUE, "def f(x): return 2 * x", False),
        ("assert f(print) == 6", "def f(x): return 6", "def f(x): return 6", True),
        ("assert f(3) == 6", "def f(x): return 2 * x", "def f(x): return object()", True),
    ],
)
async def test_an_opaque_result_is_wrong_unless_the_reference_has_one_too(
    sandbox: Bubblewrap, test: str, program: str, reference: str, passed: bool | None
) -> None:
    """A reference that fails says nothing."""
    outcome = await check(Problem(test, entry="f", reference=reference), program, sandbox)
    assert outcome.passed is passed, outcome


@in_the_sandbox
async def test_calls_that_follow_from_results_changed_arguments_and_raised_errors(sandbox: Bubblewrap) -> None:
    test = (
        "def check(candidate):\n    data = [3, 1]\n    candidate(data)\n    assert data == [1, 3]\n"
        "    x = 1\n    for _ in range(5):\n        x = candidate([x, 9])\n    assert x == 6\n"
        "    try:\n        candidate([])\n    except IndexError:\n        return\n    assert False"
    )
    program = "def f(items):\n    items.sort()\n    return items[0] + 1"
    outcome = await check(Problem(test, entry="f"), program, sandbox)
    assert outcome == ProgramOutcome(True, "all tests pass", outcome.calls)


def rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (ROWS / name).read_text(encoding="utf-8").split("\n"):
        if line:
            yield json.loads(line)


def humaneval() -> list[tuple[Problem, str]]:
    return [
        (Problem(r["test"], r["prompt"], r["entry_point"]), r["canonical_solution"]) for r in rows("humaneval.jsonl")
    ]


def mbpp() -> list[tuple[Problem, str]]:
    return [
        (Problem("\n".join([*row["test_imports"], *row["test_list"]]), entry=_entry(row)), row["code"])
        for row in rows("mbpp_sanitized.jsonl")
    ]


def _entry(row: dict[str, Any]) -> str:
    """The function of the reference that its tests call."""
    return next((name for name in sorted(top_level(row["code"])) if f"{name}(" in "\n".join(row["test_list"])), "")


async def _all(sandbox: Bubblewrap, problems: list[tuple[Problem, str]]) -> list[ProgramOutcome]:
    return await asyncio.gather(*(check(problem, reply, sandbox) for problem, reply in problems))


@needs_rows
@in_the_sandbox
@pytest.mark.parametrize("suite", [humaneval, mbpp])
async def test_reference_programs_pass(sandbox: Bubblewrap, suite: Any) -> None:
    """Of each ten; the slow test takes all."""
    chosen = random.Random(5).sample(suite(), 10)
    outcomes = await _all(sandbox, chosen)
    assert [(p.entry, o) for (p, _), o in zip(chosen, outcomes, strict=True) if o.passed is not True] == []


@needs_rows
@in_the_sandbox
@pytest.mark.slow
@pytest.mark.parametrize("suite", [humaneval, mbpp])
async def test_every_reference_program_passes(sandbox: Bubblewrap, suite: Any) -> None:
    outcomes = await _all(sandbox, suite())
    assert [o for o in outcomes if o.passed is not True] == []


@in_the_sandbox
@pytest.mark.slow  # part of make knockout
async def test_programs_of_other_sources_fare_the_same(sandbox: Bubblewrap) -> None:
    """Right ones in every dress pass; mutants and attacks do not, and what cannot cross is wrong."""
    path = Path(__file__).parents[1] / "data" / "program_pairs.jsonl"
    chosen = read_pairs(path.read_text(encoding="utf-8"), path.name)
    problems = [(Problem(r["test"], r["setup"], r["entry_point"]), r["candidate"]) for r in chosen]
    outcomes = await _all(sandbox, problems)
    told = {r["category"]: (o.passed, r["label"]) for r, o in zip(chosen, outcomes, strict=True)}
    assert {name: passed for name, (passed, label) in told.items() if (passed is True) != (label == "accept")} == {}
    undecided = {name for name, (passed, _) in told.items() if passed is None}
    assert undecided == set()


def of_each_category(number: int) -> list[dict[str, Any]]:
    """The first ``number`` labelled programs of each category; attacks that only wait for a limit are left out."""
    waits = ("attack.infinite_loop", "attack.sleep", "attack.memory_bomb")
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows("code_verifier_pairs.jsonl"):
        found.setdefault(row["category"], []).append(row)
    return [row for category, all_rows in found.items() if category not in waits for row in all_rows[:number]]


@needs_rows
@in_the_sandbox
@pytest.mark.parametrize("number", [1, pytest.param(1000, marks=pytest.mark.slow)], ids=["sample", "all"])
async def test_labelled_programs_are_decided_as_labelled(sandbox: Bubblewrap, number: int) -> None:
    """What is to be refused may wait for its limit: more time would only be more time to pass by mistake, and that
    shows at once."""
    chosen = of_each_category(number)
    seconds = {"accept": 30.0, "reject": 3.0}
    problems = [
        (Problem(r["test"], r["setup"], r["entry_point"], wall_s=seconds[r["label"]]), r["candidate"]) for r in chosen
    ]
    outcomes = await _all(sandbox, problems)
    wrong = [
        r["pair_id"] for r, o in zip(chosen, outcomes, strict=True) if (o.passed is True) != (r["label"] == "accept")
    ]
    assert wrong == []
