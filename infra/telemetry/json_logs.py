"""Logs as one JSON object a line, each bound to the run, task and event that was worked on when it was written."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

from agent0.errors import bare_url

_about: ContextVar[dict[str, str | int]] = ContextVar("about", default={})  # noqa: B039 - it is replaced, never changed
LONGEST = 8_000
"""Characters of a message or a traceback."""


@contextmanager
def about(**names: str | int) -> Iterator[None]:
    """Bind what is logged inside, also in tasks begun there, to ``names``: run, task, attempt, event, handler."""
    token = _about.set({**_about.get(), **{name: value for name, value in names.items() if value not in ("", "-", 0)}})
    try:
        yield
    finally:
        _about.reset(token)


class JsonFormatter(logging.Formatter):
    """One line: ``time``, ``level``, ``logger``, ``message``, what it is about, and ``exception`` where there is one.
    Addresses lose user and password."""

    def format(self, record: logging.LogRecord) -> str:
        """Write ``record`` as JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": bare_url(record.getMessage())[:LONGEST],
            **_about.get(),
        }
        if record.exc_info:
            line["exception"] = bare_url(self.formatException(record.exc_info))[-LONGEST:]
        return json.dumps(line, ensure_ascii=True)


@contextmanager
def json_logs(out: TextIO = sys.stderr) -> Iterator[None]:
    """Write the logs of this process to ``out`` as JSON, and put back what was before."""
    root, handler = logging.getLogger(), logging.StreamHandler(out)
    handler.setFormatter(JsonFormatter())
    before, was = root.handlers[:], root.level
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(was)
