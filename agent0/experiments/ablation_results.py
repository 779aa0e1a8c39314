"""Results of an ablation study over seeds: means with intervals, paired tests on the same items, learning curves, cost.

A claim must hold over items and over seeds: the p that counts is the greater of two, that of the exact test over items
(each item once, its seeds together) and that of Student's paired test over seeds; Holm's correction runs over the
variants.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from statistics import fmean
from typing import Any, TypedDict

from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.events.tasks import TaskAttempted, TaskProposed
from agent0.stats.across_seeds import interval_of, mean_of, tested
from agent0.stats.intervals import wilson
from agent0.stats.paired_tests import agreeing_level, claimed, compare, exact_interval, holm

Items = Mapping[int, float]
"""Score by an item's place in its set."""
Seeded = Mapping[int, Items]
"""By seed."""
ONE_SEED = "one seed: nothing may be claimed"
TESTED = (
    "The p that counts is the greater of two: over items (exact, each item once) and over seeds (Student's paired "
    "test). Intervals are the wider of those over seeds and over items. *Detectable* is the smallest true difference, "
    "in points, that would have been found in about four of five cases, before any correction."
)
"""For pages."""


SPLITS = ("test", "validation")
"""Splits of held-out tasks as measures, the primary one first; benchmarks of the runs are further measures."""

CONTROLS = {"untrained": "the same model before training", "forced_tool": "untrained, its tool forced"}
"""Name -> what it is: scores of the same run that need no training."""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one ablation run. ``student`` is the checkpoint it ended with."""

    arm: str
    seed: int
    run: str
    student: str
    iterations: int
    scores: tuple[CheckpointEvaluated, ...]
    cost: Mapping[str, float] = field(default_factory=dict)


def outcome_of(arm: str, seed: int, student: str, iterations: int, events: Sequence[Recorded]) -> RunOutcome:
    """Collect the outcome of an ablation run from its events, which for a fork begin with its parent's."""
    scores = tuple(r.event for r in events if isinstance(r.event, CheckpointEvaluated))
    return RunOutcome(arm, seed, events[-1].run, student, iterations, scores, _cost(events))


def _cost(events: Sequence[Recorded]) -> dict[str, float]:
    """What a run took; ``learned_tokens`` are those that its student learned, as often as steps drew them."""
    cost: dict[str, float] = {
        "attempts": 0, "tokens": 0, "model_s": 0.0, "steps": 0, "learned_tokens": 0, "training_s": 0.0,
    }  # fmt: skip
    for recorded in events:
        match recorded.event:
            case TaskAttempted() | TaskProposed() as wrote:
                cost["attempts"] += isinstance(wrote, TaskAttempted)
                cost["tokens"] += wrote.usage.prompt_tokens + wrote.usage.completion_tokens
                cost["model_s"] += wrote.usage.wall_s
            case CheckpointTrained() as trained:
                cost["steps"] += trained.metrics.get("steps", 0)
                cost["learned_tokens"] += _learned(trained) if trained.role == "student" else 0
                cost["training_s"] += trained.wall_s
    # from the first event to the last of each run, with any time in which no process ran it
    spans = [[recorded.time for recorded in of_run] for _, of_run in groupby(events, key=lambda recorded: recorded.run)]
    return {**cost, "wall_s": sum((times[-1] - times[0]).total_seconds() for times in spans)}


def _learned(trained: CheckpointTrained) -> float:
    """By whose tokens they were, where the trainer counts so; else those of the objective."""
    by_source = [count for name, count in trained.metrics.items() if name.endswith("_tokens")]
    return sum(by_source) if by_source else trained.metrics.get("tokens", 0.0)


def trained_scores(outcome: RunOutcome, split: str) -> Items:
    """Item scores of the student that a run ended with; empty where it was not scored on ``split``."""
    scores = [score for score in _scores(outcome, split) if score.checkpoint == outcome.student]
    return _right(scores[-1]) if scores else {}


def control_scores(outcome: RunOutcome, split: str, control: str) -> Items:
    """Item scores of one of ``CONTROLS`` in a run; empty where it was not scored on ``split``."""
    scores = _scores(outcome, split, forced=control == "forced_tool")
    untrained = [score for score in scores if score.iteration < 0]
    return _right(untrained[0]) if untrained else {}


def _right(scored: CheckpointEvaluated) -> Items:
    return {item: float(mark == "1") for item, mark in enumerate(scored.outcomes)}


def _scores(outcome: RunOutcome, measure: str, *, forced: bool = False) -> list[CheckpointEvaluated]:
    return [score for score in outcome.scores if _measure(score) == measure and score.forced_tool == forced]


def _measure(score: CheckpointEvaluated) -> str:
    return score.benchmark or score.split


def measured(outcomes: Sequence[RunOutcome]) -> list[str]:
    """The measures on which some run was scored: ``SPLITS``, then benchmarks by name."""
    measures = {_measure(score) for outcome in outcomes for score in outcome.scores}
    benchmarks = {score.benchmark for outcome in outcomes for score in outcome.scores if score.benchmark}
    return [*(split for split in SPLITS if split in measures), *sorted(benchmarks)]


def measure_title(measure: str) -> str:
    """What a measure is called: ``test accuracy``, ``gsm8k accuracy``."""
    return f"{measure} accuracy"


class Average(TypedDict):
    """A mean over seeds of shares of ``items``, with the wider of the intervals over seeds and over items."""

    seeds: int
    items: int
    mean: float
    low: float
    high: float


class VariantRow(Average):
    """The mean of one measure for a variant's ``student``: ``trained``, or one of ``CONTROLS``."""

    measure: str
    arm: str
    student: str


class CurvePoint(Average):
    """The mean of validation accuracy after an iteration, -1 standing for the untrained student."""

    iteration: int


class Pairing(TypedDict):
    """A difference on the same items of the same seeds; what takes several seeds is None for a single one."""

    seeds: int
    items: int
    gained: int
    lost: int
    size: float
    mean: float
    low: float | None
    high: float | None
    by_seed: list[float]
    p_items: float
    p_seeds: float | None
    p: float | None
    detectable: float | None


class ComparisonRow(Pairing):
    """A variant less ``against``, another one or a control: ``adjusted_p`` is Holm's, ``word`` what may be said."""

    measure: str
    arm: str
    against: str
    adjusted_p: float | None
    word: str


def variant_rows(outcomes: Sequence[RunOutcome]) -> list[VariantRow]:
    """One row for each measure, variant and student (trained or control): the mean over seeds."""
    rows: list[VariantRow] = []
    for split in measured(outcomes):
        for arm, of_arm in _by_arm(outcomes).items():
            students = {"trained": [trained_scores(outcome, split) for outcome in of_arm]}
            students |= {
                control: [control_scores(outcome, split, control) for outcome in of_arm] for control in CONTROLS
            }
            rows += [
                {"measure": split, "arm": arm, "student": student, **averaged(items)}
                for student, scores in students.items()
                if (items := [items for items in scores if items])
            ]
    return rows


def averaged(scored: Sequence[Items]) -> Average:
    """Average shares over seeds, none of them empty."""
    mean, items = mean_of([fmean(shares.values()) for shares in scored]), len(scored[0])
    low, high = wilson(round(mean.value * items), items)
    if mean.low is not None and mean.high is not None:
        low, high = max(0.0, min(low, mean.low)), min(1.0, max(high, mean.high))
    return {"seeds": mean.n, "items": items, "mean": mean.value, "low": low, "high": high}


def comparison_rows(outcomes: Sequence[RunOutcome]) -> list[ComparisonRow]:
    """Compare each other variant with the first, and every variant with its own controls, measure by measure.

    Holm's correction runs over the variants of one such question.
    """
    by_arm = _by_arm(outcomes)
    first = next(iter(by_arm), "")
    rows = []
    for split in measured(outcomes):
        final = {
            arm: {outcome.seed: trained_scores(outcome, split) for outcome in runs} for arm, runs in by_arm.items()
        }
        rows += claim_rows(split, [(arm, first, final[first], final[arm]) for arm in by_arm if arm != first])
        for control in CONTROLS:
            before = {a: {o.seed: control_scores(o, split, control) for o in runs} for a, runs in by_arm.items()}
            rows += claim_rows(split, [(arm, control, before[arm], final[arm]) for arm in by_arm])
    return rows


def claim_rows(measure: str, pairs: Iterable[tuple[str, str, Seeded, Seeded]]) -> list[ComparisonRow]:
    """One row for each (variant, against, before, after) that can be paired, with Holm's correction over
    all of them."""
    pairings = [(arm, other, pairing) for arm, other, old, new in pairs if (pairing := paired(old, new))]
    adjusted = iter(holm([pairing["p"] for _, _, pairing in pairings if pairing["p"] is not None]))
    rows: list[ComparisonRow] = []
    for arm, other, pairing in pairings:
        p = None if pairing["p"] is None else next(adjusted)
        low, high = _interval(pairing, p)
        concluded: Pairing = {**pairing, "low": low, "high": high}
        word = _claim(concluded, p)
        rows.append({"measure": measure, "arm": arm, "against": other, **concluded, "adjusted_p": p, "word": word})
    return rows


def paired(before: Seeded, after: Seeded) -> Pairing | None:
    """Compare ``after - before`` on the same items of the same seeds; None where no seed has both.

    With the wider of the intervals over seeds and over items. A single seed has neither interval nor p over seeds.
    """
    seeds = [seed for seed in before if before[seed] and set(before[seed]) == set(after.get(seed, {}))]
    if not seeds:
        return None
    both = [(str(item), before[seed][item], after[seed][item]) for seed in seeds for item in before[seed]]
    names, old, new = zip(*both, strict=True)
    over_items = compare(old, new, clusters=names)
    by_seed = [fmean(after[s].values()) - fmean(before[s].values()) for s in seeds]
    over_seeds = tested(by_seed)
    low, high = over_seeds.low, over_seeds.high
    return {
        "seeds": len(seeds),
        "items": over_items.items,
        "gained": over_items.gained,
        "lost": over_items.lost,
        "size": over_items.size,
        "mean": fmean(by_seed),
        "low": None if low is None else min(low, over_items.lower95),
        "high": None if high is None else max(high, over_items.upper95),
        "by_seed": by_seed,
        "p_items": over_items.p,
        "p_seeds": over_seeds.p,
        "p": None if over_seeds.p is None else max(over_items.p, over_seeds.p),
        "detectable": None if over_seeds.detectable is None else max(over_seeds.detectable, over_items.detectable),
    }


def _interval(pairing: Pairing, adjusted: float | None) -> tuple[float | None, float | None]:
    """The widest of the intervals over seeds, over items, and of the exact test's own, each corrected as p is. It
    excludes 0 only where both tests are significant."""
    p, low, high = pairing["p"], pairing["low"], pairing["high"]
    if adjusted is None or p is None or low is None or high is None:
        return low, high
    level = agreeing_level(p, adjusted)
    seeds = interval_of(pairing["by_seed"], level)
    exact = exact_interval(pairing["gained"], pairing["lost"], pairing["items"], level, pairing["size"])
    return min(low, seeds[0], exact[0]), max(high, seeds[1], exact[1])


def _claim(pairing: Pairing, adjusted: float | None) -> str:
    """The most that may be said."""
    low, high = pairing["low"], pairing["high"]
    if adjusted is None or low is None or high is None:
        return ONE_SEED
    return claimed(adjusted, pairing["gained"] - pairing["lost"], low, high)


def curves(outcomes: Sequence[RunOutcome]) -> dict[str, list[CurvePoint]]:
    """Learning curves by variant: validation accuracy of the newest student after each iteration (-1: untrained), mean
    over seeds with its interval.

    Where an iteration trained no student, the score before still stands.
    """
    out = {}
    for arm, of_arm in _by_arm(outcomes).items():
        rows: list[CurvePoint] = []
        for iteration in range(-1, max(outcome.iterations for outcome in of_arm)):
            scores = [items for outcome in of_arm if (items := _standing(outcome, iteration))]
            if scores:
                rows.append({"iteration": iteration, **averaged(scores)})
        out[arm] = rows
    return out


def _standing(outcome: RunOutcome, iteration: int) -> Items:
    reached = [score for score in _scores(outcome, "validation") if score.iteration <= iteration]
    return _right(max(reached, key=lambda score: score.iteration)) if reached else {}


def cost_rows(outcomes: Sequence[RunOutcome]) -> list[dict[str, str | float]]:
    """The cost of each variant ``arm``: how many ``cells`` (runs) it has, and the mean of each cost over them."""
    return [
        {
            "arm": arm,
            "cells": len(of_arm),
            **{key: round(fmean(outcome.cost[key] for outcome in of_arm), 3) for key in of_arm[0].cost},
        }
        for arm, of_arm in _by_arm(outcomes).items()
    ]


def run_rows(outcomes: Sequence[RunOutcome]) -> list[dict[str, str | float | None]]:
    """One row for each ablation run: ``arm``, ``seed``, ``run``, ``student``, its scores before and after training by
    split, and ``wall_s``."""
    rows = []
    for outcome in outcomes:
        row: dict[str, str | float | None] = {"arm": outcome.arm, "seed": outcome.seed, "run": outcome.run}
        row["student"] = outcome.student
        for split in measured(outcomes):
            before, after = control_scores(outcome, split, "untrained"), trained_scores(outcome, split)
            row |= {f"{split}_untrained": _share(before), split: _share(after)}
        rows.append(row | {"wall_s": outcome.cost.get("wall_s")})
    return rows


def _share(items: Items) -> float | None:
    return fmean(items.values()) if items else None


def _by_arm(outcomes: Sequence[RunOutcome]) -> dict[str, list[RunOutcome]]:
    by_arm: dict[str, list[RunOutcome]] = {}
    for outcome in outcomes:
        by_arm.setdefault(outcome.arm, []).append(outcome)
    return by_arm


def as_json(outcome: RunOutcome) -> dict[str, object]:
    """Turn an outcome into JSON values, as it is stored beside its run."""
    return {**asdict(outcome), "scores": [score.model_dump(mode="json") for score in outcome.scores]}


def from_json(recorded: Mapping[str, Any]) -> RunOutcome:
    """Read an outcome that ``as_json`` wrote.

    Raises:
        ValueError: it is no such thing.
    """
    try:
        scores = tuple(CheckpointEvaluated.model_validate(score) for score in recorded["scores"])
        return RunOutcome(**{**recorded, "scores": scores})
    except (KeyError, TypeError) as error:
        raise ValueError(f"no outcome of a run: {error}") from error
