"""Part of the rim: rows of a table as a list, a data frame, a file, and a table in a notebook."""

import csv
import json
from collections.abc import Mapping
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent0.errors import ConfigError, RequirementsError, escaped
from agent0.projections.base import Row

if TYPE_CHECKING:
    import pandas

SHOWN = 50
"""Rows that a notebook shows."""


class Rows(list[Row]):
    """Rows of a table: a list of dicts with equal keys."""

    def frame(self) -> "pandas.DataFrame":
        """The rows as a pandas data frame.

        Raises:
            RequirementsError: pandas is not installed.
        """
        frame: pandas.DataFrame = _module("pandas", "pandas").DataFrame(list(self))
        return frame

    def write(self, path: str | Path) -> Path:
        """Write the rows as CSV or Parquet, by the ending of ``path``; lists and mappings in a row become JSON text.

        Raises:
            ConfigError: another ending.
            RequirementsError: Parquet, and pyarrow is not installed.
            OSError: the file cannot be written.
        """
        file = Path(path)
        if file.suffix == ".csv":
            self._write_csv(file)
        elif file.suffix == ".parquet":
            table = _module("pyarrow", "pyarrow").Table.from_pylist(self._flat())
            _module("pyarrow.parquet", "pyarrow").write_table(table, file)
        else:
            raise ConfigError(f"{file.name} cannot be written.", "Its ending says the format.", "Use .csv or .parquet.")
        return file

    def _write_csv(self, file: Path) -> None:
        with file.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, list(self[0]) if self else [])
            writer.writeheader()
            writer.writerows(self._flat())

    def _flat(self) -> list[Row]:
        return [{name: _cell(value) for name, value in row.items()} for row in self]

    def _repr_html_(self) -> str:
        return html_table(self)


def _cell(value: Any) -> Any:
    return json.dumps(value, default=str) if isinstance(value, (Mapping, list, tuple)) else value


def _module(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise RequirementsError(f"{package} is not installed.", fix=f"Install it: pip install {package}") from error


def text(value: object) -> str:
    """``value`` as text for HTML: control characters as escapes, markup as text."""
    if isinstance(value, float):
        value = f"{value:.3g}"
    return escape(escaped("-" if value is None else str(value)))


def html_table(rows: list[Row], columns: tuple[str, ...] = ()) -> str:
    """An HTML table of the first ``SHOWN`` rows; ``columns`` picks and orders what is shown."""
    names = columns or tuple(rows[0] if rows else ())
    head = "".join(f"<th>{text(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{text(row.get(n))}</td>" for n in names) + "</tr>" for row in rows[:SHOWN])
    more = f"<p>{SHOWN} of {len(rows):,} rows</p>" if len(rows) > SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}" if rows else "<p>No rows.</p>"
