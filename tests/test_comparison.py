"""Paired statistics against other people's implementations, and against simulations of what they promise."""

import random
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agent0.stats.intervals import quantile, wilson
from agent0.stats.paired_tests import bootstrap, claimed, compare, detectable, holm, mcnemar, pass_at_k

COUNTS = st.integers(0, 400)
PERCENT = st.sampled_from([0, 10, 25, 50, 75, 90, 95, 100])


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=120), PERCENT)
def test_a_quantile_is_the_smallest_value_that_so_many_do_not_exceed(values: list[int], percent: int) -> None:
    found = quantile([float(value) for value in values], percent / 100)
    assert 100 * sum(value <= found for value in values) >= percent * len(values)
    smaller = [value for value in values if value < found]
    assert not smaller or 100 * len(smaller) < percent * len(values)


def test_the_median_of_an_even_number_is_the_lower_of_the_middle_two() -> None:
    assert [quantile([1.0, 2.0, 3.0, 4.0], q) for q in (0.0, 0.25, 0.5, 0.75, 1.0)] == [1.0, 1.0, 2.0, 3.0, 4.0]
    assert (quantile([1.0, 2.0], 0.5), quantile([], 0.5)) == (1.0, 0.0)
    assert quantile([float(n) for n in range(1, 101)], 0.55) == 55.0


@given(COUNTS, COUNTS)
def test_mcnemar_is_the_exact_sign_test(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("gained", "lost"), [(600, 500), (1500, 1400), (50_000, 50_400), (3000, 2700)])
def test_many_changes_are_counted_exactly(gained: int, lost: int) -> None:
    assert mcnemar(gained, lost) == pytest.approx(stats.binomtest(gained, gained + lost).pvalue, rel=1e-8)


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_is_that_of_scipy(right: int, n: int) -> None:
    right = min(right, n)
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    low, high = wilson(right, n)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= low <= right / n <= high <= 1, "to the last bit, or nothing can draw it"


def test_intervals_cover_what_they_say() -> None:
    rng = random.Random(7)
    covered = 0
    for trial in range(300):
        low, high = bootstrap([rng.random() < 0.3 for _ in range(120)], rounds=300, seed=trial)
        covered += low <= 0.3 <= high
    assert stats.binomtest(covered, 300, 0.95).pvalue > 1e-4, covered


def test_wilson_covers_what_it_says() -> None:
    """By summing over every outcome, none of which is drawn; worst near the ends, right on average."""
    for n in (20, 150, 300):
        counts = np.arange(n + 1)
        bounds = np.array([wilson(int(k), n) for k in counts])
        shares = np.linspace(0.02, 0.98, 97)
        inside = (bounds[:, :1] <= shares) & (shares <= bounds[:, 1:])
        covered = (stats.binom.pmf(counts[:, None], n, shares) * inside).sum(axis=0)
        assert covered.min() > 0.83 and 0.945 < covered.mean() < 0.965, n


def test_no_interval_without_items_says_anything() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(
    "values", [[0.0, 1.0, -1.0] * 40, [n / 37 for n in range(37)]], ids=["drawn as counts", "one by one"]
)
def test_the_bootstrap_is_that_of_scipy(values: list[float]) -> None:
    ours = bootstrap(values, rounds=4000)
    found = stats.bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1))
    assert ours == pytest.approx((found.confidence_interval.low, found.confidence_interval.high), abs=0.02)
    assert ours == bootstrap(values, rounds=4000)


def test_intervals_of_differences_cover_them() -> None:
    """Paired: easy and hard items, on which both sides are mostly right or wrong together."""
    rng, covered = random.Random(17), 0
    for trial in range(300):
        ease = [rng.random() for _ in range(80)]
        before, after = ([float(rng.random() < e * share) for e in ease] for share in (0.8, 1.0))
        found = compare(before, after, rounds=400, seed=trial)
        covered += found.lower95 <= 0.1 <= found.upper95
    assert stats.binomtest(covered, 300, 0.95).pvalue > 1e-4, covered


def test_samples_of_one_item_are_no_further_items() -> None:
    """Five samples each, all much alike: clustered intervals cover a difference of nothing, others do not."""
    rng, together, apart, claims = random.Random(19), 0, 0, 0
    names = [str(item) for item in range(40) for _ in range(5)]
    for trial in range(200):
        sides = [[rng.betavariate(0.2, 0.2) for _ in range(40)] for _ in range(2)]
        before, after = ([float(rng.random() < p) for p in side for _ in range(5)] for side in sides)
        found = compare(before, after, clusters=names, rounds=300, seed=trial)
        naive = compare(before, after, rounds=300, seed=trial)
        together += found.lower95 <= 0 <= found.upper95
        apart += naive.lower95 <= 0 <= naive.upper95
        claims += found.p < 0.05
    assert stats.binomtest(together, 200, 0.95).pvalue > 1e-4, together
    assert apart < 0.8 * together
    assert stats.binomtest(claims, 200, 0.05, alternative="greater").pvalue > 1e-4, claims


def test_mcnemar_is_never_too_bold() -> None:
    """Type I error by summing over every outcome."""
    for changed in (5, 6, 17, 80, 400):
        chance = stats.binom.pmf(range(changed + 1), changed, 0.5)
        wrong = sum(p for k, p in enumerate(chance) if mcnemar(k, changed - k) < 0.05)
        assert wrong <= 0.05


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
    """Of the approximate test; the exact one needs up to an item more."""
    assert points - 0.1 < 100 * detectable(n, share) < points + 100 / n + 0.1


def _power(n: int, share: float, difference: float) -> float:
    """Of the exact test, by summing over how many items change sides and how many of those are gains."""
    share = max(share, difference)
    gains, power = (share + difference) / 2 / share, 0.0
    for changed in range(n + 1):
        weight = stats.binom.pmf(changed, n, share)
        if weight > 1e-6:
            most = next((k for k in range(changed // 2, -1, -1) if mcnemar(k, changed - k) < 0.05), -1)
            power += weight * (
                stats.binom.sf(changed - most - 1, changed, gains) + stats.binom.cdf(most, changed, gains)
            )
    return float(power)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("n", [30, 150, 500])
def test_what_is_said_to_be_detectable_is_detected_in_four_of_five_cases(n: int, share: float) -> None:
    found = detectable(n, share)
    assert found <= max(share, found) <= 1
    assert 0.8 <= _power(n, share, found) < 0.95
    assert _power(n, share, 0.9 * found) < _power(n, share, found)
    if share:
        assert _power(n, share, 0.75 * found) < 0.8


def test_nothing_can_be_detected_with_nothing() -> None:
    assert detectable(0, 0.5) == detectable(1, 1.0) == 1.0


def test_samples_of_one_item_count_once() -> None:
    before, after = [0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1]
    apart = compare(before, after)
    together = compare(before, after, clusters=["a", "a", "a", "b", "b", "b"])
    assert (apart.items, together.items) == (6, 2)
    assert apart.mean == together.mean == 0.5
    assert together.p > apart.p


@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_is_the_closed_test_of_bonferroni(ps: list[float]) -> None:
    """A claim holds if every set of claims that it is in is refused as a whole (Marcus, Peritz, Gabriel 1976)."""
    places = range(len(ps))
    sets = [chosen for size in range(1, len(ps) + 1) for chosen in combinations(places, size)]
    whole = {chosen: min(1.0, len(chosen) * min(ps[place] for place in chosen)) for chosen in sets}
    closed = [max(p for chosen, p in whole.items() if place in chosen) for place in places]
    assert holm(ps) == pytest.approx(closed)


def test_of_many_benchmarks_hardly_any_is_claimed_by_chance() -> None:
    """Eight where nothing changed: one at a time, a claim is made in a fifth of all cases; with Holm in 5 % at most.
    One of them that did change is still seen."""
    rng, alone, adjusted, seen = np.random.default_rng(23), 0, 0, 0
    for _ in range(400):
        changed, gained = 60, rng.binomial(60, 0.5, 8)
        ps = [mcnemar(int(g), changed - int(g)) for g in gained]
        alone, adjusted = alone + (min(ps) < 0.05), adjusted + (min(holm(ps)) < 0.05)
        seen += holm([*ps[1:], mcnemar(50, 10)])[-1] < 0.05
    assert alone > 60 and seen == 400
    assert stats.binomtest(adjusted, 400, 0.05, alternative="greater").pvalue > 1e-3, adjusted


@given(st.integers(1, 12), st.data())
def test_pass_at_k_is_the_mean_over_all_choices(n: int, data: st.DataObject) -> None:
    correct, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    drawn = [any(place < correct for place in chosen) for chosen in combinations(range(n), k)]
    assert pass_at_k(n, correct, k) == pytest.approx(fmean(drawn))


def test_nothing_is_claimed_where_items_and_their_mean_disagree() -> None:
    """Twenty items a little worse, five much better: the test sees a loss, the mean a gain."""
    before, after = [0.5] * 20 + [0.0] * 5, [0.4] * 20 + [1.0] * 5
    found = compare(before, after)
    assert found.p < 0.05 and found.mean > 0
    assert not found.improved and not found.worsened
    turned = compare(after, before)
    assert turned.p < 0.05 and turned.mean < 0
    assert not turned.improved and not turned.worsened


@given(st.floats(0, 1), st.integers(-9, 9), st.floats(-1, 1), st.floats(0, 1))
def test_a_word_needs_its_test_and_its_interval_on_one_side(p: float, leaning: int, low: float, width: float) -> None:
    word = claimed(p, leaning, low, low + width)
    assert (word == "improved") == (p < 0.05 and leaning > 0 and low > 0)
    assert (word == "fell") == (p < 0.05 and leaning < 0 and low + width < 0)
    assert word in ("improved", "fell", "no difference shown")


def test_one_module_says_what_may_be_said() -> None:
    """The words stand in it alone, so nothing else can choose them by a rule of its own."""
    files = (Path(__file__).parents[1] / "agent0").rglob("*.py")
    saying = [path.name for path in files if '"no difference shown"' in path.read_text("utf-8")]
    assert saying == ["paired_tests.py"]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_there_and_back_is_the_opposite(pairs: list[tuple[bool, bool]]) -> None:
    before, after = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    there, back = (compare(*sides, rounds=50) for sides in ((before, after), (after, before)))
    assert (there.p, there.gained, there.lost, there.detectable) == (back.p, back.lost, back.gained, back.detectable)
    assert there.mean == pytest.approx(-back.mean)
    assert not (there.improved and there.worsened) and not (there.improved and back.improved)


def test_what_cannot_be_paired_is_an_error() -> None:
    with pytest.raises(ValueError, match="paired"):
        compare([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="pass@5"):
        pass_at_k(4, 1, 5)
