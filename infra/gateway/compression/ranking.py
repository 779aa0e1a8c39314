"""How well lines of a text fit to a question: BM25, as SQLite's full-text search computes it."""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing

_WORD = re.compile(r"\w+")
MOST_WORDS = 64
"""Of a question; more of them rank no better, and take longer."""


def bm25(texts: Sequence[str], question: str) -> list[float]:
    """Rank each of ``texts`` by the words of ``question``: 0 where it has none of them, else the higher the rarer they
    are."""
    terms = list(dict.fromkeys(term.casefold() for term in _WORD.findall(question)))[-MOST_WORDS:]
    scores = [0.0] * len(texts)
    if not terms:
        return scores
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE lines USING fts5(text, tokenize='unicode61')")
        db.executemany("INSERT INTO lines (rowid, text) VALUES (?, ?)", enumerate(texts, 1))
        query = " OR ".join(f'"{term}"' for term in terms)
        for row, score in db.execute("SELECT rowid, bm25(lines) FROM lines WHERE lines MATCH ?", (query,)):
            scores[row - 1] = -score  # lower is better there
    return scores
