"""Part of the rim: the success rate of uniformly random answers on the tasks of a ladder."""

import random
from statistics import fmean

from agent0.settings import RunConfig
from agent0.tasks.families import requested_families


def chance_by_level(plan: RunConfig) -> dict[int, float]:
    """Compute the chance that a uniformly random answer of the right form is right, by level that ``plan`` scores: the
    mean over its families. Empty where one of them cannot tell."""
    asked = [
        entry
        for domain in plan.curriculum.domains
        for entry in requested_families(domain, plan.curriculum.families).values()
    ]
    chances = [entry.chance for entry in asked if entry.chance]
    if not asked or len(chances) < len(asked):
        return {}
    rng = random.Random("chance by level")
    return {
        level: fmean(chance(entry.sample(level, rng)) for entry, chance in zip(asked, chances, strict=True))
        for level in plan.evaluation.levels or plan.curriculum.levels
    }
