"""Rows of benchmarks, from what their publishers write to items and grades: one small row of each, field by field."""

import asyncio
import json
from typing import Any

import pytest

from agent0.errors import ConfigError
from agent0.evaluation.benchmarks import Item, benchmarks, converted, read_items
from agent0.evaluation.benchmarks.rows.upstream import HOST, SOURCES
from agent0.grading import Grade
from agent0.verification.programs import Problem
from agent0.verification.programs.judged import values
from tests.world import KnowingSandbox

MATH = {"idx": 7, "problem": "p", "solution": r"so \boxed{1} or \boxed{\frac{1}{2}}.", "type": "Algebra"}
STORY = {"activity_label": "Ice", "ctx_a": "A man", "ctx_b": "then", "endings": ["a", "b", "c", "d"], "ind": 4,
         "split_type": "indomain", "source_id": "s~1"}  # fmt: skip
BODY = {"idx": 3, "Body": " 8 apples ", "Question": " How many? ", "Type": "Sum"}
ASKED = (
    "Please choose the correct answer to the question: Why?\n\n"
    "Answer1: one Answer2: two Answer3: three\n\nAnswer format: x"
)
ROW = {"answer": "1", "solution": "s", "subject": "t", "level": 2}


def lines(*rows: dict[str, Any]) -> str:
    return "\n\n".join(map(json.dumps, rows))


@pytest.mark.parametrize(
    ("name", "path", "text", "expected"),
    [
        ("gsm8k", "", lines({"question": "q", "answer": "1 #### x #### 1,234 "}),
         [{"id": "gsm8k/test/0", "question": "q", "answer": "1234", "solution": "1 #### x #### 1,234 "}]),
        ("math500", "", lines({"unique_id": "u", "problem": "p", **ROW}),
         [{"id": "math/u", "question": "p", **ROW}]),
        ("math", "", lines(MATH | {"level": "Level 5"}, MATH | {"idx": 8, "level": "Level ?"}),
         [{"id": "math/test5000/7", "question": "p", "answer": r"\frac{1}{2}", "solution": MATH["solution"],
           "subject": "Algebra", "level": 5},
          {"id": "math/test5000/8", "question": "p", "answer": r"\frac{1}{2}", "solution": MATH["solution"],
           "subject": "Algebra"}]),
        ("svamp", "", lines(BODY | {"Answer": "8.0"}, BODY | {"Answer": 2.5, "Body": "So?"}),
         [{"id": "svamp/3", "question": "8 apples. How many?", "answer": "8", "subject": "Sum"},
          {"id": "svamp/3", "question": "So? How many?", "answer": "2.5", "subject": "Sum"}]),
        ("aime24", "", lines({"problem": "p", "answer": 5}), [{"id": "aime24/0", "question": "p", "answer": "5"}]),
        ("bbh", "bbh/navigate.json", json.dumps({"examples": [{"input": "i", "target": "Yes"}]}),
         [{"id": "bbh/navigate/0", "question": "i", "answer": "Yes"}]),
        ("arc_easy", "ARC-Easy/test.json", json.dumps([{"instruction": ASKED, "answer": "answer2"}]),
         [{"id": "arc_easy/test/0", "question": "Why?", "choices": ["one", "two", "three"], "labels": ["A", "B", "C"],
           "answer": "B"}]),
        ("hellaswag", "", lines(STORY | {"label": "2"}),
         [{"id": "hellaswag/ind/4", "question": "Ice: A man then", "choices": ["a", "b", "c", "d"],
           "labels": ["A", "B", "C", "D"], "answer": "C", "activity_label": "Ice", "split_type": "indomain",
           "source_id": "s~1"}]),
        ("mbpp", "", json.dumps([{"task_id": 2, "prompt": "p", "code": "c", "test_imports": [], "test_list": ["t"]}]),
         [{"id": "mbpp/2", "task_id": 2, "prompt": "p", "code": "c", "test_imports": [], "test_list": ["t"]}]),
    ],
)  # fmt: skip
def test_what_a_publisher_writes_becomes_rows(name: str, path: str, text: str, expected: list[dict[str, Any]]) -> None:
    assert [row for _, row in converted(benchmarks()[name], text, path)] == expected


def test_where_a_file_is_and_what_is_no_row() -> None:
    (one,) = SOURCES["gsm8k"].files
    assert one.url() == f"{HOST}/{one.repository}/{one.commit}/{one.path}" == one.url(f"{HOST}/")
    asked = json.dumps([{"instruction": ASKED, "answer": "answer1"}])
    [(_, challenge)] = converted(benchmarks()["arc_challenge"], asked, "x/ARC-Challenge/")
    assert challenge["id"] == "arc_challenge/test/0"
    with pytest.raises(ConfigError, match=r"row 1: no row of arc_easy\. ValueError: it is no instruction with answers"):
        converted(benchmarks()["arc_easy"], json.dumps([{"instruction": "Why?", "answer": "answer1"}]), "x")


def read(name: str, **row: Any) -> Item:
    (item,) = read_items(benchmarks()[name], json.dumps(row), "rows.jsonl")
    return item


def test_questions_with_one_answer() -> None:
    plain = read("gsm8k", id="a", question="q", answer="18", solution="s")
    assert (
        plain == Item("a", "q", "18", "s") and read("svamp", id="a", question="q", answer="1").reference == "\\boxed{1}"
    )
    assert read("aime24", id="a", question="q", answer="025") == Item("a", "q", "25", "\\boxed{025}")
    told = read("math", id="a", question="q", answer="1", solution="s", subject="Algebra", level=3)
    assert dict(told.facts) == {"subject": "Algebra", "level": "3"}


def test_questions_with_letters_and_options() -> None:
    row = {"id": "a", "question": "Why?", "choices": ["x", "y"], "labels": ["A", "B"], "answer": "B"}
    asked = "Why?\nA. x\nB. y\nAnswer with the letter of the right choice."
    assert read("arc_easy", **row) == Item(
        "a", asked, "B", "\\boxed{B}", ("A", "B"), ("x", "y"), stem="Why?", facts={"choices": "2"}
    )
    story = row | {"question": "How [title] to  do", "choices": ["[step] Go [substeps] on.", "y"], "source_id": "s"}
    found = read("hellaswag", **story, split_type="zero", activity_label="Ice")
    assert (found.stem, found.choices, found.cluster) == ("How. to do", ("Go on.", "y"), "s")
    assert dict(found.facts) == {"choices": "2", "split_type": "zero", "activity_label": "Ice"}
    bbh = read("bbh", id="bbh/navigate/3", question="Go?\nOptions:\n- Yes", answer="Yes")
    own = "Go?\nOptions:\n- Yes", "Go?"
    assert bbh == Item(
        "bbh/navigate/3",
        own[0],
        "Yes",
        "Answer: Yes",
        cluster="navigate",
        facts={"subject": "navigate"},
        restatements=own,
    )


def test_functions_to_write() -> None:
    prompt = 'def f(x):\n    """Add one. For example\n    >>> f(1)\n    2\n    """\n'
    row = {"task_id": "H/0", "prompt": prompt, "entry_point": "f", "canonical_solution": "    return x + 1\n"}
    test = "def check(candidate):\n    pass"
    found = read("humaneval", **row, test=test)
    asked = f"Complete this Python function. Reply with the whole function.\n```python\n{prompt.rstrip()}\n```"
    assert found.problem == Problem(
        "def check(candidate):\n    pass", prompt, "f", 15.0, reference=row["canonical_solution"]
    )
    assert (found.question, found.gold, found.reference, found.id) == (asked, "f", row["canonical_solution"], "H/0")
    assert found.restatements == (prompt, "Add one. For example\n>>> f(1)\n2", "Add one. For example\n", "Add one. ")
    tests = ["assert g(1) == 2", "assert g(2) == 3"]
    mbpp = read(
        "mbpp",
        id="m/1",
        prompt="Add one.",
        code="h = 0\ndef g(x): return x + 1",
        test_imports=["import math"],
        test_list=tests,
    )
    assert mbpp.problem == Problem(
        "import math\nassert g(1) == 2\nassert g(2) == 3", "", "g", 30.0,
        reference="```python\nh = 0\ndef g(x): return x + 1\n```",
    )  # fmt: skip
    assert mbpp.question == f"Add one. Reply with the whole Python function. It must pass this test:\n{tests[0]}"
    assert mbpp.restatements == (
        "Add one.\nassert g(1) == 2\nassert g(2) == 3",
        "Add one.\nassert g(1) == 2",
        "Add one.",
    )
    assert (mbpp.gold, mbpp.id) == ("g", "m/1")


PLUS = {"task_id": "Mbpp/2", "entry_point": "f", "canonical_solution": "def f(x): return x", "atol": 0}


@pytest.mark.parametrize(
    ("assertion", "base", "plus", "calls", "rule"),
    [
        ("assert f((1, 2)) == 3", [[[1, 2]]], "[[[3]], [[1, 2]]]", [[(1, 2)], [(3,)]], "equal"),
        ("assert set(f((1, 2), 'a')) == {1}", [[[1], "a"]], {}, [[(1,), "a"]], "set"),
        ("assert f({1, 2})", [[[1]]], [], [[{1}]], "truth"),
        ("assert f({'a': (1,)}) == 1", [[{"a": [2]}]], [], [[{"a": (2,)}]], "equal"),
        ("assert f([(1, 2)]) == 1", [[[[3, 4]]]], [], [[[(3, 4)]]], "equal"),
        ("assert f(1.5) == 1", [["2.5"]], [], [[2.5]], "equal"),
        ("assert f(1) == 1", [["1j"]], [], [[1j]], "equal"),
        ("assert f('x') == 1", [["2.5"]], [], [["2.5"]], "equal"),
        ("assert f(y) == 1", [[[1, [2]]]], [], [[[1, [2]]]], "equal"),
        ("assert f({(1,)}) == 1", [[[[[1]]]]], [], [[{((1,),)}]], "equal"),
        ("assert g(1) == f(2", [[1]], [], [[1]], "equal"),
    ],
)
def test_arguments_are_what_the_assertions_show(
    assertion: str, base: list[Any], plus: Any, calls: list[list[Any]], rule: str
) -> None:
    row = PLUS | {
        "prompt": f'"""\nDo it.\n{assertion}\n"""\n',
        "assertion": assertion,
        "base_input": base,
        "plus_input": plus,
    }
    found = read("mbppplus", **row)
    data = json.loads(found.data)
    assert [values.unpack(call) for call in data["calls"]] == [["f", call, {}] for call in calls]
    assert (data["rule"], data["atol"]) == (rule, 0.0)
    assert found.question == f"Do it.\n{assertion}\nReply with the whole Python function."
    assert found.restatements == (f"Do it.\n{assertion}", "Do it.") and found.problem == Problem(
        "", "", "f", 60.0, 4096
    )


@pytest.mark.parametrize(("task", "rule"), [("HumanEval/32", "zero"), ("HumanEval/3", "equal")])
def test_a_zero_of_a_polynomial_is_any(task: str, rule: str) -> None:
    row = PLUS | {"task_id": task, "prompt": "def f(x):\n", "base_input": [[1]], "plus_input": [], "atol": 0.5}
    found = read("humanevalplus", **row)
    assert json.loads(found.data) == {"calls": [values.pack(["f", [1], {}])], "rule": rule, "atol": 0.5}
    assert (found.problem, found.id) == (Problem("", "def f(x):\n", "f", 60.0, 4096), task)


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("(B)", "(B)", Grade(True, "letter", "B", "B")),
        ("B", " b ", Grade(True, "letter", "B", "B")),
        ("B", r"\text{B}", Grade(True, "letter", "B", "B")),
        ("B", "(B) because", Grade(True, "letter", "B", "B")),
        ("B", "Bad", Grade(False, "letter", "B", "Bad")),
        ("B", "x" * 50, Grade(False, "letter", "B", "x" * 40)),
        ("B", "A", Grade(False, "letter", "B", "A")),
        ("Yes", " yes.", Grade(True, "text", "Yes", " yes.")),
        ("Yes", r"$\text{Yes}$", Grade(True, "text", "Yes", r"$\text{Yes}$")),
        ("Yes", "n" * 200, Grade(False, "text", "Yes", "n" * 100)),
        ("] )", "])", Grade(True, "text", "] )", "])")),
        ("] }", "]", Grade(False, "text", "] }", "]")),
        ("Yes", None, Grade(False, "no answer", "Yes")),
    ],
)
def test_short_answers_are_graded_exactly(gold: str, answer: str | None, expected: Grade) -> None:
    found = asyncio.run(benchmarks()["bbh"].judge(Item("x", "?", gold, ""), "", answer, KnowingSandbox()))
    assert found == expected


@pytest.mark.parametrize(("answer", "correct"), [("12", True), ("12.0", True), ("13", False), ("6+6", False)])
def test_counts_are_graded_by_value(answer: str, correct: bool) -> None:
    found = asyncio.run(benchmarks()["bbh"].judge(Item("x", "?", "12", ""), "", answer, KnowingSandbox()))
    assert found.correct is correct


def test_a_letter_or_none_and_a_program_or_none() -> None:
    item = Item("x", "?", "B", "", ("A", "B"), ("one", "two"))
    judge = benchmarks()["arc_easy"].judge

    def graded(reply: str, answer: str | None) -> Grade:
        return asyncio.run(judge(item, reply, answer, KnowingSandbox()))  # type: ignore[arg-type]

    assert (
        graded("", "B")
        == graded("It is. The answer is B", None)
        == graded("", "two")
        == Grade(True, "letter", "B", "B")
    )
    assert graded("B", "A") == Grade(False, "letter", "B", "A")
    assert graded("", "z" * 200) == Grade(False, "no letter of a choice", "B", "z" * 100)
    assert graded("?", None) == Grade(False, "no letter of a choice", "B", "")
    for name in ("mbpp", "mbppplus"):
        found = asyncio.run(benchmarks()[name].judge(item, " ", None, KnowingSandbox()))  # type: ignore[arg-type]
        assert found == Grade(False, "no program", "B")


def test_held_out_items_are_graded_by_the_runs_own_verifier() -> None:
    entry = benchmarks()["heldout_math"]
    assert entry.make
    for item in entry.make(6, 2):
        assert item.reference == f"\\boxed{{{item.gold}}}"
        for reply, answer, correct in (("", item.gold, True), (item.reference, None, True), ("", "none", False)):
            found = asyncio.run(entry.judge(item, reply, answer, KnowingSandbox()))  # type: ignore[arg-type]
            assert found.correct is correct and found.expected == item.gold
