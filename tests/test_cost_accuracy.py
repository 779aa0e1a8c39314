"""The curve of cost against accuracy: its ends, its intervals and what bounds it."""

import random
from collections.abc import Callable
from functools import cache

import pytest

from agent0.report.charts.plots import as_file
from agent0.routing.strategies import Answer, Option, Rules, strategies
from agent0.routing.walk import RecordedQuestion
from benchmarks.cost_accuracy import (
    CLOUD,
    HOME,
    Curve,
    Seed,
    Workload,
    alone,
    best_at_each_cost,
    oracle,
    outcomes,
    picture,
)
from benchmarks.router import PLANS, best_threshold, stands


def task(rng: random.Random, calibrated: bool = True) -> RecordedQuestion:
    """A local answer that is right as often as its confidence says, or whatever that says."""
    sure, cost = rng.random(), rng.randint(50, 150)
    home = rng.random() < (sure if calibrated else 0.5)
    here, away = Answer(HOME, str(home), sure, 0), Answer(CLOUD, str(rng.random() < 0.95), None, cost)
    return RecordedQuestion((Option(HOME, 0), Option(CLOUD, cost, 0.95)), {HOME: here, CLOUD: away}, rng.random())


@cache
def workload(calibrated: bool = True, tasks: int = 80) -> Workload:
    """Two seeds that share half of their tasks."""
    rng = random.Random(3)
    drawn = [[task(rng, calibrated) for _ in range(tasks)] for _ in range(2)]
    names = [[str(number + shift) for number in range(tasks)] for shift in (0, tasks // 2)]
    return Workload([Seed(n, held, 0.7) for n, held in zip(names, drawn, strict=True)], 200)


def test_the_curve_goes_from_the_local_model_alone_to_the_cloud_alone() -> None:
    held = workload()
    local, cloud = stands("local_only", held, 0.0), held.standing(alone(held.seeds))
    assert (local.cost.value, cloud.cost.value, cloud.lost.value) == (0, 1, 0)
    assert local.gained.value == cloud.gained.value == 0
    for name in ("threshold", "ab", "budgeted"):
        sweep = PLANS[name].sweep
        found = [stands(name, held, at) for at in (*sweep[:-1:10], sweep[-1])]
        assert found[0] == local
        assert found[-1] == (cloud if name != "budgeted" else stands("threshold", held, None))
        costs = [one.cost.value for one in found]
        assert costs == sorted(costs) and len(set(costs)) > 4


@pytest.mark.parametrize("name", sorted(PLANS))
def test_no_strategy_is_above_the_oracle_at_its_cost(name: str) -> None:
    held = workload()
    best = best_at_each_cost(held.seeds)
    for at in (*PLANS[name].sweep[::9], PLANS[name].at):
        one = stands(name, held, at)
        possible = max(right for cost, right in best if cost <= one.cost.value + 1e-9)
        assert one.accuracy.value <= possible + 1e-9
    ideal = held.standing(oracle(held.seeds))
    assert (ideal.cost.value, ideal.accuracy.value) == pytest.approx(best[-2])


def test_confidence_that_says_nothing_gains_nothing_over_random_routing() -> None:
    told, untold = (stands("threshold", workload(calibrated), 0.5).gained for calibrated in (True, False))
    assert told.low > 0.05
    assert untold.low < 0 < untold.high
    assert abs(stands("ab", workload(), 0.5).gained.value) < 0.05


def test_an_interval_holds_its_value_and_shrinks_with_tasks() -> None:
    few, many = (stands("cascade", workload(tasks=tasks), None) for tasks in (30, 480))
    for one in (few, many):
        for found in (one.cost, one.accuracy, one.gained, one.lost):
            assert found.low <= found.value <= found.high
    assert many.accuracy.high - many.accuracy.low < 0.5 * (few.accuracy.high - few.accuracy.low)


def test_a_task_that_two_seeds_drew_is_one_draw() -> None:
    """The same outcomes twice under the same names are no narrower; under other names they are."""
    rng = random.Random(5)
    tasks = [task(rng) for _ in range(60)]
    once, twice, apart = ([[0]], [[0], [0]], [[0], [1]])

    def wide(shifts: list[list[int]]) -> float:
        held = Workload([Seed([f"{n}-{s}" for n in range(60)], tasks, 0.7) for [s] in shifts], 500)
        found = stands("threshold", held, None).accuracy
        return found.high - found.low

    assert wide(twice) == pytest.approx(wide(once))
    assert wide(apart) < 0.85 * wide(once)


def test_the_fitted_threshold_is_the_lowest_that_loses_nothing() -> None:
    tasks = workload(tasks=30).seeds[0].tasks
    held = Seed([str(number) for number in range(30)], tasks, best_threshold(list(tasks)))
    lost = Workload([held], 2)
    below: Callable[[Seed], Rules] = lambda seed: Rules(seed.threshold - 0.01)  # noqa: E731
    assert (
        stands("threshold", lost, None).lost.value <= 0 < lost.standing(outcomes("threshold", [held], below)).lost.value
    )


def test_the_picture_names_every_strategy_and_is_the_same_again() -> None:
    held = workload(tasks=20)
    assert PLANS.keys() == strategies().keys()
    curves = {
        name: Curve([stands(name, held, at) for at in PLANS[name].sweep[::10]], stands(name, held, None))
        for name in PLANS
    }
    cloud, best = held.standing(alone(held.seeds)), best_at_each_cost(held.seeds)
    drawn = as_file(picture(curves, cloud, best))
    assert drawn == as_file(picture(curves, cloud, best))
    for name in (*PLANS, "random routing", "oracle", "cloud alone"):
        assert f">{name}<" in drawn
    assert f"threshold: cost {curves['threshold'].chosen.cost.value:.0%}" in drawn
