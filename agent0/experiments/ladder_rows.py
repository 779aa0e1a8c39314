"""How high the students of a study stand on a ladder: the highest level that they solve half of (T), and the accuracies
of all levels added up (S), with paired tests over seeds."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TypedDict

from agent0.experiments.ablation_results import RunOutcome
from agent0.state.run_state import BASE
from agent0.stats.across_seeds import tested
from agent0.stats.paired_tests import holm
from agent0.tasks.curriculum.ladder_height import added, height


class LadderRow(TypedDict):
    """A run on a ladder: T (``height``) and S (``added``) of its base and of its last student on the test levels, None
    where one was not scored, and by how much the accuracy of levels changed that the base was taught."""

    arm: str
    seed: int
    height_untrained: int | None
    added_untrained: float | None
    height: int | None
    added: float | None
    taught_change: float | None


class LeadRow(TypedDict):
    """By how much a variant, or the base, lies above the first variant in S, seed by seed, with the paired test over
    seeds; what takes several seeds is None for a single one."""

    arm: str
    by_seed: list[float]
    low: float | None
    high: float | None
    p: float | None
    adjusted_p: float | None


class LevelRow(TypedDict):
    """The accuracies of a variant by test level."""

    arm: str
    levels: dict[str, float]


def ladder_rows(outcomes: Sequence[RunOutcome], taught: int = 0) -> list[LadderRow]:
    """One row for each run; the base was taught the levels up to ``taught``."""
    rows: list[LadderRow] = []
    for outcome in outcomes:
        before, after = _standing(_test_levels(outcome, BASE)), _standing(_test_levels(outcome, outcome.student))
        rows.append(
            {
                "arm": outcome.arm,
                "seed": outcome.seed,
                "height_untrained": before[0],
                "added_untrained": before[1],
                "height": after[0],
                "added": after[1],
                "taught_change": _change(outcome, taught),
            }
        )
    return rows


def lead_rows(rows: Sequence[LadderRow]) -> list[LeadRow]:
    """By how much each other variant of ``ladder_rows``, and the base, lies above the first in S: one row for each,
    over the seeds that both have. Holm's correction runs over all of them."""
    first = rows[0]["arm"] if rows else ""
    sums = {(row["arm"], row["seed"]): row["added"] for row in rows}
    sums |= {(BASE, row["seed"]): row["added_untrained"] for row in rows if row["arm"] == first}
    leads = {}
    for arm in dict.fromkeys([BASE, *(row["arm"] for row in rows)]):
        pairs = [(value, sums.get((first, seed))) for (name, seed), value in sums.items() if name == arm != first]
        by_seed = [value - other for value, other in pairs if value is not None and other is not None]
        if by_seed:
            leads[arm] = by_seed, tested(by_seed)
    adjusted = iter(holm([test.p for _, test in leads.values() if test.p is not None]))
    return [
        {
            "arm": arm,
            "by_seed": by_seed,
            "low": test.low,
            "high": test.high,
            "p": test.p,
            "adjusted_p": None if test.p is None else next(adjusted),
        }
        for arm, (by_seed, test) in leads.items()
    ]


def better_on_every_seed(rows: Sequence[LadderRow], arm_name: str, other: str) -> bool:
    """Whether ``arm_name`` has more accuracies added up than ``other`` on every seed that both have, and there is
    one."""
    sums = {(row["arm"], row["seed"]): row["added"] for row in rows if row["added"] is not None}
    both = [
        (sums[arm_name, seed], sums[other, seed]) for arm, seed in sums if arm == arm_name and (other, seed) in sums
    ]
    return bool(both) and all(sums_of_arm > others for sums_of_arm, others in both)


def level_rows(outcomes: Sequence[RunOutcome]) -> list[LevelRow]:
    """One row for each variant, and one for the untrained students of the first: their accuracies by test level, means
    over seeds, lowest level first."""
    by_name: dict[str, list[Mapping[str, float]]] = {}
    for outcome in outcomes:
        by_name.setdefault(outcome.arm, []).append(_test_levels(outcome, outcome.student))
        if outcome.arm == outcomes[0].arm:
            by_name.setdefault(BASE, []).append(_test_levels(outcome, BASE))
    return [{"arm": name, "levels": levels} for name, by_seed in by_name.items() if (levels := _means(by_seed))]


def _test_levels(outcome: RunOutcome, checkpoint: str) -> Mapping[str, float]:
    """Accuracy by test level of a checkpoint; empty where it was not scored."""
    tests = [score for score in outcome.scores if score.split == "test" and not score.forced_tool]
    return next((score.by_level for score in reversed(tests) if score.checkpoint == checkpoint), {})


def _standing(by_level: Mapping[str, float]) -> tuple[int | None, float | None]:
    return (height(by_level), round(added(by_level), 2)) if by_level else (None, None)


def _change(outcome: RunOutcome, taught: int) -> float | None:
    """Mean change of accuracy over the test levels that the base was taught."""
    before, after = _test_levels(outcome, BASE), _test_levels(outcome, outcome.student)
    changes = [after[level] - before[level] for level in before if int(level) <= taught and level in after]
    return round(fmean(changes), 4) if changes else None


def _means(by_seed: Sequence[Mapping[str, float]]) -> dict[str, float]:
    levels = sorted({level for accuracies in by_seed for level in accuracies}, key=int)
    return {
        level: round(fmean(accuracies[level] for accuracies in by_seed if level in accuracies), 4) for level in levels
    }
