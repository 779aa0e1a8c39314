"""How high the students of a study stand on a ladder: the highest level that they solve half of, and the accuracies of
all levels added up; and what a teacher that chooses the level wrote for them."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from agent0.events.checkpoints import CheckpointEvaluated
from agent0.experiments.ablation_results import Outcome
from agent0.state.run_state import BASE
from agent0.tasks.curriculum.ladder_height import MOST, added, height

WRITTEN = ("written_level", "readable", "different_texts", "digit_entropy", "half_solved")
"""Measures of a teacher's text (``agent0.run.monitors.iteration_metrics``)."""
LAST = 4
"""Measured iterations at the end of a run over which these are averaged."""


def ladder_rows(outcomes: Sequence[Outcome], taught: int = 0) -> list[dict[str, Any]]:
    """One row for each run: height and accuracies added up of the base and of its last student on the test levels, how
    levels up to ``taught`` changed, the share of answers it was trained on that are right, and what its teacher wrote,
    in the first measured iteration and on average in the last ``LAST``. The share of half-solved tasks is also that of
    all iterations (``half_solved_run``): the last few have about a hundred tasks."""
    return [
        {
            "arm": one.arm,
            "seed": one.seed,
            **_climbed(test_levels(one, BASE), "_untrained"),
            **_climbed(test_levels(one, one.student), ""),
            "taught_change": _change(one, taught),
            "labels_right": _labels_right(one),
            **_wrote(one.measures),
        }
        for one in outcomes
    ]


def known_columns(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` without the columns that nothing is known of."""
    known = {name for row in rows for name, value in row.items() if value is not None}
    return [{name: value for name, value in row.items() if name in known} for row in rows]


def better_on_every_seed(rows: Sequence[Mapping[str, Any]], one: str, other: str) -> bool:
    """Whether ``one`` has more accuracies added up than ``other`` on every seed that both have, and there is one."""
    held = {(row["arm"], row["seed"]): row["added"] for row in rows if row["added"] is not None}
    both = [(held[one, seed], held[other, seed]) for arm, seed in held if arm == one and (other, seed) in held]
    return bool(both) and all(own > others for own, others in both)


def test_levels(outcome: Outcome, checkpoint: str) -> Mapping[str, float]:
    """Accuracy by test level of a checkpoint; empty where it was not scored."""
    found = [score.by_level for score in outcome.scores if _is_test(score) and score.checkpoint == checkpoint]
    return found[-1] if found else {}


def _climbed(by_level: Mapping[str, float], ending: str) -> dict[str, float | None]:
    held = (height(by_level), height(by_level, MOST), round(added(by_level), 2)) if by_level else (None, None, None)
    return {f"{name}{ending}": value for name, value in zip(("height", "height90", "added"), held, strict=True)}


def _change(outcome: Outcome, taught: int) -> float | None:
    """Mean change of accuracy over the test levels that the base was taught."""
    before, after = test_levels(outcome, BASE), test_levels(outcome, outcome.student)
    changes = [after[level] - before[level] for level in before if int(level) <= taught and level in after]
    return round(fmean(changes), 4) if changes else None


def _labels_right(outcome: Outcome) -> float | None:
    answers = outcome.labels.get("answers", 0)
    return round(1 - outcome.labels["wrong"] / answers, 4) if answers else None


def _is_test(score: CheckpointEvaluated) -> bool:
    return score.split == "test" and not score.forced_tool


def _wrote(measures: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    wrote: dict[str, float | None] = {"written_level_first": measures[0].get(WRITTEN[0]) if measures else None}
    for name in WRITTEN:
        known = [one[name] for one in measures[-LAST:] if name in one]
        wrote[name] = round(fmean(known), 2) if known else None
    shares = [one["half_solved"] for one in measures if "half_solved" in one]
    return wrote | {"half_solved_run": round(fmean(shares), 3) if shares else None}


def level_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One row for each variant, and one for the untrained students of the first: their accuracies by test level, means
    over seeds, lowest level first."""
    held: dict[str, list[Mapping[str, float]]] = {}
    for one in outcomes:
        tested = {score.checkpoint: score.by_level for score in one.scores if _is_test(score)}
        for name, checkpoint in ((one.arm, one.student), (BASE, BASE)):
            if checkpoint in tested and (name != BASE or one.arm == outcomes[0].arm):
                held.setdefault(name, []).append(tested[checkpoint])
    return [{"arm": name, "levels": _means(found)} for name, found in held.items()]


def _means(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    levels = sorted({level for one in found for level in one}, key=int)
    return {level: round(fmean(one[level] for one in found if level in one), 4) for level in levels}
