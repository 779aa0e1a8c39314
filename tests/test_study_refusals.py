"""What a study or a search asks of its runs, in words; and all three texts of what either refuses."""

from collections.abc import Callable
from typing import Any

import pytest

from agent0.errors import ConfigError
from agent0.experiments.ablation_runs import (
    changed_settings,
    chosen_variants,
    describe_compute,
    requested_compute,
    runs_of_study,
    seeds_of,
)
from agent0.experiments.ablation_study import AblationStudy, Variant
from agent0.settings import RunConfig

PLAIN = RunConfig()


# --- what is refused, in full


def refusals() -> dict[str, tuple[Callable[[], Any], tuple[str, str, str]]]:
    study = AblationStudy("?", (Variant("a"), Variant("b")))
    seeds_fix = "Write --seeds 0,1,2 or --seeds 0-4."
    waits, asks = RunConfig(on_failure="wait"), RunConfig.model_validate({"verification": {"undecided": "ask"}})
    other = RunConfig.model_validate({"evaluation": {"test": 7}})
    return {
        "study name": (
            lambda: runs_of_study("A" * 99, {"a": PLAIN}, (0,)),
            (f"A study cannot be named {'A' * 80!r}.", "", "Use small letters, digits and '-', at most 30."),
        ),
        "no seed": (
            lambda: runs_of_study("x", {"a": PLAIN}, ()),
            ("There is no seed.", "A run of a study is a variant with a seed.", "Say --seeds 0,1,2."),
        ),
        "seed twice": (
            lambda: runs_of_study("x", {"a": PLAIN}, (1, 1)),
            ("A seed is named twice.", "The same run again says nothing new.", "Name each seed once."),
        ),
        "long run": (
            lambda: runs_of_study("x" * 30, {"y" * 90: PLAIN}, (1,)),
            (f"{'x' * 30 + '-' + 'y' * 49!r} is too long for a run.", "", "Choose a shorter --name."),
        ),
        "scores otherwise": (
            lambda: runs_of_study("x", {"a": PLAIN, "b": other}, (1,)),
            (
                "The variant b scores otherwise than a.",
                "Variants are compared on the same held-out items, scored alike.",
                "Leave run.evaluation alone, but for gate, benchmark_gate, teacher_gate, margin, calibration.",
            ),
        ),
        "waits": (
            lambda: runs_of_study("x", {"a": PLAIN, "b": waits}, (1,)),
            ("The variant b would wait for a person.", "run.on_failure says so.", "Nobody watches a study's runs."),
        ),
        "asks": (
            lambda: runs_of_study("x", {"a": asks}, (1,)),
            (
                "The variant a would wait for a person.",
                "run.verification.undecided says so.",
                "Nobody watches a study's runs.",
            ),
        ),
        "no number": (
            lambda: seeds_of("1," + "x" * 50),
            (f"{'x' * 40!r} is no seed.", "A seed is a whole number from 0 on.", seeds_fix),
        ),
        "downwards": (lambda: seeds_of("3-2"), ("'3-2' is no row of seeds.", "There may be 100, upwards.", seeds_fix)),
        "too many": (
            lambda: seeds_of("0-100"),
            ("'0-100' is no row of seeds.", "There may be 100, upwards.", seeds_fix),
        ),
        "no arm": (
            lambda: chosen_variants(study, ["a", "c"]),
            ("The study has no variant 'c'.", "Its variants: a, b.", ""),
        ),
    }


@pytest.mark.parametrize("name", refusals())
def test_what_a_study_refuses_it_refuses_with_why_and_what_to_do(name: str) -> None:
    work, (what, why, fix) = refusals()[name]
    with pytest.raises(ConfigError) as refused:
        work()
    error = refused.value
    assert (error.what, error.why, error.fix) == (what, why, fix)


def test_the_most_that_is_allowed_is_allowed() -> None:
    assert seeds_of("5, 0-99,") == (5, *range(100)) and seeds_of("999999999") == (999999999,)


# --- what is asked of every run


def test_compute_is_described_in_full() -> None:
    def plan(iterations: int, tasks: int, attempts: int, **student: str) -> RunConfig:
        return RunConfig.model_validate(
            {"iterations": iterations, "tasks": tasks, "attempts": attempts, "student": student}
        )

    one = plan(2, 500, 4, provider="tiny")
    assert requested_compute(one) == {"iterations": 2, "tasks": 500, "attempts": 4, "in_all": 4000}
    said = "2 iterations of 500 tasks with 4 attempts each (4,000 attempts at most)"
    end = ". What it took is in the table of cost."
    assert describe_compute({"a": one, "b": one}) == f"Asked of every run alike: {said}{end}"
    spread = {"a": one, "b": plan(2, 250, 8, provider="tiny"), "c": one, "d": plan(2, 1000, 2, provider="tiny")}
    assert describe_compute(spread) == (
        f"Asked of every run alike: {said}, but differently spread: b 250 tasks with 8 attempts each; "
        f"d 1000 tasks with 2 attempts each{end}"
    )
    less = "1 iterations of 500 tasks with 4 attempts each (2,000 attempts at most)"
    assert describe_compute({"a": one, "b": plan(1, 500, 4, provider="tiny")}) == (
        f"NOT equal compute: a {said}; b {less}{end}"
    )
    other = plan(2, 500, 4, provider="ollama", model="m")
    assert describe_compute({"a": one, "b": other}) == (
        f"Asked of every run alike: {said}; but models differ, and with them what an attempt costs{end}"
    )


def test_changed_settings_are_named_by_their_keys_sorted() -> None:
    new = RunConfig.model_validate({"tasks": PLAIN.tasks + 1, "evaluation": {"test": 7}, "curriculum": {"levels": [3]}})
    assert changed_settings(PLAIN, new) == ["curriculum.levels", "evaluation.test", "tasks"]
    assert changed_settings(PLAIN, PLAIN) == []


def test_variants_are_chosen_in_the_studys_order() -> None:
    study = AblationStudy("?", (Variant("a", {"tasks": "1"}, "about a"), Variant("b")))
    assert chosen_variants(study, ["b", "a"]) == chosen_variants(study, []) == study.variants
    assert chosen_variants(study, ["b"]) == (study.variants[1],)


@pytest.mark.parametrize("text", ["-1", "a", "0,x", "3-1", "0-1000000", "1.5", "\uff10", "0;1"])
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="seed"):
        seeds_of(text)


def test_seeds_are_read() -> None:
    assert seeds_of("0,1, 2") == (0, 1, 2) == seeds_of("0-2")
    assert seeds_of("") == ()
