"""Rows of files that are no JSON, as the text of one JSON list: CSV, Parquet, and the folders that Hugging Face's
``save_to_disk`` writes."""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agent0.errors import ConfigError, RequirementsError
from agent0.infra.storage.files import whole_file
from agent0.ports.storage import SURPLUS

SAVED, SAVED_SPLITS = "state.json", "dataset_dict.json"
"""What a folder with a saved data set holds, and one with several of them."""
_DELIMITERS = ",;\t|"


def csv_rows(text: str, most: int) -> str:
    """Read a file of separated values whose first line names its columns; commas, semicolons, tabs or bars separate. A
    row that is too short lacks its last columns; what one has too much is a list in the column ``SURPLUS``.

    Raises:
        ValueError: two columns of one name, or a quote that does not end.
    """
    csv.field_size_limit(most)
    first = text.partition("\n")[0]
    rows = _separated(text, max(_DELIMITERS, key=first.count))
    names = [name.strip() or f"column {number}" for number, name in enumerate(next(rows, []), 1)]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ValueError(f"its column {twice!r} stands there twice")
    return _listed(_csv_row(names, values) for values in rows if values)


def _separated(text: str, delimiter: str) -> Iterator[list[str]]:
    lines = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    start = 1
    try:
        for values in lines:
            yield values
            start = lines.line_num + 1
    except csv.Error as error:
        why = "its quote does not end; is the file cut off?" if "unexpected end" in str(error) else error
        raise ValueError(f"the row that begins in line {start}: {why}") from error


def _csv_row(names: Sequence[str], values: Sequence[str]) -> dict[str, object]:
    row: dict[str, object] = dict(zip(names, values, strict=False))
    return row | {SURPLUS: [*values[len(names) :]]} if len(values) > len(names) else row


def parquet_rows(data: bytes, most: int) -> str:
    """Read a Parquet file. Raises ImportError without pyarrow, ValueError for what is none or is larger unpacked."""
    from pyarrow import parquet  # noqa: PLC0415 - of an extra

    file = parquet.ParquetFile(io.BytesIO(data))
    groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
    if sum(group.total_byte_size for group in groups) > most:
        raise ValueError(f"more than {most >> 20} MiB unpacked")
    return _listed(file.read().to_pylist())


def unzstd(data: bytes, most: int) -> bytes:
    """Read at most ``most`` bytes of what zstd packed. Raises ImportError without pyarrow, ValueError for what is
    none."""
    from pyarrow import BufferReader, CompressedInputStream  # noqa: PLC0415 - of an extra

    try:
        with CompressedInputStream(BufferReader(data), "zstd") as stream:
            content: bytes = stream.read(most)
            return content
    except OSError as error:
        raise ValueError(f"it is not packed by zstd: {error}") from error


def parquet_file(rows: Iterable[Mapping[str, object]]) -> bytes:
    """Write rows of equal columns as a Parquet file.

    Raises:
        RequirementsError: pyarrow is not installed.
    """
    try:
        import pyarrow  # noqa: PLC0415 - of an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        fix = "make setup EXTRAS=data. Or: pip install pyarrow"
        raise RequirementsError("Parquet is written by pyarrow.", "Not installed: pyarrow.", fix) from error
    out = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist([*rows]), out)
    content: bytes = out.getvalue().to_pybytes()
    return content


def saved_files(folder: Path) -> list[Path]:
    """The files of a data set that was saved in ``folder``.

    Raises:
        ConfigError: none is, several are, or it was saved as an order of others' rows.
    """
    if (folder / SAVED_SPLITS).is_file():
        splits = sorted(path.parent.name for path in folder.glob(f"*/{SAVED}"))
        why = f"It holds several data sets: {', '.join(splits)}."
        raise ConfigError(f"{folder} is no file of rows.", why, f"Name one of them: {folder / (*splits, 'train')[0]}")
    if not (folder / SAVED).is_file():
        why = f"It has neither {SAVED} nor tasks."
        raise ConfigError(
            f"{folder} is no file of rows.",
            why,
            "Name a file, or a folder of agent0 task generate or agent0 task mine.",
        )
    state = json.loads((folder / SAVED).read_text(encoding="utf-8"))
    names = [Path(str(file["filename"])).name for file in state["_data_files"]]
    if state.get("_indices_data_files"):
        raise ConfigError(f"{folder} names rows of another data set.", fix="Save it again: flatten_indices() first.")
    return [folder / name for name in names]


def arrow_rows(files: Iterable[bytes]) -> str:
    """Read files of a saved data set, one after the other. Raises ImportError without pyarrow, ValueError for what is
    none."""
    from pyarrow import BufferReader, ipc  # noqa: PLC0415 - of an extra

    return _listed(row for data in files for row in ipc.open_stream(BufferReader(data)).read_all().to_pylist())


@runtime_checkable
class DataFrame(Protocol):
    """Rows by column: a frame of pandas or polars, a table of Arrow."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""
        ...


RowSource = Iterable[Mapping[str, object]] | Mapping[str, Sequence[object]] | DataFrame
"""Rows, or columns as a mapping from their names or as a table."""


def json_rows(rows: RowSource) -> Iterator[str]:
    """Yield each of ``rows`` as JSON. What is no number is null, bytes are UTF-8, what JSON has no form for is text.

    Raises:
        ConfigError: one of them is no mapping, or holds what cannot be written.
    """
    number = 0
    try:
        for number, row in enumerate(_mappings(rows), 1):
            if not isinstance(row, Mapping):
                raise ConfigError(f"Row {number} is no mapping from columns to values.", f"It is {row!r:.60}.")
            yield json.dumps({key: None if _is_nan(value) else value for key, value in row.items()}, default=_plain)
    except (TypeError, ValueError) as error:
        what = f"Row {number} cannot be written." if number else f"{rows!r:.60} is no rows of questions."
        raise ConfigError(what, f"{error}.", "Give mappings from columns to values, or a data frame.") from error


def _mappings(rows: Any) -> Iterable[object]:
    if isinstance(rows, Mapping) and all(isinstance(values, list | tuple) for values in rows.values()):
        return (dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True))
    for method, arguments in (("to_pylist", ()), ("to_dicts", ()), ("to_dict", ("records",))):
        if hasattr(rows, "columns") and hasattr(rows, method):
            table: Iterable[object] = getattr(rows, method)(*arguments)
            return table
    each: Iterator[object] = iter(rows)
    return each


def _is_nan(value: object) -> bool:
    """As pandas and numpy mark an empty cell."""
    return (isinstance(value, float) and isnan(value)) or type(value).__name__ in ("NAType", "NaTType")


def _plain(value: Any) -> object:
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if hasattr(value, "tolist") else str(value)


def stored_rows(home: Path, rows: str | Path | RowSource) -> Path:
    """Return the file of ``rows``: the one that they name, or one below ``home`` that holds them as JSON lines and is
    named for its digest.

    Raises:
        ConfigError: as ``json_rows``.
    """
    if isinstance(rows, str | Path):
        return Path(rows)
    data = "".join(f"{line}\n" for line in json_rows(rows)).encode()
    path = home / "questions" / f"rows-{hashlib.sha256(data).hexdigest()[:12]}.jsonl"
    if not path.is_file():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(path) as fresh:
            fresh.write_bytes(data)
    return path


def _listed(rows: Iterable[object]) -> str:
    """A row a line."""
    texts: Iterator[str] = (json.dumps(row, ensure_ascii=False, default=_plain) for row in rows)
    return "[" + ",\n".join(texts) + "]\n"
