"""Benchmarks that run programs: references pass, others and cheats do not; scenarios are solved from their files."""

import asyncio
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agent0.evaluation.benchmarks import Item, benchmarks, make_items, plus, read_items
from agent0.infra.sandbox import Bubblewrap
from agent0.infra.storage.datasets import load
from agent0.ports.sandbox import SandboxCall
from agent0.verification.programs.judged import values

ROWS = Path(__file__).parents[3] / "shared" / "benchmarks"
needs_rows = pytest.mark.skipif(not ROWS.is_dir(), reason="needs the benchmark rows beside the checkout")
in_the_sandbox = pytest.mark.asyncio(loop_scope="session")
CHEATS = (
    "import os\ndef {}(*_):\n    os._exit(0)",
    "class Same(list):\n    def __eq__(self, _):\n        return True\ndef {}(*_):\n    return Same()",
    "def {}(*_):\n    return None",
)
ROW: dict[str, Any] = {
    "task_id": "Mbpp/0",
    "prompt": '"""\nWrite a function that gives what is in both.\nassert set(both((3, 4), (4, 5))) == {4}\n"""\n',
    "entry_point": "both",
    "canonical_solution": "def both(a, b):\n    assert type(a) is tuple\n    return tuple(set(a) & set(b))\n",
    "base_input": [[[3, 4], [4, 5]]],
    "plus_input": "[[[], []], [[1, 2, 2], [2, 1]]]",
    "assertion": "assert set(both((3, 4), (4, 5))) == {4}\nassert set(both((1,), (2,))) == set()\n",
    "atol": 0,
}


def row(**changes: Any) -> Item:
    (item,) = read_items(benchmarks()["mbppplus"], json.dumps({**ROW, **changes}), "rows.jsonl")
    return item


async def grades(items: list[Item], replies: list[str], sandbox: Bubblewrap) -> list[bool | None]:
    judge = benchmarks()["coding"].judge
    assert judge is plus.judge
    found = await asyncio.gather(*(judge(i, r, None, sandbox) for i, r in zip(items, replies, strict=True)))
    return [one.correct for one in found]


@needs_rows
@in_the_sandbox
async def test_humaneval_plus_by_what_its_solutions_give(sandbox: Bubblewrap) -> None:
    entry, held = benchmarks()["humanevalplus"], load(ROWS / "HumanEvalPlus-Mini.jsonl.gz")
    items = read_items(entry, held.text, held.name)
    assert len(items) == 164
    chosen = [item for item in items if item.id in ("HumanEval/2", "HumanEval/32", "HumanEval/100")]
    assert await grades(chosen, [item.reference for item in chosen], sandbox) == [True] * 3
    cheats = [cheat.format(chosen[0].gold) for cheat in CHEATS]
    assert await grades([chosen[0]] * 3, cheats, sandbox) == [False] * 3


@in_the_sandbox
async def test_arguments_of_mbpp_plus_have_the_types_of_its_assertions(sandbox: Bubblewrap) -> None:
    item = row()
    lists = "def both(a, b):\n    return sorted(set(a) & set(b), reverse=True)"
    first = "def both(a, b):\n    return a[:1]"
    assert await grades([item] * 3, [item.reference, lists, first], sandbox) == [True, True, False]
    broken = row(canonical_solution="def both(a, b):\n    raise ValueError")
    assert await grades([broken], [item.reference], sandbox) == [None], "nothing to compare with is undecided"
    assertion = {"prompt": '"""Does it begin with a?"""', "assertion": "assert both('ab', 1)\nassert not both('b', 1)"}
    match = "import re\ndef both(a, b):\n    return re.match('a', a)"
    truth = row(**assertion, canonical_solution=match, base_input=[["ab", 1], ["b", 1]], plus_input="[]")
    replies = [truth.reference, "def both(a, b):\n    return a[0] == 'a'", "def both(a, b):\n    return None"]
    assert await grades([truth] * 3, replies, sandbox) == [True, True, False], "a match is true, and stays at home"
    strange = row(
        canonical_solution=match, base_input=[["ab", 1]], plus_input="[]", assertion="assert both('a', 1) == 2"
    )
    assert await grades([strange], [strange.reference], sandbox) == [None]


@pytest.mark.parametrize(
    ("assertion", "given", "wanted"),
    [
        ("f((1, 2))", [[1, 2]], [(1, 2)]),
        ("f([(1, 'a')], 2)", [[[1, "a"], [2, "b"]], 3], [[(1, "a"), (2, "b")], 3]),
        ("f((1, (2, (3,))))", [[1, [2, [3, [4, [5]]]]]], [(1, (2, (3, (4, (5,)))))]),
        ("f({1, 2})", [[1, 2]], [{1, 2}]),
        ("f({'a': (1,)})", [{"b": [2]}], [{"b": (2,)}]),
        ("f(1j)", ["(1+2j)"], [1 + 2j]),
        ("f(1)", ["2"], [2.0]),
        ("f('1')", ["2"], ["2"]),
        ("f([1, 'a'])", [["1", 2]], [["1", 2]]),
        ("f(g(1))", [[1]], [[1]]),
    ],
)
def test_json_becomes_what_an_assertion_shows(assertion: str, given: list[Any], wanted: list[Any]) -> None:
    item = row(entry_point="f", base_input=[given], plus_input="[]", assertion=f"assert {assertion} == 0")
    (call,) = json.loads(item.data)["calls"]
    assert values.unpack(call) == ["f", wanted, {}]


def test_results_are_compared_as_assertions_compare_them() -> None:
    rules = {"set(f(1)) == set()": "set", "f(1)": "truth", "f(1) == 2": "equal", "isclose(f(1), 2)": "equal"}
    for assertion, rule in rules.items():
        item = row(prompt='"""."""', entry_point="f", base_input=[[1]], assertion=f"assert {assertion}")
        assert json.loads(item.data)["rule"] == rule


@pytest.mark.slow  # part of make knockout
@in_the_sandbox
async def test_challenges_are_passed_by_their_reference_only(sandbox: Bubblewrap) -> None:
    items = make_items(benchmarks()["coding"], 10, 3)[0]
    assert await grades(items, [item.reference for item in items], sandbox) == [True] * 10
    assert await grades(items[:4], [item.reference for item in items[1:5]], sandbox) == [False] * 4


SOLUTIONS = {
    "table": (
        r"region (\w+) in months 1 to (\d+)",
        """
        kept = [r for r in csv.DictReader(open(FILES[0])) if r["region"] == A and r["refunded"] == "no"]
        print("%.2f" % sum(float(r["amount"]) for r in kept if int(r["date"].split("-")[1]) <= int(B)))
        """,
    ),
    "tree": (
        r"article (\w+)()",
        """
        orders = [o for c in json.load(open(FILES[0]))["customers"] for o in c["orders"] if o["state"] != "cancelled"]
        print(sum(line["count"] for o in orders for line in o["lines"] if line["article"] == A))
        """,
    ),
    "database": (
        r"at least (\d+)()",
        """
        db = sqlite3.connect(FILES[0])
        sums = "SELECT person, sum(days) AS d FROM loans WHERE days >= ? GROUP BY person"
        most = f"SELECT name FROM people LEFT JOIN ({sums}) ON person = id ORDER BY coalesce(d, 0) DESC, name"
        print(db.execute(most, [int(A)]).fetchone()[0])
        """,
    ),
    "log": (
        r"service (\w+) with level (\w+)",
        """
        lines = [line for line in open(FILES[0]) if f" {B} [{A}]" in line]
        print(max((int(line.split()[-2]) for line in lines), default=0))
        """,
    ),
    "joined": (
        r"()()",
        """
        prices = json.load(open("prices.json"))
        rows = csv.DictReader(open([name for name in FILES if "basket" in name][0]))
        print(sum(prices.get(r["article"], 0) * int(r["count"]) for r in rows))
        """,
    ),
    "settings": (
        r"()()",
        """
        old, new = configparser.ConfigParser(), configparser.ConfigParser()
        new.read("new.ini"), old.read([name for name in FILES if "old" in name])
        print(sum(old[s].get(k, v) != v for s in new.sections() for k, v in new[s].items()))
        """,
    ),
}
"""Kind of scenario -> where its question holds two words (A, B), and a program of somebody who has only the files."""


@in_the_sandbox
async def test_scenarios_are_solved_from_their_files(sandbox: Bubblewrap) -> None:
    for item in make_items(benchmarks()["tool_scenarios"], 12, 9)[0]:
        pattern, program = SOLUTIONS[item.facts["subject"]]
        found = re.search(pattern, item.question)
        assert found is not None, item.question
        head = (
            f"import configparser, csv, json, sqlite3\nFILES, A, B = {sorted(item.files)!r}, {found[1]!r}, {found[2]!r}"
        )
        result = await sandbox.call(SandboxCall("python", head + textwrap.dedent(program), item.files))
        assert result.stdout.strip() == item.gold, (item.id, result.stderr)
