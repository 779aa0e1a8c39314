"""An ablation study: variants of settings over seeds, of a study file or as the user types them."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.ablations.study import plan_study
from agent0.assembly.ablations.study_request import StudyRequest, read_study, request_of
from agent0.cli import console, flags
from agent0.cli.experiments.study_pages import execute
from agent0.experiments.ablation_runs import variant_of

Study = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="A study file, in TOML; without one --variant names them all.")
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="NAME:KEY=VALUE,…",
        help="A variant, added to the file's; the first of all is the baseline. NAME: alone is the profile.",
    ),
]
Only = Annotated[
    str, typer.Option(metavar="VARIANT,VARIANT", help="Only these variants; the first of them is the baseline.")
]
Profile = Annotated[
    str | None, typer.Option("--profile", "-p", help="tiny, scripted … or the path of a .toml file; empty: the file's.")
]
Seeds = Annotated[str | None, typer.Option(help="As 0,1,2 or 0-4; empty: the file's, or 0-4.")]
Name = Annotated[
    str, typer.Option("--name", "-n", help="Run again with the same one, it goes on; empty: file and profile.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Runs at once, each a process of its own.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what it costs.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", callback=console.in_folder, help="The HTML page; empty: beside the runs."
    ),
]
Write = Annotated[
    Path | None,
    typer.Option(
        "--write", metavar="FILE", callback=console.in_folder, help="Write a Markdown page, its charts beside it."
    ),
]


def ablation(
    file: Study = None,
    variants: Variants = None,
    only: Only = "",
    profile: Profile = None,
    seeds: Seeds = None,
    name: Name = "",
    jobs: Jobs = 1,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    dry_run: DryRun = False,
    full: console.Full = False,
    out: Out = None,
    write: Write = None,
    as_json: console.Json = False,
) -> None:
    """Compare variants of settings over seeds, and answer whether each is better than the first: paired over seeds,
    with Holm's correction. Each run has a process and a data folder of its own; killed, the same command goes on.
    Example: agent0 experiment ablation --plugin my_reward.py --variant base:
    --variant mine:run.rewards.weights.brevity=0.2 --seeds 0-4"""
    typed = [variant_of(text) for text in variants or ()]
    request = request_of(
        read_study(file, typed),
        flags.overrides(pairs, plugins=flags.plugin_paths(plugin)),
        file=file,
        variants=typed,
        name=name,
        profile=profile,
        seeds=seeds,
        only=[text.strip() for text in only.split(",") if text.strip()],
        jobs=jobs,
    )
    if dry_run:
        _show_cost(request, as_json)
    else:
        execute(request, out, write, full, as_json)


def _show_cost(request: StudyRequest, as_json: bool) -> None:
    settings = flags.settings_of(request.profile, request.typed)
    plan = console.run_async(lambda: plan_study(settings, request))
    console.record({key: value for key, value in plan.items() if as_json or value is not None}, as_json)
