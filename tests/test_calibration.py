"""Calibration against scikit-learn and against samples whose truth is known."""

import random
import warnings
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.stats.calibrators import Calibrator, brier, ece, ece_interval, fit, log_odds, reliability

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import brier_score_loss

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def sample(n: int, distort: float, seed: int) -> tuple[list[float], list[bool]]:
    """Confidences whose log-odds are ``distort`` times too large."""
    rng = random.Random(seed)
    said, came = [], []
    for _ in range(n):
        odds = rng.gauss(0, 1.5)
        came.append(rng.random() < 1 / (1 + 2.718281828**-odds))
        said.append(1 / (1 + 2.718281828 ** (-odds * distort)))
    return said, came


@given(PAIRS)
def test_bins_hold_every_item_once_and_the_score_is_sklearns(pairs: list[tuple[float, bool]]) -> None:
    said, came = [c for c, _ in pairs], [o for _, o in pairs]
    bins = reliability(said, came)
    assert sum(b.n for b in bins) == len(pairs)
    assert all(b.low <= b.confidence <= b.high + 1e-12 for b in bins if b.n)
    assert 0 <= ece(said, came) <= 1
    assert brier(said, came) == pytest.approx(brier_score_loss(came, said, labels=[False, True]))


@pytest.mark.parametrize("distort", [0.4, 2.5])
@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_a_calibrator_mends_what_was_distorted_on_items_it_has_not_seen(method: str, distort: float) -> None:
    fitted = fit(method, *sample(800, distort, 1))  # type: ignore[arg-type]
    said, came = sample(800, distort, 2)
    after = [fitted.apply(c) for c in said]
    assert ece(after, came) < ece(said, came) / 2
    assert brier(after, came) < brier(said, came)
    order = sorted(range(len(said)), key=lambda place: said[place])
    mapped = [after[place] for place in order]
    assert all(a <= b + 1e-12 for a, b in pairwise(mapped)), "monotone"


def test_temperature_finds_the_distortion() -> None:
    assert fit("temperature", *sample(4000, 2.5, 3)).parameters[0] == pytest.approx(2.5, rel=0.1)


def test_platt_is_logistic_regression_on_log_odds() -> None:
    said, came = sample(500, 2.0, 4)
    model = LogisticRegression(C=1e9).fit([[log_odds(c)] for c in said], came)
    slope, intercept = fit("platt", said, came).parameters
    assert slope == pytest.approx(model.coef_[0][0], rel=0.02)
    assert intercept == pytest.approx(model.intercept_[0], abs=0.02)


@given(st.lists(st.tuples(st.sampled_from([x / 20 for x in range(21)]), st.booleans()), min_size=4, max_size=60))
def test_isotonic_is_that_of_sklearn_at_its_points(pairs: list[tuple[float, bool]]) -> None:
    said, came = [c for c, _ in pairs], [o for _, o in pairs]
    if len(set(came)) < 2:
        with pytest.raises(ValueError, match="both outcomes"):
            fit("isotonic", said, came)
        return
    ours = fit("isotonic", said, came)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(said, came)
    assert [ours.apply(c) for c in said] == pytest.approx(list(theirs.predict(said)), abs=1e-9)


def test_the_interval_holds_the_error_and_narrows() -> None:
    said, came = sample(100, 1.0, 5)
    few = ece_interval(said, came, rounds=300)
    many = ece_interval(*sample(1600, 1.0, 5), rounds=300)
    assert few[0] < few[1]
    assert many[1] - many[0] < few[1] - few[0]


def test_extremes_stay_probabilities() -> None:
    for method, parameters in (("temperature", (0.02,)), ("platt", (50.0, 3.0)), ("isotonic", (0.2, 0.6, 0.1, 0.9))):
        held = Calibrator(method, parameters, 10)  # type: ignore[arg-type]
        assert all(0 <= held.apply(c) <= 1 for c in (0.0, 1e-12, 0.2, 0.5, 1.0))
