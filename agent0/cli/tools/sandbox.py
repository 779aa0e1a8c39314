"""The sandbox: whether it holds, what runs in it, what it may touch, and the work folders that came out of it."""

from pathlib import Path
from typing import Annotated

import typer

from agent0.assembly.tooling.workspaces import compare, content, find, write
from agent0.cli import console, flags, lookup
from agent0.cli.tools.usage import COLUMNS, look, watch
from agent0.projections.runs import resolve
from agent0.projections.tool_calls import list_snapshots
from agent0.settings import Settings

Folder = Annotated[
    str,
    typer.Argument(
        help="Digest (8 digits or more), ATTEMPT#CALL, or the word empty. Calls are counted from 1, as rollback "
        "counts them; steps of a plan are 3.1, 3.2; 0 is the start."
    ),
]
Of = Annotated[str, typer.Option("--run", help="The run of ATTEMPT#CALL.")]


def snapshots(
    run: console.Run = "LAST",
    attempt: Annotated[str, typer.Option(help="One attempt only.")] = "",
    limit: console.Limit = 100,
    as_json: console.Json = False,
) -> None:
    """Work folders after each tool call of a run: manifest, files, bytes. CALL is the student's own number, from 1; the
    steps of a plan that is its third call are 3.1, 3.2."""
    with lookup.tables() as db:
        of = resolve(db, run)
        rows = console.limited(lambda n: list_snapshots(db, of, attempt, n), limit)
    named = [{**row, "call": f"{row['attempt']}#{row['call']}"} for row in rows]
    short = [{**row, "work": (row["work"] or "empty")[:16]} for row in named]
    console.table(
        rows.like(named if as_json else short), as_json, ("call", "tool", "state", "files", "file_bytes", "work")
    )


def diff(
    before: Folder,
    after: Folder,
    run: Of = "LAST",
    text: Annotated[bool, typer.Option("--text", help="Also the lines of small text files.")] = False,
    as_json: console.Json = False,
) -> None:
    """What changed from one work folder to another."""
    settings = _caught_up([before, after])
    rows = compare(settings, find(settings, before, run), find(settings, after, run), text=text)
    console.table(rows, as_json, ("path", "kind", "before", "after"))
    for row in () if as_json else rows:
        if row.get("diff"):
            console.text(f"\n{row['diff']}")


def restore(
    manifest: Folder,
    folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")],
    run: Of = "LAST",
    as_json: console.Json = False,
) -> None:
    """Write a work folder into a new or empty folder. Nothing is ever written over."""
    settings = _caught_up([manifest])
    files = content(settings, find(settings, manifest, run))
    write(files, folder)
    size = sum(map(len, files.values()))
    console.record({"folder": str(folder.absolute()), "files": len(files), "bytes": size}, as_json)


def top(
    run: Annotated[str, typer.Option("--run", help="One run only; LAST for the newest.")] = "",
    every: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="One look, then end.")] = False,
    as_json: console.Json = False,
) -> None:
    """Tools as they are used, live: calls, rate, latency, limits hit, kills, refusals. Ctrl-C ends."""
    settings = flags.settings()
    if once or as_json:
        with lookup.tables() as db:
            view = look(db, run)
        if as_json:
            console.data(view)
        else:
            console.table(view["tools"], False, COLUMNS)
            console.say(f"{view['attempts_under_way']} attempts under way in {view['runs']} running runs.")
        return
    console.run_async(lambda: watch(settings, run, every))


def _caught_up(folders: list[str]) -> Settings:
    """Settings, with tables that know the newest calls where they are asked for one."""
    if any("#" in folder for folder in folders):
        with lookup.tables():
            pass
    return flags.settings()
