"""Fusion against scikit-learn; what is chosen is chosen without the items it is scored on."""

import random
import warnings
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.rollout.confidence.calibration import CalibrationItem, Candidate, fitted, measured
from agent0.stats.calibrators import auroc, ece, ece_floor, folds, log_loss, log_odds, sigmoid
from agent0.stats.logistic import RIDGE, fuse

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss as theirs_log_loss
    from sklearn.metrics import roc_auc_score

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)
SHARES = st.dictionaries(st.sampled_from(["answer", "grounded", "sequence", "agreement"]), st.floats(0, 1))


def items(n: int, seed: int, gap: float = 0.0) -> list[CalibrationItem]:
    """Two honest signals of which each tells half, one that tells nothing, and one that is there for some only."""
    rng = random.Random(seed)
    made = []
    for _ in range(n):
        one, two = rng.gauss(0, 1.2), rng.gauss(0, 1.2)
        signals = {"answer": sigmoid(2 * one), "own_tokens": sigmoid(two + 1), "mean_token": rng.random()}
        if rng.random() < 0.5:
            signals["calls_ok"] = float(rng.random() < 0.5)
        made.append(CalibrationItem(signals, rng.random() < sigmoid(one + two - 0.5 + gap)))
    return made


@pytest.mark.parametrize("names", [("answer",), ("answer", "own_tokens", "mean_token")])
def test_fusion_is_ridge_logistic_regression(names: tuple[str, ...]) -> None:
    held = items(400, 1)
    rows = [[log_odds(item.signals[name]) for name in names] for item in held]
    columns = list(zip(*rows, strict=True))
    means = [sum(c) / len(c) for c in columns]
    spreads = [(sum((x - m) ** 2 for x in c) / len(c)) ** 0.5 for c, m in zip(columns, means, strict=True)]
    scaled = [[(x - m) / s for x, m, s in zip(row, means, spreads, strict=True)] for row in rows]
    theirs = LogisticRegression(C=1 / RIDGE, tol=1e-9).fit(scaled, [item.right for item in held])
    ours = fuse(names, [item.signals for item in held], [item.right for item in held])
    said = [ours.apply(item.signals) for item in held]
    assert said == pytest.approx(list(theirs.predict_proba(scaled)[:, 1]), abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(SHARES, st.booleans()), max_size=15), SHARES)
def test_fusion_is_a_probability_whatever_it_is_given(
    held: list[tuple[dict[str, float], bool]], asked: Mapping[str, float]
) -> None:
    rows, came = [row for row, _ in held], [right for _, right in held]
    if len(set(came)) < 2:
        with pytest.raises(ValueError, match="both outcomes"):
            fuse(("answer", "agreement"), rows, came)
        return
    made = fuse(("answer", "agreement"), rows, came)
    assert 0 <= made.apply(asked) <= 1
    assert made.apply({}) == pytest.approx(sigmoid(made.parameters[0]))


def test_a_signal_that_is_absent_or_constant_adds_nothing() -> None:
    held = items(200, 2)
    rows, came = [item.signals for item in held], [item.right for item in held]
    plain = fuse(("answer",), rows, came)
    more = fuse(("answer", "checked", "constant"), [{**row, "constant": 1.0} for row in rows], came)
    assert [more.apply(row | {"constant": 0.3, "checked": 0.9}) for row in rows] == pytest.approx(
        [plain.apply(row) for row in rows], abs=1e-6
    )


@settings(max_examples=40)
@given(PAIRS)
def test_scores_are_sklearns(pairs: list[tuple[float, bool]]) -> None:
    said, came = [c for c, _ in pairs], [o for _, o in pairs]
    inside = [min(max(c, 1e-6), 1 - 1e-6) for c in said]
    assert log_loss(said, came) == pytest.approx(theirs_log_loss(came, inside, labels=[False, True]), abs=1e-9)
    if len(set(came)) < 2:
        assert auroc(said, came) is None
    else:
        assert auroc(said, came) == pytest.approx(roc_auc_score(came, said))


def test_the_floor_is_what_a_perfect_predictor_gets() -> None:
    rng = random.Random(7)
    said = [rng.random() for _ in range(300)]
    floor = ece_floor(said)
    assert floor == pytest.approx(0.053, abs=0.012)
    runs = [ece(said, [rng.random() < c for c in said]) for _ in range(100)]
    assert sum(runs) / 100 == pytest.approx(floor, abs=0.006)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 3))
def test_folds_hold_every_item_once_and_both_outcomes_evenly(came: list[bool], seed: int) -> None:
    parts = folds(came, seed=seed)
    assert sorted(place for part in parts for place in part) == list(range(len(came)))
    rights = [sum(came[place] for place in part) for part in parts]
    assert max(rights) - min(rights) <= 1


def test_the_best_candidate_knows_most_and_is_calibrated_elsewhere() -> None:
    found = fitted(items(400, 3))
    assert [one.method for one in found].count("logistic") == 1
    assert set(found[0].names) == {"answer", "own_tokens", "mean_token", "calls_ok"}, "half of the truth is in each"
    assert {one.signal for one in found[1:]} == {"answer", "own_tokens", "mean_token"}, "calls_ok is not everywhere"
    assert [one.loss for one in found] == sorted(one.loss for one in found)
    worth = measured(found[0], items(400, 4))
    assert (worth.scored_on, worth.candidate.fitted_on) == (400, 400)
    assert worth.ece_after < 0.09 < worth.ece_before
    assert worth.after95[0] < worth.after95[1] and worth.brier_after < worth.brier_before
    other = items(400, 4)
    alone = [auroc([one.apply(item.signals) for item in other], [i.right for i in other]) or 0 for one in found[1:]]
    assert worth.auroc is not None and worth.auroc > max(alone)
    assert sum(b.n for b in worth.bins) == sum(b.n for b in worth.before) == 400


def test_a_calibrator_of_other_circumstances_is_found_out() -> None:
    worth = measured(fitted(items(400, 5))[0], items(400, 6, gap=-2.0))
    assert worth.ece_after > 0.15 and worth.after95[0] > 0.1


def test_choosing_sees_only_what_it_was_not_fitted_on() -> None:
    """On noise, isotonic fits best what it has seen; chosen is what predicts best what it has not."""
    rng = random.Random(1)
    noise = [CalibrationItem({"answer": rng.random()}, rng.random() < 0.5) for _ in range(60)]
    assert fitted(noise)[0].method != "isotonic"


@pytest.mark.parametrize("outcomes", [[], [True], [True] * 30, [True] * 30 + [False]])
def test_nothing_is_learned_from_one_outcome(outcomes: list[bool]) -> None:
    with pytest.raises(ValueError, match="two right and two wrong"):
        fitted([CalibrationItem({"answer": 0.5}, right) for right in outcomes])


def test_a_candidate_fits_where_its_signals_are() -> None:
    single = Candidate("answer", "platt", (1.0, 0.0), 10)
    several = Candidate("answer+agreement", "logistic", (0.0, 1.0, 0.0, 1.0, 0.0), 10)
    alone = Candidate("answer+grounded", "logistic", (0.0, 1.0, 0.0, 1.0, 0.0), 10)
    asked = {"answer": 0.3}
    assert [one.fits(asked) for one in (single, several, alone)] == [True, False, True]
    assert single.apply(asked) == alone.apply(asked) == pytest.approx(0.3)
    assert not single.fits({"grounded": 1.0}) and several.fits({"agreement": 0.5})
    assert several.raw({"answer": 0.3, "agreement": 0.5}) == pytest.approx(0.4)
