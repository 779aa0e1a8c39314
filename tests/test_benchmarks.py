"""Benchmarks: every row reads, every reference is right, wrong replies are wrong, and bad rows are named."""

import gzip
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.errors import ConfigError, NotFoundError
from agent0.evaluation.benchmarks import Item, benchmarks, chosen, make_items, read_items
from agent0.events.values import ToolState
from agent0.grading import answer_in
from agent0.infra.storage.datasets import find, load
from agent0.ports.sandbox import SandboxCall, SandboxResult

ROWS = Path(__file__).parents[2] / "shared" / "benchmarks"
needs_rows = pytest.mark.skipif(not ROWS.is_dir(), reason="needs the benchmark rows beside the checkout")
FILED = [name for name, entry in benchmarks().items() if any(any(ROWS.glob(f"{file}*")) for file in entry.files)]
MADE = [name for name, entry in benchmarks().items() if entry.make and not entry.package]
RUN = ("humaneval", "mbpp", "humanevalplus", "mbppplus", "coding", "gym")
"""Judged by running programs, in the sandbox's own tests."""
ANSWERED = [name for name in (*FILED, *MADE) if name not in RUN]


class NoSandbox:
    """A symbolic engine that finds nothing equal; whatever else is run is a mistake."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        assert "math_verify" in call.code
        return SandboxResult(ToolState.OK, 0, "false\n", "", 0, 0, 0, "", "")

    async def close(self) -> None:
        """Nothing to end."""


class AgreeingEngine(NoSandbox):
    """A symbolic engine that finds everything equal."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        return replace(await super().call(call), stdout="true\n")


def items_of(name: str) -> list[Item]:
    entry = benchmarks()[name]
    if entry.make:
        return make_items(entry, 70, 1)[0]
    held = find(ROWS, entry.files, name)
    return read_items(entry, held.text, held.name)


@needs_rows
@pytest.mark.parametrize("name", [*FILED, *MADE])
def test_every_row_reads_and_tells_no_answer(name: str) -> None:
    items = items_of(name)
    assert len({item.id for item in items}) == len(items)
    assert all(item.question.strip() and item.reference.strip() for item in items)
    assert not any(item.reference in item.question for item in items if len(item.reference) > 30)


@needs_rows
@pytest.mark.parametrize("name", ANSWERED)
async def test_references_are_right_and_other_items_references_are_not(name: str) -> None:
    judge, items = benchmarks()[name].judge, items_of(name)
    wrong = [i for i in items if (await judge(i, i.reference, answer_in(i.reference), NoSandbox())).correct is not True]
    assert wrong == []
    taken = 0
    for item, other in zip(items, items[1:] + items[:1], strict=True):
        if (
            item.gold != other.gold
            and (await judge(item, other.reference, answer_in(other.reference), NoSandbox())).correct
        ):
            taken += 1
    assert taken <= len(items) // 200, "a different answer that means the same is rare"


@pytest.mark.parametrize("name", ["gsm8k", "math", "bbh", "adversarial"])
async def test_where_the_gold_is_a_number_so_is_the_answer(name: str) -> None:
    judge, item = benchmarks()[name].judge, Item("x", "Compute 76*26+89.", "2065", "")

    async def right(gold: str, *answers: str) -> list[str]:
        said = [(a, await judge(replace(item, gold=gold), f"\\boxed{{{a}}}", a, AgreeingEngine())) for a in answers]
        return [answer for answer, grade in said if grade.correct is True]

    written = ["2065", "2,065", "$2065$", "2065.0", "x = 2065", "2065 apples", "4130/2=2065", "76*26+89 = 2065"]
    assert await right("2065", *written) == written
    assert await right("2065", "76*26+89", "2065+0", "4130/2", "2065-0-0", r"2064+\binom{300}{0}", "sqrt4264225") == []


async def test_symbolic_golds_stay_generous() -> None:
    judge, item = benchmarks()["math"].judge, Item("x", "?", "", "")
    for gold, answer in [("24/2", "12"), ("24/2", "36/3"), (r"2\pi", r"\pi+\pi"), ("2^{10}", "1024"), ("x^2", "x*x")]:
        assert (await judge(replace(item, gold=gold), answer, answer, NoSandbox())).correct is True


@needs_rows
@pytest.mark.parametrize("name", ANSWERED)
async def test_an_empty_reply_is_wrong(name: str) -> None:
    item = items_of(name)[0]
    for reply in ("", " \n", "\\boxed{}", "I do not know."):
        assert (await benchmarks()[name].judge(item, reply, answer_in(reply), NoSandbox())).correct is False


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("\\boxed{B}", "B"), ("\\boxed{(b)}", "B"), ("\\boxed{\\text{B}}", "B"), ("B", "B"), ("B. the second", "B"),
        ("The answer is (B).", "B"), ("Answer: **B**", "B"), ("first A, but the answer is C", "C"), ("two", "B"),
        ("\\boxed{E}", None), ("A or B", None), ("Because", None), ("", None), ("\\boxed{A, B}", None),
        ("A and C fail, which leaves (B).", "B"), ("Only C can be true.", "C"), ("I would rule out B.", None),
    ],
)  # fmt: skip
async def test_letters_are_read_from_what_is_said_last(reply: str, letter: str | None) -> None:
    from agent0.evaluation.benchmarks.choices import letter as read

    item = Item("x", "?", "B", "", ("A", "B", "C"), ("one", "two", "three"))
    assert read(item, reply, answer_in(reply)) == letter


ROW = {"id": "a", "question": "1+1?", "answer": "2"}
PLUS = {
    "task_id": "a", "prompt": "?", "entry_point": "f", "canonical_solution": "def f(x):\n    return x\n",
    "base_input": [[1]], "plus_input": [], "atol": 0,
}  # fmt: skip
CHOICE = {"id": "a", "question": "?", "choices": ["x", "y"], "labels": ["1", "2"], "answer": "2"}


@pytest.mark.parametrize(
    ("name", "lines", "told"),
    [
        ("gsm8k", ["{"], "line 1: no JSON"),
        ("gsm8k", [ROW, {"id": "b", "question": "?"}], "line 2: no row of gsm8k. Field 'answer' is missing"),
        ("gsm8k", [{**ROW, "answer": [2]}], "Field 'answer' is missing or not text"),
        ("gsm8k", [ROW, ROW], "line 2: id 'a' is that of line 1"),
        ("gsm8k", [{**ROW, "answer": " "}], "the gold answer is empty"),
        ("gsm8k", [], "has no rows"),
        ("gsm8k", ["[1]"], "no JSON object"),
        ("aime24", [{**ROW, "answer": "x"}], "no row of aime24"),
        ("humanevalplus", [{**PLUS, "plus_input": [1]}], "inputs are no lists of arguments"),
        ("humanevalplus", [{**PLUS, "base_input": [], "plus_input": {}}], "there are no inputs"),
        ("humanevalplus", [{**PLUS, "base_input": [["x" * 3_000_000]]}], "an argument is too large"),
        ("humanevalplus", [{**PLUS, "entry_point": None}], "Field 'entry_point' is missing or not text"),
        ("mbppplus", [{**PLUS, "plus_input": "[[1]"}], "no row of mbppplus"),
        ("mbppplus", [{**PLUS, "plus_input": "[" * 100_000}], "no row of mbppplus"),
        ("mbppplus", [PLUS], "KeyError: 'assertion'"),
        ("arc_challenge", [{**CHOICE, "answer": "3"}], "is none of 1, 2"),
        ("arc_challenge", [{**CHOICE, "labels": ["1"]}], "1 labels for 2 choices"),
        ("arc_challenge", [{**CHOICE, "choices": "xy"}], "Field 'choices' is missing or not a list"),
    ],
)
def test_a_row_that_is_none_is_named(name: str, lines: list[Any], told: str) -> None:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    with pytest.raises(ConfigError, match=re.escape(told)):
        read_items(benchmarks()[name], text, "rows.jsonl")


@given(st.lists(st.text(max_size=30), max_size=4))
def test_any_text_is_rows_or_an_error(lines: list[str]) -> None:
    with pytest.raises(ConfigError):
        read_items(benchmarks()["gsm8k"], "\n".join(lines), "rows.jsonl")


def test_lines_end_at_line_feeds_only() -> None:
    row = json.dumps({**ROW, "question": "one\u2028two\u0085three"}, ensure_ascii=False)
    assert len(read_items(benchmarks()["gsm8k"], row, "rows.jsonl")) == 1


def test_numeric_labels_are_letters_too() -> None:
    (item,) = read_items(benchmarks()["arc_challenge"], json.dumps(CHOICE), "rows.jsonl")
    assert (item.gold, item.labels) == ("2", ("1", "2"))


def test_files_are_found_packed_or_plain_and_known_by_digest(tmp_path: Path) -> None:
    text = json.dumps(ROW)
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    packed = find(tmp_path, ["other.jsonl", "rows.jsonl"], "gsm8k")
    (tmp_path / "other.jsonl").write_text(text)
    plain = find(tmp_path, ["other.jsonl", "rows.jsonl"], "gsm8k")
    assert packed.text == plain.text == text
    assert packed.sha256 != plain.sha256
    with pytest.raises(NotFoundError, match="agent0 bench fetch gsm8k"):
        find(tmp_path, ["none.jsonl"], "gsm8k")


@pytest.mark.parametrize(
    ("name", "data"), [("a.jsonl", b"\xff\xfe\x00"), ("a.jsonl.gz", b"\xff"), ("b.gz", b"\x1f\x8b\x08")]
)
def test_files_that_cannot_be_read_say_so(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / name)


def test_a_pipe_is_no_file_of_rows_and_all_members_of_a_packed_one_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(ConfigError, match="a pipe"):
        load(tmp_path / "pipe.jsonl")
    (tmp_path / "two.gz").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert load(tmp_path / "two.gz").text == "one\ntwo\n"


def test_an_unknown_benchmark_gets_the_list() -> None:
    with pytest.raises(ConfigError, match="gsm8k"):
        chosen(["gsm9k"])


@pytest.mark.parametrize("name", MADE)
def test_items_are_made_from_their_seed_alone(name: str) -> None:
    entry = benchmarks()[name]
    items, digest = make_items(entry, 40, 7)
    assert make_items(entry, 40, 7) == (items, digest)
    assert make_items(entry, 13, 7)[0] == items[:13]
    others, other = make_items(entry, 40, 8)
    assert other != digest
    assert {item.question for item in items} != {item.question for item in others}
    assert len({item.question for item in items}) == len({item.id for item in items}) == 40
    assert entry.size >= 50


@needs_rows
def test_rows_tell_what_they_are_about() -> None:
    (first, *_) = items_of("math500")
    assert first.facts == {"subject": "Precalculus", "level": "2"}
    assert items_of("hellaswag")[0].facts == {
        "choices": "4", "split_type": "indomain", "activity_label": "Pole vault"
    }  # fmt: skip
    assert {item.facts["subject"] for item in items_of("bbh")} == {item.cluster for item in items_of("bbh")}
    assert not any("[" in item.question.partition("\nA.")[0] for item in items_of("hellaswag"))


@pytest.mark.parametrize("name", ["adversarial", "coding", "tool_scenarios"])
def test_made_items_tell_what_they_are_about(name: str) -> None:
    assert all(item.facts["subject"] == item.id.split("/")[1] for item in items_of(name))


def test_a_scenario_s_answer_is_in_its_files_and_not_in_its_question() -> None:
    for item in items_of("tool_scenarios"):
        assert item.files, item.id
        assert all(name in item.question for name in item.files)
        assert not re.search(rf"(?<![\d-]){re.escape(item.gold)}(?!\d)", item.question.partition("holds")[0])


def test_parts_are_those_of_benchmarks_that_have_some() -> None:
    assert [entry.name for entry in chosen(["gym:chain_sum", "gsm8k"])] == ["gym:chain_sum", "gsm8k"]
    for name, told in (("gsm8k:x", "has no parts"), ("gym:puzzle24", "the numbers"), ("jim:x", "Known: ")):
        with pytest.raises(ConfigError, match=told):
            chosen([name])
