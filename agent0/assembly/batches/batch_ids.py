"""Part of the rim: the ids of the rows of a batch, in a file without a name, so that millions take no memory."""

import json
import sqlite3
from hashlib import sha256

from agent0.tasks.batch_rows import BatchRow


class RowIds:
    """The ids of rows that were taken; ``repeated`` counts those that an earlier row had, ``examples`` name some."""

    def __init__(self, most: int) -> None:
        self.repeated, self.examples = 0, list[str]()
        self._most, self._db = most, sqlite3.connect("")  # SQLite removes the file as soon as it is open
        self._db.execute("CREATE TABLE ids (id PRIMARY KEY, row INTEGER) WITHOUT ROWID")

    def __enter__(self) -> "RowIds":
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def take(self, row: BatchRow) -> None:
        """Take the id of ``row``; one that cannot be read is no id."""
        if row.problem and row.id == row.number:
            return
        small = type(row.id) is int and abs(row.id) < 1 << 63
        key = row.id if small else sha256(json.dumps(row.id).encode()).digest()[:16]
        if self._db.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (key, row.number)).rowcount:
            return
        self.repeated += 1
        if len(self.examples) < self._most:
            (first,) = self._db.execute("SELECT row FROM ids WHERE id = ?", (key,)).fetchone()
            self.examples.append(f"rows {first:,} and {row.number:,} have the id {json.dumps(row.id):.80}")
