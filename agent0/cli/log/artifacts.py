"""The artifact store: is everything there that events name, and what is there that none names."""

from typing import Annotated

import typer

from agent0.assembly.log.artifact_check import collect
from agent0.assembly.log.artifact_check import verify as compare
from agent0.cli import console, flags


def verify(as_json: console.Json = False) -> None:
    """Compare every artifact that events name with its digest, and look whether a shared store has it. Exit 1 where one
    is missing or damaged."""
    settings = flags.settings()
    comparison = console.run_async(lambda: compare(settings))
    console.record(comparison, as_json)
    if comparison["state"] != "whole":
        raise typer.Exit(1)


def gc(
    delete: Annotated[bool, typer.Option("--delete", help="Do it; without it nothing is changed.")] = False,
    as_json: console.Json = False,
) -> None:
    """Count artifacts that no event of the log or of its archives names. What is younger than an hour stays."""
    settings = flags.settings()
    console.record(console.run_async(lambda: collect(settings, delete)), as_json)
    if not delete:
        console.say("Nothing is changed; --delete throws the unnamed ones away.")
