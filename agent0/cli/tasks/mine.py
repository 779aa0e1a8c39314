"""``agent0 task mine``: tasks from the source distributions of packages; ``agent0 task generate``: from repositories
that are drawn; work on one of them, and its verdict."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.mining.failed_repairs import add_failures
from agent0.assembly.mining.generate import GenerationKind, GenerationRequest, LevelCount
from agent0.assembly.mining.generate import generate as generate_tasks
from agent0.assembly.mining.judging import judge as judge_work
from agent0.assembly.mining.judging import unpack as unpack_task
from agent0.assembly.mining.mine import MinedKind, MiningRequest, PackageCount
from agent0.assembly.mining.mine import mine as mine_packages
from agent0.assembly.mining.mined_folder import MinedFolder
from agent0.cli import console, flags, lookup
from agent0.infra.web.package_index import PYPI, PackageIndex
from agent0.settings import Settings
from agent0.tasks.mining.generated import LEVELS
from agent0.tasks.mining.packages import package_request

Packages = Annotated[
    list[str], typer.Argument(metavar="PACKAGE[==FIRST..LAST]...", help="Without releases: the newest two.")
]
REASONS = 4
"""Reasons that a line of the table has."""


def mine(
    packages: Packages,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Tasks are added to it.")] = Path("mined"),
    count: Annotated[int, typer.Option(min=0, max=10_000, help="Tasks by mutation, of each package.")] = 40,
    kind: Annotated[
        MinedKind,
        typer.Option(
            help="Bugs and changes to repair, functions to document, to simplify or to review, or tests to write."
        ),
    ] = "bug",
    seed: Annotated[int, typer.Option(help="What mutations are drawn with.")] = 0,
    index: Annotated[str, typer.Option(metavar="URL", help="A package index (PEP 691).")] = PYPI,
    with_benchmarks: Annotated[
        bool, typer.Option("--with-benchmarks", help="Packages of SWE-bench, too, which are refused otherwise.")
    ] = False,
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Mine tasks from packages: what changed between releases, and bugs by mutation, each judged by hidden tests; or
    other work on their functions (--kind), judged by calls that their tests make.
    All of a package runs in the sandbox, nothing is installed or built. The same command goes on where it was stopped.
    Exit code 1 where the folder has no task of any of them."""
    settings = flags.settings(None, pairs)
    requests = tuple({request.text: request for request in map(package_request, packages)}.values())
    request = MiningRequest(requests, count, seed, with_benchmarks, kind)
    source = PackageIndex(index)
    with MinedFolder.opened(out) as folder:
        stopping = "Stopping; what was tried is written down."
        counts = console.run_async(
            lambda: mine_packages(request, source, folder, settings.sandbox, console.say), stopping
        )
    _show(counts, as_json)
    if not any(count.accepted for count in counts):
        raise typer.Exit(1)


def _show(counts: list[PackageCount], as_json: bool) -> None:
    rows = [
        {
            "package": count.package,
            "tried": count.tried,
            "accepted": sum(count.accepted.values()),
            "kinds": ", ".join(f"{n} {kind}" for kind, n in sorted(count.accepted.items())),
            "why not": count.refused or ", ".join(f"{n} {why}" for why, n in count.why.most_common(REASONS)),
        }
        for count in counts
    ]
    console.table(rows, as_json)


def generate(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Tasks are added to it.")] = Path(
        "repairs"
    ),
    count: Annotated[int, typer.Option(min=1, max=100_000, help="Tasks of each level.")] = 100,
    kind: Annotated[
        GenerationKind,
        typer.Option(help="Bugs to repair, code to document, to simplify or to review, or tests to write."),
    ] = "bug",
    level: Annotated[list[int] | None, typer.Option(min=1, max=LEVELS, help="Of these levels alone.")] = None,
    seed: Annotated[int, typer.Option(help="What repositories are drawn with.")] = 0,
    from_failures: Annotated[
        str, typer.Option(metavar="RUN", help="Bugs that failed repairs of this run left, in place of drawn ones.")
    ] = "",
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Generate small repositories to repair, document, simplify, review or test, in the form of mined tasks.
    What is right and wrong of them is run in the sandbox. The same command goes on where it was stopped. Exit code 1
    where a level has fewer tasks than asked for."""
    settings = flags.settings(None, pairs)
    if from_failures:
        _from_failures(settings, lookup.run_id(from_failures, settings), out, as_json)
        return
    request = GenerationRequest(kind, tuple(dict.fromkeys(level or range(1, LEVELS + 1))), count, seed)
    with MinedFolder.opened(out) as folder:
        counts = console.run_async(
            lambda: generate_tasks(request, folder, settings.sandbox, console.say),
            "Stopping; what was tried is written down.",
        )
    console.table([_level_row(row) for row in counts], as_json)
    if any(row.accepted < count for row in counts):
        raise typer.Exit(1)


def _level_row(row: LevelCount) -> dict[str, object]:
    why = ", ".join(f"{n} {why}" for why, n in row.why.most_common(REASONS))
    return {"level": row.level, "drawn": row.drawn, "tasks": row.accepted, "why not": why}


def _from_failures(settings: Settings, run: str, out: Path, as_json: bool) -> None:
    with MinedFolder.opened(out) as folder:
        count = console.run_async(
            lambda: add_failures(settings, run, folder, console.say), "Stopping; what was tried is written down."
        )
    reasons = ", ".join(f"{n} {why}" for why, n in count.why.most_common(REASONS))
    console.table([{"run": run, "failed repairs": count.drawn, "tasks": count.accepted, "why not": reasons}], as_json)


Task = Annotated[str, typer.Argument(metavar="TASK", help="Its id: the name of its file in tasks/.")]
Mined = Annotated[Path, typer.Option("--from", metavar="FOLDER", help="A folder of mined tasks.")]


def unpack(
    task: Task,
    into: Annotated[Path, typer.Argument(metavar="WORK", help="A new folder.")],
    mined: Mined = Path("mined"),
    as_json: console.Json = False,
) -> None:
    """Write the work folder of a mined task, without its hidden tests, and say what is asked for."""
    read = unpack_task(mined, task, into)
    if as_json:
        console.data(read.model_dump(mode="json"))
    else:
        console.text(read.statement)


def judge(
    task: Task,
    work: Annotated[Path, typer.Argument(metavar="WORK", help="The folder in which somebody worked on it.")],
    mined: Mined = Path("mined"),
    pairs: console.Set = None,
    as_json: console.Json = False,
) -> None:
    """Run the hidden tests of a mined task on a work folder, in the sandbox. Exit code 3 where they do not all pass."""
    settings = flags.settings(None, pairs)
    accepted, why = console.run_async(lambda: judge_work(mined, task, work, settings.sandbox))
    console.record({"task": task, "accepted": accepted, **({"why": why} if why else {})}, as_json)
    if not accepted:
        raise typer.Exit(3)
