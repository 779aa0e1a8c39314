"""Files of questions: rows as they were published, columns of one's own, and files that are none."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent0.api.v1.writes import StartRequest, start_run
from agent0.assembly.validate.questions import with_questions
from agent0.errors import AuthError, ConfigError
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.infra.storage.datasets import LocalQuestions
from agent0.settings import QuestionsConfig, RunConfig
from tests.terminal import agent0 as call
from tests.test_questions import GOOD, write
from tests.world import small

ROWS = Path(__file__).parents[2] / "shared" / "benchmarks"


LAYOUTS = {
    "gsm8k": ({"question": "q {}?", "answer": "2*3=<<2*3=6>>6\n#### 6"}, "6", "math", "f/{}"),
    "words": ({"question": "q {}?", "answer": "Paris"}, "Paris", "math", "f/{}"),
    "math": ({"problem": "q {}?", "level": "Level 3", "solution": "so \\boxed{6}"}, "6", "math", "math/{}"),
    "svamp": ({"Body": "b {}.", "Question": "q?", "Answer": 6.0}, "6", "math", "svamp/{}"),
    "mbpp": (
        {"text": "Write f{0}.", "code": "def f(x): return x", "test_list": ["assert f({0}) == {0}"], "task_id": "{}"},
        "```python\ndef f(x): return x\n```",
        "code",
        "mbpp/{}",
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_rows_are_read_as_they_were_published(name: str, tmp_path: Path) -> None:
    row, answer, domain, id_ = LAYOUTS[name]
    text = [json.dumps(row).replace("{0}", str(n)).replace("{}", str(n)) for n in range(40)]
    read = questions(LocalQuestions(), QuestionsConfig(file=str(write(tmp_path / "f.jsonl", text))))
    tasks = [task for split in read.tasks.values() for task in split]
    assert read.domain == domain and {task.row.answer for task in tasks if task.row} == {answer}
    assert {task.row.id for task in tasks if task.row} == {id_.format(n) for n in range(40)}
    assert {task.level for task in tasks} == {3 if name == "math" else 1}
    assert all(bool(task.row and task.row.tests) == (domain == "code") for task in tasks)


def test_rows_keep_the_ids_that_they_have(tmp_path: Path) -> None:
    for name in ("math", "svamp", "gsm8k"):
        text = [json.dumps(LAYOUTS[name][0] | {"id": n}).replace("{}", str(n)) for n in range(40)]
        read = questions(LocalQuestions(), QuestionsConfig(file=str(write(tmp_path / f"{name}.jsonl", text))))
        ids = {task.row.id for split in read.tasks.values() for task in split if task.row}
        assert ids == {str(n) for n in range(40)}


def test_columns_of_ones_own_are_named(tmp_path: Path) -> None:
    rows = [{"Frage": f"Was ist {n}?", "Antwort": n, "nr": n * 7} for n in range(60)]
    names = {"question": "Frage", "answer": "Antwort", "id": "nr"}
    read = questions(LocalQuestions(), QuestionsConfig(file=str(write(tmp_path / "f.jsonl", rows)), columns=names))
    found = {
        task.row.id: (task.question, task.row.answer) for split in read.tasks.values() for task in split if task.row
    }
    assert found == {str(row["nr"]): (row["Frage"], str(row["Antwort"])) for row in rows}


def test_the_same_question_is_held_out_whatever_file_it_is_in(tmp_path: Path) -> None:
    rows = [{"question": f"How many are {n}?", "answer": n} for n in range(80)]
    split = {}
    for name, some in (("a.jsonl", rows), ("b.jsonl", rows[::-2])):
        read = questions(LocalQuestions(), QuestionsConfig(file=str(write(tmp_path / name, some))))
        split[name] = {task.question: kind for kind, tasks in read.tasks.items() for task in tasks}
    assert split["b.jsonl"].items() <= split["a.jsonl"].items() and len(set(split["a.jsonl"].values())) == 3


@pytest.mark.skipif(not ROWS.is_dir(), reason="no benchmark rows here")
@pytest.mark.parametrize(
    ("name", "count"), [("gsm8k_train500", 500), ("svamp300", 300), ("mbpp_sanitized", 427), ("math500_first300", 300)]
)
def test_published_files_are_read_whole(name: str, count: int) -> None:
    config = with_questions(RunConfig.model_validate({"questions": {"file": str(ROWS / f"{name}.jsonl")}}))
    read = questions(LocalQuestions(), config.questions)
    sizes = {split: len(of_split) for split, of_split in read.tasks.items()}
    assert (
        sum(sizes.values()) + len(read.copies) == count
        and len(read.copies) <= 1
        and 0.75 < sizes["train"] / count < 0.9
    )
    assert (config.evaluation.validation, config.evaluation.test) == (sizes["validation"], sizes["test"])


BAD: dict[str, tuple[Sequence[Any], dict[str, Any], str]] = {
    "empty": ([], {}, r"f\.jsonl has no rows"),
    "no answer": (
        [*GOOD, {"question": "q"}],
        {},
        r"f\.jsonl, line 51: no row of questions\. Field 'answer' is missing",
    ),
    "answer of null": ([GOOD[0], {"question": "q", "answer": None}], {}, "line 2: no row .* Field 'answer' is missing"),
    "empty answer": ([GOOD[0], {"question": "q", "answer": " "}], {}, "line 2: the gold answer is empty"),
    "solution without a mark": ([{"question": "q", "answer": "a\nb"}], {}, "line 1: .* nothing marks its answer"),
    "one id twice": (
        [{**GOOD[0], "id": 7}, {**GOOD[1], "id": 7}],
        {},
        r"line 2: id '7' is that of line 1",
    ),
    "unknown column": (
        GOOD,
        {"columns": {"question": "Frage"}},
        "line 1: .*Field 'Frage' is missing. It has question, answer",
    ),
    "no known column": ([{"q": 1, "a": 2}], {}, "Field 'answer' is missing. It has q, a.*GSM8K, MATH, SVAMP, MBPP"),
    "no json": ([*GOOD, "{"], {}, "line 51: no JSON. It is cut off"),
    "half a character": ([{"question": "\ud800", "answer": "1"}], {}, "line 1: no row .*surrogates not allowed"),
    "too long": ([{"question": "x" * 40_000, "answer": "1"}], {}, "line 1: no row .*32,768 are the most"),
    "too long for any reader": ([{"question": "q", "answer": "y" * 10_000_000}], {}, "'answer': it has 10,000,000"),
    "infinite": ([{"question": "q", "answer": float("inf")}], {}, "line 1: .*'answer': it is infinite"),
    "level in words": ([{"question": "q", "answer": "1", "level": "hard"}], {}, "'level': 'hard' is no level"),
    "level below one": ([{"question": "q", "answer": "1", "level": -4}], {}, "'level': '-4' is no level"),
    "tests in two columns": (
        [{"question": "q", "tests": "assert f(1)"}, {"question": "r", "test_list": ["assert f(2)"]}],
        {},
        "line 2: .*'test_list': its tests are there, those of other rows in 'tests'",
    ),
    "too few": (GOOD[:1], {}, "too few rows"),
    "no tests": ([{"text": "t", "code": "c", "test_list": [], "task_id": 1}], {}, "line 1: no row of mbpp.*no tests"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_none_is_refused_in_a_line(name: str, tmp_path: Path) -> None:
    rows, columns, words = BAD[name]
    config = small(questions={"file": str(write(tmp_path / "f.jsonl", rows)), **columns})
    with pytest.raises(ConfigError, match=words) as raised:
        with_questions(config)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no file .*x\.jsonl"):
        with_questions(small(questions={"file": str(tmp_path / "x.jsonl")}))


async def test_over_http_it_takes_an_administrator_to_name_a_file() -> None:
    class Context:
        def require_log(self) -> None:
            """There is one."""

    key = SimpleNamespace(name="guest", may=lambda scope: scope != "admin")
    request = StartRequest(settings={"run.questions.file": "/etc/passwd"})
    with pytest.raises(AuthError, match=r"guest may not set run\.questions\.file"):
        await start_run(Context(), request, "", key)  # type: ignore[arg-type]


def test_a_run_without_a_file_has_no_ledger(tmp_path: Path) -> None:
    size = ("--profile", "scripted", "--iterations", "1", "--tasks", "2", "--attempts", "1")
    evaluation = ("--set", "run.evaluation.validation=2", "--set", "run.evaluation.test=0")
    assert call("run", "start", *size, *evaluation, home=tmp_path).code == 0
    refused = call("questions", "ledger", home=tmp_path)
    assert refused.code == 1 and "has no file of questions" in refused.err
