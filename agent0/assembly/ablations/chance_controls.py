"""Part of the rim: the success rate of uniformly random derivations on the tasks of a set, and their length in
tokens."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from agent0.assembly.models.protocol import tasks_of
from agent0.evaluation.protocol import TaskSet
from agent0.experiments.training_gain import Chance
from agent0.settings import RunConfig
from agent0.tasks.families import Family, Params, families, requested_families

DRAWS = 20
"""Derivations of each task whose tokens are counted."""


def chances_of(sets: Sequence[TaskSet], plan: RunConfig, bases: Mapping[int, Path]) -> dict[str, Chance]:
    """Compute the chance level of each set by name; sets with a task whose family has no derivations are left out.
    Tokens are counted by the first of ``bases`` (all have the tokenizer of their course)."""
    found = {}
    for one in sets:
        asked = [_of(task.family, task.question) for task in tasks_of(one.protocol(), plan)]
        held = [(family, params) for family, params in asked if family and family.chance and family.derive and params]
        if len(held) == len(asked):
            right = tuple(family.chance(params) for family, params in held if family.chance)
            found[one.name] = Chance(right, _tokens(held, next(iter(bases.values()), None)))
    return found


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


def _of(name: str, question: str) -> tuple[Family | None, Params | None]:
    family = families().get(name)
    return family, family.parse(question) if family else None


def _tokens(held: Sequence[tuple[Family, Params]], base: Path | None) -> float | None:
    """Of one derivation in its box, as a student writes it: the mean over ``DRAWS`` of each task."""
    if base is None or not (base / "tokenizer.json").exists():
        return None
    from infra.tiny.tokenizer import lengths

    texts = []
    for place, (family, params) in enumerate(held):
        rng = random.Random(f"chance {place}")
        texts += [f"\\boxed{{{family.derive(params, rng)}}}" for _ in range(DRAWS) if family.derive]
    return fmean(lengths(base, texts))
