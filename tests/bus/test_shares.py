"""Slots are shared by weight, nobody waits for ever, and models are loaded by few: of the rules alone."""

from collections import Counter
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.infra.bus.shares import Shares, WorkerSlots, divide

RUNS = ("a", "b", "c", "d")
weights = st.dictionaries(st.sampled_from(RUNS), st.integers(1, 100), min_size=1)


def played(shares: Shares, runs: list[str], steps: int, slots: int) -> list[str]:
    """Who got a slot, in order, where each of ``runs`` always has work and what began first ends first."""
    running: list[str] = []
    for step in range(steps):
        run = shares.next(runs, Counter(running[max(0, step - slots + 1) :]))
        shares.give(run, runs)
        running.append(run)
    return running


@given(weights, st.integers(1, 12))
def test_each_run_gets_its_share_and_nobody_waits_longer_than_the_bound(plan: dict[str, int], slots: int) -> None:
    shares, total = Shares(slots), sum(plan.values())
    shares.weights = plan
    given = played(shares, list(plan), 4 * total, slots)
    for run, weight in plan.items():
        places = [-1, *(n for n, name in enumerate(given) if name == run), len(given)]
        longest = max(after - before for before, after in pairwise(places))
        assert longest <= ceil(total / weight) + slots + len(plan), "the bound of docs/design/decisions/003"
        assert abs(given.count(run) - 4 * weight) <= slots + len(plan)


@given(st.integers(2, 12))
def test_a_run_of_long_reactions_has_no_more_slots_than_its_share(slots: int) -> None:
    shares, running = Shares(slots), Counter[str]()
    for _ in range(40):  # of the long one none ends
        while running.total() < slots:
            run = shares.next(["long", "short"], running)
            shares.give(run, ["long", "short"])
            running[run] += 1
        running["short"] = 0
    assert running["long"] == ceil(slots / 2), "what is left of a share goes in turn"


def test_whoever_had_nothing_to_do_saves_nothing_up() -> None:
    shares = Shares(1)
    for _ in range(50):
        shares.give(shares.next(["a"], {}), ["a"])
    given = played(shares, ["a", "b"], 10, 1)
    assert given.count("b") == 5


@pytest.mark.parametrize("slots", [1, 8])
def test_the_run_of_higher_priority_is_first(slots: int) -> None:
    shares = Shares(slots)
    shares.weights = {"low": 1, "high": 100}
    assert played(shares, ["low", "high"], 90 if slots == 1 else 8, slots)[:1] == ["high"]


models = st.sampled_from(["", "m1", "m2", "m3"])
crews = st.lists(st.tuples(st.integers(1, 8), st.frozensets(models, max_size=2)), min_size=1, max_size=6)


@given(crews, st.dictionaries(models, st.integers(1, 100), min_size=1))
def test_over_all_workers_each_model_has_its_share_and_few_load_it(
    crew: list[tuple[int, frozenset[str]]], plan: dict[str, int]
) -> None:
    workers = [WorkerSlots(f"w{n}", slots, loaded) for n, (slots, loaded) in enumerate(crew)]
    slots, capacity = divide(workers, plan), sum(worker.slots for worker in workers)
    for model, weight in plan.items():
        assert sum(own.get(model, 0) for own in slots.values()) == pytest.approx(capacity * weight / sum(plan.values()))
    for worker in workers:
        assert sum(slots[worker.name].values()) == pytest.approx(worker.slots)
    fresh = [(w.name, model) for w in workers for model in slots[w.name] if model and model not in w.loaded]
    assert len(fresh) <= len(workers) + len(plan) - 1
    assert slots == divide(reversed(workers), dict(sorted(plan.items(), reverse=True))), "everybody comes to the same"


@given(crews)
def test_a_worker_keeps_what_it_has_and_is_given_nothing_that_it_cannot_load(
    crew: list[tuple[int, frozenset[str]]],
) -> None:
    workers = [WorkerSlots(f"w{n}", slots, lacks=models) for n, (slots, models) in enumerate(crew)]
    for worker in workers:
        assert not {*divide(workers, {"m1": 10, "m2": 10})[worker.name]} & {*worker.lacks}
    pair = [WorkerSlots("a", 4, {"m2"}), WorkerSlots("b", 4, {"m1"})]
    assert divide(pair, {"m1": 10, "m2": 10}) == {"a": {"m2": 4}, "b": {"m1": 4}}
