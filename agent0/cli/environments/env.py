"""``agent0 env``: environments of others as sources of tasks."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.environments.added import add_harbor, environments, remove
from agent0.cli import console, flags

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


def rm(name: Name) -> None:
    """Delete an environment. A run that asked it keeps its events; to go on it waits until the same tasks are there
    again."""
    remove(flags.settings(), name)
    console.say(f"{name} is deleted.")
