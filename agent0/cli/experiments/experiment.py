"""Experiments: what a run would have come to under other rules, from its log and without a model call."""

from typing import Annotated

import typer

from agent0.cli import console, lookup
from agent0.projections.experiments import list_experiments, show_experiment

Name = Annotated[str, typer.Option("--name", "-n", help="Its name; run again with the same one, it goes on.")]


def list_(
    run: Annotated[str, typer.Option(help="Those of one run.")] = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """List experiments, newest first; with --run only those of one run."""
    with lookup.tables() as db:
        of = lookup.of_newest(run) if run else ""
        console.table(console.limited(lambda n: list_experiments(db, of, n), limit), as_json)


def show(experiment: str, as_json: console.Json = False) -> None:
    """One experiment: what it asked, under which rules, and what it found."""
    with lookup.tables() as db:
        console.record(show_experiment(db, experiment), as_json)
