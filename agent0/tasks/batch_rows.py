"""The rows of a file that a student is to answer: one JSON object a line. A row that cannot be asked is a row all the
same, with what is wrong with it by row and column."""

import json
from dataclasses import dataclass

LONGEST = 1_000_000
"""Characters of a question."""
LONGEST_ID = 1_000
"""Characters of an id."""
LONGEST_BAD = 10_000
"""Characters of what is no question, and is kept beside its problem."""
_KINDS = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


@dataclass(frozen=True)
class BatchColumns:
    """The columns of a row that are read."""

    question: str = "question"
    id: str = "id"


@dataclass(frozen=True)
class BatchRow:
    """A row, counted from 1. ``id`` is its number where it has none. ``problem`` says why it cannot be asked; empty
    where it can, and ``question`` is text then."""

    number: int
    id: object
    question: object = None
    problem: str = ""


def read_row(line: bytes, number: int, columns: BatchColumns) -> BatchRow:
    """Read a line as row ``number``; what cannot be asked has a problem."""
    try:
        row = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        return BatchRow(number, number, problem=f"row {number}: {_unreadable(line, error)}")
    if not isinstance(row, dict):
        return BatchRow(number, number, problem=f"row {number}: {_kind(row)}, and an object is needed")
    identity, question = row.get(columns.id), row.get(columns.question)
    if why := _bad_id(identity):
        return BatchRow(number, number, problem=f"row {number}, column {columns.id}: {why}")
    identity = number if identity is None else identity
    if why := _bad_question(question, columns.question in row, row):
        kept = question if len(str(question)) <= LONGEST_BAD else None
        return BatchRow(number, identity, kept, f"row {number}, column {columns.question}: {why}")
    return BatchRow(number, identity, question)


def _unreadable(line: bytes, error: Exception) -> str:
    """Why a line is no JSON."""
    match error:
        case UnicodeDecodeError():
            return f"byte {error.start + 1} is no UTF-8"
        case json.JSONDecodeError() if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
            return f"no JSON: it is cut off behind {len(line):,} bytes"
        case json.JSONDecodeError():
            return f"no JSON: {error.msg} at character {error.pos + 1:,}"
        case RecursionError():
            return "it is nested too deeply"
        case _:
            return f"no JSON: {error}"


def _kind(value: object) -> str:
    return "null" if value is None else _KINDS.get(type(value), "text")


def _bad_id(identity: object) -> str:
    if isinstance(identity, list | dict):
        return f"{_kind(identity)}, and text or a number is needed"
    if isinstance(identity, str) and (why := _bad_text(identity)):
        return why
    long = isinstance(identity, str | int) and len(str(identity)) > LONGEST_ID
    return f"it has more than {LONGEST_ID:,} characters" if long else ""


def _bad_question(question: object, is_there: bool, row: dict[str, object]) -> str:
    if not is_there:
        names = [name for name in row if len(name) < 40][:6]
        return f"it is missing; the row has {', '.join(names) or 'none'}"
    if not isinstance(question, str):
        return f"{_kind(question)}, and text is needed"
    if not question.strip():
        return "it is empty"
    if len(question) > LONGEST:
        return f"it has {len(question):,} characters, and {LONGEST:,} are the most"
    return _bad_text(question)


def _bad_text(text: str) -> str:
    """What no event and no model can hold: a NUL, and a half of a surrogate pair."""
    if (at := text.find("\0")) >= 0:
        return f"character {at + 1:,} is NUL"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"character {error.start + 1:,} is half of a pair (U+{ord(text[error.start]):04X})"
    return ""
