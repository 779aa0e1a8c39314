"""``agent0 family``: whether a task family is fit to train on, and its tasks as folders that other frameworks run."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from agent0.assembly.environments.family_validation import LevelValidation, validate_family
from agent0.cli import console, flags
from agent0.config.setting_entries import nearest
from agent0.errors import ConfigError, DependencyError, NotFoundError
from agent0.tasks.families import Family, families
from agent0.tasks.harbor.export import harbor_task
from agent0.tasks.seeds import derive_seed

Name = Annotated[str, typer.Argument(metavar="FAMILY", help="Its name, such as countdown.")]
Levels = Annotated[
    list[int] | None, typer.Option("--level", min=1, help="One level only; can be repeated. First: the first four.")
]
Seed = Annotated[int, typer.Option(min=0, help="What tasks are drawn with.")]
FIRST_LEVELS = 4


def validate(
    name: Name,
    levels: Levels = None,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="Tasks of each level.")] = 20,
    seconds: Annotated[float, typer.Option(min=0.001, help="That a task and its verdict may take.")] = 1.0,
    seed: Seed = 0,
    plugin: console.Plugin = None,
    as_json: console.Json = False,
) -> None:
    """Check a family as a run would use it: its own answers are right, empty and random ones are not, a seed repeats
    itself, tasks differ, and none takes long. Exit code 3 where something of this does not hold."""
    settings = flags.settings(plugins=plugin)
    family = named_family(name)

    chosen = levels_of(family, levels)
    results = console.run_async(lambda: validate_family(settings, family, chosen, count, seed, seconds))
    rows = [_row(result) for result in results]
    console.table(rows, as_json)
    if any(result.problems for result in results):
        raise typer.Exit(3)


def _row(result: LevelValidation) -> Mapping[str, object]:
    shares = {name: round(getattr(result, name), 3) for name in ("oracle", "empty", "random")}
    counts = {name: getattr(result, name) for name in ("level", "tasks", "distinct", "answers")}
    return {**counts, **shares, "slowest_s": round(result.slowest_s, 4), "problems": list(result.problems)}


def export(
    name: Name,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the task folders are added.")],
    to: Annotated[
        Literal["harbor"], typer.Option("--format", help="harbor: task.toml, instruction, tests.")
    ] = "harbor",
    levels: Levels = None,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="Tasks of each level.")] = 5,
    seed: Seed = 0,
    plugin: console.Plugin = None,
    as_json: console.Json = False,
) -> None:
    """Write tasks of a family as task folders of Harbor, each with the family's own code as its tests: nothing is built
    or installed to run them. What is there is written over by the same task alone."""
    flags.settings(plugins=plugin)
    family = named_family(name)
    names = []
    for level in levels_of(family, levels):
        for number in range(count):
            rng = random.Random(derive_seed("export", family.name, seed, level, number))
            task = f"{family.name.replace('_', '-')}-l{level}-s{seed}-{number}"
            _write(folder / task, harbor_task(family, family.render(family.sample(level, rng), rng), task))
            names.append(task)
    if as_json:
        console.data({"folder": str(folder), "tasks": names})
    else:
        console.text(f"{folder}: {len(names)} tasks of {family.name}.")


def named_family(name: str) -> Family:
    """Find the family of that name; a NotFoundError names those there are."""
    names = families(long=None)
    if name not in names:
        raise NotFoundError(
            f"There is no family {name[:80]!r}.", f"They are: {', '.join(names)}.", nearest(name, list(names))
        )
    return names[name]


def levels_of(family: Family, levels: list[int] | None) -> list[int]:
    """The levels that a command is about: those named, else the family's first ones; in order, each once."""
    if levels and max(levels) > family.levels:
        raise ConfigError(f"{family.name} has no level {max(levels)}.", f"It has {family.levels}.")
    return sorted(set(levels or range(1, min(family.levels, FIRST_LEVELS) + 1)))


def _write(folder: Path, files: dict[str, bytes]) -> None:
    try:
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
            (folder / path).chmod(0o755 if path.endswith(".sh") else 0o644)
    except OSError as error:
        raise DependencyError(f"The folder {folder}", f"{error.strerror}.", "Name another.") from error
