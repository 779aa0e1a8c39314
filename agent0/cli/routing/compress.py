"""``agent0 router compress``: what shorter prompts cost in accuracy."""

import json
import secrets
from typing import Annotated

import typer

from agent0.assembly.evaluation.routed import Loss, Plan, measure_loss
from agent0.cli import console, flags
from agent0.cli.models.calibrate import Reporter, trained
from agent0.evaluation.routed import as_row, paired_row
from agent0.settings.router import CompressionSettings


def compress(
    checkpoint: Annotated[str, typer.Argument(help="RUN/CHECKPOINT of a trained student, or base.")] = "base",
    stage: Annotated[
        list[str] | None, typer.Option(help="structural, extractive or summary; given again: more.")
    ] = None,
    summarizer: Annotated[
        str, typer.Option(help="Model that writes summaries, PROVIDER/MODEL; one that costs nothing.")
    ] = "",
    longest: Annotated[int, typer.Option(min=100, help="Characters of a tool's output that are kept.")] = 1500,
    items: Annotated[int, typer.Option(min=1, help="Held-out tasks.")] = 300,
    long: Annotated[bool, typer.Option("--long", help="Tasks of several steps, whose prompts grow.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Draws tasks.")] = 0,
    resume: Annotated[str, typer.Option(help="Id of a measurement to go on with.")] = "",
    profile: console.Profile = None,
    set_: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Attempt held-out tasks with prompts as they are and with shorter ones, and show the loss of accuracy, paired task
    by task. Prints the settings by which calls that cost money are compressed; where it may lose too much, runs refuse
    them."""
    settings = flags.settings(profile, set_)
    options = {"stages": json.dumps(stage or ["structural"]), "longest": longest, "summarizer": summarizer}
    overrides = [f"router.compression.{name}={value}" for name, value in options.items() if value]
    how = flags.settings(profile, [*(set_ or ()), *overrides]).router.compression
    identity = resume or f"compression-{secrets.token_hex(3)}"
    console.say(f"Compression {identity}: {settings.run.student.provider}, data in {settings.home}")
    plan = Plan(items, "test", seed, long=long, **trained(settings, checkpoint))
    loss = console.run_async(lambda: measure_loss(settings, plan, how, identity, Reporter(checkpoint, as_json)))
    _show(loss, how, as_json)


def _show(loss: Loss, how: CompressionSettings, as_json: bool) -> None:
    rows, pair = [as_row(standing) for standing in loss.standings], paired_row(loss.paired)
    settings = {"stages": list(how.stages), "longest": how.longest, "loss95": round(loss.loss95, 4)}
    version, written = f"{loss.run}, {loss.standings[0].tasks} tasks", {}
    if how.summarizer:
        settings |= {"summarizer": how.summarizer}
        settings |= {"measured_summarizer": how.summarizer if loss.shows_summaries else ""}
        version, written = f"{version}, {how.summarizer}", {"summaries": loss.summaries, "without": loss.without}
    settings |= {"version": version}
    if as_json:
        console.data({"ways": rows, "paired": pair, "shorter": loss.shorter, **written, "settings": settings})
        return
    console.table(rows, False, ("way", "tasks", "right", "accuracy", "low", "high"))
    console.table([pair], False, ("tasks", "gained", "lost", "difference", "low", "high", "p", "verdict"))
    console.text(f"{100 * loss.shorter:.1f} % of the characters of all prompts were left out.")
    if written:
        console.text(f"Outputs in prompts with a summary: {loss.summaries}; as long and without: {loss.without}.")
        if not loss.shows_summaries:
            console.text("Too few had one: this does not measure summaries, and runs refuse them.")
    for line in (
        "",
        "[router.compression]",
        *(f"{key} = {value!r}".replace("'", '"') for key, value in settings.items()),
    ):
        console.text(line)
