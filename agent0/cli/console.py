"""What people see: tables and JSON on stdout, progress and errors on stderr, and no control characters from models."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from agent0.cli.layout import Screen, cut, named_iteration, plain, record_lines, table_lines, wrapped
from agent0.errors import Agent0Error, ConfigError, escaped

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Profile = Annotated[
    str | None, typer.Option("--profile", "-p", help="tiny, scripted, 3070ti … or the path of a .toml file.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="KEY=VALUE", help="Any setting; see agent0 config docs.")
]
Plugin = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE", help="A Python file with a reward, verifier, tool or family of yours."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Rows at most.")]
Full = Annotated[bool, typer.Option("--full", help="The tables, too.")]
Iteration = Annotated[
    int | None,
    typer.Option("--iteration", "-i", min=0, help="One iteration only; the first is 0 (t0-003 is of 0)."),
]
Run = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Id, unique beginning of it, or name; LAST, LAST~1: the newest, the one before."
    ),
]

WIDE = 10_000
"""Columns where the reader is a program: nothing is wrapped or cut."""
USUAL = 80
"""Columns of a terminal that does not say how many it has."""
STYLES = {"dim": 2, "red": 31, "green": 32, "yellow": 33}


def clean(text: object) -> str:
    """``text`` with control, format and private characters as escapes (newline and tab stay): a terminal obeys those,
    and a reader should see that they are there."""
    return escaped(str(text))


def one_line(text: object, width: int = 72) -> str:
    """``text`` cleaned, its white space collapsed, cut to ``width`` characters."""
    return cut(" ".join(clean(text).split()), width)


def console(stderr: bool = False) -> Console:
    """A rich console for what moves on a terminal. Colour only there; NO_COLOR and FORCE_COLOR are honoured."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=stderr)


def screen(stderr: bool = False) -> Screen | None:
    """The terminal that is written to, as wide as COLUMNS says where that is set; None where a program reads."""
    stream, columns = (sys.stderr if stderr else sys.stdout), os.environ.get("COLUMNS", "")
    if not stream.isatty() and (stderr or not columns):
        return None
    if columns.isdigit() and int(columns):
        return Screen(int(columns), present())
    with suppress(OSError, ValueError):
        return Screen(os.get_terminal_size(stream.fileno()).columns or USUAL, present())
    return Screen(USUAL, present())


def present() -> datetime:
    """The moment, in UTC, that "ago" in tables counts from."""
    return datetime.now(UTC)


def styled(text: str, style: str, stderr: bool = False) -> str:
    """``text`` in the colour ``style`` where that is shown; NO_COLOR and FORCE_COLOR are honoured."""
    stream, env = (sys.stderr if stderr else sys.stdout), os.environ
    shown = stream.isatty() and env.get("TERM") != "dumb" and not env.get("NO_COLOR")
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if style and (shown or env.get("FORCE_COLOR")) else text


def say(text: str = "", style: str = "") -> None:
    """A line for people on stderr; where that is closed, or its terminal is gone, work goes on without."""
    with suppress(OSError):
        typer.echo(styled(prose(clean(text), stderr=True), style, stderr=True), err=True)


def prose(text: str, stderr: bool = False) -> str:
    """``text`` with lines that end between words where a terminal reads it."""
    terminal = screen(stderr)
    return (
        text
        if terminal is None
        else "\n".join(part for line in text.split("\n") for part in wrapped(line, terminal.width))
    )


def document(text: str) -> None:
    """Print Markdown on stdout, its prose cut between words where a terminal reads it; its tables stay as they are."""
    for line in clean(text).splitlines():
        typer.echo(line if line.startswith("|") else prose(line))


def complain(error: Agent0Error) -> None:
    """Print an error to stderr: what happened, why, what to do."""
    say(f"error: {error}", "red")


def data(value: Any) -> None:
    """``value`` as JSON on stdout; everything outside ASCII is escaped, control characters included."""
    typer.echo(json.dumps(value, indent=2, default=plain))


File = TypeVar("File", Path | None, str)


def in_folder(path: File) -> File:
    """``path``, where a file is to be written, unless its folder does not exist: said before anything is computed.

    Raises:
        ConfigError: it does not.
    """
    if not path or path == "-":
        return path
    folder = Path(path).parent
    if not folder.is_dir():
        there = _nearest(folder)
        if not there.is_dir():
            raise ConfigError(f"{path} cannot be written.", f"{there} is a file, no folder.", "Name another place.")
        fix = f"Make it (mkdir -p {folder}), or name another place."
        raise ConfigError(f"{path} cannot be written.", f"There is no folder {folder}.", fix)
    return path


def _nearest(folder: Path) -> Path:
    """``folder``, or the nearest of its parents that exists."""
    return next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())


def environment(home: Path) -> dict[str, str]:
    """The environment of a command of ours with its data in ``home``."""
    return {**os.environ, "AGENT0_HOME": str(home)}


def write(path: Path, text: str, option: str = "--out") -> Path:
    """Write a file where a user wants it.

    Raises:
        ConfigError: its folder does not exist, or it cannot be written there.
    """
    in_folder(path)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written.", f"{error.strerror}.", f"Name another place: {option} FILE"
        ) from error
    return path


def line(value: Any) -> None:
    """``value`` as one line of JSON on stdout."""
    typer.echo(json.dumps(value, separators=(",", ":"), default=plain))


def text(value: object) -> None:
    """Print ``value`` on stdout, its control characters as escapes."""
    typer.echo(clean(value))


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of prose on stdout, cut between words where a terminal reads them."""
    for line in lines:
        typer.echo(prose(clean(line)))


def table(
    rows: "Iterable[Mapping[str, Any]] | Limited",
    as_json: bool,
    columns: Sequence[str] = (),
    title: str = "",
    keep: Sequence[str] = (),
    stored: bool = False,
) -> None:
    """Rows as a table, or as a JSON list of objects. ``columns`` picks and orders what people see, the most important
    first: on a narrow terminal the last ones are left out, those of ``keep`` behind all others. Iteration -1 is called
    untrained but for rows of a table as they are ``stored``."""
    more = rows.more if isinstance(rows, Limited) else ""
    if as_json:
        data([dict(row) for row in rows])
        return
    shown = [row if stored else _with_untrained(row) for row in rows]
    names = list(columns) or (list(shown[0]) if shown else [])
    if shown:
        heads = {} if columns else {name: name for name in names}  # a query's own names are kept
        lines = table_lines(shown, names, screen(), keep, heads)
        text("\n".join([*(prose(line) for line in title.splitlines()), *lines]))
    else:
        say("Nothing.")
    if more:
        say(more)


def _with_untrained(row: Mapping[str, Any]) -> Mapping[str, Any]:
    if "iteration" not in row:
        return row
    return {**row, "iteration": named_iteration(row["iteration"])}


COUNTED = 10_000
"""Rows up to which it is counted how many there are beyond a limit."""


class Limited(list[Mapping[str, Any]]):
    """The first rows of more; ``more`` says of how many, and is empty where these are all."""

    more = ""

    def like(self, rows: Iterable[Mapping[str, Any]]) -> "Limited":
        """``rows`` in place of these."""
        copied = Limited(rows)
        copied.more = self.more
        return copied


def limited(fetch: Callable[[int], Sequence[Mapping[str, Any]]], limit: int) -> Limited:
    """The first ``limit`` rows of ``fetch``, which takes a number of rows, and a line about the rows left out."""
    rows = fetch(limit)
    shown = Limited(rows[:limit])
    if len(rows) >= limit and (count := len(fetch(max(COUNTED, limit) + 1))) > limit:
        total = f"{count:,}" if count <= max(COUNTED, limit) else f"more than {max(COUNTED, limit):,}"
        shown.more = f"{limit:,} of {total}; --limit shows more."
    return shown


def record(values: Mapping[str, Any], as_json: bool) -> None:
    """One object: name and value a line, or JSON."""
    if as_json:
        data(values)
    elif values:
        typer.echo("\n".join(record_lines(_with_untrained(values), screen())))


def run_async(work: Callable[[], Coroutine[Any, Any, T]], stopping: str = "", leaving: str = "") -> T:
    """Run ``work()``; SIGINT, SIGTERM and SIGHUP cancel it, so that it can drain, then exit with 130, 143 or 129.

    ``stopping`` is said at the first signal; a second one gives up at once, and ``leaving`` is said.
    """
    caught: list[int] = []

    async def guarded() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - inside a coroutine

        def stop(number: int) -> None:
            caught.append(number)
            message = (stopping, leaving)[len(caught) > 1]
            if message:
                say(message, "yellow")
            if len(caught) > 1:
                os._exit(128 + number)
            task.cancel()

        loop = asyncio.get_running_loop()
        for number in stops():
            loop.add_signal_handler(number, stop, number)
        return await work()

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        if not caught:
            raise
        raise typer.Exit(128 + caught[0]) from None


def stops() -> list[signal.Signals]:
    """The signals that end a process cleanly. One that is not to hear of a closed terminal (`nohup`) does not."""
    heard = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if heard else [])]
