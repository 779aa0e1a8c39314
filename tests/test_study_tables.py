"""Every row of a study's tables with all its fields, by hand."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agent0.events.base import record
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.events.tasks import TaskAttempted, TaskProposed
from agent0.events.values import Usage
from agent0.experiments import ablation_results as results
from agent0.experiments.ablation_results import (
    RunOutcome,
    averaged,
    cost_rows,
    curves,
    outcome_of,
    run_rows,
    variant_rows,
)
from agent0.experiments.ladder_rows import better_on_every_seed, ladder_rows, lead_rows, level_rows
from agent0.report.charts.ablation_charts import curve
from agent0.report.markdown import ladder
from agent0.state.run_state import BASE
from agent0.stats import across_seeds
from agent0.stats.intervals import wilson
from agent0.stats.paired_tests import holm
from agent0.tasks.curriculum.ladder_height import added, height


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
        CheckpointTrained(
            checkpoint="student-0", role="student", iteration=0, parent="base", adapter=None, samples=1,
            metrics={"steps": 7, "own_tokens": 30, "taught_tokens": 10, "tokens": 8}, wall_s=1.5,
        ),
        CheckpointTrained(
            checkpoint="student-1", role="student", iteration=1, parent="base", adapter=None, samples=1,
            metrics={"steps": 2, "tokens": 5}, wall_s=0.25,
        ),
        scored("student-0", "11", 0, split="validation", forced_tool=True),
        TaskAttempted.model_construct(usage=usage, attempt="b", task="t"),
        scored("student-1", "11", 1, split="validation"),
        scored("student-1", "01", 1),
        CheckpointTrained(
            checkpoint="teacher-0", role="teacher", iteration=0, parent="base", adapter=None, samples=1,
            metrics={"steps": 1, "tokens": 900}, wall_s=0.0,
        ),
    ]  # fmt: skip
    return [
        record(event, run="run-1", time=begin + timedelta(seconds=2 * n)).model_copy(update={"seq": n})
        for n, event in enumerate(told)
    ]


def test_an_outcome_is_read_from_the_log_field_by_field() -> None:
    events = recorded_run()
    found = outcome_of("arm", 3, "student-1", 2, events)
    scores = tuple(event.event for event in events if isinstance(event.event, CheckpointEvaluated))
    assert found == RunOutcome(
        "arm", 3, "run-1", "student-1", 2, scores,
        cost={
            "attempts": 2, "tokens": 45, "model_s": 1.5, "steps": 10, "learned_tokens": 45, "training_s": 1.75,
            "wall_s": 18.0,
        },
    )  # fmt: skip


def cell(arm: str, seed: int, before: str, after: str, **more: Any) -> RunOutcome:
    scores = (
        scored("base", before, -1), scored("base", "0" * len(before), -1, forced_tool=True),
        scored("base", before, -1, split="validation"), scored("student-0", after, split="validation"),
        scored("student-0", after), scored("student-9", "1" * len(after), 9),
    )  # fmt: skip
    return RunOutcome(arm, seed, f"r-{arm}-{seed}", "student-0", 2, scores, **more)


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
    assert [row for row in variant_rows(held) if row["measure"] == "test"] == [
        {"measure": "test", "arm": arm, "student": who, "seeds": 1, "items": 4, "mean": n / 4, "low": low[n],
         "high": high[n]}
        for arm, after in (("a", 2), ("b", 3))
        for who, n in (("trained", after), ("untrained", 1), ("forced_tool", 0))
    ]  # fmt: skip
    assert run_rows(held) == [
        {"arm": "a", "seed": 0, "run": "r-a-0", "student": "student-0", "test_untrained": 0.25, "test": 0.5,
         "validation_untrained": 0.25, "validation": 0.5, "wall_s": 2.0},
        {"arm": "b", "seed": 0, "run": "r-b-0", "student": "student-0", "test_untrained": 0.25, "test": 0.75,
         "validation_untrained": 0.25, "validation": 0.75, "wall_s": None},
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
    row = results.comparison_rows([cell("b", 0, "10", "01"), cell("a", 0, "10", "10")])[0]
    assert {key: row[key] for key in ("measure", "arm", "against", "seeds", "items", "gained", "lost", "mean")} == {
        "measure": "test", "arm": "a", "against": "b", "seeds": 1, "items": 2, "gained": 1, "lost": 1, "mean": 0.0,
    }  # fmt: skip
    assert {row[key] for key in ("low", "high", "p", "p_seeds", "adjusted_p", "detectable")} == {None}
    assert row["word"] == "one seed: nothing may be claimed" and row["by_seed"] == [0.0] and row["p_items"] == 1.0


# --- ladders


def test_height_is_the_highest_level_half_solved_whatever_lies_between() -> None:
    assert height({"4": 1.0, "9": 0.5, "10": 0.49, "12": 0.6, "30": 0.0}) == 12
    assert height({"4": 0.4}) == height({}) == 0
    assert added({"4": 1.0, "9": 0.5, "30": 0.25}) == 1.75


def test_a_row_of_a_ladder_has_all_fields() -> None:
    scores = (
        levels(BASE, {"4": 0.9, "10": 0.5, "5": 0.25}),
        levels(BASE, {"4": 1.0, "5": 1.0}, forced_tool=True),
        levels("student-7", {"4": 0.0}),
        levels("student-7", {"4": 0.8, "5": 1.0, "10": 0.506, "11": 0.2}),
        levels("student-7", {"4": 1.0}, forced_tool=True),
        levels("student-7", {"4": 1.0}, split="validation"),
    )
    row = {
        "arm": "ours", "seed": 3, "height_untrained": 10, "added_untrained": 1.65, "height": 10, "added": 2.51,
        "taught_change": 0.325,
    }  # fmt: skip
    assert ladder_rows([RunOutcome("ours", 3, "r", "student-7", 8, scores)], taught=5) == [row]
    none = dict.fromkeys(row) | {"arm": "ours", "seed": 3}
    assert ladder_rows([RunOutcome("ours", 3, "r", "student-7", 8, ())], taught=5) == [none]


def ladder_row(arm: str, seed: int, before: float, after: float | None) -> dict[str, Any]:
    facts = {"height_untrained": 7, "height": after and 12, "added_untrained": before, "added": after}
    return {"arm": arm, "seed": seed, **facts}


def test_leads_on_a_ladder_are_over_seeds_and_holm_runs_over_all_of_them() -> None:
    rows = [ladder_row("ours", 0, 4.0, 8.0), ladder_row("ours", 1, 5.0, 9.5), ladder_row("ours", 2, 4.0, 8.5)]
    rows += [ladder_row("even", 0, 4.0, 6.5), ladder_row("even", 1, 5.0, 7.5), ladder_row("even", 2, 4.0, None)]
    base, even = lead_rows(rows)
    assert (base["arm"], base["by_seed"]) == (BASE, [-4.0, -4.5, -4.5])
    assert (even["arm"], even["by_seed"]) == ("even", [-1.5, -2.0])
    ps = [across_seeds.tested(one["by_seed"]).p or 0.0 for one in (base, even)]
    assert [base["adjusted_p"], even["adjusted_p"]] == holm(ps) and base["adjusted_p"] > ps[0]
    said = ladder.answer({"about": {"ours": "", "even": ""}, "ladder": rows, "ladder_leads": [base, even]})
    assert "ours climbs from 7 to 12, 7 to 12, 7 to 12 (seeds 0, 1, 2)." in said[0]
    assert "its base -4.3 (" in said[1] and "even -1.8 (" in said[1] and said[1].count("not significant") == 1
    assert lead_rows(rows[:1]) == [
        {"arm": BASE, "by_seed": [-4.0], "low": None, "high": None, "p": None, "adjusted_p": None}
    ]
    assert lead_rows([]) == []


def test_better_means_on_every_seed_that_both_have() -> None:
    rows = [{"arm": arm, "seed": seed, "added": added} for arm, seed, added in
            (("a", 0, 2.0), ("a", 1, 2.0), ("b", 0, 1.0), ("b", 1, 2.0), ("c", 0, 1.0), ("d", 0, None))]  # fmt: skip
    assert better_on_every_seed(rows, "a", "c") and not better_on_every_seed(rows, "a", "b")
    assert not better_on_every_seed(rows, "a", "d")


def test_accuracies_by_level_are_means_over_seeds_the_base_of_the_first_variant_alone() -> None:
    def run(arm: str, seed: int, base: Mapping[str, float], after: Mapping[str, float]) -> RunOutcome:
        return RunOutcome(arm, seed, "r", "student-1", 2, (levels(BASE, base), levels("student-1", after)))

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
    assert level_rows([RunOutcome("ours", 0, "r", "student-1", 2, ())]) == [] == level_rows([])
