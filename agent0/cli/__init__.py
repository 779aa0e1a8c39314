"""The command line: ``agent0 NOUN VERB``. ``commands.py`` names every command and the function that it is; the module
of a command is imported when it is called, with all that it needs. A module with an ``app`` or a ``register(root)`` in
another folder of ``__path__`` is a noun, too."""

import errno
import os
import pkgutil
import resource
import signal
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from agent0.cli.commands import COMMANDS
from agent0.cli.console import complain, stops
from agent0.cli.first_page import first_page
from agent0.cli.lazy_group import LazyCommands, LazyGroup
from agent0.config.distribution import installed_version
from agent0.errors import Agent0Error, DependencyError, OperationError, RunFailedError


class _CommandLine(LazyGroup):
    """All commands; those of ``commands.py`` are imported when they are called."""

    def __init__(self, *, commands: Mapping[str, Any], **values: Any) -> None:
        super().__init__(commands=LazyCommands("", COMMANDS, commands), **values)


def build() -> typer.Typer:
    """The command line: the commands of ``commands.py``, and what other folders of ``__path__`` add."""
    root = typer.Typer(
        name="agent0",
        cls=_CommandLine,
        help="Self-evolving agent training, event-sourced. New here? agent0 tutorial",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # help that a pipe and a narrow terminal can read, in a third of the time
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    root.callback()(_root)
    for name, module in _added():
        _add(root, name, module)
    return root


def _add(root: typer.Typer, name: str, module_name: str) -> None:
    """Add what a module offers to the command line."""
    module = import_module(module_name)
    if hasattr(module, "register"):
        module.register(root)
    elif hasattr(module, "app"):
        root.add_typer(module.app, name=name, no_args_is_help=True)


def _added() -> list[tuple[str, str]]:
    """The last and the whole name of every module that other folders add, in the order of their names."""
    return sorted(_modules(__path__[1:], f"{__name__}."))


def _modules(path: Iterable[str], prefix: str) -> Iterator[tuple[str, str]]:
    """The last and the whole name of every module below ``path``, packages of commands searched in turn."""
    for module in pkgutil.iter_modules(path, prefix):
        if module.ispkg:
            yield from _modules(import_module(module.name).__path__, f"{module.name}.")
        else:
            yield module.name.rpartition(".")[2], module.name


def main() -> None:
    """Run the command line; every error becomes one paragraph and an exit code."""
    _end_by_signals()
    _fill_streams()
    try:
        _require_linux()
        _call(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit:
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # how click leaves a broken pipe behind
            _leave_pipe()
        raise
    except BrokenPipeError:
        _leave_pipe()
    except (Exception, BaseExceptionGroup) as error:
        from agent0.cli.defects import defect  # noqa: PLC0415 - what it needs takes time, and few commands fail

        reported = user_error(error) or defect(error)
        complain(reported)
        sys.exit(reported.kind.exit_code)


def _call(arguments: list[str]) -> None:
    if arguments in ([], ["-h"], ["--help"]):
        typer.echo(first_page(name for name, _ in _added()))
        return
    group = build()
    command = typer.main.get_command(group) if isinstance(group, typer.Typer) else group
    command(prog_name="agent0")


def _end_by_signals() -> None:
    """Outside of what can be cancelled: leave, and let go of what is held."""
    for number in set(stops()) - {signal.SIGINT}:
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def _fill_streams() -> None:
    """Where a standard stream is closed, the next file opened would take its place, and be written to."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - for good


def _leave_pipe() -> NoReturn:
    """The reader (`| head`) has seen enough: go quietly, with what a shell calls SIGPIPE."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(128 + signal.SIGPIPE)


def user_error(error: BaseException) -> Agent0Error | None:
    """``error`` as one for people; None where it is a mistake of ours. Groups are looked into."""
    if isinstance(error, Agent0Error):
        return error
    if isinstance(error, BaseExceptionGroup):
        errors = [reported for reported in map(user_error, error.exceptions) if reported]
        return next((error for error in errors if isinstance(error, RunFailedError)), errors[0] if errors else None)
    no_room = isinstance(error, OSError) and error.errno == errno.ENOSPC
    if no_room or (isinstance(error, sqlite3.OperationalError) and "full" in str(error)):
        return DependencyError("disk space", "The device is full.", "Free some space, then go on: nothing is lost.")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        why = f"This process may have {resource.getrlimit(resource.RLIMIT_NOFILE)[0]} open, and has."
        return DependencyError("another open file", why, "Raise the limit (`ulimit -n 1024`), then go on.")
    if isinstance(error, PermissionError):
        return OperationError(f"{error.filename} cannot be used.", f"{error.strerror}.", "See: agent0 doctor")
    if isinstance(error, sqlite3.DatabaseError):
        return OperationError(
            "The read models cannot be read.",
            f"SQLite says: {error}.",
            "Run `agent0 projections rebuild`: the log has all.",
        )
    return None


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"agent0 {installed_version()}")
        raise typer.Exit


def _root(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Self-evolving agent training, event-sourced. New here? agent0 tutorial"""


def _require_linux() -> None:
    if sys.platform == "linux":
        return
    system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
    advice = {
        "darwin": "Run it in a Linux virtual machine or container (for example: lima, colima, Docker Desktop).",
        "win32": "Run it inside WSL2: `wsl --install`, then install Agent0 in the Linux it gives you.",
    }
    raise DependencyError(
        "Linux", f"The sandbox needs kernel features that {system} lacks.", advice.get(sys.platform, "")
    )
