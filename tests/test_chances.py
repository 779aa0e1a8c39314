"""Uniformly random derivations: the exact probability is that of drawing and checking; tokens are the base's own."""

import random
from statistics import fmean

import pytest

from agent0.assembly.ablations.chance_controls import chances_of
from agent0.assembly.models.protocol import tasks_of
from agent0.config.loading import load
from agent0.evaluation.protocol import TaskSet
from agent0.experiments.ablations import ablation_studies
from agent0.tasks.families import families
from agent0.tasks.families.countdown import DRAWN, TOP
from infra.models.tiny import packaged

COUNTDOWN = families()["countdown"]


@pytest.mark.parametrize(
    ("numbers", "target", "share"),
    [
        ([2, 3], 6, 1 / 3),  # 5, 1 or 6
        ([2, 2], 4, 1.0),  # 4 and 4; 0 is not allowed
        ([99, 99], 3, 0.0),  # nothing stays within 1 to 99
    ],
)
def test_the_chance_of_small_tasks_by_hand(numbers: list[int], target: int, share: float) -> None:
    assert COUNTDOWN.chance
    assert COUNTDOWN.chance({"numbers": numbers, "target": target}) == pytest.approx(share)


def test_the_chance_is_how_often_the_check_passes_a_random_derivation() -> None:
    assert COUNTDOWN.chance and COUNTDOWN.derive and COUNTDOWN.check
    rng, off = random.Random(1), []
    for level in (2, 3, 4):
        for _ in range(10):
            params = COUNTDOWN.sample(level, rng)
            right = sum(COUNTDOWN.check(params, COUNTDOWN.derive(params, rng)) == "" for _ in range(400))
            off.append(right / 400 - COUNTDOWN.chance(params))
    assert abs(fmean(off)) < 0.02 and max(map(abs, off)) < 0.12


def test_random_expressions_solve_as_many_tasks_as_the_page_says() -> None:
    """Of the fresh tasks and of those of five numbers, within eight."""
    sets = [one for one in ablation_studies()["skill"].sets if one.name in ("fresh", "harder")]
    found = chances_of(sets, load("search", env={}).run, {0: packaged("search")})
    fresh, harder = (fmean(one.within(8).values()) for one in found.values())
    assert (round(fresh, 2), round(harder, 2)) == (0.4, 0.14)
    assert all(one.tokens and 5 < one.tokens < 40 for one in found.values())


def test_sets_of_families_without_random_derivations_have_no_such_control() -> None:
    assert chances_of((TaskSet("mixed", "all", 4, 7),), load("scripted", env={}).run, {}) == {}


def test_the_set_outside_is_of_numbers_that_training_never_draws() -> None:
    plan, outside = load("search", env={}).run, next(one for one in ablation_studies()["skill"].sets if one.beyond)
    tasks = tasks_of(outside.protocol(), plan)
    assert len({task.canonical for task in tasks}) == outside.n == 150
    for task in tasks:
        params = COUNTDOWN.parse(task.question)
        assert params and task.level in (2, 3) and COUNTDOWN.solve(params)
        assert all(DRAWN[task.level] < number <= TOP for number in params["numbers"])
    inside = tasks_of(ablation_studies()["skill"].sets[0].protocol(), plan)
    assert all(max(task.params["numbers"]) <= DRAWN[task.level] for task in inside)
