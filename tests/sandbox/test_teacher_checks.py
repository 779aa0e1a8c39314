"""A teacher's functions with tests and puzzles with a checker: read in the spellings of language models, hostile ones
refused by name, and verdicts that no answer can forge. All of it in the real sandbox."""

import json
from collections import Counter
from itertools import count
from typing import Any

import pytest

from agent0.assembly.validate.run_config import check_names
from agent0.events.runs import RunFailed
from agent0.events.tasks import ResultVerified, TaskAccepted, TaskAttempted, TaskProposed, TaskRejected
from agent0.events.values import Task
from agent0.infra.sandbox import Bubblewrap
from agent0.ports.models import GenerateRequest, Generation
from agent0.rollout.teacher import read_proposal
from agent0.settings import RunConfig
from agent0.verification.task_fault import task_fault
from agent0.verification.verifiers import Verdict, checker, tests, verifier_for
from tests.play import play
from tests.spellings import fenced
from tests.test_climb import ByRole
from tests.world import ports, small, started

in_the_sandbox = pytest.mark.asyncio(loop_scope="session")

CODE = {
    "question": "Write a function twice(n) that returns 2 * n.",
    "program": "def twice(n):\n    return 2 * n",
    "tests": "assert twice(3) == 6\nassert twice(-1) == -2\nassert twice(0) == 0",
}
LOGIC = {
    "question": "Name a number between 20 and 60 that 7 divides.",
    "program": "print(35)",
    "checker": "def check(answer):\n    return 20 < int(answer) < 60 and int(answer) % 7 == 0",
}


def task_in(text: str, domain: str = "code") -> Task:
    task, problem = read_proposal(text, domain, "open", 1)
    assert task is not None, f"{problem}\n{text}"
    return task


def without(fields: dict[str, str], name: str, **more: Any) -> dict[str, Any]:
    return {key: text for key, text in fields.items() if key != name} | more


def code_spellings() -> list[str]:
    question, program, asserts = CODE.values()
    lines = asserts.splitlines()
    bare = [line.removeprefix("assert ") for line in lines]
    block, python = fenced(asserts, "python"), fenced(program, "python")
    as_function = "def test_twice():\n" + "\n".join(f"    {line}" for line in lines)
    handed = "def check(candidate):\n" + "\n".join(f"    {line.replace('twice', 'candidate')}" for line in lines)
    objects: list[dict[str, Any]] = [
        CODE, {**CODE, "tests": lines}, {**CODE, "tests": bare}, {**CODE, "tests": "\n".join(bare)},
        {**CODE, "tests": [f"print({line})" for line in bare]},
        {**CODE, "tests": block, "program": python},
        {**CODE, "tests": as_function}, {**CODE, "tests": handed},
        *(without(CODE, "tests", **{name: lines}) for name in ("test", "Test Cases", "assertions", "test_list")),
        *(without(CODE, "program", **{name: program}) for name in ("solution", "reference_solution", "code")),
        without(CODE, "tests", program=f"{program}\n\n\n{asserts}"),
        without(CODE, "tests", program=f"{program}\n\n{as_function}\n\ntest_twice()\nprint('ok')"),
    ]  # fmt: skip
    return [
        *map(json.dumps, objects), repr(CODE), fenced(json.dumps(CODE)),
        f"Question: {question}\nProgram:\n{python}\nTests:\n{block}\n",
        f"**Question:** {question}\n\n**Program:**\n{python}\n\n**Test cases:**\n{block}\n\nHave fun.",
        f"## Question\n{question}\n\n## Solution\n{python}\n\n## Unit tests\n{block}",
        f"Question: {question}\nProgram:\n{python}\nTests:\n# small ones\n{asserts}",
        f"Question: {question}\nProgram:\n{python}\nTests:\n- `{lines[0]}`\n- `{lines[1]}`\n- `{lines[2]}`",
        f"Question: {question}\nProgram:\n{fenced(f'{program}{2 * chr(10)}{asserts}', 'python')}",
        f"<question>{question}</question>\n<program>{program}</program>\n<tests>{asserts}</tests>",
    ]  # fmt: skip


def logic_spellings() -> list[str]:
    question, _, check = LOGIC.values()
    python, body = fenced(check, "python"), "20 < int(answer) < 60 and int(answer) % 7 == 0"
    objects: list[dict[str, Any]] = [
        LOGIC, without(LOGIC, "program", answer="35"), without(LOGIC, "program", answer=35),
        without(LOGIC, "program", reference_answer="35"), {**LOGIC, "checker": body}, {**LOGIC, "checker": python},
        {**LOGIC, "checker": f"lambda answer: {body}"}, {**LOGIC, "checker": "check = lambda a: 20 < int(a) == 35"},
        {**LOGIC, "checker": check.replace("check", "is_valid")},
        {**LOGIC, "checker": f"{check}\n\nprint(check('35'))"},
        {**LOGIC, "checker": "def fits(a): return 20 < n(a) == 35\n\ndef n(text): return int(text)"},
        without(LOGIC, "checker", program=check, answer=35),
        *(without(LOGIC, "checker", **{name: check}) for name in ("check", "verifier", "Checking function")),
    ]  # fmt: skip
    return [
        *map(json.dumps, objects), repr(LOGIC),
        f"Question: {question}\nAnswer: 35\nChecker:\n{python}",
        f"**Question:** {question}\n\n**Answer:** 35.\n\n**Checker:**\n{python}",
        f"Question: {question}\nProgram: print(35)\nVerifier:\n{python}",
        f"Question: {question}\nAnswer: 35\nProgram:\n{python}",
        f"<question>{question}</question><answer>35</answer><checker>{check}</checker>",
    ]  # fmt: skip


@in_the_sandbox
async def test_each_spelling_is_a_task_that_is_judged_by_what_it_brings(sandbox: Bubblewrap) -> None:
    read = Counter[str]()
    for text in dict.fromkeys(code_spellings()):
        task = task_in(text)
        assert (task.question, task.checker, verifier_for(task).name) == (CODE["question"], "", "tests"), text
        read[f"{task.program}\n{task.tests}"] += 1
    for text in dict.fromkeys(logic_spellings()):
        task = task_in(text, "logic")
        assert (task.question, task.tests, verifier_for(task).name) == (LOGIC["question"], "", "checker"), text
        read[f"{task.program}\n{task.checker}"] += 1
    assert sum(read.values()) >= 38
    for both in read:
        names = dict[str, Any]()
        exec(both, names)
        assert "twice" in names or (names["check"]("35") and "check" in names)
    objects = "class Pile:\n    def __init__(self): self.all = []\n    def add(self, n): self.all.append(n)\n"
    asserts = "pile = Pile()\npile.add(2)\nassert pile.all == [2]"
    pile = {"question": "Write a class Pile.", "program": objects, "tests": asserts}
    assert await task_fault(task_in(json.dumps(pile)), sandbox) is None
    assert await task_fault(task_in(json.dumps(CODE)), sandbox) is None
    assert await task_fault(task_in(json.dumps(LOGIC), "logic"), sandbox) is None


def test_a_question_that_does_not_name_its_function_is_told_how_it_begins() -> None:
    task = task_in(json.dumps({**CODE, "question": "Double a number."}))
    assert task.question == "Double a number.\nReply with the whole program. It has: def twice(n):"


def test_what_prints_an_answer_stays_a_question_with_one() -> None:
    """Whatever else stands beside it."""
    for more in ({"tests": "assert 3 == 3"}, {"check": "3 * 5 = 15"}, {"answer": {"a": 1}}, {"test": ["x", "y"]}):
        task = task_in(json.dumps({"question": "Why?", "program": "n = 3\nassert n > 2\nprint(n)", **more}))
        assert (task.tests, task.checker, task.program[-8:]) == ("", "", "print(n)")
    text = f"Question: Why?\nProgram:\n{fenced('print(15)', 'python')}\nCheck: 3 * 5 = 15\nAnswer: 15"
    assert (task_in(text).program, task_in(text).checker) == ("print(15)", "")


UNREADABLE = {
    "the tests assert nothing": {**CODE, "tests": "print(twice(2))"},
    "the tests are no Python": {**CODE, "tests": "assert twice(2) is four!"},
    "the tests use nothing that the program defines": {**CODE, "tests": "assert thrice(2) == 6"},
    "tests must be text or a list of texts": {**CODE, "tests": [{"input": 3, "output": 6}]},
    "the checker is no function of one answer": {**LOGIC, "checker": "def check(answer, key): return answer == key"},
    "the checker comes without a right answer": without(LOGIC, "program"),
    "the tests is longer than": {**CODE, "tests": "assert twice(1) == 2\n" * 400},
}


@pytest.mark.parametrize("problem", UNREADABLE)
def test_what_can_judge_nothing_is_unreadable(problem: str) -> None:
    task, why = read_proposal(json.dumps(UNREADABLE[problem]), "code", "open", 1)
    assert task is None and problem in why


HOSTILE: dict[str, tuple[dict[str, str], str, str]] = {
    "fails": ({**CODE, "tests": "assert twice(3) == 7"}, "broken_program", "does not pass its own tests"),
    "ends": ({**CODE, "program": "import os\ndef twice(n): os._exit(0)"}, "broken_program", "own tests: call 1"),
    "loops": ({**CODE, "program": "def twice(n):\n    while True: pass"}, "broken_program", "timeout"),
    "tests loop": ({**CODE, "tests": "while True: pass\nassert twice(3) == 6"}, "broken_program", "timeout"),
    "never called": ({**CODE, "tests": "if False:\n    assert twice(3) == 6"}, "broken_program", "no test ran"),
    "one value": ({**CODE, "tests": "assert twice(3) == 6\nassert twice(3) > 0"}, "weak_check", "first result again"),
    "about one value": ({**CODE, "tests": "assert abs(twice(3) - 6) < 0.1"}, "weak_check", "first result again"),
    "recursive": (
        {**CODE, "program": "def twice(n): return 2 + twice(n - 1) if n else 0", "tests": "assert twice(5) == 10"},
        "weak_check", "first result again",
    ),
    "any value": ({**CODE, "tests": "assert twice(3) or True"}, "weak_check", "returns None"),
    "a type": ({**CODE, "tests": "assert isinstance(twice(2), int)"}, "weak_check", "returns True"),
    "its argument": ({**CODE, "tests": "assert twice(0) == 0\nassert twice('') == ''"}, "weak_check", "its argument"),
    "solution in the question": (
        {**CODE, "question": f"Write twice.\n{fenced(CODE['program'], 'python')}"},
        "trivial", "holds a program",
    ),
    "all": ({**LOGIC, "checker": "def check(answer): return True"}, "weak_check", "accepts ''"),
    "any text": ({**LOGIC, "checker": "def check(answer): return len(answer) > 0"}, "weak_check", "accepts '?'"),
    "any number": ({**LOGIC, "checker": "def check(answer): return answer.isdigit()"}, "weak_check", "accepts '36'"),
    "any word": (
        {**LOGIC, "program": "print('Ann')", "checker": "def check(answer): return answer.isalpha()"},
        "weak_check", "accepts 'Ano'",
    ),
    "yes and no": (
        {**LOGIC, "program": "print('yes')", "checker": "def check(a): return a in ('yes', 'no')"},
        "weak_check", "accepts 'no'",
    ),
    "none": ({**LOGIC, "checker": "def check(answer): return answer == 35"}, "broken_program", "its own answer"),
    "raises": ({**LOGIC, "checker": "def check(answer): return answer + 1 > 0"}, "broken_program", "its own answer"),
    "is no end": ({**LOGIC, "checker": "def check(answer):\n    while True: pass"}, "broken_program", "timeout"),
    "loops on others": (
        {**LOGIC, "checker": "def check(answer):\n    while answer != '35': pass\n    return True"},
        "broken_program", "timeout",
    ),
    "runs answers": ({**LOGIC, "checker": "def check(answer): return eval(answer) == 35"}, "weak_check", "eval"),
    "imports": ({**LOGIC, "checker": "import sympy\ndef check(a): return sympy.S(a) == 35"}, "weak_check", "sympy"),
    "prints nothing": ({**LOGIC, "program": "35"}, "broken_program", "printed 0 characters"),
    "states": ({**LOGIC, "question": r"Name a number like \boxed{42}."}, "trivial", "states its answer"),
}  # fmt: skip


@in_the_sandbox
@pytest.mark.parametrize("name", HOSTILE)
async def test_what_cannot_judge_is_refused_by_name(
    sandbox: Bubblewrap, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields, reason, words = HOSTILE[name]
    for module in (tests, checker) if words == "timeout" else ():
        monkeypatch.setattr(module, "WALL_S", 0.5)
    fault = await task_fault(task_in(json.dumps(fields), "logic"), sandbox)
    assert fault is not None and fault[0] == reason and words in fault[1], fault


FORGED = (
    "```python\ndef twice(n): return type('E', (int,), {'__eq__': lambda *a: True})()\n```",
    "import builtins\nbuiltins.AssertionError = Warning\ndef twice(n): return 0",
    "import sys, os\nprint('{\"passed\": true}')\nsys.stdout.flush()\nos._exit(0)",
    "def twice(n):\n    import gc\n    return next(o for o in gc.get_objects() if isinstance(o, dict) and 6 in o)",
)


async def judged(fields: dict[str, str], *answers: str | None, sandbox: Bubblewrap) -> list[Verdict]:
    task = task_in(json.dumps(fields), "logic")
    return await verifier_for(task).judge(task, answers, sandbox)


@in_the_sandbox
async def test_verdicts_are_by_tests_and_checker_and_none_is_forged(
    sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = (CODE["program"], "So:\n```python\ndef twice(n): return n + n\n```\nDone.")
    verdicts = await judged(CODE, *right, *FORGED, "6", None, sandbox=sandbox)
    assert [verdict.correct for verdict in verdicts] == [True] * 2 + [False] * 6
    answers = ("35", " 42 ", "$49$", "34", "x", "", "9" * 10_000, "'); accepts_answer = bool #", "\ud800\0\n", None)
    verdicts = await judged(LOGIC, *answers, sandbox=sandbox)
    assert [verdict.correct for verdict in verdicts] == [True] * 3 + [False] * 7
    loops = {**LOGIC, "checker": "def check(answer):\n    while answer == '7': pass\n    return answer == '35'"}
    assert (await judged(loops, "35", sandbox=sandbox))[0].correct is True
    monkeypatch.setattr(checker, "WALL_S", 0.5)
    assert (await judged(loops, "7", sandbox=sandbox))[0].correct is None


# --- a run


MATH = {"question": "How many legs have {} spiders?", "program": "print({} * 8)"}


class Teacher:
    """Writes a good task of the domain that it is asked for, in turns with one of ``HOSTILE``."""

    name = "teacher"

    def __init__(self) -> None:
        self.numbers = count()

    async def generate(self, request: GenerateRequest) -> Generation:
        number, asked = next(self.numbers), request.turns[-1].content
        quick = [fields for fields, _, words in HOSTILE.values() if words != "timeout"]
        hostile = quick[number // 2 % len(quick)]
        good = CODE if "code" in asked else LOGIC if "logic" in asked else MATH
        fields = hostile if number % 2 and good is not MATH else good
        question = fields["question"].format(number) + f" Case {'abcdefghij'[number % 10] * (number + 1)}."
        program = fields["program"].format(number) if good is MATH else fields["program"]
        return Generation(json.dumps({**fields, "question": question, "program": program}), model=self.name)


class Student:
    """Right in every second turn, in one program and without a second turn."""

    name = "student"

    def __init__(self) -> None:
        self.numbers = count()

    async def generate(self, request: GenerateRequest) -> Generation:
        question, wrong = request.turns[-1].content, next(self.numbers) % 2
        legs = question.split()[4] if "legs" in question else "1"
        program = f"print({legs} * 8 + {wrong})" if "legs" in question else f"print(35 + {wrong})"
        program = f"def twice(n):\n    return n * (2 + {wrong})" if "twice" in question else program
        return Generation(f"```python\n{program}\n```", model=self.name)


def plan(**changes: Any) -> RunConfig:
    student = {"max_turns": 1, "program_answers": True, "tool_form": "fence", "prompts": "programs"}
    config = small(
        iterations=1, tasks=12, attempts=4, student=student, teacher={"prompts": "programs"},
        curriculum={"embedder": "ngram", "domains": ["math", "code", "logic"], "similarity_limit": 1.0},
        evaluation={"validation": 3, "test": 0, "gate": "open", "forced_tool": False},
        training={"student": {"enabled": False}, "teacher": {"enabled": False}}, **changes,
    )  # fmt: skip
    check_names(config)
    return config


@in_the_sandbox
async def test_a_run_of_three_domains_asks_attempts_and_judges_them(sandbox: Bubblewrap) -> None:
    held = ports() | {"sandbox": sandbox, "verifier_sandbox": sandbox}
    held["models"] = ByRole(Student(), Teacher())
    events = [recorded.event for recorded in await play(started(plan()), held)]
    assert not any(isinstance(event, RunFailed) for event in events)
    proposed = [event for event in events if isinstance(event, TaskProposed)]
    assert len(proposed) == 12 and all(event.proposal for event in proposed)
    accepted = [event.proposal for event in events if isinstance(event, TaskAccepted)]
    refused = Counter(event.reason for event in events if isinstance(event, TaskRejected))
    assert {verifier_for(task).name for task in accepted} == {"execution", "tests", "checker"}
    assert set(refused) >= {"broken_program", "weak_check"} and len(accepted) + refused.total() == 12
    assert {(e.turns, e.end) for e in events if isinstance(e, TaskAttempted)} == {(1, "answered")}
    verdicts = Counter((e.verifier, e.correct) for e in events if isinstance(e, ResultVerified))
    for name in ("execution", "tests", "checker"):
        assert verdicts[name, True] == verdicts[name, False] > 0, verdicts
