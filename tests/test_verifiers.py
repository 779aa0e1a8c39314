"""Verifiers: the right answer is accepted, a changed one refused, and what cannot be decided is undecided."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.answers import normal_form
from agent0.families import Family, families
from agent0.heldout import task_of
from agent0.ports import SandboxCall, SandboxResult
from agent0.verifiers import Verdict, verifier_for, verifiers
from events.values import Task, ToolState

OPEN = Task(question="Which day is it?", domain="logic", family="open", level=1, canonical="open day")
PROGRAM = OPEN.model_copy(update={"program": "print(6 * 7)"})


class Printing:
    """A sandbox whose programs print what they were told to; the symbolic check says what it is told to."""

    def __init__(self, output: str = "", state: ToolState = ToolState.OK, equal: str = "False") -> None:
        self.output, self.state, self.equal = output, state, equal
        self.calls: list[SandboxCall] = []

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        printed = self.equal if "GIVEN" in call.code else self.output
        return SandboxResult(self.state, 0, printed, "", 0.1, 0.1, 1.0, "none", "printing")

    async def close(self) -> None:
        """Nothing is open."""


async def judged(task: Task, *answers: str | None, sandbox: Printing | None = None) -> list[Verdict]:
    return await verifier_for(task).judge(task, answers, sandbox or Printing())


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
        *([str(int(answer) + 1), f"{answer}.5", f"-{answer}x"] if number else []),
    ]
    return [one for one in made if normal_form(one) != normal_form(answer)]


@pytest.mark.parametrize("entry", families().values(), ids=list(families()))
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


@pytest.mark.parametrize("entry", families().values(), ids=list(families()))
async def test_the_question_decides_not_what_the_teacher_says_of_it(entry: Family) -> None:
    """Forged parameters change nothing; a question of another kind is undecided."""
    task = drawn(entry, 5)
    forged = task.model_copy(update={"params": {}, "canonical": "forged", "level": 9})
    assert await judged(forged, "42") == await judged(task, "42")
    (verdict,) = await judged(task.model_copy(update={"question": "Say 42."}), "42")
    assert verdict.correct is None and "does not read" in verdict.reason


def test_the_best_verifier_is_asked() -> None:
    assert list(verifiers()) == ["exact", "execution", "self_consistency"]
    assert verifier_for(PROGRAM).name == "execution"
    assert verifier_for(OPEN).name == "self_consistency"
    assert [v.collective for v in verifiers().values()] == [False, False, True]


async def test_a_program_is_run_once_and_its_output_is_the_answer() -> None:
    sandbox = Printing("42\n")
    verdicts = await judged(PROGRAM, "42", "42.0", "41", None, sandbox=sandbox)
    assert [v.correct for v in verdicts] == [True, True, False, False]
    assert [call.code for call in sandbox.calls].count(PROGRAM.program) == 1


async def test_forms_that_differ_are_compared_symbolically_in_the_sandbox() -> None:
    sandbox = Printing("2*x + 2", equal="True")
    (verdict,) = await judged(PROGRAM, "2*(x + 1)", sandbox=sandbox)
    assert (verdict.correct, verdict.reason) == (True, "symbolically equal")
    assert len(sandbox.calls) == 2


@pytest.mark.parametrize("state", [state for state in ToolState if state is not ToolState.OK])
async def test_a_program_that_fails_decides_nothing(state: ToolState) -> None:
    assert [v.correct for v in await judged(PROGRAM, "42", None, sandbox=Printing("42", state))] == [None, None]


async def test_a_program_that_prints_nothing_decides_nothing() -> None:
    assert (await judged(PROGRAM, "", sandbox=Printing(" \n")))[0].correct is None


@given(st.lists(st.none() | st.sampled_from(["1", "1.0", "2", "3"]), min_size=1, max_size=9))
async def test_a_majority_of_two_is_the_label(answers: list[str | None]) -> None:
    verdicts = await judged(OPEN, *answers)
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
    verdicts = await judged(OPEN, *answers)
    assert {a: v.correct for a, v in zip(answers, verdicts, strict=True)} == {
        "1": True,
        "1.0": True,
        "2": False,
        None: False,
    }


@pytest.mark.parametrize(
    "task", [OPEN, PROGRAM, *(drawn(entry, 1) for entry in families().values())], ids=lambda t: t.family
)
@settings(max_examples=10, deadline=None)
@given(answers=st.lists(st.none() | st.text(max_size=50), max_size=4))
async def test_any_answer_gets_a_verdict_of_bounded_size(task: Task, answers: list[str | None]) -> None:
    verdicts = await judged(task, *answers, sandbox=Printing("7" * 5000))
    assert len(verdicts) == len(answers)
    assert all(len(v.got) <= 200 and len(v.expected) <= 200 and v.reason for v in verdicts)
