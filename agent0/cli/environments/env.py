"""``agent0 env``: environments of others as sources of tasks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from agent0.api.openenv import serve_openenv
from agent0.assembly.environments.added import MOST_TASKS, add_harbor, environments, remove
from agent0.assembly.environments.openenv import add_openenv
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_port
from agent0.cli import console, flags
from agent0.cli.environments.family import Levels, levels_of, named_family
from agent0.settings import Settings
from agent0.tasks.families import Family

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name; see agent0 env list.")]


def harbor(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A task folder of Harbor, or a folder of them.")],
    name: Annotated[str, typer.Option("--name", help="What it is called here; else as the folder is.")] = "",
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Add task folders of Harbor whose environment needs no build: a plain Python image, and files copied to /app.
    Their scripts run in the sandbox alone; a task is added where its own solution gets the full reward and an
    untouched folder does not. Exit code 1 where none is."""
    settings = flags.settings(None, pairs)
    called = name or folder.resolve().name.lower()
    path, tried = console.run_async(lambda: add_harbor(settings, folder, called, console.say))
    added = [task.name for task in tried if not task.why]
    refused = {task.name: task.why for task in tried if task.why}
    if as_json:
        console.data(
            {"environment": called, "folder": str(path) if added else None, "tasks": added, "refused": refused}
        )
    else:
        console.text(f"{called}: {len(added)} of {len(tried)} tasks.")
        if added:
            console.text(f"agent0 run start --questions {path}")
    if not added:
        raise typer.Exit(1)


def openenv(
    url: Annotated[str, typer.Argument(metavar="URL", help="Its server, such as http://127.0.0.1:8010.")],
    name: Annotated[str, typer.Option("--name", help="What it is called here; else as it calls itself.")] = "",
    count: Annotated[int, typer.Option(min=1, max=MOST_TASKS, help="Seeds that are tried, from 0.")] = 100,
    question: Annotated[
        str, typer.Option("--question", help="The field of an observation that asks; '' with --steps: all of it.")
    ] = "question",
    steps: Annotated[bool, typer.Option("--steps", help="Its episodes go over steps, each a call of a tool.")] = False,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Add an environment that is served by OpenEnv's wire, and whose episodes have one step, a single text, or go over
    steps. Its first observations are the tasks, and the sum of its rewards is the verdict: 1 or more is right. Exit
    code 1 where none is a task."""
    settings = flags.settings(None, pairs)
    path, tried = console.run_async(lambda: add_openenv(settings, url, name, count, question, steps=steps))
    refused = {task.name: task.why for task in tried if task.why}
    added = [task.name for task in tried if not task.why]
    if as_json:
        kept = str(path) if added else None
        console.data({"environment": path.name, "folder": kept, "tasks": added, "refused": refused})
    else:
        for seed, why in refused.items():
            console.say(f"  {seed}: {why}")
        console.text(f"{path.name}: {len(added)} of {len(tried)} tasks.")
        if added:
            console.text(f"agent0 run start --questions {path}")
    if not added:
        raise typer.Exit(1)


def list_(as_json: console.Json = False) -> None:
    """Environments that were added: how many tasks, the digest that runs name, and where they are."""
    rows = [
        {
            "environment": entry.name,
            "tasks": entry.tasks,
            "sha256": entry.sha256 if as_json else entry.sha256[:12],
            "folder": str(entry.path),
            **({"problem": entry.problem} if entry.problem or as_json else {}),
        }
        for entry in environments(flags.settings())
    ]
    console.table(rows, as_json)


def rm(name: Name, as_json: console.Json = False) -> None:
    """Delete an environment. A run that asked it keeps its events; to go on it waits until the same tasks are there
    again."""
    remove(flags.settings(), name)
    console.record({"removed": name}, as_json)


def serve(
    family: Annotated[str, typer.Argument(metavar="FAMILY", help="A task family, such as countdown.")],
    levels: Levels = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8010,
    plugin: console.Plugin = None,
) -> None:
    """Serve a task family by OpenEnv's wire, to this machine alone, until stopped: an episode is a task, its one step
    the answer, its reward the verdict."""
    settings = flags.settings(plugins=plugin)
    entry = named_family(family)
    chosen = levels_of(entry, levels)
    console.run_async(lambda: _serve(settings, entry, chosen, port))


async def _serve(settings: Settings, family: Family, levels: Sequence[int], port: int) -> None:
    sandbox = await open_port("verifier_sandbox", settings, artifact_store(settings), tested=True)
    try:
        await serve_openenv(family, levels, sandbox, port, console.say)
    finally:
        await sandbox.close()
