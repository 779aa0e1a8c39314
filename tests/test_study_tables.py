"""Every row of a study's tables with all its fields, by hand."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent0.events.base import record
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained, StudentExamined
from agent0.events.runs import IterationMeasured
from agent0.events.tasks import TaskAttempted, TaskProposed
from agent0.events.values import Usage
from agent0.experiments import ablation_results as results
from agent0.experiments.ablation_results import Outcome, averaged, cost_rows, curves, outcome_of, run_rows, variant_rows
from agent0.experiments.hyperparameter_search import Tried, best_by_budget, outcome
from agent0.experiments.ladder_aims import BASE, LadderAim, aim_rows
from agent0.experiments.ladder_rows import known_columns, ladder_rows, level_rows
from agent0.experiments.ladders.alarm_leads import fallen_at, lead_rows
from agent0.experiments.ladders.costs import cost_to_reach, sampling_rows, student_answers
from agent0.report.charts.ablation_charts import curve
from agent0.stats.intervals import wilson
from agent0.stats.paired_tests import detectable, exact_interval


def scored(checkpoint: str, outcomes: str, iteration: int = 0, **more: Any) -> CheckpointEvaluated:
    right, n = outcomes.count("1"), len(outcomes)
    facts = {"n": n, "correct": right, "accuracy": right / n, "lower95": 0.0, "upper95": 1.0, "tool_use": 0.25}
    facts |= {"evaluation": "e", "checkpoint": checkpoint, "iteration": iteration, "split": "test"}
    return CheckpointEvaluated.model_validate({**facts, "outcomes": outcomes, **more})


def levels(checkpoint: str, by_level: Mapping[str, float], **more: Any) -> CheckpointEvaluated:
    return scored(checkpoint, "10", by_level=dict(by_level), **more)


# --- the outcome of a run


def recorded_run() -> list[Any]:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    usage = Usage(prompt_tokens=10, completion_tokens=5, wall_s=0.5)
    told = [
        TaskProposed.model_construct(usage=usage, task="t"),
        TaskAttempted.model_construct(usage=usage, attempt="a", task="t"),
        scored("base", "10", -1, split="validation"),
        IterationMeasured.model_construct(measures={"x": 1.0}),
        CheckpointTrained(
            checkpoint="student-0", role="student", iteration=0, parent="base", adapter=None, samples=1,
            metrics={"steps": 7}, wall_s=1.5,
        ),
        CheckpointTrained(
            checkpoint="student-1", role="student", iteration=1, parent="base", adapter=None, samples=1,
            metrics={"steps": 2}, wall_s=0.25,
        ),
        scored("student-0", "11", 0, split="validation", forced_tool=True),
        TaskAttempted.model_construct(usage=usage, attempt="b", task="t"),
        scored("student-1", "11", 1, split="validation"),
        scored("student-1", "01", 1),
        StudentExamined(exam="e", checkpoint="base", split="test", seed=1, attempts=1, temperature=0.0, right=(0,),
                        majority="0"),
    ]  # fmt: skip
    return [
        record(event, run="run-1", time=begin + timedelta(seconds=2 * n)).model_copy(update={"seq": n})
        for n, event in enumerate(told)
    ]


def test_an_outcome_is_read_from_the_log_field_by_field() -> None:
    events = recorded_run()
    found = outcome_of("arm", 3, "student-1", 2, events)
    scores = tuple(one.event for one in events if isinstance(one.event, CheckpointEvaluated))
    assert found == Outcome(
        "arm", 3, "run-1", "student-1", 2, scores,
        cost={"attempts": 2, "tokens": 45, "model_s": 1.5, "steps": 9, "training_s": 1.75, "wall_s": 18.0},
        measures=({"x": 1.0},),
        spent=(
            {"iteration": -1, "attempts": 1, "tokens": 30, "seconds": 4.0},
            {"iteration": 1, "attempts": 2, "tokens": 45, "seconds": 16.0},
        ),
    )  # fmt: skip


def cell(arm: str, seed: int, before: str, after: str, **more: Any) -> Outcome:
    scores = (
        scored("base", before, -1), scored("base", "0" * len(before), -1, forced_tool=True),
        scored("base", before, -1, split="validation"), scored("student-0", after, split="validation"),
        scored("student-0", after), scored("student-9", "1" * len(after), 9),
    )  # fmt: skip
    return Outcome(arm, seed, f"r-{arm}-{seed}", "student-0", 2, scores, **more)


def test_a_mean_over_seeds_has_the_wider_interval() -> None:
    low, high = wilson(1, 4)
    assert averaged([{0: 1.0, 1: 0.0, 2: 0.0, 3: 0.0}]) == {
        "seeds": 1, "items": 4, "mean": 0.25, "low": low, "high": high,
    }  # fmt: skip
    apart = averaged([dict.fromkeys(range(100), 1.0), dict.fromkeys(range(100), 0.0)])
    assert apart == {"seeds": 2, "items": 100, "mean": 0.5, "low": 0.0, "high": 1.0}, "shares stay shares"
    near = averaged([dict.fromkeys(range(10), 0.5), dict.fromkeys(range(10), 0.5)])
    assert (near["low"], near["high"]) == wilson(5, 10), "seeds that agree do not narrow it"


def test_rows_of_variants_and_of_runs_have_all_fields() -> None:
    held = [cell("a", 0, "1000", "1100", cost={"wall_s": 2.0}), cell("b", 0, "1000", "1110")]
    low, high = zip(*(wilson(n, 4) for n in range(5)), strict=True)
    assert variant_rows(held, ["test"], ["untrained", "forced_tool"]) == [
        {"measure": "test", "arm": arm, "student": who, "seeds": 1, "items": 4, "mean": n / 4, "low": low[n],
         "high": high[n]}
        for arm, after in (("a", 2), ("b", 3))
        for who, n in (("trained", after), ("untrained", 1), ("forced_tool", 0))
    ]  # fmt: skip
    assert run_rows(held, ["test", "within"]) == [
        {"arm": "a", "seed": 0, "run": "r-a-0", "student": "student-0", "test_untrained": 0.25, "test": 0.5,
         "within_untrained": None, "within": None, "wall_s": 2.0},
        {"arm": "b", "seed": 0, "run": "r-b-0", "student": "student-0", "test_untrained": 0.25, "test": 0.75,
         "within_untrained": None, "within": None, "wall_s": None},
    ]  # fmt: skip


def test_costs_are_means_over_seeds_to_three_digits() -> None:
    held = [cell("a", n, "1", "1", cost={"tokens": cost, "wall_s": 1.0}) for n, cost in enumerate((1, 1, 2))]
    held.append(cell("b", 0, "1", "1", cost={"tokens": 5, "wall_s": 0.00049}))
    assert cost_rows(held) == [
        {"arm": "a", "cells": 3, "tokens": 1.333, "wall_s": 1.0},
        {"arm": "b", "cells": 1, "tokens": 5, "wall_s": 0.0},
    ]


def test_a_curve_goes_on_to_the_longest_run_and_begins_before_training() -> None:
    short = replace(cell("a", 0, "1000", "1100"), iterations=1)
    long = replace(cell("a", 1, "1000", "1100"), iterations=3)
    (rows,) = curves([short, long]).values()
    assert [(row["iteration"], row["seeds"], row["mean"]) for row in rows] == [
        (-1, 2, 0.25), (0, 2, 0.5), (1, 2, 0.5), (2, 2, 0.5),
    ]  # fmt: skip
    assert curves([replace(short, scores=())]) == {"a": []}
    ticks = re.findall(r">(untrained|\d+)</text>", curve({"curves": {"a": rows}}))
    assert ticks == ["untrained", "0", "1", "2"], "as every table counts"


def test_what_may_be_said_follows_from_the_seeds() -> None:
    row = results.comparison_rows([cell("a", 0, "10", "10"), cell("b", 0, "10", "01")], ["test"], [])[0]
    assert {key: row[key] for key in ("measure", "arm", "against", "seeds", "items", "gained", "lost", "mean")} == {
        "measure": "test", "arm": "a", "against": "b", "seeds": 1, "items": 2, "gained": 1, "lost": 1, "mean": 0.0,
    }  # fmt: skip
    assert {row[key] for key in ("low", "high", "p", "p_seeds", "adjusted_p", "detectable")} == {None}
    assert row["word"] == "one seed: nothing may be claimed" and row["by_seed"] == [0.0] and row["p_items"] == 1.0


# --- ladders


def test_a_row_of_a_ladder_has_all_fields() -> None:
    scores = (
        levels(BASE, {"4": 0.9, "10": 0.5, "5": 0.25}),
        levels("student-7", {"4": 0.0}),
        levels("student-7", {"4": 0.8, "5": 1.0, "10": 0.506, "11": 0.2}),
        levels("student-7", {"4": 1.0}, forced_tool=True),
    )
    seen = tuple({"written_level": n, "half_solved": 0.125} for n in (9.0, 1.0, 2.0, 3.0, 5.0))
    one = Outcome("ours", 3, "r", "student-7", 8, scores, measures=seen, labels={"answers": 3, "wrong": 1})
    row = {
        "arm": "ours", "seed": 3, "height_untrained": 10, "height90_untrained": 4, "added_untrained": 1.65,
        "height": 10, "height90": 5, "added": 2.51, "taught_change": 0.325, "labels_right": 0.6667,
        "written_level_first": 9.0, "written_level": 2.75, "readable": None, "different_texts": None,
        "digit_entropy": None, "half_solved": 0.12, "half_solved_run": 0.125,
    }  # fmt: skip
    assert ladder_rows([one], taught=5) == [row]
    none = dict.fromkeys(row) | {"arm": "ours", "seed": 3}
    bare = Outcome("ours", 3, "r", "student-7", 8, ())
    assert ladder_rows([bare], taught=5) == [none]
    known = known_columns(ladder_rows([one, bare], taught=5))
    assert known[0] == {name: value for name, value in row.items() if value is not None}
    assert known[1] == dict.fromkeys(known[0]) | {"arm": "ours", "seed": 3}
    assert known_columns([]) == []


def test_accuracies_by_level_are_means_over_seeds_the_base_of_the_first_variant_alone() -> None:
    def run(arm: str, seed: int, base: Mapping[str, float], after: Mapping[str, float]) -> Outcome:
        return Outcome(arm, seed, "r", "student-1", 2, (levels(BASE, base), levels("student-1", after)))

    held = [
        run("ours", 0, {"4": 0.5, "10": 0.0}, {"4": 1.0, "10": 0.25}),
        run("ours", 1, {"4": 0.5}, {"4": 0.5, "9": 0.12345}),
        run("other", 0, {"4": 0.9}, {"4": 0.75}),
    ]
    found = level_rows(held)
    assert found == [
        {"arm": "ours", "levels": {"4": 0.75, "9": 0.1235, "10": 0.25}},
        {"arm": BASE, "levels": {"4": 0.5, "10": 0.0}},
        {"arm": "other", "levels": {"4": 0.75}},
    ]
    assert list(found[0]["levels"]) == ["4", "9", "10"], "as numbers"
    assert level_rows([Outcome("ours", 0, "r", "student-1", 2, ())]) == [] == level_rows([])


def test_costs_to_reach_a_level_are_means_over_the_seeds_that_reached_it() -> None:
    def run(seed: int, reached: int, attempts: int) -> Outcome:
        scores = (
            levels("base", {"2": 1.0, "3": 0.2}, split="validation", iteration=-1),
            levels("s-0", {str(reached): 0.5}, split="validation"),
        )
        spent = tuple(
            {"iteration": n, "attempts": (n + 1) * attempts, "tokens": (n + 1) * 10, "seconds": (n + 1) * 0.26}
            for n in (-1, 0)
        )
        return Outcome("ours", seed, "r", "s-0", 1, scores, spent=spent)

    assert cost_to_reach([run(0, 6, 100), run(1, 4, 201)]) == [
        {"arm": "ours", "level": 4, "seeds": 2, "of": 2, "attempts": 150.5, "tokens": 10, "seconds": 0.3},
        {"arm": "ours", "level": 6, "seeds": 1, "of": 2, "attempts": 100, "tokens": 10, "seconds": 0.3},
    ]
    assert cost_to_reach([]) == []


def test_sampled_answers_are_counted_with_what_chance_would_have() -> None:
    exam = StudentExamined(
        exam="8 at T=1", checkpoint="student-1", split="test", seed=1, attempts=8, temperature=1.0,
        right=(0, 3, 1), majority="000", levels=(4,), excluded=("own sets",),
    )  # fmt: skip
    several = exam.model_copy(update={"levels": (4, 5)})
    one = Outcome("ours", 2, "r", "student-1", 2, (), exams=(several, exam))
    row = {"seed": 2, "level": 4, "who": "ours", "how": "8 at T=1", "solved": 2, "tasks": 3}
    assert sampling_rows([one], {4: 0.5}) == [{**row, "random": 2.988281}]
    assert sampling_rows([one], {5: 0.5}) == [{**row, "random": None}]
    assert student_answers(one) == ()


def test_an_alarm_leads_by_the_trainings_between_it_and_the_fall() -> None:
    def run(*accuracies: float, alarms: Mapping[str, int]) -> Outcome:
        scores = tuple(
            scored("s", "10", n, split="validation", accuracy=accuracy) for n, accuracy in enumerate(accuracies, -1)
        )
        return Outcome("leak", 1, "r", "s", 3, scores, alarms=alarms)

    fell = run(0.5, 0.48, 0.47, 0.3, alarms={"late": 3, "gate": 1, "drift": 1})
    told = {"arm": "leak", "seed": 1, "validation_fell": 1}
    assert fallen_at(fell) == 1, "three points are a fall"
    assert lead_rows([fell]) == [
        {**told, "alarm": "drift", "since": 1, "lead": 1},
        {**told, "alarm": "gate", "since": 1, "lead": 1},
        {**told, "alarm": "late", "since": 3, "lead": -1},
    ]
    stood = run(0.5, 0.9, alarms={"gate": 0})
    whole = {"arm": "leak", "seed": 1, "validation_fell": None}
    assert lead_rows([stood]) == [{**whole, "alarm": "gate", "since": 0, "lead": None}]
    assert lead_rows([run(0.5, alarms={})]) == [{**whole, "alarm": None, "since": None, "lead": None}]
    assert lead_rows([run(0.5, 0.0, alarms={})])[0] == {**whole, "validation_fell": 0, "alarm": None, "since": None,
                                                       "lead": None}  # fmt: skip


def test_an_aims_bounds_belong_to_it_and_a_quotient_needs_a_whole() -> None:
    def rows(before: float, after: float) -> list[dict[str, Any]]:
        return [{"arm": "ours", "seed": 0, "height_untrained": before, "height": after}]

    between = LadderAim("ours", BASE, "height", least=2, most=4)
    assert between.title() == "T of ours at least 2 and at most 4 over base"
    assert [aim_rows([between], rows(1, after))[0]["kept"] for after in (2, 3, 5, 6)] == [0, 1, 1, 0]
    quotient = LadderAim("ours", BASE, "height", least=1.5, ratio=True)
    assert aim_rows([quotient], rows(0, 6)) == []
    assert aim_rows([quotient], rows(3, 4))[0]["by_seed"] == [1.33]


# --- a search


def tried(name: str, *told: str, steps: int = 10) -> Tried:
    scores = [scored(f"student-{n}", text, n, split="validation") for n, text in enumerate(told)]
    trained = [
        CheckpointTrained(
            checkpoint=f"student-{n}", role="student", iteration=n, parent="base", adapter=None, samples=3,
            metrics={"steps": steps}, wall_s=1.26,
        )
        for n in range(len(told))
    ]  # fmt: skip
    return Tried(name, {"training.student.rank": name}, trained, scores)


def test_a_row_of_a_search_has_all_fields() -> None:
    own, more = tried("own", "0" * 20), tried("more", "0" * 20, "1" * 20)
    first, second = outcome(own, [more, tried("unscored")])
    low, high = wilson(20, 20)
    names = ("difference", "difference_low", "difference_high", "adjusted_p", "changed", "detectable")
    test = {name: first.pop(name) for name in names}
    assert first == {
        "trial": "more", "settings": {"training.student.rank": "more"}, "validation": 1.0, "low": low, "high": high,
        "n": 20, "tool_use": 0.25, "word": "improved", "steps": 20, "training_s": 2.5,
        "by_checkpoint": [
            {"checkpoint": "student-0", "validation": 0.0}, {"checkpoint": "student-1", "validation": 1.0},
        ],
    }  # fmt: skip
    bound = exact_interval(20, 0, 20)[0]
    assert test == {
        "difference": 1.0, "difference_low": bound, "difference_high": 1.0, "adjusted_p": pytest.approx(2 * 0.5**20),
        "changed": 20, "detectable": detectable(20, 1.0),
    }  # fmt: skip
    assert second["trial"] == "own" and second["word"] == "" and second["adjusted_p"] is None
    alone = outcome(tried("own"), [more])
    assert [row["trial"] for row in alone] == ["more"] and alone[0]["difference"] is None and alone[0]["word"] == ""
    twins = outcome(tried("z", "10"), [tried("b", "10"), tried("a", "01"), tried("dear", "10", steps=11)])
    assert [row["trial"] for row in twins] == ["a", "b", "z", "dear"]
    assert [row["trial"] for row in outcome(tried("own", "10"), [tried("x", "100"), tried("a", "11")])] == [
        "a", "own", "x",
    ]  # fmt: skip


def test_the_best_for_a_budget_has_all_fields() -> None:
    low, high = wilson(1, 2)
    assert best_by_budget(tried("own", "00"), [tried("x", "10")]) == [
        {"trainings": 1, "checkpoint": "student-0", "steps": 10, "trial": "x",
         "settings": {"training.student.rank": "x"}, "validation": 0.5, "low": low, "high": high},
    ]  # fmt: skip
    many = tried("own", *["10"] * 11)
    assert [row["checkpoint"] for row in best_by_budget(many, [])] == [f"student-{n}" for n in range(11)]
    assert [row["trainings"] for row in best_by_budget(many, [])] == list(range(1, 12))
    assert best_by_budget(tried("own"), []) == []
