"""The rows of a file, whoever wrote it: JSON objects in lines or in one list, indented or not, or below ``examples``,
``rows`` or ``data`` of one object."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent0.errors import ConfigError
from agent0.ports.storage import FILE_MARK


class ColumnError(ValueError):
    """A column of a row holds what cannot be read."""

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(reason)
        self.column = column


class RowError(ConfigError):
    """A row that is none: ``location`` is its file and line, ``column`` empty where the row as a whole is at fault."""

    def __init__(self, location: str, column: str, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(f"{location}: {what}", why, fix)
        self.location, self.column = location, column


Row = Mapping[str, Any]
"""A row as somebody wrote it: nothing in it is checked."""
BOM = "\ufeff"
_LISTS = ("examples", "rows", "data")
_OTHER_FILES = {
    "version https://git-lfs": "It is a pointer of Git LFS, not the file: git lfs pull.",
    "<": "It is a web page, not the file.",
}
"""How files begin that were downloaded in place of the rows."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two columns of one name would lose a value without a word."""
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"Its column {next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return row


_decode = json.JSONDecoder(object_pairs_hook=_object).raw_decode


def files_in(text: str, file: str) -> list[tuple[str, str]]:
    """Return the files in ``text``, each with its name: ``file`` where the text is one."""
    if not text.startswith(FILE_MARK):
        return [(file, text)]
    pieces = (piece.partition("\n") for piece in text[1:].split(FILE_MARK))
    return [(name, rows) for name, _, rows in pieces]


def read_rows(text: str, file: str, faults: list[RowError] | None = None) -> Iterator[tuple[str, Row]]:
    """Yield the objects of a file, each with its file and line, or file and row (from 1) where a list holds it.

    Raises:
        RowError: what is no JSON, or no object, named by file and line. With ``faults`` it is added to them instead,
            and the file is read on.
    """
    number = 0
    for line, document in _documents(text, file, faults):
        for row in _below(document):
            number += 1
            where = f"{file}, line {line}" if row is document else f"{file}, row {number}"
            if isinstance(row, dict):
                yield where, row
            else:
                _report(RowError(where, "", "no JSON object."), faults)


def _report(error: RowError, faults: list[RowError] | None) -> None:
    if faults is None:
        raise error
    faults.append(error)


def _below(document: Any) -> Sequence[Any]:
    """The rows of a list, or of an object that holds a list of them, else the document itself: a list without any
    object holds none, and is one fault."""
    if isinstance(document, list):
        return document if not document or any(isinstance(row, dict) for row in document) else [document]
    for name in _LISTS if isinstance(document, dict) else ():
        rows = document.get(name)
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            return [row["row"] if isinstance(row, dict) and isinstance(row.get("row"), dict) else row for row in rows]
    return [document]


def _documents(text: str, file: str, faults: list[RowError] | None) -> Iterator[tuple[int, Any]]:
    """JSON documents with the line each begins in. Lines end at line feeds only: text may hold other line breaks."""
    at, line, counted = _skip(text, 0), 1, 0
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        try:
            document, end = _decode(text, at)
        except (ValueError, RecursionError) as error:
            fault = _no_json(text, at, file, line, error)
            if faults is None:
                raise fault from error
            faults.append(fault)
            at = _next_object(text, at)
            continue
        yield line, document
        at = _skip(text, end)


def _next_object(text: str, at: int) -> int:
    """Where the next line begins with an object; the end of the text where none does, or a list was broken."""
    line = -1 if text[at] == "[" else text.find("\n{", at)
    return len(text) if line < 0 else line + 1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n" + BOM:
        at += 1
    return at


def _no_json(text: str, at: int, file: str, line: int, error: Exception) -> RowError:
    rest = text[at:].rstrip()
    why = next((why for begin, why in _OTHER_FILES.items() if rest.startswith(begin)), f"{error}.")
    last = "\n" not in rest or rest[0] == "["
    if rest[:1] in ("{", "[") and last and isinstance(error, json.JSONDecodeError):
        ended = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        why = "It is cut off: the file ends within it. Get it again." if ended else why
    return RowError(f"{file}, line {line}", "", "no JSON.", why)
