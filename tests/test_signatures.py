"""A solution's signature is that of its skill: names and numbers do not change it, another way of solving does."""

import builtins
from keyword import iskeyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.values import Task
from agent0.rewards.skill_signature import LENGTH, of_calls, of_program, of_task
from agent0.rewards.tool_utility import rests_on, useful
from agent0.state.run_state import AttemptState, TaskState, ToolCallRecord

PROGRAM = """def area({a}, {b}):
    {c} = {a} * {b}
    return {c} if {c} > {n} else 0
print(area({n}, 4))"""
OTHERS = [
    "print(sum([3, 4]))",
    "print(max([3, 4]))",
    "print(sorted([3, 4])[0])",
    "n = 3\nwhile n < 100:\n    n *= 2\nprint(n)",
    "for n in range(3):\n    print(n)",
    "print(3 + 4)",
    "print(3 * 4)",
]
NAME = st.from_regex(r"[a-z]{1,6}", fullmatch=True).filter(
    lambda name: name != "area" and not iskeyword(name) and not hasattr(builtins, name)
)
"""A builtin's name stays what it is, whoever takes it."""


@given(st.lists(NAME, min_size=3, max_size=3, unique=True), st.integers(0, 10**9))
def test_other_names_and_numbers_keep_a_programs_signature(names: list[str], number: int) -> None:
    own = dict(zip("abc", names, strict=True))
    assert of_program(PROGRAM.format(**own, n=number)) == of_program(PROGRAM.format(a="a", b="b", c="c", n=7))


def test_another_skill_has_another_signature() -> None:
    assert len({of_program(text) for text in OTHERS}) == len(OTHERS)


@given(st.text(max_size=80))
def test_any_text_has_one(text: str) -> None:
    assert len(of_program(text)) == LENGTH


def made(code: str, output: str = "7\n", ok: bool = True, name: str = "python") -> ToolCallRecord:
    return ToolCallRecord(name, {"code": code}, ok, output)


def test_a_trace_is_its_tools_and_the_shapes_of_what_they_were_given() -> None:
    one, two = made("print(3+4)"), made("print(len('abc'))")
    assert of_calls([one, two]) == of_calls([made("print(5+6)"), made("print(len('xy'))")]) != of_calls([two, one])
    assert of_calls([one]) != of_calls([made("print(3+4)", name="shell")]) and of_calls([]) == ""


def solved(*attempts: AttemptState, program: str = "") -> TaskState:
    task = Task(question="q", domain="math", family="open", level=1, canonical="q", program=program)
    return TaskState(0, "math", "open", 1, proposal=task, attempts={f"a{n}": one for n, one in enumerate(attempts)})


def test_a_tasks_skill_is_how_it_was_solved() -> None:
    short = AttemptState(1, correct=True, calls=(made("print(3+4)"),))
    long = AttemptState(0, correct=True, calls=(made("print(3+4)"), made("print(2*3)")))
    wrong = AttemptState(2, correct=False, calls=(made("print(max(3, 4))"),))
    alone = AttemptState(3, correct=True)
    assert of_task(solved(long, short, wrong)) == of_task(solved(wrong, short)) == of_calls(short.calls)
    assert of_task(solved(wrong)) == of_task(solved()) == ""
    assert of_task(solved(alone, program="print(9)")) == of_program("print(9)") != of_task(solved(alone)) != ""


@pytest.mark.parametrize(
    ("call", "use"),
    [
        (made("print(3+4)"), True),
        (made("import sympy\nprint(sympy.factorint(91))"), True),
        (made("print([1, 2, 3][1])"), True),
        (made("x+4", name="sympy"), True),
        (made("print(7)"), False),
        (made("answer = -7\nprint(str(answer))"), False),
        (made(""), False),
        (made("pass"), False),
        (made("print(3+4)", output=" \n"), False),
        (made("print(3+4)", ok=False), False),
        (made("print(3+4)", name="plan"), False),
        (made("this is no program", name="search"), True),
    ],
)
def test_a_call_is_useful_where_it_ran_and_did_something(call: ToolCallRecord, use: bool) -> None:
    assert bool(useful([call])) == use
    assert useful([call, call]) == ([call] if use else [])


@pytest.mark.parametrize(
    ("answer", "code", "question", "rests"),
    [
        ("7", "print(3+4)", "What is 3+4?", True),
        ("7", "print(7+0)", "What is 3+4?", False),
        ("7", "print(7*1)", "What is 7*1?", True),  # it stood in the question
        ("8", "print(3+4)", "What is 3+4?", False),
        (None, "print(3+4)", "What is 3+4?", False),
        ("7", "print(7)", "What is 7?", False),
    ],
)
def test_an_answer_rests_on_a_call_that_was_not_handed_it(
    answer: str | None, code: str, question: str, rests: bool
) -> None:
    assert rests_on(answer, [made(code)], question) == rests


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=20))
def test_use_of_any_text_can_be_told(code: str, output: str, answer: str) -> None:
    call = made(code, output)
    assert useful([call]) in ([], [call])
    assert rests_on(answer, [call], "") in (True, False)
