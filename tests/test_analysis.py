"""What scores are made of: modes add up, patterns survive rewording and nothing else, claims need their test."""

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.evaluation.failure_modes import ItemOutcome, error_class, failure_modes
from agent0.rollout.solution_diversity import expected_patterns, signature, variety
from agent0.rollout.tool_patterns import ANSWER, START, Call, Trace, tool_shares, transitions, used, with_and_without
from agent0.stats.claims import Scored, claims, step_by_step

outcomes = st.builds(
    ItemOutcome,
    st.sampled_from([True, False, None]),
    st.fixed_dictionaries({"domain": st.sampled_from("abc"), "error": st.sampled_from(["", "x", "y"])}),
)


@given(st.lists(outcomes, max_size=40))
def test_modes_of_a_dimension_add_up_to_all_failures(held: list[ItemOutcome]) -> None:
    failed = sum(one.correct is not True for one in held)
    modes = failure_modes(held)
    assert [mode.gain for mode in modes] == sorted((mode.gain for mode in modes), reverse=True)
    assert all(mode.wrong > 0 and mode.lower95 <= mode.gain <= mode.upper95 for mode in modes)
    domains = [mode for mode in modes if mode.by == "domain"]
    if domains:
        assert sum(mode.wrong for mode in domains) == failed
        assert sum(mode.share for mode in domains) == pytest.approx(1)
        right = sum(one.correct is True for one in held) / len(held)
        assert right + sum(mode.gain for mode in domains) == pytest.approx(1)
    assert bool(modes) <= bool(failed)


@pytest.mark.parametrize(
    ("answer", "correct", "right", "end", "told"),
    [
        ("4", True, "4", "answered", ""),
        (None, False, "4", "turn_limit", "out_of_turns"),
        (" ", False, "4", "answered", "no_answer"),
        ("4", None, "", "answered", "undecided"),
        ("four", False, "4", "answered", "format"),
        ("-4", False, "4", "answered", "sign"),
        ("5", False, "4", "answered", "off_by_one"),
        ("1,010", False, "1000", "answered", "near_value"),
        ("7", False, "4", "answered", "wrong_value"),
        ("1/0", False, "1/2", "answered", "format"),
        ("[2, 1]", False, "[1, 2]", "answered", "order"),
        ("the dog", False, "dog", "answered", "part_of_answer"),
        ("cat", False, "dog", "answered", "wrong_value"),
        ("cat", False, "", "answered", "wrong_value"),
    ],
)
def test_mistakes_have_a_class(answer: str | None, correct: bool | None, right: str, end: str, told: str) -> None:
    assert error_class(answer, correct, right=right, end=end) == told


@given(st.none() | st.text(max_size=30), st.sampled_from([False, None]), st.text(max_size=30))
def test_every_failure_has_a_class(answer: str | None, correct: bool | None, right: str) -> None:
    assert error_class(answer, correct, right=right)


def python(code: str) -> str:
    return signature([Call("python", "ok", {"code": code})])


SAME = [
    ("print(12*7)", "print(3 * 40)  # by hand"),
    ("a = 1\nb = 2\nprint(a + b)", "x = 9\ny = 7\nprint(y + x)"),
    ("print(sum([1, -2, 3]))", "print(sum([4]))"),
    ("print(2*(3+4))", "print((9+8)*7)"),
    ("def f(n):\n    return n*2\nprint(f(4))", "def g(m):\n  return 3*m\nprint(g(5))"),
]
OTHER = [
    ("print(12*7)", "print(12+7)"),
    ("print(12/7)", "print(7//12)"),
    ("print(sorted([1]))", "print(sum([1]))"),
    ("import math\nprint(math.gcd(1, 2))", "import math\nprint(math.lcm(1, 2))"),
    ("print(1)", "print('1')"),
    ("ls -la | wc -l", "ls -la | sort"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_rewording_keeps_the_pattern(one: str, other: str) -> None:
    assert python(one) == python(other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_way_is_another_pattern(one: str, other: str) -> None:
    assert python(one) != python(other)


def test_order_and_tool_are_part_of_the_pattern() -> None:
    one, two = Call("python", "ok", {"code": "print(1)"}), Call("sympy", "ok", {"expression": "1+1"})
    told = [signature(calls) for calls in ([one], [two], [one, two], [two, one], [one, one])]
    assert len(set(told)) == 5
    assert signature([], "math/linear") != signature([], "math/modular")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
HOSTILE = ["(" * 9000, "-" * 9000 + "1", "x=" * 5000 + "1", "1+" * 5000 + "1", "'\\d' is 1", "\0", "[" * 90 + "]" * 90]


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_any_arguments_have_a_form(arguments: dict[str, object]) -> None:
    assert signature([Call("t", "ok", arguments)]) == signature([Call("t", "error", arguments)])


@pytest.mark.parametrize("code", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_code_has_a_form(code: str) -> None:
    assert python(code)


def test_variety_is_counted_and_rarefied() -> None:
    assert variety([]).per_1000 is None
    few = variety(["a"] * 3 + ["b"])
    assert (few.tasks, few.patterns, few.per_1000) == (4, 2, 500)
    assert variety(list("abcd")).effective == pytest.approx(4)
    many = ["a"] * 1500 + [str(n) for n in range(500)]
    assert variety(many).per_1000 == pytest.approx(251, abs=0.5)
    rng = random.Random(4)
    counts = Counter(rng.choices("abcdefgh", weights=range(1, 9), k=300))
    drawn = [len(set(rng.sample(list(counts.elements()), 12))) for _ in range(3000)]
    assert expected_patterns(list(counts.values()), 12) == pytest.approx(sum(drawn) / 3000, abs=0.1)


def test_tools_are_counted_by_call_and_by_attempt() -> None:
    good, bad = Call("python", "ok", {}), Call("sympy", "error", {})
    traces = [
        Trace("a", "t", True, (good, good)),
        Trace("b", "t", False, (bad,)),
        Trace("c", "t", None, ()),
        Trace("d", "t", True, (bad, good)),
    ]
    assert [used(trace.calls) for trace in traces] == ["python", "no call went well", "no call", "python"]
    shares = {row["tool"]: (row["calls"], row["ok"], row["attempts"]) for row in tool_shares(traces)}
    assert shares == {"python": (3, 3, 2), "sympy": (2, 0, 2)}
    other = Trace("e", "t", True, (Call("shell", "ok", {}),) * 4)
    assert [row["tool"] for row in tool_shares([*traces, other])] == ["shell", "python", "sympy"], "most used first"
    steps = {(row["from"], row["to"]): (row["times"], row["correct"]) for row in transitions(traces)}
    assert steps[START, "sympy"] == (2, 0.5)
    assert steps[START, ANSWER] == (1, None)
    assert sum(n for n, _ in steps.values()) == sum(len(trace.calls) + 1 for trace in traces)
    fared = {row["tools"]: (row["attempts"], row["correct"]) for row in with_and_without(traces)}
    assert fared == {"python": (2, 1.0), "no call went well": (1, 0.0)}


def test_nobody_claims_more_than_the_test_allows() -> None:
    rng = random.Random(8)
    base = Scored("base", "".join(rng.choices("01", k=200)))
    better = Scored("better", "".join("1" if rng.random() < 0.3 else c for c in base.outcomes))
    same = Scored("same", base.outcomes.replace("0", "?"))
    other = Scored("other", "1" * 150)
    found = [claim and claim.verdict for claim in claims([(base, better), (better, base), (base, same), (base, other)])]
    assert found == ["improved", "fell", "no difference shown", None]
    named = claims([(base, better)])[0]
    assert named and (named.name, named.against) == ("better", "base")
    (none, nothing), (before, first), *_ = step_by_step([base, better, same])
    assert (none, nothing) == (None, None)
    assert before and first and before.adjusted >= before.difference.p
    assert step_by_step([]) == []


def test_many_claims_about_nothing_find_nothing() -> None:
    """Holm's correction keeps the chance of any false claim in a row of them at 5 %."""
    rng = random.Random(0)
    false = 0
    for _ in range(40):
        scores = [Scored(str(n), "".join("1" if rng.random() < 0.6 else "0" for _ in range(40))) for n in range(5)]
        false += any(
            claim and claim.verdict != "no difference shown" for claim in claims([(scores[0], s) for s in scores])
        )
    assert false / 40 <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / 40)
