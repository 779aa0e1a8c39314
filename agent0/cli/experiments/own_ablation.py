"""A study of variants that the user names: mine against theirs, over seeds."""

from typing import Annotated

import typer

from agent0.cli import console
from agent0.cli.experiments import ablations
from agent0.errors import NotFoundError
from agent0.experiments.ablation_runs import study_of, variant_of
from agent0.experiments.ablations import AblationStudy, ablation_studies

Study = Annotated[str, typer.Argument(metavar="[STUDY]", help="Add the variants to this study; empty: they are all.")]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="NAME:KEY=VALUE,…",
        help="A variant; the first is the baseline. NAME: alone is the profile.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what it costs.")]


def ablation(
    study: Study = "",
    variants: Variants = None,
    profile: ablations.Profile = None,
    seeds: ablations.Seeds = None,
    name: ablations.Name = "",
    jobs: ablations.Jobs = 1,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    dry_run: DryRun = False,
    full: console.Full = False,
    out: ablations.Out = None,
    write: ablations.Write = None,
    as_json: console.Json = False,
) -> None:
    """Mine against theirs: run variants of settings over seeds, and answer whether each is better than the first,
    paired over seeds. Each run has a process and a data folder of its own; killed, the same command goes on. Example:
    agent0 experiment ablation --plugin my_reward.py --variant base: --variant mine:run.rewards.weights.brevity=0.2
    --seeds 0-4"""
    from agent0.assembly.ablations.study import plan_study, request_of

    chosen = study_of([variant_of(one) for one in variants or ()], _known(study) if study else None)
    given = console.overrides(pairs, plugins=console.plugin_paths(plugin))
    request = request_of(chosen, name, profile, seeds, given, jobs=jobs)
    if not dry_run:
        ablations.execute(request, out, write, full, as_json)
        return
    held = console.settings_of(request.profile, given)
    plan = console.run_async(lambda: plan_study(held, request))
    console.record({key: value for key, value in plan.items() if as_json or value is not None}, as_json)


def _known(study: str) -> AblationStudy:
    from agent0.config.loading import nearest

    known = ablation_studies()
    if study not in known:
        raise NotFoundError(
            f"There is no study {study[:80]!r}.", f"Known: {', '.join(known)}.", nearest(study, [*known])
        )
    return known[study]
