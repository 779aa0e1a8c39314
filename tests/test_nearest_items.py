"""How near a run's tasks come to a benchmark: a planted copy leads the list, whatever its spelling."""

import json
from pathlib import Path

import pytest

from agent0.tasks.decontamination import Reference
from agent0.tasks.nearest_items import nearest_items, shared_words
from tests.terminal import agent0 as call
from tests.test_screens import make

UNITS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nearest")
    make(folder)
    return folder


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("Ann has 3 apples", "ANN HAS 3 APPLES and more", 4),
        ("Ann has 3 apples", "Bob sold 7 pears", 0),
        ("", "Ann", 0),
        ("a b c d", "c d a b", 2),
    ],
)
def test_words_in_a_row_are_counted_in_any_spelling(first: str, second: str, words: int) -> None:
    assert shared_words(first, second) == words


def test_the_nearest_item_is_the_one_of_the_highest_cosine() -> None:
    references = [Reference("gsm8k", f"row-{n}", f"item {n}", (f"item {n}",)) for n in range(3)]
    items = nearest_items(["item 2", "item 0"], [UNITS[2], UNITS[0]], references, UNITS)
    assert [(item.item, item.similarity, item.words) for item in items] == [("row-2", 1.0, 2), ("row-0", 1.0, 2)]


def test_a_planted_copy_leads_and_all_tasks_are_counted(home: Path, tmp_path: Path) -> None:
    tasks = call("task", "list", "r1", "--status", "accepted", "--json", home=home).json
    rows = [
        {"id": f"row-{n}", "benchmark": "gsm8k", "split": "test", "question": question, "answer": "1"}
        for n, question in enumerate((tasks[3]["question"].upper(), "How many zebras live in Zanzibar today?"))
    ]
    (tmp_path / "gsm8k_test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("task", "nearest", "r1", "--data", str(tmp_path), "--embedder", "ngram")
    listed = call(*flags, "--json", home=home).json
    copies = {task["task"] for task in tasks if task["question"] == tasks[3]["question"]}
    assert len(listed) == len(tasks) and listed[0]["task"] in copies
    assert listed[0]["item"] == "row-0" and listed[0]["similarity"] > 0.99
    said = call(*flags, "--limit", "2", home=home)
    assert said.code == 0 and f"{len(tasks)} accepted tasks" in said.out and "words in a row" in said.out


def test_a_folder_without_its_rows_is_named(home: Path, tmp_path: Path) -> None:
    (tmp_path / "gsm8k_test.jsonl").write_text(
        json.dumps({"id": "a", "benchmark": "gsm8k", "split": "test", "question": "1 + 1?", "answer": "2"}) + "\n"
    )
    said = call("task", "nearest", "r1", "--data", str(tmp_path), "--benchmark", "svamp", home=home)
    assert said.code == 1 and "has no rows of svamp" in said.err
