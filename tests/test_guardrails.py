"""What keeps a curriculum broad, and how hard a task is called."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.state.run_state import Arm, TaskState, arm_key
from agent0.tasks.curriculum.difficulty import grade
from agent0.tasks.curriculum.sampler import allocate, broadened, entropy, remember, slots, stale
from tests.test_curriculum import plan, state

weights = st.lists(st.floats(0, 100), min_size=1, max_size=12)


@given(weights, st.floats(0, 1))
def test_chances_are_broadened_as_far_as_needed_and_no_further(given_weights: list[float], floor: float) -> None:
    chances = broadened(given_weights, floor)
    assert sum(chances) == pytest.approx(1)
    assert entropy(chances) >= floor - 1e-6
    if sum(given_weights) > 0 and entropy(given_weights) >= floor:
        assert chances == [w / sum(given_weights) for w in given_weights]
    elif sum(given_weights) > 0:
        assert entropy(chances) == pytest.approx(floor, abs=1e-6), "as far as needed and no further"
    order = sorted(range(len(chances)), key=lambda n: given_weights[n])
    assert all(chances[a] <= chances[b] + 1e-9 for a, b in pairwise(order))


def test_no_family_exceeds_its_share() -> None:
    poor = {arm_key(*arm): Arm(99, 0, 0) for arm in slots(state(**plan(domains=("math",))))}
    rich = poor | {arm_key("math", "linear", level): Arm(99, 99, 50) for level in (1, 2, 3, 4)}
    held = state(rich, tasks=20, **plan(domains=("math",), exploration=0.0))
    free = Counter(family for _, family, _ in allocate(held))
    bound = state(held.arms, tasks=20, **plan(domains=("math",), exploration=0.0, max_share=0.4))
    kept = Counter(family for _, family, _ in allocate(bound))
    assert max(kept.values()) <= 8 < max(free.values())


def test_what_was_forgotten_comes_first() -> None:
    held = state(tasks=12, **plan(domains=("math",), patience=3))
    every = slots(held)
    seen = {arm_key(*arm): Arm(last_requested=9) for arm in every[1:]}
    late = replace(state(seen, tasks=4, **plan(domains=("math",), patience=3)), iteration=9)
    assert allocate(late)[0] == every[0]
    assert stale(every, dict.fromkeys(every[1:], 8), 9, 3) == [every[0]]
    assert stale(every, dict.fromkeys(every, 8), 9, 3) == []
    assert allocate(late) == allocate(late)


def test_which_iteration_asked_is_remembered_only_where_it_is_needed() -> None:
    task = TaskState(0, "math", "linear", 1)
    key = arm_key("math", "linear", 1)
    patient, plain = (state(**plan(patience=n)) for n in (2, 0))
    assert remember(type(patient)(**{**vars(patient), "tasks": {"t": task}}))[key].last_requested == 1
    assert remember(type(plain)(**{**vars(plain), "tasks": {"t": task}})) == {}


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_grade_is_of_the_rate_and_of_what_is_known_of_it(solved: int, missed: int) -> None:
    found = grade(solved, solved + missed)
    assert -1e-9 <= found.lower95 <= (found.rate or 0) + 1e-9 <= found.upper95 + 2e-9 <= 1 + 3e-9
    assert (found.grade == "unknown") == (solved + missed == 0)
    if found.grade in ("unsolved", "mastered"):
        assert found.upper95 < 0.1 or found.lower95 > 0.9


def test_grades() -> None:
    words = [grade(s, n).grade for s, n in ((0, 8), (0, 60), (4, 8), (8, 8), (60, 60))]
    assert words == ["hard", "unsolved", "frontier", "easy", "mastered"]
    with pytest.raises(ValueError, match="9 of 8"):
        grade(9, 8)
