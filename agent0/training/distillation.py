"""Distillation: training on answers that another model wrote. Refused, unless the recipe says ``distil``.

Pure: the same events and configuration give the same examples.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent0.ports.training import TrainingExample
from agent0.settings import RunConfig
from agent0.training.gate import gated
from agent0.training.scored_trajectory import ScoredTrajectory
from agent0.training.selection import DatasetSelection


def with_distilled(
    chosen: DatasetSelection, past: Sequence[ScoredTrajectory], config: RunConfig, seed: int
) -> tuple[DatasetSelection, dict[str, float]]:
    """Add examples of what other models wrote to a student's ``chosen``, where its recipe says ``distil``.

    They are accepted answers of ``past``, drawn by chance, a few a task and as many as are replayed, and are learned by
    likelihood: all that the assistant says in them. Returns the selection, and the share of all trajectories and
    examples that each other model wrote, by its turns.
    """
    recipe = config.training.student
    if not recipe.distil:
        return chosen, {}
    accepted = [
        scored for scored in gated(past, recipe.gate, config.seed) if scored.authors and scored.success and scored.turns
    ]
    drawn, drawn_of_group = list[ScoredTrajectory](), Counter[str]()
    for scored in random.Random(f"distil {seed}").sample(accepted, len(accepted)):
        if drawn_of_group[scored.group] < recipe.replay_per_task:
            drawn_of_group[scored.group] += 1
            drawn.append(scored)
    drawn = drawn[: (recipe.steps or recipe.replay_steps) * recipe.minibatch]
    examples = (*chosen.examples, *(TrainingExample(scored.turns, event=scored.event_id) for scored in drawn))
    whole = len(chosen.samples) + len(chosen.replay) + len(examples)
    return replace(chosen, examples=examples), shares(drawn, whole)


def shares(drawn: Sequence[ScoredTrajectory], whole: int) -> dict[str, float]:
    """The share of ``whole`` trajectories that each model wrote of ``drawn``; a turn counts as its part of one."""
    by_model: dict[str, float] = {}
    for scored in drawn:
        turns = sum(turn.role == "assistant" for turn in scored.turns)
        for model, number in scored.authors.items():
            by_model[model] = by_model.get(model, 0.0) + number / turns
    return {model: round(value / whole, 4) for model, value in sorted(by_model.items())}


def described(shares_of: Mapping[str, float]) -> str:
    """Shares for people, the largest first: ``12 % openai/gpt-4o``."""
    ordered = sorted(shares_of.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{100 * share:.3g} % {model}" for model, share in ordered)
