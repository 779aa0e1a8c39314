"""Answers and replies of kinds that were judged wrong in the field: right ones, and near misses beside them."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from agent0.grading.math.symbolic import compared
from agent0.verification.labelled_pairs import read_pairs

PAIRS = Path(__file__).parent / "data" / "field_pairs.jsonl"
BY_KIND: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _row in read_pairs(PAIRS.read_text(encoding="utf-8"), PAIRS.name):
    BY_KIND[_row["category"]].append(_row)
ASKED = {"evaluated-forms": 5, "complex-polar": 1, "mixed": 3}
"""Pairs that only the symbolic engine decides: integrals and limits of functions, logarithms."""


@pytest.mark.parametrize("kind", BY_KIND)
def test_pairs_of_every_kind_are_decided_as_labelled(kind: str) -> None:
    """Without the symbolic engine: what it may be asked about is not accepted before."""
    rows = BY_KIND[kind]
    labels = [row["label"] for row in rows]
    assert min(labels.count("accept"), labels.count("reject")) >= 10
    decided = [compared(row["gold"], row["candidate"], reply=row["form"] == "response") for row in rows]
    wrong = [
        (row["gold"], row["candidate"], grade.reason)
        for row, grade in zip(rows, decided, strict=True)
        if (grade.correct is True) != (row["label"] == "accept") and not grade.symbolic
    ]
    assert wrong == []
    assert sum(grade.symbolic for grade in decided) <= ASKED.get(kind, 0)
