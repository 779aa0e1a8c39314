"""Results of an ablation study over seeds: means with intervals, paired tests on the same items, learning curves, cost.

A claim must hold over items and over seeds: the p that counts is the greater of two, that of the exact test over items
(each item once, its seeds together) and that of Student's paired test over seeds; Holm's correction runs over the
variants.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained, StudentExamined
from agent0.events.runs import IterationMeasured
from agent0.events.tasks import TaskAttempted, TaskProposed
from agent0.events.values import Split
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


@dataclass(frozen=True)
class Measure:
    """A score of a student: on which split, and what counts as solved there."""

    title: str
    split: Split
    items: Callable[[CheckpointEvaluated], Items]


def _right(scored: CheckpointEvaluated) -> Items:
    return {place: float(said == "1") for place, said in enumerate(scored.outcomes)}


def _at_once(scored: CheckpointEvaluated) -> Items:
    recorded = zip(scored.outcomes, scored.outcomes_within, strict=False)
    return {place: float(said == "1") for place, (said, within) in enumerate(recorded) if within != "-"}


def _within(scored: CheckpointEvaluated) -> Items:
    return {place: float(said == "1") for place, said in enumerate(scored.outcomes_within) if said != "-"}


MEASURES: Mapping[str, Measure] = {
    "test": Measure("test accuracy", "test", _right),
    "validation": Measure("validation accuracy", "validation", _right),
    "within": Measure("test tasks solved within so many checked attempts", "test", _within),
    "at_once": Measure("the same tasks at the first go", "test", _at_once),
}
"""Name -> what it is. A measure that a run did not take is left out."""

CONTROLS = {"untrained": "the same model before training", "forced_tool": "untrained, its tool forced"}
"""Name -> what it is: scores of the same cell that need no training."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one ablation run. ``student`` is the checkpoint it ended with.

    ``exams`` are the protocol results of that student and of the base. ``measures`` are those of its
    iterations, as far as they were measured, oldest first.
    """

    arm: str
    seed: int
    run: str
    student: str
    iterations: int
    scores: tuple[CheckpointEvaluated, ...]
    cost: Mapping[str, float] = field(default_factory=dict)
    exams: tuple[StudentExamined, ...] = ()
    measures: tuple[Mapping[str, float], ...] = ()
    spent: tuple[Mapping[str, float], ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    alarms: Mapping[str, int] = field(default_factory=dict)


def outcome_of(arm: str, seed: int, student: str, iterations: int, events: Sequence[Recorded]) -> Outcome:
    """Collect the outcome of an ablation run from its events, protocol results apart, which come after it."""
    events = [recorded for recorded in events if not isinstance(recorded.event, StudentExamined)]
    scores = tuple(r.event for r in events if isinstance(r.event, CheckpointEvaluated))
    seen = tuple(r.event.measures for r in events if isinstance(r.event, IterationMeasured))
    run = events[0].run
    return Outcome(
        arm, seed, run, student, iterations, scores, _cost(events),
        measures=seen, spent=tuple(_spent(events)),
    )  # fmt: skip


def _spent(events: Sequence[Recorded]) -> Iterator[dict[str, float]]:
    attempts = tokens = 0
    for recorded in events:
        match recorded.event:
            case TaskAttempted() | TaskProposed() as wrote:
                attempts += isinstance(wrote, TaskAttempted)
                tokens += wrote.usage.prompt_tokens + wrote.usage.completion_tokens
            case CheckpointEvaluated(split="validation", forced_tool=False) as score:
                seconds = (recorded.time - events[0].time).total_seconds()
                yield {"iteration": score.iteration, "attempts": attempts, "tokens": tokens, "seconds": seconds}


def _cost(events: Sequence[Recorded]) -> dict[str, float]:
    cost: dict[str, float] = {"attempts": 0, "tokens": 0, "model_s": 0.0, "steps": 0, "training_s": 0.0}
    for recorded in events:
        match recorded.event:
            case TaskAttempted() | TaskProposed() as wrote:
                cost["attempts"] += isinstance(wrote, TaskAttempted)
                cost["tokens"] += wrote.usage.prompt_tokens + wrote.usage.completion_tokens
                cost["model_s"] += wrote.usage.wall_s
            case CheckpointTrained() as trained:
                cost["steps"] += trained.metrics.get("steps", 0)
                cost["training_s"] += trained.wall_s
    # from the first event to the last, with any time in which nobody carried it
    return {**cost, "wall_s": (events[-1].time - events[0].time).total_seconds()}


def trained_scores(outcome: Outcome, measure: Measure) -> Items:
    """Item scores of the student that a run ended with; empty where it was not measured."""
    found = [s for s in _scores(outcome, measure.split) if s.checkpoint == outcome.student]
    return measure.items(found[-1]) if found else {}


def control_scores(outcome: Outcome, measure: Measure, name: str) -> Items:
    """Item scores of one of ``CONTROLS`` in a run; empty where it was not measured."""
    found = _scores(outcome, measure.split, forced=name == "forced_tool")
    untrained = [score for score in found if score.iteration < 0]
    return measure.items(untrained[0]) if untrained else {}


def _scores(outcome: Outcome, split: Split, *, forced: bool = False) -> list[CheckpointEvaluated]:
    return [score for score in outcome.scores if score.split == split and score.forced_tool == forced]


def variant_rows(outcomes: Sequence[Outcome], measures: Sequence[str], controls: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each variant, measure and student (trained or control): the mean over seeds.

    With the wider of two intervals: over seeds (Student's) and over items (Wilson's).
    """
    rows = []
    for name in measures:
        for arm, held in _by_arm(outcomes).items():
            scored = {"trained": [trained_scores(one, MEASURES[name]) for one in held]}
            scored |= {who: [control_scores(one, MEASURES[name], who) for one in held] for who in controls}
            rows += [
                {"measure": name, "arm": arm, "student": who, **averaged(found)}
                for who, items in scored.items()
                if (found := [one for one in items if one])
            ]
    return rows


def averaged(scored: Sequence[Items]) -> dict[str, Any]:
    """The mean over seeds of shares, none of them empty, with the wider of the intervals over seeds and over items."""
    found, items = mean_of([fmean(one.values()) for one in scored]), len(scored[0])
    low, high = wilson(round(found.value * items), items)
    if found.low is not None and found.high is not None:
        low, high = max(0.0, min(low, found.low)), min(1.0, max(high, found.high))
    return {"seeds": found.n, "items": items, "mean": found.value, "low": low, "high": high}


def comparison_rows(
    outcomes: Sequence[Outcome], measures: Sequence[str], controls: Sequence[str], *, baseline: bool = False
) -> list[dict[str, Any]]:
    """Compare the first variant with each other one (``baseline``: each other one with the first), and every variant
    with its own controls, measure by measure.

    Holm's correction runs over the variants of one such question.
    """
    held = _by_arm(outcomes)
    first = next(iter(held), "")
    rows = []
    for name in measures:
        final = {arm: {one.seed: trained_scores(one, MEASURES[name]) for one in found} for arm, found in held.items()}
        pairs = [(arm, first) if baseline else (first, arm) for arm in held if arm != first]
        rows += claim_rows(name, [(arm, other, final[other], final[arm]) for arm, other in pairs])
        for who in controls:
            before = {a: {o.seed: control_scores(o, MEASURES[name], who) for o in found} for a, found in held.items()}
            rows += claim_rows(name, [(arm, who, before[arm], final[arm]) for arm in held])
    return rows


def claim_rows(measure: str, pairs: Iterable[tuple[str, str, Seeded, Seeded]]) -> list[dict[str, Any]]:
    """One row for each (variant, against, before, after) that can be paired, with Holm's correction over
    all of them."""
    rows = [
        {"measure": measure, "arm": arm, "against": other, **found}
        for arm, other, before, after in pairs
        if (found := paired(before, after))
    ]
    adjusted = holm([row["p"] for row in rows if row["p"] is not None])
    left = iter(adjusted)
    for row in rows:
        row["adjusted_p"] = None if row["p"] is None else next(left)
        _widen(row)
        row["word"] = _word(row)
    return rows


def paired(before: Seeded, after: Seeded) -> dict[str, Any] | None:
    """Compare ``after - before`` on the same items of the same seeds; None where no seed has both.

    With the wider of the intervals over seeds and over items. A single seed has neither interval nor p over seeds.
    """
    seeds = [seed for seed in before if before[seed] and set(before[seed]) == set(after.get(seed, {}))]
    if not seeds:
        return None
    both = [(str(place), before[seed][place], after[seed][place]) for seed in seeds for place in before[seed]]
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


def _widen(row: dict[str, Any]) -> None:
    """Set the interval: the widest of those over seeds, over items, and of the exact test's own, each corrected as p
    is. It excludes 0 only where both tests are significant."""
    if row["adjusted_p"] is None:
        return
    level = agreeing_level(row["p"], row["adjusted_p"])
    seeds = interval_of(row["by_seed"], level)
    exact = exact_interval(row["gained"], row["lost"], row["items"], level, row["size"])
    row["low"] = min(row["low"], seeds[0], exact[0])
    row["high"] = max(row["high"], seeds[1], exact[1])


def _word(row: Mapping[str, Any]) -> str:
    """The most that may be said."""
    if row["adjusted_p"] is None:
        return ONE_SEED
    return claimed(row["adjusted_p"], row["gained"] - row["lost"], row["low"], row["high"])


def curves(outcomes: Sequence[Outcome]) -> dict[str, list[dict[str, Any]]]:
    """Learning curves by variant: validation accuracy of the newest student after each iteration (-1: untrained), mean
    over seeds with its interval.

    Where an iteration trained no student, the score before still stands.
    """
    out = {}
    for arm, held in _by_arm(outcomes).items():
        rows = []
        for place in range(-1, max(one.iterations for one in held)):
            found = [items for one in held if (items := _standing(one, place))]
            if found:
                rows.append({"iteration": place, **averaged(found)})
        out[arm] = rows
    return out


def _standing(outcome: Outcome, place: int) -> Items:
    found = [score for score in _scores(outcome, "validation") if score.iteration <= place]
    return _right(max(found, key=lambda score: score.iteration)) if found else {}


def cost_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The cost of each variant: means over the runs of its seeds."""
    return [
        {
            "arm": arm,
            "cells": len(held),
            **{key: round(fmean(one.cost[key] for one in held), 3) for key in held[0].cost},
        }
        for arm, held in _by_arm(outcomes).items()
    ]


def run_rows(outcomes: Sequence[Outcome], measures: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each ablation run: its scores before and after training."""
    rows = []
    for one in outcomes:
        row: dict[str, Any] = {"arm": one.arm, "seed": one.seed, "run": one.run, "student": one.student}
        for name in measures:
            before, after = control_scores(one, MEASURES[name], "untrained"), trained_scores(one, MEASURES[name])
            row |= {f"{name}_untrained": _share(before), name: _share(after)}
        rows.append(row | {"wall_s": one.cost.get("wall_s")})
    return rows


def _share(items: Items) -> float | None:
    return fmean(items.values()) if items else None


def _by_arm(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    held: dict[str, list[Outcome]] = {}
    for one in outcomes:
        held.setdefault(one.arm, []).append(one)
    return held


def as_json(outcome: Outcome) -> dict[str, Any]:
    """Turn an outcome into JSON values, as it is stored beside its run."""
    recorded = {name: [one.model_dump(mode="json") for one in getattr(outcome, name)] for name in ("scores", "exams")}
    return {**asdict(outcome), **recorded}


def from_json(recorded: Mapping[str, Any]) -> Outcome:
    """Read an outcome that ``as_json`` wrote.

    Raises:
        ValueError: it is no such thing.
    """
    try:
        scores = tuple(CheckpointEvaluated.model_validate(score) for score in recorded["scores"])
        exams = tuple(StudentExamined.model_validate(exam) for exam in recorded["exams"])
        told = {name: tuple(recorded[name]) for name in ("measures", "spent")}
        return Outcome(**{**recorded, **told, "scores": scores, "exams": exams})
    except (KeyError, TypeError) as error:
        raise ValueError(f"no outcome of a cell: {error}") from error
