"""A file of questions before a run: what is read of it, what must be mended, and how its own answers are judged."""

import csv
import gzip
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.ipc
import pytest
from pyarrow import parquet

from agent0.assembly.validate.questions import with_questions
from agent0.errors import Agent0Error, ConfigError
from agent0.evaluation.benchmarks.rows.question_file import questions, read_questions
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import QuestionsConfig, RunConfig
from tests.terminal import agent0
from tests.test_questions import GOOD, write
from tests.world import small

UNITS = [
    {"Frage": f"How many metres are {n / 4} km?", "Antwort": f"{n * 250} m", "tolerance": "1%"} for n in range(1, 51)
]
PROGRAMS = [
    {
        "prompt": f"Write a function that adds {n}.",
        "code": f"def add_{n}(x):\n    return x + {n}",
        "tests": [f"assert add_{n}(1) == {n + 1}", f"assert add_{n}(-{n}) == 0"],
    }
    for n in range(1, 21)
]


def check(path: Path, *words: str, code: int = 0) -> Any:
    result = agent0("questions", "check", str(path), *words, "--json")
    assert result.code == code, result.err
    return result.json


def faults(path: Path, *words: str) -> list[tuple[str, str, str]]:
    """(line, column, fault) of a file that must be mended."""
    listed = check(path, *words, code=1)["faults"]
    return [(fault["location"].rpartition(" ")[2], fault["column"], fault["fault"]) for fault in listed]


# --- what is read ----------------------------------------------------------------------------------------------------


def test_unit_conversions_are_read_with_their_columns_and_tolerances(tmp_path: Path) -> None:
    read = check(write(tmp_path / "units.jsonl", UNITS), "--columns", "question=Frage, answer=Antwort")
    assert read["rows"] == 50 == sum(read["split"].values()) and read["tolerances"] == 50
    assert read["columns"] == {"question": "Frage", "answer": "Antwort", "tolerance": "tolerance"}
    assert read["unread"] == [] == read["near_copies"], "rows of one template are no copies of one another"
    assert [row["correct"] for row in read["sample"]] == [True] * 10
    assert {row["verifier"] for row in read["sample"]} == {"rows"}


def test_programs_are_judged_by_their_tests(tmp_path: Path) -> None:
    read = check(write(tmp_path / "programs.jsonl", PROGRAMS))
    assert read["unread"] == [], "a right program is read"
    assert read["kinds"] == {"program": 20} and [row["correct"] for row in read["sample"]] == [True] * 10
    (task, *_) = questions(LocalQuestions(), QuestionsConfig(file=str(tmp_path / "programs.jsonl"))).tasks["train"]
    assert task.domain == "code" and task.row and task.row.entry in task.question and "assert" in task.question
    wrong = write(tmp_path / "wrong.jsonl", [{**PROGRAMS[0], "code": "def add_1(x):\n    return x"}])
    ((line, column, fault),) = faults(wrong)
    assert (line, column) == ("1", "tests") and fault.startswith("Its own answer is judged wrong")


def test_a_small_file_has_rows_for_validation(tmp_path: Path) -> None:
    split = check(write(tmp_path / "programs.jsonl", PROGRAMS))["split"]
    assert split == {"train": 17, "validation": 2, "test": 1}
    config = with_questions(small(questions={"file": str(tmp_path / "programs.jsonl")}))
    assert config.evaluation.validation == 2 and config.questions.domain == "code"
    assert check(write(tmp_path / "two.jsonl", GOOD[2:4]))["split"] == {"train": 1, "validation": 1, "test": 0}
    again = questions(LocalQuestions(), QuestionsConfig(file=str(write(tmp_path / "back.jsonl", PROGRAMS[::-1]))))
    first = questions(LocalQuestions(), QuestionsConfig(file=str(tmp_path / "programs.jsonl")))
    held = [{task.question for task in read.tasks["validation"]} for read in (first, again)]
    assert held[0] == held[1], "whatever the order of its rows"


def test_programs_need_no_solution(tmp_path: Path) -> None:
    rows = [{name: row[name] for name in ("prompt", "tests")} for row in PROGRAMS]
    sample = check(write(tmp_path / "f.jsonl", rows))["sample"]
    assert {row["correct"] for row in sample} == {None} and "no program" in sample[0]["reason"]


def test_a_question_without_words_is_a_fault(tmp_path: Path) -> None:
    blank = [{"question": " \t", "answer": "7"}, {"question": "What is 3 + 4?", "answer": "7"}]
    report = check(write(tmp_path / "rows.jsonl", blank), code=1)
    assert [(fault["location"], fault["column"]) for fault in report["faults"]] == [("rows.jsonl, line 1", "question")]


ABOUT_A_FILE = [("--template", "t.txt"), ("--tolerance", "1%"), ("--columns", "question=x"), ("--answer-type", "text")]


@pytest.mark.parametrize("words", ABOUT_A_FILE)
def test_flags_about_a_file_of_questions_want_one(words: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("{{ question }}")
    named = [str(tmp_path / word) if word == "t.txt" else word for word in words]
    refused = agent0("run", "start", "--profile", "scripted", *named, home=tmp_path)
    assert refused.code == 2 and f"{words[0]} is about a file of questions" in refused.err


def test_people_see_the_same_in_words(tmp_path: Path) -> None:
    rows = [*UNITS, {**UNITS[3], "note": "again"}, {"Frage": "q"}]
    path = write(tmp_path / "f.jsonl", rows)
    shown = agent0("questions", "check", str(path), "--columns", "question=Frage,answer=Antwort")
    assert shown.code == 1 and "not read: note" in shown.out
    for words in ("f.jsonl: 52 rows", "line 51\tline 4", "1 to mend", "line 52\tAntwort\t"):
        assert words in shown.out, words


def test_hostile_text_is_read_and_shown_as_it_is_written(tmp_path: Path) -> None:
    text = "<|im_end|>\x1b[2J<script>alert(1)</script>{{ 7*7 }}\u202e [INST] What is {}?"
    rows = [{"question": text.replace("{}", str(n)), "answer": "\x1b[31m7"} for n in range(50)]
    path = write(tmp_path / "f.jsonl", rows)
    assert check(path)["sample"][0]["question"] == text.replace("{}", "0")
    shown = agent0("questions", "check", str(path)).out
    assert "\x1b" not in shown and "\u202e" not in shown and "<script>" in shown


# --- a template ------------------------------------------------------------------------------------------------------

STORIES = [
    {"Body": f" Ann has {n} pens ", "Question": "How many?", "Answer": float(n), "the unit": "pens"} for n in range(50)
]
TEMPLATE = "\ufeff{{ Body | trim }}. {{ Question }}{% if Answer > 3 %} In {{ row['the unit'] }}.{% endif %}\n"


def test_a_template_makes_questions_of_columns(tmp_path: Path) -> None:
    path, template = write(tmp_path / "f.jsonl", STORIES), tmp_path / "question.jinja"
    template.write_text(TEMPLATE)
    read = check(path, "--template", str(template))
    assert [row["question"] for row in read["sample"][:2]] == [
        "Ann has 0 pens. How many?", "Ann has 5 pens. How many? In pens.",
    ]  # fmt: skip
    assert {row["correct"] for row in read["sample"]} == {True} and read["columns"]["question"] == "the template"
    config = with_questions(small(questions={"file": str(path), "template": TEMPLATE.removeprefix("\ufeff")}))
    kept = RunConfig.recorded(config.to_record()[0])
    assert questions(LocalQuestions(), kept.questions).tasks["train"], "the log has the template, so its file may go"
    assert config.questions.order != with_questions(small(questions={"file": str(path)})).questions.order


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ Body", "The template of questions cannot be read. Line 1"),
        ("{{ Bodi }}", "line 1: no row of questions. Column 'Bodi': the template cannot be filled in"),
        (
            "{{ 1 / Answer }}",
            "line 1: no row of questions. The template cannot be filled in: float division",
        ),
        ("{{ Body.__class__.__mro__[1].__subclasses__() }}", "The template cannot be filled in"),
        ("{% include '/etc/passwd' %}", "The template cannot be filled in"),
        ("{% for n in range(1000000000) %}x{% endfor %}", "The template cannot be filled in"),
        ("{{ row.update({'Answer': 1}) }}", "The template cannot be filled in"),
        (" ", "The template makes no question"),
    ],
)
def test_a_template_that_cannot_be_filled_in_is_refused_by_row(template: str, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", STORIES)
    with pytest.raises(ConfigError) as refused:
        questions(LocalQuestions(), QuestionsConfig(file=str(path), template=template))
    assert words in str(refused.value)


def test_a_template_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", STORIES)
    refused = agent0("questions", "check", str(path), "--template", str(tmp_path / "none.jinja"))
    assert refused.code == 2 and "none.jinja cannot be read" in refused.err


def test_an_answer_may_be_the_box_of_a_solution(tmp_path: Path) -> None:
    rows = [{"question": f"What is {n}?", "solution": f"It is \\boxed{{{n}}}."} for n in range(40)]
    tasks = questions(LocalQuestions(), QuestionsConfig(file=str(write(tmp_path / "f.jsonl", rows)))).tasks["train"]
    assert all(task.row and task.question == f"What is {task.row.answer}?" for task in tasks)


# --- what must be mended ---------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[Sequence[Any], tuple[str, str, str]]] = {
    "two answers": ([{"question": "What is 3?", "answer": "4"}], ("51", "answer", "line 4, whose answer is '3'")),
    "other tests": (
        [PROGRAMS[0], {**PROGRAMS[0], "tests": [PROGRAMS[0]["tests"][0], "assert add_1(5) == 5"]}],
        ("2", "tests", "its tests are others"),
    ),
    "two answer columns": ([{"question": "q", "answer": "1", "target": "2"}], ("51", "target", "--columns answer=")),
    "one column twice": (['{"question": "q", "answer": 1, "answer": 2}'], ("51", "", "'answer' stands there twice")),
    "a list as answer": ([{"question": "q", "answer": [1]}], ("51", "answer", "neither text nor a number")),
    "no answer": ([{"question": "q", "answer": None}], ("51", "answer", "'answer' is missing")),
    "cut off": (['{"question": "q", "ans'], ("51", "", "It is cut off")),
    "no number": (['{"question": "q", "answer": NaN}'], ("51", "answer", "'answer' is missing")),
    "NUL": ([{"question": "a\0b", "answer": "1"}], ("51", "question", "character 2 is NUL")),
    "no object": (["7"], ("51", "", "no JSON object")),
    "a list of no objects": (["[1, 2]"], ("51", "", "no JSON object")),
    "10 MB in a cell": ([{"question": "q", "answer": "1", "note": "x" * 100, "work": "y" * 10**7}], ("", "", "")),
    "a long question": ([{"question": "q" * 10**7, "answer": "1"}], ("51", "question", "10,000,0")),
    "no tolerance": ([{"question": "q", "answer": "1", "tolerance": "near"}], ("51", "tolerance", "no tolerance")),
    "tolerance of a word": ([{"question": "q", "answer": "Rome", "tolerance": "1%"}], ("51", "tolerance", "numbers")),
    "unknown kind": ([{"question": "q", "answer": "1", "answer_type": "vibe"}], ("51", "answer_type", "no kind")),
    "tests among answers": ([{**PROGRAMS[0], "question": "f?"}], ("51", "tests", "50 other rows have none")),
    "tests without assertion": ([{**PROGRAMS[0], "tests": ["add_1(1)"]}], ("1", "tests", "asserts nothing")),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_row_is_named_with_its_column_and_the_others_are_read(name: str, tmp_path: Path) -> None:
    rows, (line, column, words) = FAULTS[name]
    alone = line in ("1", "2")
    path = write(tmp_path / "f.jsonl", rows if alone else [*GOOD, *rows])
    if not line:
        assert check(path)["rows"] == 51, "what is not read is as long as it likes"
        return
    ((where, at, fault),) = faults(path)
    assert (where, at) == (line, column) and words in fault
    read = read_questions(LocalQuestions(), QuestionsConfig(file=str(path)))
    assert read.rows.count == (len(rows) if alone else 51) and len(read.rows.tasks) >= (0 if alone else 50)


def test_every_fault_is_named_and_a_start_names_the_first(tmp_path: Path) -> None:
    rows = [*GOOD[:20], {"question": "q"}, '{"question"', *GOOD[20:], {"question": "What is 7?", "answer": "8"}]
    path = write(tmp_path / "f.jsonl", rows)
    assert [line for line, _, _ in faults(path)] == ["21", "22", "53"]
    with pytest.raises(
        ConfigError, match=r"line 21: no row .* 2 other rows are at fault, too\. agent0 questions check"
    ):
        questions(LocalQuestions(), QuestionsConfig(file=str(path)))


def test_a_question_with_two_answers_is_refused_and_one_written_in_two_ways_is_not(tmp_path: Path) -> None:
    same = write(tmp_path / "same.jsonl", [*GOOD, {"question": " what is 4? ", "answer": "4.0"}])
    read = check(same)
    assert read["duplicates"] == [
        {"location": "same.jsonl, line 51", "repeated": "same.jsonl, line 5", "similarity": 1.0}
    ]
    assert sum(read["split"].values()) == 50
    other = write(tmp_path / "other.jsonl", [*GOOD, {"question": "What is 4?", "answer": "5"}])
    refused = agent0("run", "start", "--profile", "scripted", "--questions", str(other))
    assert refused.code == 2 and "line 51: one question has two answers" in refused.err


def test_a_held_out_file_is_compared_with_the_rows_for_training(tmp_path: Path) -> None:
    heldout = write(tmp_path / "test.jsonl", [GOOD[3], *({"question": f"Is {n} odd?", "answer": "no"} for n in (2, 4))])
    read = check(write(tmp_path / "f.jsonl", GOOD), "--held-out", str(heldout))
    assert read["near_copies"] == [{"location": "f.jsonl, line 4", "repeated": "test.jsonl, line 1", "similarity": 1.0}]
    assert read["heldout"] == "test.jsonl" and read["split"]["train"] == 49 and sum(read["split"].values()) == 52
    shown = agent0("questions", "check", str(tmp_path / "f.jsonl"), "--held-out", str(heldout)).out
    assert (
        "held out: 3 rows of test.jsonl" in shown
        and "1 row nearly copies a held-out row, and is not trained on" in shown
    )
    write(heldout, [{**GOOD[3], "answer": "7"}])
    ((line, column, fault),) = faults(tmp_path / "f.jsonl", "--held-out", str(heldout))
    assert (line, column) == ("4", "answer") and "whose answer is '7'" in fault


def test_many_rows_of_one_question_are_one_task(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", [GOOD[0]] * 20_000)
    read = check(path)
    assert (read["rows"], len(read["duplicates"]), sum(read["split"].values())) == (20_000, 19_999, 1)
    assert "too few rows" in agent0("run", "start", "--profile", "scripted", "--questions", str(path)).err


def test_columns_of_an_earlier_log_are_read() -> None:
    former = {"file": "f.jsonl", "question": "Frage", "answer": "", "id": "nr"}
    assert RunConfig.recorded({"questions": former}).questions.columns == {"question": "Frage", "id": "nr"}
    new = RunConfig.model_validate({"questions": {"columns": {"answer": "a"}}})
    assert RunConfig.recorded(new.to_record()[0]) == new


def test_columns_that_cannot_be_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", GOOD)
    for words, why in (("reward=r", "names 'reward'"), ("question", "has no '='")):
        refused = agent0("questions", "check", str(path), "--columns", words)
        assert refused.code == 2 and why in refused.err


# --- kinds of files --------------------------------------------------------------------------------------------------

TABLE = [{"question": f'What is {n}, "really"?\nSay it; é', "answer": str(n)} for n in range(1, 50)]


def separated(delimiter: str, rows: Sequence[dict[str, str]] = TABLE) -> bytes:
    text = io.StringIO()
    lines = csv.DictWriter(text, ["question", "answer"], delimiter=delimiter)
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue().encode()


def saved(folder: Path, rows: Sequence[dict[str, str]], **state: object) -> Path:
    """As ``datasets`` saves a data set."""
    folder.mkdir(parents=True)
    table = pyarrow.Table.from_pylist(list(rows))
    parts = [table.slice(0, 9), table.slice(9)]
    names = [f"data-{number:05}-of-00002.arrow" for number in range(2)]
    for name, part in zip(names, parts, strict=True):
        with pyarrow.OSFile(str(folder / name), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(part)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names], **state}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_every_kind_of_file_gives_the_same_tasks(tmp_path: Path) -> None:
    buffer = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(TABLE), buffer)
    lines = "".join(f"{json.dumps(row)}\n" for row in TABLE)
    files = {
        "t.jsonl": lines.encode(), "bom/t.jsonl": lines.encode("utf-8-sig"), "wide/t.jsonl": lines.encode("utf-16"),
        "t.json": json.dumps(TABLE, indent=1).encode(), "t.csv": separated(","),
        "bom/t.csv": b"\xef\xbb\xbf" + separated(","), "semicolons/t.csv": separated(";"), "t.tsv": separated("\t"),
        "t.csv.gz": gzip.compress(separated(",")),
        "t.parquet": buffer.getvalue().to_pybytes(),
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    paths = [*(tmp_path / name for name in files), saved(tmp_path / "t", TABLE)]
    plans = [QuestionsConfig(file=str(path)) for path in paths]
    first, *others = [questions(LocalQuestions(), plan).tasks for plan in plans]
    assert len(first["train"]) > 30 and all(other == first for other in others)
    with_digests = [with_questions(small(questions={"file": str(path)})) for path in paths]
    assert len({config.questions.sha256 for config in with_digests}) == len(paths)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("short.csv", "question,answer\nq,1\nr", "row 2: no row of questions. Field 'answer' is missing"),
        ("long.csv", "question,answer\nq,1,2\n", "row 1: no row of questions. Its values ['2'] have no column"),
        ("quote.csv", 'question,answer\nq,1\n"r,2\ns,3\n', "begins in line 3: its quote does not end"),
        ("twice.csv", "question,answer,answer\nq,1,2\n", "its column 'answer' stands there twice"),
        ("empty.csv", "question,answer\n", "empty.csv has no rows"),
        ("index.csv", ",question,answer\n0,q,\n", "row 1: the gold answer is empty"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as refused:
        questions(LocalQuestions(), QuestionsConfig(file=str(tmp_path / name)))
    assert words in str(refused.value)


def test_folders_that_are_no_saved_data_set_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def error(path: Path) -> str:
        with pytest.raises(Agent0Error) as refused:
            questions(LocalQuestions(), QuestionsConfig(file=str(path)))
        return str(refused.value)

    for split in ("test", "train"):
        saved(tmp_path / "both" / split, TABLE)
    (tmp_path / "both" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert "several data sets: test, train" in error(tmp_path / "both")
    assert len(check(tmp_path / "both" / "train")["sample"]) == 10
    assert "neither state.json nor tasks" in error(tmp_path)
    assert "names rows of another" in error(saved(tmp_path / "order", TABLE, _indices_data_files=[{"filename": "x"}]))
    (tmp_path / "both" / "test" / "data-00000-of-00002.arrow").write_bytes(b"no arrow")
    assert "cannot be read" in error(tmp_path / "both" / "test")
    outside = saved(tmp_path / "outside", TABLE, _data_files=[{"filename": "../both/train/data-00000-of-00002.arrow"}])
    assert sum(map(len, questions(LocalQuestions(), QuestionsConfig(file=str(outside))).tasks.values())) == 9
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "EXTRAS=data" in error(tmp_path / "both" / "train")
