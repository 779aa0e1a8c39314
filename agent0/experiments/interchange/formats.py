"""The formats of other frameworks by name: who reads a file of one, and how it is recognised."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows import read_rows
from agent0.events.values import Task
from agent0.experiments.interchange import (
    Document,
    ForeignAttempt,
    atif,
    chat,
    inspect_log,
    openenv,
    pi,
    require_whole,
    verifiers,
    verifiers_trace,
)
from agent0.experiments.interchange.foreign_run import ForeignFile
from agent0.ports.storage import Dataset
from agent0.provenance.foreign_files import foreign_format
from agent0.tasks.families import families

Read = Callable[[Mapping[str, Any], str], Iterator[ForeignAttempt]]
Write = Callable[[Iterable[Mapping[str, Any]]], Iterator[Document]]


@dataclass(frozen=True)
class TraceFormat:
    """A format: ``read`` makes attempts of a row of a file, ``write`` rows of exported attempts; None: not done.
    ``trimmed`` takes out of a row what is not read, whatever it is."""

    read: Read | None = None
    write: Write | None = None
    trimmed: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda row: row


def _each(write: Callable[[Mapping[str, Any]], Iterator[Document]]) -> Write:
    """A format in which every attempt stands alone."""
    return lambda rows: (document for row in rows for document in write(row))


FORMATS: Mapping[str, TraceFormat] = {
    "atif": TraceFormat(atif.read, _each(atif.write)),
    "verifiers": TraceFormat(verifiers.read, _each(verifiers.write)),
    chat.TRL: TraceFormat(chat.read_trl),
    "trl-prompt": TraceFormat(write=chat.write_prompts),
    chat.CHAT: TraceFormat(chat.read_chat, _each(chat.write_chat)),
    "parquet": TraceFormat(write=_each(chat.write_columns)),
    inspect_log.NAME: TraceFormat(inspect_log.read, inspect_log.write, inspect_log.without_unread),
    verifiers_trace.NAME: TraceFormat(verifiers_trace.read, _each(verifiers_trace.write)),
    openenv.NAME: TraceFormat(openenv.read, _each(openenv.write)),
    "pi": TraceFormat(write=_each(pi.write)),
}


def written(rows: Iterable[Mapping[str, Any]], format: str) -> Iterator[Document]:
    """The rows of ``format`` for attempts of ``projections.trajectories.whole_attempts``.

    Raises:
        ConfigError: attempts are not written in it.
    """
    write = FORMATS[format].write
    if write is None:
        raise ConfigError(f"Attempts are not written as {format}.", "", "See: agent0 trajectory export --help")
    return write({**row, "expected": expected_answer(row["proposal"])} for row in rows)


def expected_answer(proposal: Mapping[str, Any]) -> str:
    """The right answer of a task, where there is one; empty: many are right, or nothing computes it."""
    task = Task.model_validate(proposal)
    entry = families(long=None).get(task.family)
    if task.row is not None:
        return task.row.answer
    return entry.solve(task.params) if entry and not entry.check else ""


def foreign_file(rows: Dataset, format: str) -> ForeignFile:
    """Read every row of a file; with an empty ``format`` the file's own fields say which it is.

    Raises:
        RowError: a row that is none, named by file, line and field. ConfigError: nobody knows the format.
    """
    format = format or foreign_format(rows.text)
    entry = FORMATS.get(format, TraceFormat())
    if entry.read is None:
        names = ", ".join(name for name, other in FORMATS.items() if other.read)
        raise ConfigError(f"{rows.name} is of no format that is known.", "", f"Name it: --format, one of {names}.")
    attempts: list[ForeignAttempt] = []
    for location, row in read_rows(rows.text, rows.name):
        row = entry.trimmed(row)
        require_whole(row, location, format)
        attempts += entry.read(row, location)
    return ForeignFile(rows.name, rows.sha256, format, tuple(attempts))
