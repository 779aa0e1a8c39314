"""Where a value is wanted, an answer is written as a value: literals, fractions, units; no work left undone."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.values import Task, ToolState
from agent0.grading import grade
from agent0.grading.answer_types import left_undone
from agent0.grading.answer_types.value import arithmetic_left
from agent0.grading.literals import is_literal
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.tasks.families import Subgoal, families
from agent0.tasks.splits import task_of
from agent0.verification.verifiers import Verdict, graded, verifier_for

OPEN = Task(question="How much is it?", domain="math", family="open", level=1, canonical="open much")


class Printing:
    """A sandbox whose programs print ``output``; nothing else is known of it."""

    def __init__(self, output: str) -> None:
        self.output = output

    async def call(self, call: SandboxCall) -> SandboxResult:
        printed = "true" if "TEXTS" in call.code else self.output
        return SandboxResult(ToolState.OK, 0, printed, "", 0.1, 0.1, 1.0, "none", "printing")

    async def close(self) -> None:
        """Nothing is open."""


WRITTEN = [
    ("2065", ["2065", "+2065", "2,065", "2065.0", "(2065)", "{2065}", "2.065e3", r"2.065 \times 10^{3}", "2065 apples",
              "x = 2065", "$2065$", r"\text{2065}", r"\boxed{2065}", "76*26+89 = 2065", "2065."]),
    ("12000000", ["12 million", "1.2*10^7", "12\u202f000\u202f000"]),
    ("100", ["10^2", "1e2"]),
    ("-7", ["-7", "\u22127", "(-7)", r"x=-7"]),
    ("3/2", ["3/2", "6/4", "1.5", "1 1/2", r"1\frac12", r"\frac{3}{2}", r"\frac32", "{3 \\over 2}"]),
    ("1/3", ["1/3", r"0.\overline{3}", r"\dfrac{1}{3}"]),
    ("12", ["twelve", "12 cm", r"12\text{ cm}"]),
    ("[1, 2]", ["[1, 2]", "1, 2", "(1,2)"]),
    ("{'a': 2}", ["a: 2", "a is 2"]),
    ("[2024-05-01, 3]", ["[2024-05-01, 3]"]),
    ("[24/2, 3]", ["[12, 3]", "[24/2, 3]", "[36/3, 3]"]),
    ("{1, 2}", ["{2, 1}", "2, 1"]),
    ("1.4142135623730951", [r"\sqrt{2}", "1.4142135623730951"]),
]  # fmt: skip
UNDONE = [
    ("2065", ["76*26+89", "2065+0", "1*2065", "2065-0", "4130/2", "2065/1", r"\frac{4130}{2}", "--2065", "-(-2065)",
              "|-2065|", r"\sqrt{2065^2}", "x = 2064+1", "2064+1 apples", r"76\cdot 26+89", "(76*26)+89",
              r"\boxed{76*26+89}", "$2064+1$", "((2064)+(1))", "2065!/2064!", r"\sin^2 x + \cos^2 x + 2064"]),
    ("2065", [r"76*26+89-1+\binom{300}{0}", r"76*26+88+\binom{201}{201}", r"(76*26+89)\binom{201}{0}",
              r"\log{1}+\sqrt[50]{1}+2064", r"x = 2064+\binom{300}{0}", r"\int_0^{2065} 1 dx"]),
    ("1, 2", [r"1, 1+\binom{300}{0}", "1, 2-0-0"]),
    ("[62, 71, 89, 99]", ["[62-0-0, 71-0-0, 89-0-0, 99-0-0]", "[sqrt3844, sqrt5041, sqrt7921, sqrt9801]",
                          "62, 71, 89, 99-0-0", "[62, 71, 89, [99-0-0]]"]),
    ("{62, 71}", ["{71-0-0, 62}", "71, sqrt3844"]),
    ("[[1, 2], [3]]", ["[[1, 2], [3-0-0]]"]),
    ("[24/2, 3]", ["[12, 3+0]"]),
    ("{'a': 12, 'b': 3}", ["a: 12-0-0, b: 3", "a: 12, b: sqrt9", r"a: 12, b: 2+\binom{300}{0}"]),
    ("8", ["2^3", "2**3", "2^{3}", r"\lfloor 8.5 \rfloor", r"\binom{8}{1}"]),
    ("3/2", ["1/2+1", "1+1/2", "3*1/2", "0.5+1", "3/2+0"]),
    ("[1, 2]", ["[1, 1+1]", "1, 2+0"]),
    ("{'a': 2}", ["a: 1+1"]),
    ("0.30000000000000004", ["0.1+0.2"]),
]  # fmt: skip


async def judged(printed: str, answers: Sequence[str]) -> list[Verdict]:
    task = OPEN.model_copy(update={"program": "print(it)"})
    return await verifier_for(task).judge(task, answers, Printing(printed))


@pytest.mark.parametrize(("gold", "answers"), WRITTEN, ids=[gold for gold, _ in WRITTEN])
async def test_a_value_may_be_written_in_many_ways(gold: str, answers: list[str]) -> None:
    assert [answer for answer in answers if left_undone("", gold, answer)] == []
    verdicts = await judged(gold, answers)
    assert [(a, v.reason) for a, v in zip(answers, verdicts, strict=True) if v.correct is not True] == []


@pytest.mark.parametrize(("gold", "answers"), UNDONE, ids=[gold for gold, _ in UNDONE])
async def test_work_left_undone_is_wrong_and_no_engine_is_asked(gold: str, answers: list[str]) -> None:
    verdicts = await judged(gold, answers)
    assert [a for a, v in zip(answers, verdicts, strict=True) if v.correct is not False] == []


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\sqrt{2}", "2/sqrt(2)"),
        (r"2\pi", r"\pi+\pi"),
        (r"\frac{\sqrt3}{2}", "sqrt(3)/2"),
        ("2^{10}", "1024"),
        ("2^{10}", "2^10"),
        ("x^2+2x+1", "(x+1)^2"),
        ("3!", "6"),
        ("24/2", "12"),
    ],
)
def test_what_is_no_value_may_be_written_in_any_way(gold: str, answer: str) -> None:
    assert grade(gold, answer).correct is True
    if not is_literal(gold):
        assert not left_undone("", gold, answer)


LEFT = [
    "76*26+89", "(20-6)/2", "14/2", r"\frac{14}{2}", "x=(20-6)/2", "1+1, 2", "0*x+7", "2065-0-0", "1-1-2065", "sqrt4",
    r"\binom{300}{0}+2064", r"\log{1}+\sqrt[50]{1}+2064", "9^{99999}", "(" * 50 + "1+1" + ")" * 50, "1+" * 300 + "1",
]  # fmt: skip
NOT_LEFT = [
    "2065", "-7", "1,234", "3/2", "1 1/2", "1e5", "10^2", "7.50", "50%", "12 apples", "twelve", "x = 7", "[1, 2]",
    "3:4", "x^2+1", "(x+1)^{100}", r"\sqrt{2}", r"2\pi", r"\frac{\sqrt3}{2}", r"\int x^2 dx + C",
    "yes", "Ann < Bob", "the red one", "A-B", "", "+",
]  # fmt: skip


def test_arithmetic_that_is_left_is_told_without_a_gold() -> None:
    assert [answer for answer in LEFT if not arithmetic_left(answer)] == []
    assert [answer for answer in NOT_LEFT if arithmetic_left(answer)] == []
    for date in ("2024-05-01", "1/5/2024"):
        assert [arithmetic_left(date, asked) for asked in ("Which day is it?", "Compute 2020-2.")] == [False, True]


async def test_subgoals_are_judged_by_the_same_rule() -> None:
    entry = next(family for family in families(long=True).values() if family.steps)
    task = next(
        found
        for seed in range(99)
        if (found := _drawn(entry.name, seed)) and any(step.answer.isdigit() for step in _steps(found)[:-1])
    )
    steps = [step.answer for step in _steps(task)]
    place = next(n for n, answer in enumerate(steps[:-1]) if answer.isdigit())
    judge = verifier_for(task)
    (right,) = await judge.judge(task, [steps[-1]], Printing(""))
    for answer, wanted in ((steps[place], True), (f"{steps[place]}+0", False)):
        given_ = [*steps[:place], answer, *steps[place + 1 : -1]]
        assert (await graded(judge, task, given_, right, Printing("")))[place] is wanted


def _drawn(name: str, seed: int) -> Task | None:
    entry, rng = families(long=True)[name], random.Random(seed)
    return task_of(entry, entry.render(entry.sample(1, rng), rng))


def _steps(task: Task) -> Sequence[Subgoal]:
    entry = families(long=True)[task.family]
    assert entry.steps is not None
    return entry.steps(task.params)


@given(
    st.text(alphabet="0123456789+-*/^(){}[]., \\frac=x!|eE:'", max_size=60), st.sampled_from(["12", "[1, 2]", "3/2"])
)
def test_any_text_is_looked_at_in_bounded_time(answer: str, gold: str) -> None:
    assert left_undone("", gold, answer) in (True, False)
    assert left_undone("", answer or "0", gold) in (True, False)
    assert arithmetic_left(answer) in (True, False)
    assert not is_literal(f"2+{answer}")


@pytest.mark.parametrize(
    "bomb", ["(" * 390, "[" * 39 + "]" * 39, "1+" * 190 + "1", "((1)+" * 30, "9^" * 99 + "9", "[a]+[a]"]
)
def test_hostile_texts_are_bounded(bomb: str) -> None:
    for gold in ("12", "[1, 2]", "{'a': 1}", bomb):
        assert left_undone("", gold, bomb) in (True, False)
