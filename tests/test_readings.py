"""Texts are read as earlier versions read them: every labelled pair, and the same answers against other golds, with
the reasons; every spelling of a teacher's reply, with its problem.

``python -m tests.test_readings`` writes what is recorded anew, where a reading is meant to change.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from agent0.grading import NEWEST, extract, grade
from agent0.grading.answer_types import left_undone
from agent0.grading.math.symbolic import compared
from agent0.rollout.teacher import read_proposal
from agent0.verification.labelled_pairs import read_pairs
from tests.spellings import STYLES, spellings
from tests.test_same_seed import plain

DATA = Path(__file__).parent / "data"
RECORDED = Path(__file__).parent / "golden" / "readings.json"
PAIRS: dict[str, list[dict[str, Any]]] = defaultdict(list)
for _file in ("written_pairs", "answer_pairs"):
    for _row in read_pairs((DATA / f"{_file}.jsonl").read_text(encoding="utf-8"), _file):
        PAIRS[f"{_file[:-6]} {_row['category'].partition('.')[0]}"].append(_row)


def earlier(rows: list[dict[str, Any]]) -> Iterable[Any]:
    """What each earlier version of the rules says of each answer against its own gold and the next one's."""
    for row, other in zip(rows, [*rows[1:], rows[0]], strict=True):
        answer = extract(row["candidate"]) if row["form"] == "response" else row["candidate"]
        for edition in range(1, NEWEST):
            yield [grade(one["gold"], answer, edition) for one in (row, other)]
            yield left_undone("", row["gold"], answer or "", edition)


def graded(rows: list[dict[str, Any]]) -> Iterable[Any]:
    """The same by the newest version, and what is extracted."""
    for row, other in zip(rows, [*rows[1:], rows[0]], strict=True):
        said = extract(row["candidate"])
        answer = said if row["form"] == "response" else row["candidate"]
        yield [said, compared(row["gold"], row["candidate"], reply=row["form"] == "response")]
        yield [grade(other["gold"], answer), left_undone("", row["gold"], answer or "")]


def proposed(style: str) -> Iterable[Any]:
    """What is read of the replies of one style, as a short and as a long task."""
    for name, text, _ in spellings():
        if name == style:
            yield [read_proposal(text, "math", family, 3, unchecked=family == "open") for family in ("open", "ledger")]


READ = {f"pairs {name}": lambda rows=rows: graded(rows) for name, rows in PAIRS.items()}
READ |= {f"earlier {name}": lambda rows=rows: earlier(rows) for name, rows in PAIRS.items()}
READ |= {f"replies {style.__name__}": lambda name=style.__name__: proposed(name) for style in STYLES}


def digest(name: str) -> str:
    return hashlib.sha256(json.dumps(plain(READ[name]())).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", READ)
def test_texts_are_read_as_before(name: str) -> None:
    assert digest(name) == json.loads(RECORDED.read_text())[name], "python -m tests.test_readings records it anew"


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: digest(name) for name in READ}, indent=1) + "\n")
