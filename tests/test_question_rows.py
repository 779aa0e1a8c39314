"""Rows as questions: whatever holds them in Python, they are the same rows; those that nearly copy a held-out one of
their file are named and not trained on."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pandas
import pyarrow
import pytest
from pyarrow import parquet

from agent0.assembly.api.servers import _rows
from agent0.assembly.validate.questions import question_notes, with_questions
from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.events.values import Task
from agent0.infra.storage.datasets import LocalQuestions, load
from agent0.infra.storage.row_formats import json_rows, stored_rows
from agent0.settings import QuestionsConfig
from agent0.tasks.near_copies import near_copies
from tests.terminal import agent0
from tests.test_question_check import check
from tests.test_questions import GOOD, write
from tests.world import small

ROWS = [{"question": f"What is {n}?", "answer": n, "level": 1 + n % 3} for n in range(5)]


class Saved:
    """As a data set of Hugging Face: it yields its rows, and has columns by name."""

    column_names = ("question", "answer", "level")

    def __iter__(self) -> Iterator[dict[str, object]]:
        return iter(ROWS)


FORMS = {
    "generator": lambda: (row for row in ROWS),
    "frame": lambda: pandas.DataFrame(ROWS),
    "table": lambda: pyarrow.Table.from_pylist(ROWS),
    "batch": lambda: pyarrow.RecordBatch.from_pylist(ROWS),
    "columns": lambda: {name: [row[name] for row in ROWS] for name in ROWS[0]},
    "data set": Saved,
    "numpy": lambda: [{name: numpy.int64(value) if name == "level" else value for name, value in row.items()}
                      for row in ROWS],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_the_same_whatever_holds_them(form: str, tmp_path: Path) -> None:
    assert [json.loads(row) for row in json_rows(FORMS[form]())] == ROWS == _rows(FORMS[form]())
    assert stored_rows(tmp_path, FORMS[form]()) == stored_rows(tmp_path, ROWS)


def test_an_empty_cell_is_null_and_other_values_are_readable() -> None:
    frame = pandas.DataFrame([{"a": 1.5, "b": "x", "when": pandas.Timestamp(0)}, {"a": None, "b": None, "when": None}])
    assert [json.loads(row) for row in json_rows(frame)][1] == {"a": None, "b": None, "when": None}
    assert list(json_rows([{"a": pandas.NA, "tests": numpy.array(["x", "y"])}])) == ['{"a": null, "tests": ["x", "y"]}']
    assert list(json_rows([{"a": b"caf\xc3\xa9", "b": Decimal("2.50")}])) == [r'{"a": "caf\u00e9", "b": "2.50"}']


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (5, "5 is no rows of questions"),
        ([ROWS[0], "q"], "Row 2 is no mapping"),
        ({"question": ["a", "b"], "answer": ["c"]}, "Row 1 cannot be written. zip"),
        ([{"question": b"\xff"}], "Row 1 cannot be written"),
        ([{("a", "b"): 1}], "Row 1 cannot be written"),
        ({"train": Saved()}, "Row 1 is no mapping"),
    ],
)
def test_what_is_no_row_is_refused(rows: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        stored_rows(tmp_path, rows)
    assert not [*tmp_path.glob("questions/*")]


def test_a_parquet_file_of_bytes_is_text_and_one_of_empty_cells_can_be_sent(tmp_path: Path) -> None:
    rows = {"question": [b"What is 1?", b"What is 2?"], "answer": [1.0, float("nan")]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "q.parquet")
    assert '"What is 1?"' in load(tmp_path / "q.parquet").text
    assert [row["answer"] for row in _rows(tmp_path / "q.parquet")] == [1.0, None]


# --- a file's own held-out rows ------------------------------------------------------------------------------------

STORY = "The baker of our village lights her oven before dawn, bakes loaves and rolls for the whole street, and by noon"


def held_out(path: Path) -> list[Task]:
    tasks = questions(LocalQuestions(), QuestionsConfig(file=str(path))).tasks
    return [*tasks["validation"], *tasks["test"]]


def test_near_copies_of_rows_that_the_file_holds_out_are_not_trained_on(tmp_path: Path) -> None:
    heldout = held_out(write(tmp_path / "f.jsonl", GOOD))
    assert check(tmp_path / "f.jsonl")["split"]["train"] == 50 - len(heldout)
    copies = [{"question": f"{word}: {task.question}", "answer": task.row.answer} for task in heldout if task.row
              for word in ("Say", "Tell", "So")]  # fmt: skip
    read = check(write(tmp_path / "g.jsonl", [*GOOD, *copies]))
    assert read["near_copies"] and all(int(copy["location"].rpartition(" ")[2]) > 50 for copy in read["near_copies"])
    assert sum(read["split"].values()) + len(read["near_copies"]) == read["rows"]
    train = questions(LocalQuestions(), QuestionsConfig(file=str(tmp_path / "g.jsonl"))).tasks["train"]
    apart = [task.question for task in held_out(tmp_path / "g.jsonl")]
    assert not any(near_copies([task.question for task in train], apart))
    run = with_questions(small(questions={"file": str(tmp_path / "g.jsonl")}))
    assert "nearly copy held-out rows, and are not trained on: line " in question_notes(run.questions)[-1]


def test_a_file_of_one_long_template_is_trained_on(tmp_path: Path) -> None:
    rows = [
        {"question": f"{STORY} {n} rolls are left. How many does she have if nobody buys any?", "answer": str(n)}
        for n in range(50)
    ]
    read = check(write(tmp_path / "f.jsonl", rows))
    assert read["split"]["train"] > 30 and len(read["near_copies"]) == read["split"]["train"]
    shown = agent0("questions", "check", str(tmp_path / "f.jsonl")).out
    assert "are trained on all the same: so is most of the file" in shown


def test_ten_rows_are_judged_of_any_number(tmp_path: Path) -> None:
    sizes = [len(check(write(tmp_path / "f.jsonl", GOOD[2 : 2 + count]))["sample"]) for count in (3, 10, 11, 31)]
    assert sizes == [3, 10, 10, 10]


def test_the_kind_of_answers_is_a_flag(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", [{"question": f"Which of {n}?", "answer": "B"} for n in range(9)])
    assert check(path, "--answer-type", "text")["kinds"] == {"text": 9}
    refused = agent0("questions", "check", str(path), "--answer-type", "vibe")
    assert refused.code == 2 and "There is no kind of answer 'vibe'" in refused.err
