"""The runs of an ablation study: which there are, how they are named, and what is equal in all of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent0.errors import ConfigError
from agent0.events.base import TOKEN
from agent0.experiments.ablation_study import NAME, AblationStudy, Variant
from agent0.settings import RunConfig

MOST_SEEDS = 100
GATES = ("gate", "benchmark_gate", "teacher_gate", "margin", "calibration")
"""Settings of ``run.evaluation`` that decide who is promoted: with them all are scored alike."""


@dataclass(frozen=True)
class AblationRun:
    """One variant with one seed: its run id follows from the study's name, the variant and the seed. ``origin`` is the
    run that it begins as a fork of, in that run's data folder ``origin_folder``; empty where it begins by itself.
    ``search``: over the student's prompt in the place of the loop."""

    variant: str
    seed: int
    run: str
    config: RunConfig
    origin: str = ""
    origin_folder: str = ""
    search: str = ""

    @property
    def name(self) -> str:
        """The name of its folder, also for display."""
        return f"{self.variant}-{self.seed}"


def runs_of_study(name: str, plans: Mapping[str, RunConfig], seeds: Sequence[int]) -> list[AblationRun]:
    """List all runs of the study ``name``, seed by seed, so that a study that is stopped half-way has whole pairs.

    Raises:
        ConfigError: no such name, no seed, or variants that cannot be compared.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"A study cannot be named {name[:80]!r}.", fix="Use small letters, digits and '-', at most 30."
        )
    if not seeds:
        raise ConfigError("There is no seed.", "A run of a study is a variant with a seed.", "Say --seeds 0,1,2.")
    if len(set(seeds)) != len(seeds):
        raise ConfigError("A seed is named twice.", "The same run again says nothing new.", "Name each seed once.")
    _check(plans)
    return [_run(name, variant, seed, plans[variant]) for seed in seeds for variant in plans]


def with_shared_start(runs: Sequence[AblationRun]) -> list[AblationRun]:
    """Let each run begin as a fork of the first of its seed.

    Raises:
        ConfigError: a variant differs in more than its training.
    """
    first = {run.seed: run for run in reversed(runs)}
    return [run if run == first[run.seed] else _fork_of(first[run.seed], run) for run in runs]


def with_searches(runs: Sequence[AblationRun], variants: Sequence[Variant]) -> list[AblationRun]:
    """Let the runs of variants that search over prompts do so, each from its own beginning.

    Raises:
        ConfigError: others would begin where a search does.
    """
    searches = {variant.name: variant.search for variant in variants}
    if searched := [run.variant for run in runs if searches[run.variant] and any(o.origin == run.run for o in runs)]:
        why = "Variants with shared_start begin as forks of the first, and it searches over prompts."
        raise ConfigError(f"The variant {searched[0]} cannot be the first.", why, "Name one that is trained first.")
    return [
        replace(run, origin="", origin_folder="", search=search) if (search := searches[run.variant]) else run
        for run in runs
    ]


def _fork_of(first: AblationRun, run: AblationRun) -> AblationRun:
    if other := [key for key in changed_settings(first.config, run.config) if not key.startswith("training.")]:
        why = f"It sets run.{other[0]}, and a study with shared_start differs in run.training only."
        raise ConfigError(f"The variant {run.variant} cannot begin where {first.variant} does.", why)
    return replace(run, origin=first.run, origin_folder=first.name)


def _run(name: str, variant: str, seed: int, plan: RunConfig) -> AblationRun:
    run = f"{name}-{variant}-{seed}"
    if not TOKEN.fullmatch(run):
        raise ConfigError(f"{run[:80]!r} is too long for a run.", fix="Choose a shorter --name.")
    return AblationRun(variant, seed, run, plan.model_copy(update={"seed": seed}))


def seeds_of(text: str) -> tuple[int, ...]:
    """Parse seeds written as ``0,1,2`` or ``0-4``.

    Raises:
        ConfigError: anything else, or more than ``MOST_SEEDS``.
    """
    fix = "Write --seeds 0,1,2 or --seeds 0-4."
    out: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        if not match:
            raise ConfigError(f"{part[:40]!r} is no seed.", "A seed is a whole number from 0 on.", fix)
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < MOST_SEEDS:
            raise ConfigError(f"{part!r} is no row of seeds.", f"There may be {MOST_SEEDS}, upwards.", fix)
        out += range(first, last + 1)
    return tuple(out)


_setting = re.compile(r",(?=[A-Za-z_][A-Za-z0-9_.-]*=)")
"""Between two settings of a variant: a comma inside a value is followed by no KEY=."""


def variant_of(text: str) -> Variant:
    """Parse a variant written as ``NAME:KEY=VALUE,KEY=VALUE``; ``NAME:`` is the profile as it is.

    Raises:
        ConfigError: anything else.
    """
    name, colon, rest = text.partition(":")
    fix = "Write --variant base: --variant mine:run.rewards.weights.token_cost=0.2"
    if not colon or not NAME.fullmatch(name):
        why = "A name is needed, of small letters, digits and '-', at most 30, and a colon after it."
        raise ConfigError(f"{text[:80]!r} is no variant.", why, fix)
    settings = {}
    for pair in filter(None, _setting.split(rest)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{pair[:80]!r} of variant {name} has no '='.", "Its settings are KEY=VALUE.", fix)
        settings[key.strip()] = value
    return Variant(name, settings, search=settings.pop("search", ""))


def _same(first: Variant, second: Variant) -> bool:
    return (first.settings, first.search) == (second.settings, second.search)


def study_of(variants: Sequence[Variant], study: AblationStudy | None = None) -> AblationStudy:
    """Make a study of a user's variants, the first of which is the baseline; or add them to a ``study`` there is.

    Raises:
        ConfigError: fewer than two variants, or one name twice.
    """
    compared = (*(study.variants if study else ()), *variants)
    names = [variant.name for variant in compared]
    if len(compared) < 2 or len(set(names)) < len(names):
        why = f"Given: {', '.join(names) or 'none'}."
        fix = "Write --variant base: --variant mine:KEY=VALUE, each with a name of its own."
        raise ConfigError("Two variants are needed to compare, each named once.", why, fix)
    same = [(a.name, b.name) for n, a in enumerate(compared) for b in compared[n + 1 :] if _same(a, b)]
    if same and not study:
        why = "A comparison of them would say nothing."
        raise ConfigError(f"Variants {same[0][0]} and {same[0][1]} have the same settings.", why, "Change one of them.")
    if study:
        return replace(study, variants=compared)
    question = f"Do {', '.join(names[1:])} do better than {names[0]}?" if len(compared) > 2 else ""
    return AblationStudy(question or f"Does {names[1]} do better than {names[0]}?", compared)


def chosen_variants(study: AblationStudy, only: Sequence[str]) -> tuple[Variant, ...]:
    """Select the variants of ``study`` named in ``only``, all where it is empty, in the study's order.

    Raises:
        ConfigError: one that it does not have.
    """
    names = [variant.name for variant in study.variants]
    for name in only:
        if name not in names:
            raise ConfigError(f"The study has no variant {name[:80]!r}.", f"Its variants: {', '.join(names)}.")
    return tuple(variant for variant in study.variants if not only or variant.name in only)


def _check(plans: Mapping[str, RunConfig]) -> None:
    first = next(iter(plans), "")
    scoring = {name: plan.evaluation.model_dump(exclude=set(GATES)) for name, plan in plans.items()}
    for name, plan in plans.items():
        if scoring[name] != scoring[first]:
            why = "Variants are compared on the same held-out items, scored alike."
            fix = f"Leave run.evaluation alone, but for {', '.join(GATES)}."
            raise ConfigError(f"The variant {name} scores otherwise than {first}.", why, fix)
        if plan.time_limit:
            why = "Variants are compared after equally many attempts."
            raise ConfigError(f"The variant {name} ends by run.time_limit.", why, "Set run.iterations instead.")
        if plan.on_failure == "wait" or plan.verification.undecided == "ask":
            key = "on_failure" if plan.on_failure == "wait" else "verification.undecided"
            raise ConfigError(
                f"The variant {name} would wait for a person.", f"run.{key} says so.", "Nobody watches a study's runs."
            )


def requested_compute(plan: RunConfig) -> dict[str, int]:
    """The compute that a run requests: iterations, tasks, attempts, and attempts in all."""
    return {
        "iterations": plan.iterations,
        "tasks": plan.most_tasks,
        "attempts": plan.attempts,
        "in_all": plan.iterations * plan.most_tasks * plan.attempts,
    }


def describe_compute(plans: Mapping[str, RunConfig]) -> str:
    """State in words whether all variants request equal compute, and how much.

    Rejected tasks get no attempt, so what was done may be less.
    """
    sizes = {name: requested_compute(plan) for name, plan in plans.items()}
    if len({tuple(size.values()) for size in sizes.values()}) == 1:
        text = f"Asked of every run alike: {_size_text(next(iter(sizes.values())))}"
    elif len({(size["iterations"], size["in_all"]) for size in sizes.values()}) == 1:
        first, *others = sizes.items()
        spread = "{} {tasks} tasks with {attempts} attempts each"
        odd = "; ".join(spread.format(name, **size) for name, size in others if size != first[1])
        text = f"Asked of every run alike: {_size_text(first[1])}, but differently spread: {odd}"
    else:
        text = "NOT equal compute: " + "; ".join(f"{name} {_size_text(size)}" for name, size in sizes.items())
    if len({(plan.student.provider, plan.student.model) for plan in plans.values()}) > 1:
        text += "; but models differ, and with them what an attempt costs"
    return f"{text}. What it took is in the table of cost."


def _size_text(size: Mapping[str, int]) -> str:
    text = "{iterations} iterations of {tasks} tasks with {attempts} attempts each ({in_all:,} attempts at most)"
    return text.format(**size)


def changed_settings(old: RunConfig, new: RunConfig) -> list[str]:
    """Settings by dotted key in which a run that was begun differs from what is requested now."""
    return sorted(_differing("", old.model_dump(mode="json"), new.model_dump(mode="json")))


def _differing(at: str, old: object, new: object) -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = {*old, *new}
        return [line for key in keys for line in _differing(f"{at}.{key}".lstrip("."), old.get(key), new.get(key))]
    return [] if old == new else [at]
