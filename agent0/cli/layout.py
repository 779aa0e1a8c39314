"""How tables and records are laid out: on a terminal nothing that is one word is split, and columns that do not fit are
left out and named; for a program each row is one line of values with tabs between them, whole and unpadded."""

import json
import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent0.errors import escaped

LEAST = 24
"""Columns of the screen that a column of text keeps; where it is narrower by nature, that many."""
LONGEST = 72
"""Columns of the screen that a column of text takes at most."""
GAP = "  "
_ONE_WORD = 100
"""Characters beyond which nothing is an id or an address: it is cut as text is."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHOWN = 12
"""Digits of a digest in a table on a terminal; a pipe and --json have all of them."""
_MOMENTS = ("time", "at", "first", "last")
"""Columns that tell when within a run: a clock. Others (started, updated …) say how long ago it was."""


@dataclass(frozen=True)
class Screen:
    """Where a table is read: ``width`` columns, and the moment that "ago" counts from."""

    width: int
    moment: datetime


@dataclass(frozen=True)
class _Column:
    name: str
    head: str
    cells: tuple[str, ...]
    numeric: bool
    is_text: bool
    """Whether its cells are text that may be cut between words; ids, states and numbers are not."""

    @property
    def natural(self) -> int:
        """Columns of the screen that its longest cell takes."""
        return max(map(columns_of, (*self.cells, *self.head.split(" "))))

    @property
    def least(self) -> int:
        """Columns of the screen without which it is left out."""
        head = max(map(columns_of, self.head.split(" ")))
        return max(min(self.natural, LEAST), head) if self.is_text else self.natural


def table_lines(
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    screen: Screen | None,
    keep: Sequence[str] = (),
    heads: Mapping[str, str] | None = None,
) -> list[str]:
    """Lay a table out.

    Args:
        rows: what it shows.
        names: its columns, the most important ones first.
        screen: the terminal; None where a program reads.
        keep: columns that are left out last. The first column always stays.
        heads: other words for column names.
    """
    heads = heads or {}
    if screen is None:
        return [*("\t".join(line) for line in _plain(rows, names))]
    columns = [_column(rows, name, heads.get(name, name.replace("_", " ")), screen) for name in names]
    shown = _fitting(columns, screen.width, keep)
    out = _drawn(shown, _widths(shown, screen.width))
    missing = ", ".join(column.head for column in columns if column not in shown)
    note = f"Left out at {screen.width} columns: {missing}. A wider terminal, a pipe and --json have them."
    return [*out, *(textwrap.wrap(note, screen.width) if missing else [])]


def record_lines(values: Mapping[str, Any], screen: Screen | None) -> list[str]:
    """Lay one object out, name and value a line; on a terminal long values go on below, cut between words, and
    times are short."""
    names = {name: name.replace("_", " ") for name in values}
    wide = max((len(name) for name in names.values()), default=0)
    out = []
    for name, value in values.items():
        lines = (escaped(value) if isinstance(value, str) else format_value(value)).splitlines() or [""]
        if screen is None:
            out += [f"{names[name]}\t{lines[0]}", *(f"\t{line}" for line in lines[1:])]
            continue
        if isinstance(value, str) and _TIME.fullmatch(value):
            lines = [f"{clock(value, screen.moment)}, {ago(value, screen.moment)}"]
        room = max(screen.width - wide - len(GAP), LEAST)
        lines = [short(line) if _DIGEST.fullmatch(line) and len(line) > room else line for line in lines]
        cut = [part for line in lines for part in wrapped(line, room)]
        out += [f"{names[name] if index == 0 else '':<{wide}}{GAP}{part}".rstrip() for index, part in enumerate(cut)]
    return out


def wrapped(line: str, width: int) -> list[str]:
    """``line`` as lines of at most ``width``, cut between words only; what is indented stays indented."""
    if columns_of(line) <= width:
        return [line]
    inner = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line, width, subsequent_indent=inner, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    ) or [""]


def json_lines(value: Any, screen: Screen | None) -> list[str]:
    """Lay JSON out; on a terminal digests are short, and long values go on below, cut between words."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).splitlines()
    if screen is None:
        return lines
    fitting = [
        line if columns_of(line) <= screen.width else _DIGEST.sub(lambda match: short(match[0]), line) for line in lines
    ]
    return [part for line in fitting for part in wrapped(line, screen.width)]


LEAST_FIXED = 0.01
"""Below it three decimals show too little of a number, such as a learning rate."""


def format_value(value: Any) -> str:
    """Format one value: None is a dash, numbers are short, text is one line."""
    if value is None:
        return "-"
    if isinstance(value, float):
        if 0 < abs(value) < LEAST_FIXED:
            return f"{value:.2g}"
        return f"{value:.3f}" if abs(value) < 1000 else f"{value:,.0f}"
    text = value if isinstance(value, (str, int)) else json.dumps(value, default=plain)
    return " ".join(escaped(str(text)).split())


def plain(value: Any) -> Any:
    """``value``, which JSON does not know, as something that it does."""
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def named_iteration(iteration: object) -> object:
    """``untrained`` for what stands before the first iteration, all else as it is."""
    return "untrained" if isinstance(iteration, int) and iteration < 0 else iteration


def ago(time: str, present: datetime) -> str:
    """How long before ``present`` the moment ``time`` (ISO 8601) was: ``36 min ago``, ``2 d ago``."""
    seconds = max(0.0, (present - datetime.fromisoformat(time)).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago"


def clock(time: str, present: datetime) -> str:
    """The moment ``time`` (ISO 8601) as a clock shows it, with its date where that is not today's: both in UTC."""
    moment = datetime.fromisoformat(time)
    return f"{moment:%H:%M:%S}" if moment.date() == present.date() else f"{moment:%m-%d} {moment:%H:%M:%S}"


def columns_of(text: str) -> int:
    """Count the columns of the screen that ``text`` takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` columns, cut between words where it has several."""
    if columns_of(text) <= width:
        return text
    head = text[: width - 1]
    while columns_of(head) > width - 1:
        head = head[:-1]
    between = head.rfind(" ") if text[len(head)] != " " else len(head)
    whole = head[:between].rstrip() if between > 0 else head
    return f"{whole}…"


def _plain(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[str]]:
    return [list(names), *([format_value(row.get(name)) for name in names] for row in rows)]


def _column(rows: Sequence[Mapping[str, Any]], name: str, head: str, screen: Screen) -> _Column:
    values = [row.get(name) for row in rows]
    shown = tuple(_cell(name, value, screen) for value in values)
    is_text = any(" " in cell or len(cell) > _ONE_WORD for cell in shown)
    numeric = not is_text and any(isinstance(value, (int, float)) for value in values)
    return _Column(name, head, shown, numeric, is_text)


def _cell(name: str, value: Any, screen: Screen) -> str:
    if isinstance(value, str) and _TIME.fullmatch(value):
        return (clock if name in _MOMENTS else ago)(value, screen.moment)
    return short(value) if isinstance(value, str) and _DIGEST.fullmatch(value) else format_value(value)


def short(digest: str) -> str:
    """The first digits of a sha256, marked as cut."""
    return f"{digest[:_SHOWN]}…"


def _fitting(columns: Sequence[_Column], width: int, keep: Sequence[str]) -> list[_Column]:
    """Those that fit: the last ones go first, those of ``keep`` behind all others, the first one never."""
    shown = list(columns)
    for stays in (keep, ()):
        for column in reversed(columns[1:]):
            if sum(c.least for c in shown) + len(GAP) * (len(shown) - 1) <= width:
                return shown
            if column in shown and column.name not in stays:
                shown.remove(column)
    return shown


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """What is left over goes to columns of text, the narrowest first."""
    widths = [column.least for column in columns]
    left = width - sum(widths) - len(GAP) * (len(columns) - 1)
    waiting = sorted((min(column.natural, LONGEST) - column.least, index) for index, column in enumerate(columns))
    waiting = [(more, index) for more, index in waiting if more > 0]
    for number, (more, index) in enumerate(waiting):
        extra = max(0, min(more, left // (len(waiting) - number)))
        widths[index] += extra
        left -= extra
    if columns and widths[0] > width and columns[0].is_text:
        widths[0] = width
    return widths


def _drawn(columns: Sequence[_Column], widths: Sequence[int]) -> list[str]:
    pairs = zip(columns, widths, strict=True)
    heads = [
        textwrap.wrap(column.head, width, break_long_words=False, break_on_hyphens=False) or [""]
        for column, width in pairs
    ]
    tall = max(map(len, heads), default=0)
    lines = [[""] * (tall - len(head)) + head for head in heads]
    out = [_line(columns, widths, [head[index] for head in lines]) for index in range(tall)]
    out.append(GAP.join("─" * width for width in widths))
    number = len(columns[0].cells) if columns else 0
    return [*out, *(_line(columns, widths, [column.cells[index] for column in columns]) for index in range(number))]


def _line(columns: Sequence[_Column], widths: Sequence[int], parts: Sequence[str]) -> str:
    shown = []
    for column, width, part in zip(columns, widths, parts, strict=True):
        text = cut(part, width) if column.is_text else part
        space = " " * (width - columns_of(text))
        shown.append(space + text if column.numeric else text + space)
    return GAP.join(shown).rstrip()
