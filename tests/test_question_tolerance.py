"""Which questions nearly copy another one, and by how much the answer to a row may differ."""

import random

import pytest

from agent0.events.values import QUESTIONS, SourceRow, Task
from agent0.grading.comparison.quantities import parts
from agent0.grading.tolerance import within
from agent0.tasks.near_copies import near_copies
from agent0.verification.verifiers import verifier_for
from tests.world import KnowingSandbox

STORY = (
    "Natalia sold clips to 48 of her friends in April, and then she sold half as many clips in May. "
    "How many clips did Natalia sell altogether in April and May?"
)


@pytest.mark.parametrize(
    ("question", "near"),
    [
        (STORY.upper().replace(",", ""), True),
        (STORY.replace("Natalia", "Nаtalia"), True),  # noqa: RUF001 - another alphabet
        (STORY.replace("friends", "neighbours"), True),
        (STORY.replace("48", "52"), True),
        (STORY.replace("48", "52").replace("half", "a third").replace("clips", "pins"), False),
        ("How many clips did she sell?", False),
    ],
)
def test_a_near_copy_has_most_of_anothers_words(question: str, near: bool) -> None:
    (copy,) = near_copies([question], ["What is 2 + 2?", STORY])
    assert (copy is not None) is near and (copy is None or copy.reference == 1)


def test_questions_of_one_template_are_no_near_copies() -> None:
    rng = random.Random(1)
    texts = [
        f"How many {unit}s are {rng.randint(2, 99)} {unit}s less {n}?" for n in range(60) for unit in ("gram", "ton")
    ]
    assert near_copies(texts[:60], texts[60:]) == [None] * 60
    assert near_copies(["What is 3 + 4?"], ["What is 3 * 4?"]) == [None] and near_copies(["", "a"], []) == [None, None]


@pytest.mark.parametrize(
    ("expected", "answer", "tolerance", "near"),
    [
        ("5", "5.04", "1%", True), ("5", "5.06", "1%", False), ("-5", "-5.04", "1 %", True), ("5", "5.2", "0.2", True),
        ("5", "5.21", "2e-1", False), ("5 km", "5.01 km", "0.01", True), ("5 km", "5010 m", "0.01", True),
        ("5 km", "5011 m", "0.01", False), ("5 km", "5.01", "0.01", True), ("5 km", "5 kg", "1%", None),
        ("5", "Rome", "1%", None), ("5", "1/0", "1%", None), ("5", "9" * 500, "1%", None),
    ],
)  # fmt: skip
def test_a_tolerance_is_exact(expected: str, answer: str, tolerance: str, near: bool | None) -> None:
    assert within(expected, answer, tolerance) is near


async def test_an_answer_within_its_rows_tolerance_is_right_and_an_expression_is_not() -> None:
    row = SourceRow(id="1", answer="2.54", tolerance="0.01")
    task = Task(question="q", domain="math", family=QUESTIONS, level=1, canonical="q", row=row)
    answers = ["2.54", "2.545", "2.56", "2.5 + 0.04", None, "Rome"]
    verdicts = await verifier_for(task).judge(task, answers, KnowingSandbox())
    assert [verdict.correct for verdict in verdicts] == [True, True, False, False, False, False]
    assert verdicts[1].reason == "within 0.01"
    exact = task.model_copy(update={"row": row.model_copy(update={"tolerance": ""})})
    (verdict,) = await verifier_for(exact).judge(exact, ["2.545"], KnowingSandbox())
    assert verdict.correct is False


def test_a_long_text_is_no_quantity_and_costs_nothing() -> None:
    assert [*parts("3 km and " + "a" * 10_000_000)] == []
