"""Runs that are followed to their end: start one, go on with one, watch one."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.log.carriers import carrier_line, carriers
from agent0.assembly.models.warm_start import warm_start
from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.execution import moved_servers, prepared, resumption
from agent0.assembly.validate.questions import document_notes, question_notes
from agent0.cli import console, flags, lookup
from agent0.cli.models.named_model import BaseUrl, KeyEnv, Model, model_or_server, profile_of
from agent0.cli.runs.durations import time_or_iterations
from agent0.cli.runs.foreground import follow_to_end, print_conclusion, require
from agent0.cli.runs.run import append
from agent0.cli.tasks.question_options import (
    AnswerType,
    Columns,
    Heldout,
    Judge,
    Template,
    Tolerance,
    question_settings,
    require_file,
)
from agent0.errors import RequirementsError
from agent0.events.base import Recorded
from agent0.events.runs import PRIORITY
from agent0.experiments.smaller_run import difference
from agent0.settings import RunConfig, Settings

Detach = Annotated[
    bool, typer.Option("--detach", "--no-wait", help="Only begin it: `agent0 handlers run` processes do the work.")
]
NoHandlers = Annotated[bool, typer.Option("--no-handlers", help="Watch only; other processes run the handlers.")]
Questions = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Questions with answers to train on, as GSM8K has them, or mined tasks."),
]
Documents = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Text files that the teacher writes questions about (.txt, .md, .rst)."),
]
Adapter = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="A LoRA that peft saved: the student begins with it, and trains on."),
]
Priority = Annotated[int, typer.Option(min=1, max=100, help="Weight beside other runs on the same workers.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for what the run needs and this machine lacks.")]
Time = Annotated[
    str, typer.Option("--for", metavar="TIME", help="Work so long instead: 2h, 90m. The last round is finished.")
]


def start(
    profile: console.Profile = None,
    name: Annotated[str, typer.Option(help="A name for people; its id is made from it.")] = "",
    seed: Annotated[int | None, typer.Option(help="Seed of the whole run.")] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Rounds.")] = None,
    time: Time = "",
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks an iteration.")] = None,
    attempts: Annotated[int | None, typer.Option(min=1, help="Attempts a task.")] = None,
    questions: Questions = None,
    heldout: Heldout = None,
    documents: Documents = None,
    columns: Columns = "",
    tolerance: Tolerance = None,
    answer_type: AnswerType = None,
    template: Template = None,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    adapter: Adapter = None,
    priority: Priority = PRIORITY,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    detach: Detach = False,
    no_handlers: NoHandlers = False,
    wait: Wait = False,
    as_json: console.Json = False,
) -> None:
    """Start a run and follow it to its end. Ctrl-C stops cleanly; `agent0 run resume` goes on."""
    sizes = _sizes(seed, iterations, tasks, attempts, time)
    question_pairs = question_settings(questions, heldout, columns, tolerance, answer_type, template, documents, judge)
    named = {**sizes, **question_pairs, **model_or_server(model, base_url, key_env)}
    chosen = flags.settings(profile_of(profile, base_url), pairs, plugins=plugin, **named)
    require_file(chosen.run.questions, columns, tolerance, answer_type, template)
    settings = _prepared(chosen, wait, here=not (detach or no_handlers))
    begin = _begin(chosen.run, settings, name, adapter, priority)
    if detach:
        return _detached(settings, begin, as_json)
    news = f"Run {begin.run}: profile {settings.profile}, seed {settings.run.seed}, data in {settings.home}"
    follow_to_end(settings, begin.run, begin, news, with_handlers=not no_handlers, as_json=as_json, wait=wait)


def _prepared(chosen: Settings, wait: bool, *, here: bool) -> Settings:
    return console.run_async(lambda: prepared(chosen, console.say if wait else None, here=here, tell=console.say))


def _sizes(
    seed: int | None, iterations: int | None, tasks: int | None, attempts: int | None, time: str
) -> dict[str, object]:
    sizes = {"run__seed": seed, "run__iterations": iterations, "run__tasks": tasks, "run__attempts": attempts}
    return {**sizes, "run__time_limit": time_or_iterations(time, iterations)}


def _detached(settings: Settings, begin: Recorded, as_json: bool) -> None:
    """Begin a run that other processes execute."""
    console.run_async(lambda: append(settings, begin, make=True))
    console.record({"run": begin.run, "profile": settings.profile, "config_sha": held_sha(begin)}, as_json)


def _begin(chosen: RunConfig, settings: Settings, name: str, adapter: Path | None, priority: int) -> Recorded:
    """Make the beginning of the run, and say what it begins with: rows of files, and the folder of an ``adapter``."""
    _say_rows(chosen, settings.run)
    if warm := warm_start(settings, adapter):
        console.say(warm.line)
    return started(settings, name, warm, priority)


def _say_rows(chosen: RunConfig, run: RunConfig) -> None:
    """Name what a file of questions does not give of what was ``chosen``, and its rows that are not asked."""
    if smaller := difference(chosen, run):
        source = run.questions.heldout or run.questions.file
        console.say(f"{source} holds out fewer rows than are set: {smaller}.", "yellow")
    for note in [*question_notes(run.questions), *document_notes(run.documents)]:
        console.say(note, "yellow")


def resume(
    run: console.Run = "LAST",
    profile: console.Profile = None,
    base_url: BaseUrl = None,
    pairs: console.Set = None,
    plugin: console.Plugin = None,
    detach: Detach = False,
    no_handlers: NoHandlers = False,
    wait: Wait = False,
    as_json: console.Json = False,
) -> None:
    """Go on with a run that was stopped or paused, or with what a failed one has. What it does was fixed when it
    started; the addresses of its servers were not."""
    settings = flags.settings(profile, pairs, plugins=plugin, **model_or_server(None, base_url, None))
    row = lookup.run_row(run, settings)
    name = str(row["run"])
    if row["status"] == "finished":
        console.say(f"Run {name} is finished.")
        print_conclusion(settings, name, as_json)
        return
    begin = resumption(settings, row)
    if detach:
        if begin:
            console.run_async(lambda: append(settings, begin))
        console.record({"run": name, "status": "running"}, as_json)
        return
    if not no_handlers:
        plan = RunConfig.recorded(row["config"]).served_by(moved_servers(settings, row))
        try:
            require(settings, plan, wait)
        except RequirementsError as error:
            if not any(url.partition(",")[0].removesuffix("/v1") in error.what for url in plan.servers.values()):
                raise
            fix = f"Where its server is elsewhere by now: agent0 run resume {name} --base-url URL"
            raise RequirementsError(error.what, error.why, fix) from error
        if row["status"] == "running" and carriers(settings):
            console.say(f"{carrier_line(settings, name)} This process shares the work.", "yellow")
    news = f"Run {name} goes on: profile {row['profile']}, seed {row['seed']}"
    follow_to_end(settings, name, begin, news, with_handlers=not no_handlers, as_json=as_json, wait=wait)


def watch(run: console.Run = "LAST", as_json: console.Json = False) -> None:
    """Follow a run that other processes execute, to its end; first it says which ones."""
    settings, row = flags.settings(), lookup.run_row(run)
    news = carrier_line(settings, row["run"]) if row["status"] == "running" else ""
    follow_to_end(settings, str(row["run"]), None, news, with_handlers=False, as_json=as_json)


def held_sha(begin: Recorded) -> str:
    """Return the digest of the configuration in a RunStarted."""
    return str(getattr(begin.event, "config_sha", ""))
