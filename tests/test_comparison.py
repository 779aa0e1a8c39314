"""Paired statistics against other people's implementations, and against simulations of what they promise."""

import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agent0.comparison import bootstrap, compare, detectable, holm, mcnemar, pass_at_k
from agent0.statistics import wilson

COUNTS = st.integers(0, 400)


@given(COUNTS, COUNTS)
def test_mcnemar_is_the_exact_sign_test(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("gained", "lost"), [(600, 500), (1500, 1400), (3000, 2700)])
def test_many_changes_are_approximated_closely(gained: int, lost: int) -> None:
    assert mcnemar(gained, lost) == pytest.approx(stats.binomtest(gained, gained + lost).pvalue, abs=2e-3)


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_is_that_of_scipy(right: int, n: int) -> None:
    right = min(right, n)
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert wilson(right, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_intervals_cover_what_they_say() -> None:
    rng = random.Random(7)
    covered = 0
    for trial in range(300):
        low, high = bootstrap([rng.random() < 0.3 for _ in range(120)], rounds=300, seed=trial)
        covered += low <= 0.3 <= high
    assert stats.binomtest(covered, 300, 0.95).pvalue > 1e-4, covered


def test_the_gate_rarely_calls_chance_an_improvement() -> None:
    """One side of a 5 % test: at most 2.5 % of 600 null comparisons, but for the luck of the draw."""
    rng = random.Random(11)
    claims = 0
    for trial in range(600):
        pairs = [(rng.random() < 0.5, rng.random() < 0.5) for _ in range(80)]
        claims += compare([a for a, _ in pairs], [b for _, b in pairs], rounds=200, seed=trial).improved
    assert stats.binomtest(claims, 600, 0.025, alternative="greater").pvalue > 1e-4, claims


def test_a_real_gain_is_seen_as_often_as_promised() -> None:
    rng = random.Random(13)
    items, gain, lost = 300, 0.18, 0.08
    assert detectable(items, gain + lost) < gain - lost
    seen = 0
    for _ in range(300):
        draws = [rng.random() for _ in range(items)]
        seen += mcnemar(sum(d < gain for d in draws), sum(gain <= d < gain + lost for d in draws)) < 0.05
    assert seen / 300 > 0.8


@pytest.mark.parametrize(
    ("n", "share", "points"), [(164, 0.2, 9.8), (300, 0.3, 8.9), (500, 0.2, 5.6), (1319, 0.3, 4.2)]
)
def test_what_can_be_detected_is_known(n: int, share: float, points: float) -> None:
    assert 100 * detectable(n, share) == pytest.approx(points, abs=0.15)


def test_samples_of_one_item_count_once() -> None:
    before, after = [0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1]
    apart = compare(before, after)
    together = compare(before, after, clusters=["a", "a", "a", "b", "b", "b"])
    assert (apart.items, together.items) == (6, 2)
    assert apart.mean == together.mean == 0.5
    assert together.p > apart.p


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_bonferroni_stepwise(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(p <= a <= 1 for p, a in zip(ps, adjusted, strict=True))
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    assert [adjusted[place] for place in order] == sorted(adjusted)
    for level in (0.01, 0.05, 0.2):
        rejected = 0
        while rejected < len(ps) and ps[order[rejected]] <= level / (len(ps) - rejected):
            rejected += 1
        assert sum(a <= level + 1e-12 for a in adjusted) >= rejected


@given(st.integers(1, 12), st.data())
def test_pass_at_k_is_the_mean_over_all_choices(n: int, data: st.DataObject) -> None:
    from itertools import combinations

    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    drawn = [any(place < correct for place in chosen) for chosen in combinations(range(n), k)]
    assert pass_at_k(n, correct, k) == pytest.approx(fmean(drawn))


def test_what_cannot_be_paired_is_an_error() -> None:
    with pytest.raises(ValueError, match="paired"):
        compare([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="pass@5"):
        pass_at_k(4, 1, 5)
