"""Curriculum: every domain its share, unknown arms promising, the frontier preferred, and order never matters."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agent0.tasks.families as room
from agent0.assembly.validate.run_config import check_names
from agent0.errors import ConfigError
from agent0.events.base import TOKEN
from agent0.run.lifecycle import evolve
from agent0.settings import RunConfig
from agent0.state.run_state import Arm, RunState, TaskState, arm_key, attempt_id, task_id
from agent0.tasks.curriculum.sampler import allocate, frontier_value, learn, remember, slots
from agent0.tasks.families import families
from agent0.tasks.seeds import derive_seed
from agent0.tasks.splits import heldout
from tests.world import small, started


def state(arms: dict[str, Arm] | None = None, **config: Any) -> RunState:
    first = started(RunConfig.model_validate(small().model_dump() | config)).model_copy(update={"seq": 1})
    held = evolve(None, first)
    assert held is not None
    return replace(held, iteration=0, arms=arms or {})


def plan(**changes: Any) -> dict[str, Any]:
    return {"curriculum": {"embedder": "ngram"} | changes}


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**40), st.integers(1, 40), st.sets(st.sampled_from(["math", "logic", "code"]), min_size=1))
def test_domains_take_turns_over_what_there_is(seed: int, tasks: int, domains: set[str]) -> None:
    held = state(seed=seed, tasks=tasks, **plan(domains=sorted(domains), levels=(1, 3)))
    chosen = allocate(held)
    assert chosen == allocate(held)
    assert set(chosen) <= set(slots(held))
    counts = Counter(domain for domain, _, _ in chosen)
    assert len(chosen) == tasks and max(counts.values()) - min(counts[d] for d in domains) <= 1


@pytest.mark.parametrize(
    "wrong", [{"levels": (9,)}, {"levels": (0, 1)}, {"levels": ()}, {"domains": ()}, {"band": (0.5, 0.5)}]
)
def test_a_curriculum_without_anything_to_ask_for_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"run.curriculum.{next(iter(wrong))}"):
        check_names(small(**plan(**wrong)))


def test_slots_are_families_times_levels() -> None:
    found = slots(state(**plan(levels=(1, 9))))
    assert len(found) == sum(not entry.ladder for entry in families().values())
    assert len(set(found)) == len(found)


def test_the_frontier_is_asked_for_more_than_what_is_mastered() -> None:
    arms = {}
    for slot in slots(state()):
        rate = 0.5 if slot[2] == 2 else 1.0
        for _ in range(30):
            arms[arm_key(*slot)] = learn(arms.get(arm_key(*slot)), rate)
    counts = Counter(level for _, _, level in allocate(state(arms, tasks=1000, **plan(exploration=0.3))))
    assert counts[2] > 600
    assert all(counts[level] > 40 for level in (1, 3, 4)), "exploration goes on"
    even = Counter(level for _, _, level in allocate(state(arms, tasks=1000, **plan(kind="uniform"))))
    assert all(180 < even[level] < 320 for level in (1, 2, 3, 4))


def test_iterations_draw_anew() -> None:
    held = state(tasks=30)
    assert allocate(held) != allocate(replace(held, iteration=1))
    assert allocate(held) != allocate(state(tasks=30, seed=1))


@given(st.lists(st.none() | st.floats(0, 1), max_size=60))
def test_what_an_arm_remembers_is_bounded(rates: list[float | None]) -> None:
    arm = Arm()
    for rate in rates:
        arm = learn(arm, rate)
    assert 0 <= arm.value <= arm.closed < 1 / (1 - 0.92)
    assert 0 <= arm.solved <= arm.closed


def test_a_task_without_a_rate_counts_as_closed_only() -> None:
    assert learn(Arm(), None) == Arm(closed=1)
    assert learn(Arm(), 0.5) == Arm(closed=1, value=frontier_value(0.5), solved=0.5)


@given(st.permutations(range(6)))
def test_who_was_closed_first_does_not_matter(order: list[int]) -> None:
    tasks = {
        task_id(0, n): TaskState(n, "math", "linear", 1, paid=n != 4, closed=True, solve_rate=n / 6) for n in range(6)
    }
    held = state()
    there = remember(replace(held, tasks=tasks))
    assert remember(replace(held, tasks={task_id(0, n): tasks[task_id(0, n)] for n in order})) == there
    assert there[arm_key("math", "linear", 1)].closed == pytest.approx(sum(0.92**n for n in range(5)))


@given(st.lists(st.text(max_size=4) | st.integers(), min_size=1, max_size=4))
def test_streams_are_seeds(parts: list[Any]) -> None:
    assert 0 <= derive_seed(*parts) < 2**63
    assert derive_seed(*parts) == derive_seed(*parts)
    assert derive_seed(*parts, "x") != derive_seed(*parts)


def test_ids_are_tokens_and_differ() -> None:
    made = [attempt_id(task_id(i, s), n) for i in (0, 11) for s in (0, 999) for n in (0, 99)]
    assert len(set(made)) == 8
    assert all(TOKEN.fullmatch(one) for one in made)


def is_long(slot: tuple[str, str, int]) -> bool:
    return slot[1] in families(long=True)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**40), st.integers(1, 40), st.floats(0, 1))
def test_a_share_asks_for_long_tasks_and_all_else_stays(seed: int, tasks: int, share: float) -> None:
    before = allocate(state(seed=seed, tasks=tasks, **plan()))
    chosen = allocate(state(seed=seed, tasks=tasks, **plan(long=share)))
    number = sum(map(is_long, chosen))
    assert share * tasks - 1 < number < share * tasks + 1
    assert not any(map(is_long, before))
    for old, new in zip(before, chosen, strict=True):
        assert old[0] == new[0]
        assert is_long(new) or new == old
    assert set(chosen) <= {*slots(state()), *slots(state(), long=True)}


def test_all_or_none_may_be_long() -> None:
    assert all(map(is_long, allocate(state(tasks=50, **plan(long=1.0)))))
    assert allocate(state(tasks=50, **plan(long=0.0))) == allocate(state(tasks=50))


def test_a_small_share_of_few_tasks_is_met_in_the_mean() -> None:
    held = state(tasks=3, **plan(long=0.1))
    counts = [sum(map(is_long, allocate(replace(held, iteration=n)))) for n in range(400)]
    assert set(counts) == {0, 1} and 80 < sum(counts) < 160


def test_long_families_are_asked_for_at_every_level_of_every_domain() -> None:
    chosen = set(allocate(state(tasks=600, **plan(long=1.0))))
    assert chosen == set(slots(state(), long=True))
    assert len(chosen) == sum(entry.levels for entry in families(long=True).values())


def test_where_there_are_no_long_families_short_ones_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(room._families.entries, "ledger")
    chosen = allocate(state(tasks=30, **plan(long=1.0)))
    assert all(is_long(slot) == (slot[0] != "logic") for slot in chosen)
    with pytest.raises(ConfigError, match=r"run.curriculum.long = 1.0 does not fit"):
        check_names(small(**plan(long=1.0)))
    check_names(small())


def test_long_families_change_nothing_for_who_does_not_ask_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> tuple[object, ...]:
        asked = [allocate(replace(state(tasks=60, seed=seed), iteration=n)) for seed in range(4) for n in range(3)]
        held = [heldout(split, 120, seed) for split in ("validation", "test") for seed in (1, 20260101)]
        return asked, held, sorted(families())

    there = seen()
    monkeypatch.setattr(room._families, "entries", {n: f for n, f in families(long=None).items() if not f.long})
    assert not families(long=True)
    assert seen() == there


def test_what_is_named_is_asked_for_and_nothing_else() -> None:
    held = state(tasks=60, **plan(families=("countdown", "synthesis", "linear")))
    assert {(domain, name) for domain, name, _ in allocate(held)} == {
        ("math", "countdown"),
        ("math", "linear"),
        ("code", "synthesis"),
    }
    assert len(slots(held)) == 12
    assert Counter(domain for domain, _, _ in allocate(held)) == {"math": 30, "code": 30}


def test_free_questions_are_asked_for_where_they_are_named() -> None:
    held = state(tasks=60, **plan(families=("linear", "open"), domains=("math", "logic"), levels=(1, 3)))
    free = {(domain, "open", level) for domain in ("math", "logic") for level in (1, 3)}
    assert {*slots(held)} == {("math", "linear", 1), ("math", "linear", 3)} | free
    assert {*allocate(held)} == {*slots(held)} and not slots(held, long=True)
    check_names(held.config)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"families": ("countdwn",)}, "there is no 'countdwn'"),
        ({"families": ("countdown",), "domains": ("code",)}, "never asked for.*of math"),
        ({"families": ("ledger",)}, "held-out tasks are short"),
        ({"families": ("open",)}, "held-out tasks are short"),
        ({"families": ("countdown",), "levels": (1, 5)}, "Levels of math are 1 to 4"),
        ({"families": ("countdown",), "long": 0.5}, "No family of math that is named has steps"),
    ],
)
def test_families_that_cannot_be_asked_for_are_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=rf"(?s)run.curriculum.*{told}"):
        check_names(small(**plan(**wrong)))
    check_names(small(**plan(families=("countdown", "ledger"))))
