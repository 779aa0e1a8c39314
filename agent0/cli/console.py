"""What people see: tables and JSON on stdout, progress and errors on stderr, and no control characters from models."""

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent0.errors import Agent0Error, ConfigError, OperationError, escaped
from agent0.settings import Settings

if TYPE_CHECKING:
    import sqlite3

    from rich.console import Console

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
Run = Annotated[str, typer.Argument(metavar="RUN", help="Run id, or LAST for the newest.")]

WIDE = 10_000
"""Columns where the reader is a program: nothing is wrapped or cut."""


def settings(
    profile: str | None = None,
    pairs: Sequence[str] | None = None,
    *,
    plugins: Sequence[Path] | None = None,
    **named: object,
) -> Settings:
    """The settings for a command: its profile, ``--set`` pairs, and flags that stand for a setting (dots as ``__``).
    The files of ``plugins``, or of the setting of that name, are loaded.

    Raises:
        ConfigError: what does not fit, or a plugin that cannot be loaded.
    """
    return settings_of(profile, overrides(pairs, plugins=plugin_paths(plugins), **named))


def settings_of(profile: str | None, given: Mapping[str, str]) -> Settings:
    """The settings for ``given`` ones by dotted key; the files of the setting ``plugins`` are loaded.

    Raises:
        ConfigError: as ``settings``.
    """
    from agent0.config.loading import load

    held = load(profile, given)
    if not held.plugins:
        return held
    from agent0.assembly.runtime.plugins import with_plugin_files

    return with_plugin_files(held)


def plugin_paths(plugins: Sequence[Path] | None) -> str | None:
    """The value of the setting ``plugins``: absolute paths as JSON; None where none is given."""
    return json.dumps([str(path.absolute()) for path in plugins]) if plugins else None


def overrides(pairs: Sequence[str] | None, **named: object) -> dict[str, str]:
    """``--set`` pairs and flags as dotted keys; flags that were not given are None.

    Raises:
        ConfigError: a pair without ``=``.
    """
    given = {key.replace("__", "."): str(value) for key, value in named.items() if value is not None}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair!r} has no '='.", "Write --set key=value.", "Keys: agent0 config docs.")
        given[key.strip()] = value
    return given


def clean(text: object) -> str:
    """``text`` with control, format and private characters as escapes (newline and tab stay): a terminal obeys those,
    and a reader should see that they are there."""
    return escaped(str(text))


def one_line(text: object, width: int = 72) -> str:
    """``text`` cleaned, its white space collapsed, cut to ``width`` characters."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def console(stderr: bool = False) -> "Console":
    """A rich console for stdout or stderr. Colour only on a terminal; NO_COLOR and FORCE_COLOR are honoured."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False, soft_wrap=stderr)


def say(text: str = "", style: str = "") -> None:
    """A line for people on stderr; where that is closed, or its terminal is gone, work goes on without."""
    with suppress(OSError):
        console(stderr=True).print(clean(text), style=style or None)


def complain(error: Agent0Error) -> None:
    """Print an error to stderr: what happened, why, what to do."""
    say(f"error: {error}", "red")


def defect(error: BaseException) -> Agent0Error:
    """A mistake of ours: its traceback goes where it can be sent from, not into a person's face."""
    trace = "".join(traceback.format_exception(error))
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    why = f"{type(error).__name__}: {str(error)[:500].rstrip('.') or 'no message'}. This is a defect of Agent0."
    try:
        where = _write_trace(trace)
    except (Agent0Error, OSError):  # no settings or no folder: then here
        where = ""
    if not where:
        sys.stderr.write(trace)
    fix = f"The traceback is in {where}; please report it." if where else "The traceback is above; please report it."
    return OperationError("Something unexpected happened.", why, fix)


def _write_trace(trace: str) -> str:
    """Path of the file written; empty where AGENT0_DEBUG wants the traceback on stderr or there is no data folder."""
    if os.environ.get("AGENT0_DEBUG") == "1" or not (home := settings().home).is_dir():
        return ""
    path = home / f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.txt"
    path.touch(mode=0o600)
    path.write_text(trace, encoding="utf-8", errors="backslashreplace")
    return str(path)


def data(value: Any) -> None:
    """``value`` as JSON on stdout; everything outside ASCII is escaped, control characters included."""
    typer.echo(json.dumps(value, indent=2, default=_plain))


def line(value: Any) -> None:
    """``value`` as one line of JSON on stdout."""
    typer.echo(json.dumps(value, separators=(",", ":"), default=_plain))


def text(value: object) -> None:
    """Print ``value`` on stdout, its control characters as escapes."""
    typer.echo(clean(value))


def table(rows: Iterable[Mapping[str, Any]], as_json: bool, columns: Sequence[str] = (), title: str = "") -> None:
    """Rows as a table, or as a JSON list of objects. ``columns`` picks and orders what people see."""
    held = [dict(row) for row in rows]
    if as_json:
        data(held)
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD if sys.stdout.isatty() else None)
    names = list(columns) or (list(held[0]) if held else [])
    for name in names:
        numeric = any(isinstance(row.get(name), (int, float)) for row in held)
        head = name.replace("_", " ") if columns else name  # a query's own names are kept
        shown.add_column(head, justify="right" if numeric else "left", overflow="fold")
    for row in held:
        shown.add_row(*(Text(format_value(row.get(name))) for name in names))
    if held:
        console().print(shown)
    else:
        say("Nothing.")


def format_value(value: Any) -> str:
    """Format one value for a table: None is a dash, numbers are short, text is one line, cut on a terminal only."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    width = 72 if sys.stdout.isatty() else WIDE
    return one_line(value if isinstance(value, (str, int)) else json.dumps(value, default=_plain), width)


def record(values: Mapping[str, Any], as_json: bool) -> None:
    """One object: name and value a line, or JSON."""
    if as_json:
        data(values)
        return
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        lines = clean(value if isinstance(value, str) else format_value(value)).splitlines() or [""]
        text(f"{name.replace('_', ' '):<{width}}  " + f"\n{'':<{width}}  ".join(lines))


@contextmanager
def tables(held: Settings | None = None) -> "Iterator[sqlite3.Connection]":
    """The read models of ``held`` (None: the command's own settings), caught up with the log where it can be reached;
    says so where it cannot.

    Raises:
        NotFoundError: there are none yet.
    """
    from agent0.assembly.runtime.read_models import reading, refresh

    held = held or settings()
    warning = run_async(lambda: refresh(held))
    if warning:
        say(warning, "yellow")
    with reading(held) as db:
        yield db


def of_newest(name: str) -> str:
    """``name`` with the newest run's id for a ``LAST`` that stands alone or before a slash; any other as it is.

    Raises:
        NotFoundError: there is no run yet.
    """
    from projections.runs import resolve

    run, slash, rest = name.partition("/")
    if run != "LAST":
        return name
    with tables() as db:
        return f"{resolve(db, run)}{slash}{rest}"


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
            words = (stopping, leaving)[len(caught) > 1]
            if words:
                say(words, "yellow")
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


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)
