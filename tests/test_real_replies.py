"""Replies of a real small model are read as a person reads them: nothing is read that they do not call, answer or
propose."""

import json
from typing import Any

import pytest

from benchmarks.reading import main, outcome, reading, rows

ROWS = rows()
BY_KIND = {kind: [row for row in ROWS if row["kind"] == kind] for kind in {row["kind"] for row in ROWS}}
READ = {"student-template": 33, "student-fence": 51, "teacher": 42}
"""Replies of each kind of prompt in which all that they hold is read."""
CALL = {"name": "python", "arguments": {"code": "print(1)"}}
OTHER = {"name": "python", "arguments": {"code": "print(2)"}}


def results(kind: str) -> dict[str, str]:
    """Outcome of each reply to prompts of ``kind``, by its id."""
    return {row["id"]: outcome(row["label"], reading(row)) for row in BY_KIND[kind]}


@pytest.mark.parametrize("kind", sorted(BY_KIND))
def test_none_is_misread(kind: str) -> None:
    assert [name for name, result in results(kind).items() if result == "misread"] == []


@pytest.mark.parametrize(("kind", "least"), READ.items())
def test_what_they_hold_is_read(kind: str, least: int) -> None:
    assert list(results(kind).values()).count("read") >= least


def _plain(text: str) -> str:
    """``text`` without backslashes, which some replies lack where JSON needs them."""
    return text.replace("\\", "")


def test_labels_are_spelled_as_in_the_replies() -> None:
    """A label that has another text than its reply could never be read."""
    for row in ROWS:
        label = row["label"]
        texts = [str(text) for call in label.get("calls", ()) for text in call["arguments"].values()]
        texts += [label[name] for name in ("answer", "question", "program") if name in label]
        for text in texts:
            spellings = {text, json.dumps(text, ensure_ascii=False)[1:-1]}
            assert any(_plain(spelling) in _plain(row["reply"]) for spelling in spellings), (row["id"], text)


def test_the_table_can_be_made_again(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["reading"])
    main()
    shown = capsys.readouterr().out
    assert "| all | 200 |" in shown and "misread teacher" not in shown


def test_there_are_replies_to_every_kind_of_prompt() -> None:
    assert len(ROWS) == len({row["id"] for row in ROWS}) >= 200
    assert set(BY_KIND) == set(READ)


@pytest.mark.parametrize(
    ("label", "found", "expected"),
    [
        ({}, {}, "nothing"),
        ({}, {"answer": "3"}, "misread"),
        ({}, {"calls": [CALL]}, "misread"),
        ({"answer": "3"}, {"answer": "3"}, "read"),
        ({"answer": "3"}, {}, "unread"),
        ({"answer": "3"}, {"answer": "4"}, "misread"),
        ({"answer": "3"}, {"calls": [CALL]}, "misread"),
        ({"calls": [CALL]}, {"calls": [CALL]}, "read"),
        ({"calls": [CALL]}, {"calls": [OTHER]}, "misread"),
        ({"calls": [CALL]}, {"calls": [CALL, OTHER]}, "misread"),
        ({"calls": [CALL]}, {"answer": "1"}, "misread"),
        ({"calls": [CALL]}, {}, "unread"),
        ({"calls": [CALL], "answer": "1"}, {"calls": [CALL]}, "read"),
        ({"calls": [CALL], "answer": "1"}, {"answer": "1"}, "unread"),
        ({"calls": [CALL], "answer": "1"}, {"answer": "2"}, "misread"),
        ({"says": "3"}, {}, "nothing"),
        ({"says": "3"}, {"answer": "3"}, "read"),
        ({"says": "3"}, {"answer": "4"}, "misread"),
        ({"answer": "3", "ambiguous": "two boxes"}, {}, "nothing"),
        ({"answer": "3", "ambiguous": "two boxes"}, {"answer": "4"}, "misread"),
        ({"question": "How?", "program": "print(1)"}, {"question": "How?", "program": "print(1)"}, "read"),
        ({"question": "How?", "program": "print(1)"}, {"question": "How?"}, "misread"),
        ({"question": "How?", "program": "print(1)"}, {}, "unread"),
        ({}, {"question": "How?"}, "misread"),
    ],
)
def test_a_reading_is_told_from_a_misreading(label: dict[str, Any], found: dict[str, Any], expected: str) -> None:
    assert outcome(label, found) == expected
