"""Ladders: families of one skill at levels without a near end, where every answer is checked mark by mark."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.chat_format import LONGEST_ANSWER
from agent0.rollout.proposals import LONGEST_QUESTION
from agent0.tasks.families import LADDER, Family, families, rejection, requested_families
from agent0.tasks.splits import heldout, split_of_task, task_of
from tests.test_verifiers import HOSTILE, judged

LADDERS = {name: entry for name, entry in families().items() if entry.ladder}
every_ladder = pytest.mark.parametrize("entry", LADDERS.values(), ids=list(LADDERS))
seeds = st.integers(0, 2**32)


def verdict(entry: Family, question: str, answer: str) -> str:
    params = entry.parse(question)
    assert params is not None and entry.check
    return entry.check(params, answer)


def test_there_are_four_and_they_are_asked_for_by_name_alone() -> None:
    assert set(LADDERS) >= {"reversal", "digit_sums", "column_addition", "word_reversal"}
    for names in ((), ("computed", "checked"), ("countdown",)):
        assert not set(requested_families("math", names)) & set(LADDERS)
    assert set(requested_families("math", (LADDER,))) == set(LADDERS)
    assert set(requested_families("math", ("reversal",))) == {"reversal"}


WORKED = [
    ("reversal", "Reverse 1230.", "0321"),
    ("digit_sums", "Sum up 123.", "332516"),
    ("digit_sums", "Sum up 958.", "885392"),
    ("word_reversal", "Turn around: lake salt star.", "star salt lake"),
    ("column_addition", "Add 17+25 by columns.", "7521,1240"),
    ("column_addition", "Add 99+01 by columns.", "9101,9001"),
]


@pytest.mark.parametrize(("name", "question", "answer"), WORKED)
def test_what_was_worked_out_by_hand_is_right(name: str, question: str, answer: str) -> None:
    entry = LADDERS[name]
    params = entry.parse(question)
    assert params is not None and entry.solve(params) == answer
    assert verdict(entry, question, answer) == verdict(entry, question, f" {answer}\n") == ""


WRONG = [
    ("reversal", "Reverse 1230.", "321", "it has 3 characters, not 4"),
    ("reversal", "Reverse 1230.", "0231", "character 2 is wrong"),
    ("digit_sums", "Sum up 123.", "332515", "the sum of pair 3 is wrong"),
    ("digit_sums", "Sum up 123.", "332415", "the sum of pair 2 is wrong"),
    ("digit_sums", "Sum up 123.", "331516", "pair 2 begins with another digit than the one in its place"),
    ("word_reversal", "Turn around: lake salt star.", "star salt", "it has 2 words, not 3"),
    ("word_reversal", "Last to first: lake salt star.", "star lake salt", "word 2 is wrong"),
    ("word_reversal", "Last to first: lake salt star.", "star  salt lake", "it has 4 words, not 3"),
    ("column_addition", "Add 17+25 by columns.", "7520,1240", "column 1 is added up wrongly"),
    ("column_addition", "Add 7+5 by columns.", "7721", "column 1 begins with other digits than those in its place"),
    ("column_addition", "Add 17+25 by columns.", "75211,240", "column 1 cannot be read"),
    ("column_addition", "Add 17+25 by columns.", "7521", "it has 4 characters, not 9"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "question", "answer", "why"), WRONG)
def test_the_first_mark_that_is_wrong_is_told(name: str, question: str, answer: str, why: str) -> None:
    assert verdict(LADDERS[name], question, answer) == why


@every_ladder
@settings(max_examples=40, deadline=None)
@given(seed=seeds, data=st.data())
def test_one_answer_is_right_and_no_other(entry: Family, seed: int, data: st.DataObject) -> None:
    """The check, which reads marks one by one, and the solution, which is made at once, say the same."""
    rng = random.Random(seed)
    params = entry.sample(1 + seed % entry.levels, rng)
    right, at = entry.solve(params), 0
    assert entry.check and entry.check(params, right) == ""
    at = data.draw(st.integers(0, len(right) - 1))
    mark = data.draw(st.sampled_from("0123456789,+ x"))
    changed = f"{right[:at]}{mark}{right[at + 1 :]}"
    why = entry.check(params, changed)
    assert (why == "") == (changed.strip() == right)
    assert right not in why or len(right) < 3, "a reason is no solution"
    for hostile in (*HOSTILE, right * 2, right[:-1], f"{right}1", "9" * 100_000, "," * 999):
        assert 0 < len(entry.check(params, hostile)) < 200


@every_ladder
def test_levels_go_on_as_far_as_an_answer_may_be_long(entry: Family) -> None:
    rng = random.Random(1)
    top = entry.sample(entry.levels, rng)
    question = entry.render(top, rng)
    assert entry.parse(question) == top and entry.level(top) == entry.levels >= 200
    assert len(question) < LONGEST_QUESTION and len(entry.solve(top)) <= LONGEST_ANSWER
    assert entry.parse(entry.render(entry.sample(entry.levels + 1, rng), rng)) is None
    assert rejection(entry.name, question) is None


@every_ladder
def test_chance_is_that_of_as_many_random_digits_or_words(entry: Family) -> None:
    rng = random.Random(2)
    params = entry.sample(1, rng)
    tries = [entry.derive(params, rng) for _ in range(2000)] if entry.derive else []
    assert entry.chance and entry.check
    assert {len(one) for one in tries} == {len(entry.solve(params))}
    drawn = 1 / 64 if entry.name == "word_reversal" else 0.1 ** sum(one.isdigit() for one in tries[0])
    assert entry.chance(params) == pytest.approx(drawn)
    if entry.name == "reversal":
        assert sum(not entry.check(params, one) for one in tries) == pytest.approx(200, abs=60)


@every_ladder
def test_held_out_rungs_are_those_asked_for_and_kept_from_training(entry: Family) -> None:
    tasks = heldout("validation", 60, 1, ("math",), names=(entry.name,), levels=(5, 9, 30))
    assert sorted({task.level for task in tasks}) == [5, 9, 30]
    assert {split_of_task(task) for task in tasks} == {"validation"} and len({t.canonical for t in tasks}) == 60
    assert all(task_of(entry, task.question) == task for task in tasks)


@every_ladder
async def test_a_verdict_is_the_checks(entry: Family) -> None:
    task = heldout("test", 1, 3, ("math",), names=(entry.name,), levels=(7,))[0]
    right = entry.solve(task.params)
    good, less, none = await judged(task, right, right[:-1], None)
    assert (good.correct, less.correct, none.correct, good.expected) == (True, False, False, "")


def test_numbers_that_are_equal_are_other_strings() -> None:
    """A value would be compared as a number: 0321 as 321."""
    assert verdict(LADDERS["reversal"], "Reverse 1230.", "321") != ""


def test_the_order_of_two_numbers_is_no_identity() -> None:
    entry = LADDERS["column_addition"]
    one, other = (entry.parse(f"Add {text} by columns.") for text in ("17+25", "25+17"))
    assert one and other and entry.canonical(one) == entry.canonical(other)
