"""Choosing by verdict may choose a length or a form: what is learned is measured beside all that was answered."""

from typing import Any

import pytest

from agent0.report.tables import form_rows
from agent0.run.iteration_measures import MEANING
from agent0.run.monitors import guards
from agent0.run.monitors.form import form_change
from agent0.run.monitors.iteration_metrics import FEWEST, form_measures
from agent0.settings import GuardConfig, RunConfig
from agent0.state.run_state import AttemptState, ToolCallRecord
from tests.test_guards import attempt, task

MANY = 2 * FEWEST
LONG = "# rolls on all trays\nrolls = 6 * 14\n# rolls that she sells\nsold = rolls - 9\nprint(sold // 5)  # bags\n"
LEARNED = RunConfig.model_validate({"student": {"provider": "transformers", "model": "some"}})


def written(answer: str | None, correct: bool | None, tokens: int, *programs: str) -> AttemptState:
    calls = tuple(ToolCallRecord("python", {"code": program}, True, "") for program in programs)
    return attempt(answer, correct, tokens=tokens, calls=calls, tool_calls=len(calls))


def of_easy_and_hard(easy: AttemptState, hard: AttemptState) -> dict[str, float]:
    """Easy tasks that half of the attempts solve, and as many hard ones that none does."""
    miss = written("0", False, easy.tokens)
    tasks = [task(*[easy, miss] * MANY), task(*[hard] * 2 * MANY), task(written(None, None, 999))]
    return {name: value for name, value in form_measures(tasks, 0.9).items() if value is not None}


def test_right_answers_to_easy_problems_are_short_and_it_is_said() -> None:
    measures = of_easy_and_hard(written("4", True, 60, "print(4)"), written("9", False, 120, LONG))
    assert (measures["tokens_right"], measures["tokens_answered"]) == (60, 90)
    assert (measures["programs_right"], measures["programs_answered"]) == (1, 0.75)
    assert (measures["comments_right"], measures["comments_answered"]) == (0, 2)
    assert form_change(measures) == "60 tokens for 90, 100% programs for 75%, 0.0 comments a program for 2.0"
    finding = guards(LEARNED)["form"]([measures], GuardConfig())
    assert finding and "right attempts have 60 tokens for 90" in finding.message and finding.facts == measures
    empty = dict.fromkeys(MEANING)
    (row,) = form_rows([{**empty, "iteration": 0, **measures}, {**empty, "iteration": 1}])
    assert (row["tokens"], row["comments"]) == ("60 / 90", "0.0 / 2.0")


def test_answers_of_one_form_raise_nothing() -> None:
    measures = of_easy_and_hard(written("4", True, 100, LONG), written("9", False, 110, LONG))
    measures["programs_answered"] = 0.95
    assert form_change(measures) == "" and guards(LEARNED)["form"]([measures], GuardConfig()) is None


@pytest.mark.parametrize(
    ("right", "answered", "changes"), [(80, 100, False), (79, 100, True), (125, 100, False), (126, 100, True)]
)
def test_bounds_hold_on_both_sides(right: float, answered: float, changes: bool) -> None:
    assert bool(form_change({"tokens_right": right, "tokens_answered": answered})) == changes


def test_few_right_attempts_and_tasks_that_are_solved_too_often_say_nothing() -> None:
    right, wrong = written("4", True, 10), written("5", False, 90)
    assert form_measures([task(*[right] * (FEWEST - 1), wrong)], 0.9) == {}
    assert form_measures([task(*[right] * MANY)], 0.9) == {}, "training leaves such a task out"


@pytest.mark.parametrize(
    "other",
    [
        {"training": {"student": {"gate": "permuted"}}},
        {"training": {"student": {"enabled": False}}},
        {"student": {"provider": "tiny"}},
    ],
)
def test_only_language_models_that_learn_by_verdict_are_watched(other: dict[str, Any]) -> None:
    assert "form" in guards(LEARNED)
    plan = LEARNED.model_dump() | {"student": LEARNED.student.model_dump() | other.get("student", {})}
    training = LEARNED.training.model_dump()
    training["student"] |= other.get("training", {}).get("student", {})
    assert "form" not in guards(RunConfig.model_validate(plan | {"training": training}))
