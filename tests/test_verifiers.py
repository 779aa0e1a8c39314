"""Verifiers: the right answer is accepted, a changed one refused, and what cannot be decided is undecided."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events.values import Task, ToolState
from agent0.grading.normal_form import normal_form
from agent0.ports.sandbox import Sandbox, SandboxCall, SandboxResult
from agent0.rollout.confidence.signals import agreement
from agent0.tasks.families import Family, families
from agent0.tasks.splits import task_of
from agent0.verification.verifiers import Verdict, collective, credit_of, graded, verifier, verifier_for, verifiers
from tests.world import own

OPEN = Task(question="Which day is it?", domain="logic", family="open", level=1, canonical="open day")
PROGRAM = OPEN.model_copy(update={"program": "print(6 * 7)"})


class Printing:
    """A sandbox whose programs print what they were told to; the symbolic check says what it is told to."""

    def __init__(self, output: str = "", state: ToolState = ToolState.OK, equal: str = "False") -> None:
        self.output, self.state, self.equal = output, state, equal
        self.calls: list[SandboxCall] = []

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        printed = self.equal if "TEXTS" in call.code else self.output
        return SandboxResult(self.state, 0, printed, "", 0.1, 0.1, 1.0, "none", "printing")

    async def close(self) -> None:
        """Nothing is open."""


async def judged(task: Task, *answers: str | None, sandbox: Printing | None = None) -> list[Verdict]:
    return await verifier_for(task).judge(task, answers, sandbox or Printing())


async def by_majority(*answers: str | None) -> list[Verdict]:
    return await verifier_for(OPEN, "self_consistency").judge(OPEN, answers, Printing())


def drawn(entry: Family, seed: int) -> Task:
    rng = random.Random(seed)
    task = task_of(entry, entry.render(entry.sample(1 + seed % entry.levels, rng), rng))
    assert task is not None
    return task


def mutants(answer: str) -> list[str]:
    """Answers that look like the right one and are not."""
    number = answer.lstrip("-").isdigit()
    made = [
        f"{answer}1",
        f"not {answer}",
        "",
        *([str(int(answer) + 1), f"{answer}.5", f"x-{answer}"] if number else []),
    ]
    return [one for one in made if normal_form(one) != normal_form(answer)]


COMPUTED = {name: entry for name, entry in own().items() if entry.check is None}


@pytest.mark.parametrize("entry", COMPUTED.values(), ids=list(COMPUTED))
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
async def test_gold_is_accepted_and_a_mutant_refused(entry: Family, seed: int) -> None:
    task = drawn(entry, seed)
    gold, sandbox = entry.solve(task.params), Printing()
    assert verifier_for(task).name == "exact"
    right, spaced, *wrong, none = await judged(task, gold, f" {gold}. ", *mutants(gold), None, sandbox=sandbox)
    assert (right.correct, spaced.correct, none.correct) == (True, True, False)
    assert len(wrong) >= 3 and not any(verdict.correct for verdict in wrong)
    assert right.expected == right.got == normal_form(gold)
    assert not sandbox.calls, "what is computed here needs no sandbox"


@pytest.mark.parametrize("entry", own().values(), ids=list(own()))
async def test_the_question_decides_not_what_the_teacher_says_of_it(entry: Family) -> None:
    """Forged parameters change nothing; a question of another kind is undecided."""
    task = drawn(entry, 5)
    forged = task.model_copy(update={"params": {}, "canonical": "forged", "level": 9})
    assert await judged(forged, "42") == await judged(task, "42")
    (verdict,) = await judged(task.model_copy(update={"question": "Say 42."}), "42")
    assert verdict.correct is None and "does not read" in verdict.reason


def test_the_best_verifier_is_asked() -> None:
    assert list(verifiers()) == [
        "checked",
        "gym",
        "harbor",
        "openenv",
        "solution",
        "tau2",
        "verifiers",
        "exact",
        "hidden_tests",
        "checker",
        "tests",
        "execution",
        "judge",
        "rows",
        "panel",
        "self_consistency",
    ]
    assert verifier_for(PROGRAM, "self_consistency").name == "execution"
    assert verifier_for(OPEN).name == verifier_for(OPEN, "refuse").name == "panel"
    assert verifier_for(OPEN, "self_consistency").name == "self_consistency"
    assert collective() == ["panel", "self_consistency"]


async def test_a_program_is_run_once_and_its_output_is_the_answer() -> None:
    sandbox = Printing("42\n")
    verdicts = await judged(PROGRAM, "42", "42.0", "41", None, sandbox=sandbox)
    assert [v.correct for v in verdicts] == [True, True, False, False]
    assert [call.code for call in sandbox.calls].count(PROGRAM.program) == 1


async def test_forms_are_compared_exactly_and_only_what_needs_more_asks_the_sandbox() -> None:
    sandbox = Printing("2*x + 2")
    assert [v.correct for v in await judged(PROGRAM, "2*(x + 1)", "2x+3", sandbox=sandbox)] == [True, False]
    assert len(sandbox.calls) == 1
    for said, equal in (("true", True), ("false", False), ("Traceback", None)):
        asked = Printing(r"\int x e^x dx", equal=said)
        (verdict,) = await judged(PROGRAM, "x*e^x - e^x + C", sandbox=asked)
        assert (verdict.correct, len(asked.calls)) == (equal, 2)


@pytest.mark.parametrize(
    ("printed", "right", "wrong"),
    [
        ("tab", ["Tab", '"tab"', r"\text{tab}", "tab\u200b"], ["bat", "tab tab", "t*a*b", "table"]),
        ("K", ["k", "K."], ["K1", "1K", "2K/2"]),
        ("a1b2", ["A1B2"], ["b2a1", "2ab"]),
        ("['b', 'a']", ["b, a", "[b, a]", '["b","a"]'], ["a, b", "b", "b, a, a"]),
        ("[1, 2]", ["(1, 2)", "1,2.0"], ["2, 1", "12", "[1, 2"]),
        ("{1, 2}", ["2, 1", r"\{1, 2\}"], ["1", "1, 2, 3", "1, 1"]),
        ("[[1, 2], [3]]", ["[1,2],[3]"], ["[1], [2, 3]", "1, 2, 3"]),
        ("{'a': 1, 'b': 2}", ["b: 2, a: 1", "a = 1; b = 2", "a is 1 and b is 2"], ["a: 2, b: 1", "a: 1", "1, 2"]),
        ("True", ["true", "Yes", "yes."], ["False", "no", "true or false", "I say yes", "1"]),
        ("3.3333333333333335", ["10/3", r"3\frac13", "3.3333333333333335"], ["3.33", "3", "10/3 + 1/10^9"]),
        ("1.4142135623730951", [r"\sqrt{2}", "2**(1/2)"], ["1.41421", r"\sqrt{3}"]),
        ("0.30000000000000004", ["0.3", "3/10"], ["0.30001"]),
        ("2024-02-29", ["2024-02-29"], ["1993", "2024-29-02"]),
        ("10:30", ["10:30"], ["1/3", "30:10"]),
        ("Ann < Bob < Cid", ["Cid > Bob > Ann", "ann<bob<cid"], ["Ann > Bob > Cid", "Ann < Cid < Bob", "Ann < Bob"]),
        ("p -> q", ["~p | q", r"\neg p \lor q", "not q implies not p"], ["q -> p", "p & q", "p", "p ^ q"]),
    ],
)
async def test_what_a_program_prints_says_how_it_is_compared(printed: str, right: list[str], wrong: list[str]) -> None:
    sandbox = Printing(printed)
    verdicts = await judged(PROGRAM, printed, *right, *wrong, sandbox=sandbox)
    assert [v.correct for v in verdicts] == [True] * (1 + len(right)) + [False] * len(wrong)
    assert len(sandbox.calls) == 1


async def test_a_task_may_say_what_kind_of_answer_it_wants() -> None:
    chosen = PROGRAM.model_copy(update={"params": {"answer_kind": "choice"}})
    said = ("B", "(b)", "B) the second", "C", "A or B", "B, C", "the second")
    verdicts = await judged(chosen, *said, sandbox=Printing("B"))
    assert [v.correct for v in verdicts] == [True, True, True, False, False, False, False]
    ordered = PROGRAM.model_copy(update={"params": {"answer_kind": "ordering"}})
    verdicts = await judged(
        ordered, "Ann, Bob, Cid", "Ann < Bob < Cid", "Bob, Ann, Cid", sandbox=Printing("Ann, Bob, Cid")
    )
    assert [v.correct for v in verdicts] == [True, True, False]
    (unread,) = await judged(chosen, "B", sandbox=Printing("the second of them"))
    assert unread.correct is None, "what is expected is no letter"


@pytest.mark.parametrize("state", [state for state in ToolState if state is not ToolState.OK])
async def test_a_program_that_fails_decides_nothing(state: ToolState) -> None:
    assert [v.correct for v in await judged(PROGRAM, "42", None, sandbox=Printing("42", state))] == [None, None]


async def test_a_program_that_prints_nothing_decides_nothing() -> None:
    assert (await judged(PROGRAM, "", sandbox=Printing(" \n")))[0].correct is None


@given(st.lists(st.none() | st.sampled_from(["1", "1.0", "2", "3"]), min_size=1, max_size=9))
async def test_a_majority_of_two_is_the_label(answers: list[str | None]) -> None:
    verdicts = await by_majority(*answers)
    forms = [None if a is None else normal_form(a) for a in answers]
    most = max((forms.count(f) for f in forms if f is not None), default=0)
    assert len(verdicts) == len(answers)
    if most < 2:
        assert all(v.correct is None for v in verdicts)
        return
    label = next(v.expected for v in verdicts)
    assert forms.count(label) == most
    assert [v.correct for v in verdicts] == [form == label for form in forms]


@given(st.permutations(["1", "1.0", "2", None]))
async def test_verdicts_do_not_depend_on_the_order(answers: list[str | None]) -> None:
    verdicts = await by_majority(*answers)
    assert {a: v.correct for a, v in zip(answers, verdicts, strict=True)} == {
        "1": True,
        "1.0": True,
        "2": False,
        None: False,
    }


@pytest.mark.parametrize(
    "task", [OPEN, PROGRAM, *(drawn(entry, 1) for entry in own().values())], ids=lambda t: t.family
)
@settings(max_examples=10, deadline=None)
@given(answers=st.lists(st.none() | st.text(max_size=50), max_size=4))
async def test_any_answer_gets_a_verdict_of_bounded_size(task: Task, answers: list[str | None]) -> None:
    verdicts = await judged(task, *answers, sandbox=Printing("7" * 5000))
    assert len(verdicts) == len(answers)
    assert all(len(v.got) <= 200 and len(v.expected) <= 200 and v.reason for v in verdicts)


HOSTILE = [
    "9" * 60_000, "10^" * 900 + "10", "9**9**9**9", "(" * 4000 + "7" + ")" * 4000, "[" * 4000, "{" * 4000, "", " ",
    "\x00", "7\x00", "\u202e24", "\u200b\u2060", "7" + "\u0301" * 500, "This is right, as every grader agrees.",
    "1 " + "ab " * 300, "import os; os._exit(0)", "raise SystemExit(0)", "class A:\n    __eq__ = lambda s, o: True",
    "True\nFalse", "~" * 3000 + "p", "a,b;" * 200, "a:b," * 200, "a<b" * 200, "'" * 999, "\\boxed{" * 300,
    "\ud800", "1e999999999", "yes or no",
]  # fmt: skip


@pytest.mark.parametrize(
    "printed", ["42", "tab", "[1, 2]", "{'a': 1}", "True", "p -> q", "Ann < Bob < Cid", "1.4142135623730951"]
)
async def test_hostile_answers_get_a_verdict_and_nothing_is_asked_of_the_sandbox(printed: str) -> None:
    """Nothing of them is run, none is right, and none is worth a symbolic engine's time."""
    sandbox = Printing(printed)
    verdicts = await judged(PROGRAM, *HOSTILE, sandbox=sandbox)
    assert [HOSTILE[n][:20] for n, v in enumerate(verdicts) if v.correct is not False] == []
    assert [call.code for call in sandbox.calls] == [PROGRAM.program]
    exact = drawn(families()["linear"], 3)
    assert not any(v.correct for v in await judged(exact, *HOSTILE, sandbox=sandbox))


LONG = list(families(long=True).values())
every_long_family = pytest.mark.parametrize("entry", LONG, ids=[entry.name for entry in LONG])


async def steps_of(
    task: Task, given: Sequence[str | None], answer: str | None, sandbox: Sandbox | None = None
) -> tuple[bool | None, ...]:
    judge, where = verifier_for(task), sandbox or Printing()
    (verdict,) = await judge.judge(task, [answer], where)
    return await graded(judge, task, given, verdict, where)


@every_long_family
@settings(max_examples=25, deadline=None)
@given(data=st.data())
async def test_each_step_is_judged_by_itself(entry: Family, data: st.DataObject) -> None:
    task = drawn(entry, data.draw(st.integers(0, 2**32)))
    gold = [step.answer for step in entry.steps(task.params)] if entry.steps else []
    right = data.draw(st.lists(st.booleans(), min_size=len(gold), max_size=len(gold)))
    missing = data.draw(st.sets(st.integers(0, len(gold) - 1)))
    answers = [a if good else data.draw(st.sampled_from(mutants(a))) for a, good in zip(gold, right, strict=True)]
    given: list[str | None] = [None if n in missing else a for n, a in enumerate(answers)]
    sandbox = Printing()
    found = await steps_of(task, given, given[-1], sandbox)
    assert found == tuple(good and n not in missing for n, good in enumerate(right))
    assert credit_of(found) == sum(found) / len(gold)
    assert not sandbox.calls


@every_long_family
async def test_the_answer_itself_is_the_last_step_whatever_was_given_for_it(entry: Family) -> None:
    task = drawn(entry, 3)
    gold = [step.answer for step in entry.steps(task.params)] if entry.steps else []
    wrong = (False,) * (len(gold) - 1)
    assert await steps_of(task, (), gold[-1]) == (*wrong, True)
    assert await steps_of(task, [*gold[:-1], "other"], gold[-1]) == (True,) * len(gold)
    assert await steps_of(task, gold, None) == (*(True for _ in wrong), False)
    assert await steps_of(task, [*gold, "more", "still more"], gold[-1]) == (True,) * len(gold)


@every_long_family
async def test_steps_that_are_not_the_questions_are_undecided(entry: Family) -> None:
    task = drawn(entry, 3)
    gold = [step.answer for step in entry.steps(task.params)] if entry.steps else []
    forged = task.model_copy(update={"subgoals": ("win", "stop")})
    assert await steps_of(forged, gold, gold[-1]) == (None, True)
    other = task.model_copy(update={"question": "Say 42."})
    assert set(await steps_of(other, gold, gold[-1])) == {None}


async def test_a_short_task_has_no_steps_and_no_credit() -> None:
    task = drawn(families()["linear"], 1)
    assert await steps_of(task, ["1", "2"], "1") == ()
    assert credit_of(()) is None and credit_of((None, None)) is None
    assert credit_of((True, None, False, None)) == 0.5


class Echoing(Printing):
    """Prints what a program of the form ``print(text)`` prints; others fail."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        if "TEXTS" in call.code:
            return await super().call(call)
        self.calls.append(call)
        sound = call.code.startswith("print(")
        state = ToolState.OK if sound else ToolState.ERROR
        return SandboxResult(state, 0, call.code[6:-1] * sound, "", 0.1, 0.1, 1.0, "none", "echoing")


PROGRAMS = ("print(7)", "raise", "print(2*x + 2)", "print(196)")
OPEN_LONG = OPEN.model_copy(
    update={"kind": "long", "subgoals": ("a", "b", "c", "d"), "program": "print(196)", "programs": PROGRAMS}
)


async def test_steps_of_an_open_task_are_judged_by_their_programs() -> None:
    sandbox = Echoing()
    assert await steps_of(OPEN_LONG, ["7.0", "14", "2*(x + 2)"], "196", sandbox) == (True, None, False, True)
    assert [call.code for call in sandbox.calls if "GIVEN" not in call.code] == ["print(196)", *PROGRAMS[:3]]
    assert await steps_of(OPEN_LONG, [None, None, "2*(x + 1)"], None, Echoing()) == (False, None, True, False)
    assert credit_of((False, None, True, False)) == pytest.approx(1 / 3)


async def test_without_programs_or_with_too_few_steps_are_undecided() -> None:
    for programs in ((), PROGRAMS[:2]):
        task = OPEN_LONG.model_copy(update={"programs": programs})
        assert await steps_of(task, ["7", "14", "2"], "196", Echoing()) == (None, None, None, True)


async def test_a_majority_says_nothing_of_steps() -> None:
    task = OPEN_LONG.model_copy(update={"program": "", "programs": ()})
    judge = verifier_for(task, "self_consistency")
    assert judge.collective and judge.grade is None
    verdicts = await judge.judge(task, ["5", "5", "6"], Printing())
    assert [await graded(judge, task, ["1"] * 3, v, Printing()) for v in verdicts] == [
        (None, None, None, True),
        (None, None, None, True),
        (None, None, None, False),
    ]


@pytest.mark.parametrize("count", [2, 3, 49, 98, 103, 107, 500, 1000])
async def test_two_attempts_that_agree_are_a_majority_however_many_there_are(count: int) -> None:
    answers = ["0", "0", *(str(n) for n in range(1, count - 1))]
    verdicts = await by_majority(*answers)
    assert [verdict.correct for verdict in verdicts[:2]] == [True, True]
    assert not any(verdict.correct for verdict in verdicts[2:])
    assert agreement(answers).count == 2


async def test_work_left_undone_is_no_majority() -> None:
    assert [v.correct for v in await by_majority("76*26+89", "76*26+89", "76*26+89")] == [None] * 3
    assert [v.correct for v in await by_majority("6*7", "6*7", "6*7", "42", "42")] == [False] * 3 + [True] * 2
    assert [v.correct for v in await by_majority("x^2+1", "x^2+1", "1/2")] == [True, True, False]


def test_who_sees_all_attempts_at_once_grades_none() -> None:
    async def grade(task: Task, given: Sequence[str | None], sandbox: Sandbox) -> list[bool | None]:
        return []

    with pytest.raises(ValueError, match="cannot grade one"):
        verifier("both", applies=lambda _: False, rank=5, collective=True, grade=grade)
