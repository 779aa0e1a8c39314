"""The rewards of a run under other rules."""

from typing import Annotated, Any

import typer

from agent0.assembly.replay.forks import pairs_of
from agent0.assembly.replay.rescore import Rescore, rescore_run
from agent0.assembly.replay.stored_experiments import Progress
from agent0.assembly.validate.rewards import AS_RUN, reward_policy
from agent0.cli import console, flags, lookup
from agent0.cli.experiments.experiment import Name
from agent0.errors import ConfigError
from agent0.report.answers import rescore_answer

Rules = Annotated[
    str,
    typer.Option(metavar="SET|FILE", help="A set, or TOML with `set` and \\[weights]; as-run: the run's own rules."),
]


def rescore(
    run: console.Run = "LAST",
    rewards: Rules = "as-run",
    name: Name = "",
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    verdicts: Annotated[
        str,
        typer.Option(metavar="EXPERIMENT", help="Verdicts of a `reverify` instead, or `reviews`: those of reviewers."),
    ] = "",
    commit: Annotated[bool, typer.Option("--commit", help="Write it down; without it nothing is written.")] = False,
    as_json: console.Json = False,
) -> None:
    """Recompute all rewards of a run, its teacher's too, and show what changes: under a set, a file of rules, or
    single settings (--set run.rewards.weights.token_cost=0.1). With its own rules: nothing."""
    settings = flags.settings(plugins=plugin)
    policy, changes = reward_policy(rewards), pairs_of(pairs)
    if commit and not name:
        raise ConfigError("An experiment that is written down needs a name.", fix="Add: --name NAME")
    request = Rescore(lookup.run_id(run), name or "look", policy, verdicts, commit, changes)
    results = console.run_async(lambda: rescore_run(settings, request, Reporter(quiet=as_json)))
    as_run = rewards == AS_RUN and not verdicts and not changes and not results["imported"]
    if as_json:
        console.data(results)
    else:
        _show(results)
    if as_run and not results["identical"] and results["redacted"]:
        console.say("The run's own rules do not give all of its own rewards: some rest on what was redacted.", "yellow")
    elif as_run and not results["identical"]:
        console.say("The run's own rules do not give its own rewards: see `agent0 run check`.")
        raise typer.Exit(1)


def _show(results: dict[str, Any]) -> None:
    console.print_lines(rescore_answer(results))
    roles = [{"role": role, **results[role]} for role in ("student", "teacher") if role in results]
    sides = results["changed_sides"]
    console.table(roles, False, ("role", "n", "changed", "mean_before", "mean_after", "rank_correlation"))
    if sides:
        console.text(f"{len(sides)} tasks change sides: {', '.join(sides[:20])}{' …' if len(sides) > 20 else ''}")
    if results["failed"]:
        console.text(f"{results['failed']} rewards could not be computed, the first: {results['first_failure']}")
    if results["redacted"]:
        console.text(f"{results['redacted']} events of the run were redacted: their content is left out.")
    print_end(results)


class Reporter:
    """Says now and then how far the reading is."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, at: Progress) -> None:
        if not self._quiet:
            rate = at.done / at.wall_s if at.wall_s else 0.0
            console.say(f"{at.done:,} of {at.all:,} events, {rate:,.0f} a second, {at.left_s:.0f} s left")


def print_end(results: dict[str, Any]) -> None:
    """Print under which name an experiment was written down, or how it would be."""
    if results["committed"]:
        console.text(f"Written down as {results['experiment']}.")
    else:
        console.say("Nothing is written; --commit writes it down.")
