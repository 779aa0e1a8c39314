"""What it cost the students of a study to reach a level of a ladder, and what their base comes to there by sampling."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from agent0.evaluation.protocol import OWN_SETS, EvaluationProtocol
from agent0.events.checkpoints import CheckpointEvaluated
from agent0.experiments.ablation_results import Outcome
from agent0.experiments.ladder_rows import test_levels
from agent0.state.run_state import BASE
from agent0.tasks.curriculum.ladder_height import height

SPENT = ("attempts", "tokens", "seconds")
TASKS, SEED = 64, 20261123
"""Fresh tasks of a level, and what draws them."""
BESIDE = (-2, -1, 1, 2)
"""Levels around the reached one that are sampled, too."""
SAMPLED = ((1, 0.0), (8, 1.0), (32, 0.7), (32, 1.0), (32, 1.3), (256, 1.0))
"""(attempts, temperature) at which the base is asked at the reached level; around it at the fourth."""


def cost_to_reach(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """One row for each variant and each level that one of its students reached: of how many seeds, and mean attempts,
    tokens and seconds until then, over these seeds.

    A level is reached by the first student that solves half of the validation tasks of it or of a higher one.
    """
    arms: dict[str, list[Outcome]] = {}
    for one in outcomes:
        arms.setdefault(one.arm, []).append(one)
    rows = []
    for arm, held in arms.items():
        reached = [found for one in held if (found := _reached(one))]
        for level in range(2, 1 + max((max(found) for found in reached), default=0), 2):
            costs = [found[level] for found in reached if level in found]
            means = {name: round(fmean(cost[name] for cost in costs), 1) for name in SPENT}
            if means["attempts"]:  # else the base stood there already
                rows.append({"arm": arm, "level": level, "seeds": len(costs), "of": len(held), **means})
    return rows


def _reached(outcome: Outcome) -> dict[int, Mapping[str, float]]:
    """What was spent when a level was reached, by level; nothing where the log did not keep it."""
    spent = {row["iteration"]: row for row in outcome.spent}
    found: dict[int, Mapping[str, float]] = {}
    for score in sorted(validations(outcome), key=lambda one: one.iteration):
        if score.iteration in spent:
            found |= {
                level: spent[score.iteration] for level in range(1, 1 + height(score.by_level)) if level not in found
            }
    return found


def validations(outcome: Outcome) -> list[CheckpointEvaluated]:
    """The validation scores of a run's students, its base's among them."""
    return [one for one in outcome.scores if one.split == "validation" and not one.forced_tool]


def base_samples(outcome: Outcome) -> tuple[EvaluationProtocol, ...]:
    """The protocols of the base at the level that ``outcome``'s student reached on the test levels and at those around
    it, as far as these go; none where it was not scored."""
    by_level = test_levels(outcome, outcome.student)
    at, levels = height(by_level), {int(level) for level in by_level}
    if at not in levels:
        return ()
    around = [(at + step, *SAMPLED[3]) for step in BESIDE if at + step in levels]
    return tuple(_protocol(*one) for one in (*((at, *way) for way in SAMPLED), *around))


def student_answers(outcome: Outcome) -> tuple[EvaluationProtocol, ...]:
    """The student's one greedy answer at the same tasks."""
    return tuple(_protocol(level) for level in sorted({one.levels[0] for one in base_samples(outcome)}))


def _protocol(level: int, attempts: int = 1, temperature: float = 0.0) -> EvaluationProtocol:
    return EvaluationProtocol(TASKS, SEED, attempts, temperature, levels=(level,), excluded=(OWN_SETS,))


def sampling_rows(outcomes: Sequence[Outcome], chance: Mapping[int, float]) -> list[dict[str, Any]]:
    """One row for each protocol on fresh tasks of one level: whose answers, how many of how many tasks have a right one
    among them, and what as many uniformly random answers would come to. ``chance``: by level, of one such answer."""
    return [row for one in outcomes for row in _sampled(one, chance)]


def base_solved(row: Mapping[str, Any], sampled: Sequence[Mapping[str, Any]]) -> int | None:
    """How many fresh tasks at the height of ``row`` (of ``ladder_rows``) the base solves within 32 samples at
    temperature 1; None where ``sampled`` (``sampling_rows``) has nothing of it."""
    how = _protocol(row["height"] or 0, *SAMPLED[3]).name
    held = [
        one["solved"]
        for one in sampled
        if (one["seed"], one["level"], one["who"], one["how"]) == (row["seed"], row["height"], BASE, how)
    ]
    return held[0] if held else None


def _sampled(outcome: Outcome, chance: Mapping[int, float]) -> Iterator[dict[str, Any]]:
    for exam in outcome.exams:
        if len(exam.levels) != 1 or OWN_SETS not in exam.excluded:
            continue
        level, n = exam.levels[0], len(exam.right)
        random = chance.get(level)
        yield {
            "seed": outcome.seed,
            "level": level,
            "who": BASE if exam.checkpoint == BASE else outcome.arm,
            "how": exam.exam,
            "solved": sum(right > 0 for right in exam.right),
            "tasks": n,
            "random": None if random is None else round(n * (1 - (1 - random) ** exam.attempts), 6),
        }
