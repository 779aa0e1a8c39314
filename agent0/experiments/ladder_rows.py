"""How high the students of a study stand on a ladder: the highest level that they solve half of, and the accuracies of
all levels added up; and what a teacher that chooses the level wrote for them."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from agent0.experiments.ablation_results import Outcome
from agent0.state.run_state import BASE
from events.checkpoints import CheckpointEvaluated

SOLVED = 0.5
WRITTEN = ("written_level", "readable", "different_texts", "digit_entropy", "half_solved")
"""Measures of a teacher's text (``agent0.run.monitors.iteration_metrics``)."""
LAST = 4
"""Measured iterations at the end of a run over which these are averaged."""


def height(by_level: Mapping[str, float], share: float = SOLVED) -> int:
    """The highest level with at least ``share`` of its tasks solved; 0 where there is none."""
    return max((int(level) for level, accuracy in by_level.items() if accuracy >= share), default=0)


def added(by_level: Mapping[str, float]) -> float:
    """Add up the accuracies of all levels: S of a ladder, in levels."""
    return sum(by_level.values())


def ladder_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One row for each run: height and accuracies added up of the base and of its last student on the test levels, and
    what its teacher wrote, in the first measured iteration and on average in the last ``LAST``."""
    return [
        {"arm": one.arm, "seed": one.seed, **_climbed(one, BASE, "_untrained"), **_climbed(one, one.student, "")}
        | _wrote(one.measures)
        for one in outcomes
    ]


def _climbed(outcome: Outcome, checkpoint: str, ending: str) -> dict[str, float | None]:
    found = [score.by_level for score in outcome.scores if _is_test(score) and score.checkpoint == checkpoint]
    held = (height(found[-1]), round(added(found[-1]), 2)) if found else (None, None)
    return {f"{name}{ending}": value for name, value in zip(("height", "added"), held, strict=True)}


def _is_test(score: CheckpointEvaluated) -> bool:
    return score.split == "test" and not score.forced_tool


def _wrote(measures: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    told: dict[str, float | None] = {"written_level_first": measures[0].get(WRITTEN[0]) if measures else None}
    for name in WRITTEN:
        known = [one[name] for one in measures[-LAST:] if name in one]
        told[name] = round(fmean(known), 2) if known else None
    return told


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
