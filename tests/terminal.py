"""Calls the command line as a person does: arguments in, exit code and both streams out."""

import contextlib
import io
import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from agent0 import cli
from tests.kept_open import one_sandbox

_build = cli.build


@cache
def _command(rooms: tuple[str, ...]) -> Any:
    """What is found in ``rooms``, made once: making it takes longer than most commands."""
    return get_command(_build())


@dataclass(frozen=True)
class Said:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def agent0(*arguments: str, home: Path | None = None, stdin: str = "") -> Said:
    """Run one command with its data in ``home``."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, one_sandbox(), _signals_kept():
        if cli.build is _build:  # else a test put another one in its place
            patch.setattr(cli, "build", lambda *_: _command(tuple(cli.__path__)))
        patch.setattr(sys, "argv", ["agent0", *arguments])
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        if home:
            patch.setenv("AGENT0_HOME", str(home))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.main()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Said(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
