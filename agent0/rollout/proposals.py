"""Reads the parts of a task from what a teacher wrote, in the spellings of language models.

Read is what is unambiguous: one object with a ``question`` among prose, fences, thoughts and other objects, or as the
arguments of a call in any form that a student's may have (``turns.calls``); or fields in Markdown, YAML blocks or tags.
Two different tasks in one reply, a reply that ends in the middle and an object that cannot be read are refused with the
reason. What is looked at is bounded.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from agent0.grading.answer_types import kinds
from agent0.rollout.labelled_fields import read_fields, with_usual_names
from agent0.turns.assertions import as_assertions, as_checker, has_assertion, prints, split_tests, tested
from agent0.turns.calls.objects import object_in
from agent0.turns.calls.reading import read_calls
from agent0.turns.calls.spellings import read_object
from agent0.turns.calls.toolbox import Toolbox
from agent0.turns.marks import own_turn
from agent0.turns.programs import is_python
from agent0.turns.thoughts import split_thoughts

LONGEST_QUESTION = 2_000
LONGEST_PROGRAM = 8_000
LONGEST = LONGEST_QUESTION + 2 * LONGEST_PROGRAM
"""Characters of a reply that holds an object or fields, thoughts aside."""

MOST_UNREAD = 8
"""Openings of objects that cannot be read, after which no more are looked at."""

DEEPEST = 4
"""How deep a task lies in other objects."""

_opening = re.compile(r"\{\s*(?:[\"'“}#]|/[/*]|[A-Za-z_]\w*\s*:)|\[\s*\{")
_question = re.compile(r"[\"'“\u2018]question[\"'”\u2019]\s*:|[{,]\s*question\s*:", re.I)
_named = re.compile(r"question\S{0,8}\s*:", re.I)
_list = re.compile(r"\[\s*\0")
_whole_fence = re.compile(r"```[^\n`]*\n(.*?)\n?[ \t]*```", re.S)
_latex = re.compile(
    r"\t(?:imes|ext\w*|heta|an|o|au|frac|ilde|riangle)\b|\n(?:eq|abla|otin)\b|(?<=[ $(=,])\n(?:e|u|ot)\b"
)
"""What JSON makes of LaTeX commands whose backslash is not escaped."""


@dataclass(frozen=True)
class ProposalParts:
    """What a teacher's text holds, before any of it is believed."""

    question: str
    program: str = ""
    subgoals: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    answer_kind: str = ""
    tests: str = ""
    checker: str = ""
    answer: str = ""
    """One that the checker accepts."""


def read_parts(text: str) -> ProposalParts | str:
    """Read the parts of the one task in a teacher's reply; returns them, or what is wrong.

    A reply without an object or fields is a bare question.
    """
    reply = split_thoughts(own_turn(text))
    if reply.unclosed:
        return "the reply ends inside its thoughts"
    body = _unfenced(reply.visible.replace("\r\n", "\n").strip())
    if not body:
        return "nothing was written"
    if len(body) > LONGEST:
        return "the JSON is too long" if "{" in body else "the reply is longer than any task"
    parts = _of_objects(body)
    if parts is None:
        fields = read_fields(body)
        parts = _parts(fields) if isinstance(fields, dict) else fields
    return parts or _bare(body)


def _bare(body: str) -> ProposalParts | str:
    """A reply that is a question and nothing else."""
    return "no object or fields that can be read" if "```" in body or _named.search(body) else ProposalParts(body)


def _of_objects(body: str) -> ProposalParts | str | None:
    """The one task among the objects of ``body``, or what is wrong; None where no object is or should be a task."""
    called, prose = _called(body)
    if isinstance(called, str):
        return called
    values, rest = _objects(prose)
    tasks = [task for value in (*called, *values) for task in _tasks(value)]
    if _question.search(rest) or _list.search(rest):
        return "broken JSON"
    if not tasks:
        problem = "question and program must be text" if values else "broken JSON"
        return problem if body.startswith("{") else None
    if rest.count("{") > rest.count("}"):
        return "the reply ends inside an object"
    real = [task for task in tasks if not _is_placeholder(task)] or tasks
    proposals = list(dict.fromkeys(_parts(task) for task in real))
    if len(proposals) > 1:
        return f"{len(proposals)} different tasks"
    return "different tasks in fields and object" if _asks_another(rest, str(real[0]["question"])) else proposals[0]


def _called(body: str) -> tuple[list[object] | str, str]:
    """The arguments of the calls that hand over tasks, or what is wrong with one, and the text around them. Where no
    call does, that is all of ``body``."""
    whole = object_in(body)
    if whole is not None and next(_tasks(whole, 0), None):
        return [], body
    calls, prose, _ = read_calls(body, Toolbox())
    if not any(next(_tasks(call.arguments), None) for call in calls):
        return [], body
    problem = next((call.error for call in calls if call.error), None)
    return f"a call that cannot be read: {problem}" if problem else [call.arguments for call in calls], prose


def _asks_another(rest: str, question: str) -> bool:
    """Whether the text around the object that asks ``question`` has a field that asks something else."""
    fields = read_fields(rest)
    if fields is None or (isinstance(fields, dict) and not fields["question"]):
        return False
    return " ".join(question.split()) not in " ".join(rest.split())


def _objects(body: str) -> tuple[list[object], str]:
    r"""The objects and lists that can be read, and the text around them with ``\0`` for each."""
    values, rest, position, unread = [], "", 0, 0
    while (opening := _opening.search(body, position)) and unread < MOST_UNREAD:
        start = opening.start()
        parsed = read_object(body, start)
        value, end = parsed or (None, start + 1)
        values += [value] if parsed else []
        unread += not parsed
        rest += body[position:start] + ("\0" if parsed else body[start])
        position = end
    return values, rest + body[position:]


def _tasks(value: object, room: int = DEEPEST) -> Iterator[dict[str, object]]:
    """The objects in ``value`` that have a question."""
    if isinstance(value, dict):
        named = {_key(key): inner for key, inner in value.items()}
        if "question" in named:
            yield named if len(named) == len(value) else {"question": None}
        value = named
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner if room else ():
        yield from _tasks(item, room - 1)


def _key(key: object) -> str:
    return re.sub(r"[\s-]+", "_", str(key).strip().lower())


def _is_placeholder(task: Mapping[str, object]) -> bool:
    """Whether the question is the ``...`` of a format that the reply repeats."""
    return isinstance(task["question"], str) and not re.search(r"\w", task["question"])


def _parts(value: Mapping[str, object]) -> ProposalParts | str:
    """The parts of a proposal that is an object."""
    value = with_usual_names(value)
    question, program = value.get("question"), value.get("program") or ""
    if not isinstance(question, str) or not isinstance(program, str):
        return "question and program must be text"
    if _latex.search(question):
        return "a backslash in the question that is not escaped"
    named = value.get("answer_kind") or ""
    if not isinstance(named, str) or named not in ("", *kinds()):
        return f"there is no kind of answer {str(named)[:40]!r}"
    subgoals, programs = value.get("subgoals") or [], value.get("programs") or []
    if not _is_texts(subgoals) or not _is_texts(programs):
        return "subgoals and programs must be lists of text"
    steps = tuple(" ".join(step.split()) for step in subgoals)
    written = tuple(_unfenced(code).strip("\n") for code in programs)
    tests, checker, answer = (_text(value.get(name)) for name in ("tests", "checker", "answer"))
    if tests is None:
        return "tests must be text or a list of texts"
    return ProposalParts(
        question.strip(),
        _unfenced(program).strip("\n"),
        steps,
        written,
        named,
        _unfenced(tests).strip("\n"),
        _unfenced(checker or "").strip("\n"),
        answer or "",
    )


def _text(value: object) -> str | None:
    """A text, a scalar as text, or a list of them: lines where they are tests, else items; None for anything else."""
    if isinstance(value, list) and all(isinstance(item, str | int | float) for item in value):
        return ("\n" if any("==" in str(item) or "assert" in str(item) for item in value) else ", ").join(
            map(str, value)
        )
    if isinstance(value, bool | int | float):
        return str(value)
    return "" if value is None else value if isinstance(value, str) else None


def with_checks(parts: ProposalParts) -> ProposalParts | str:
    """Return ``parts`` with ``tests`` that assert something of ``program``, or a ``checker`` that defines
    ``check(answer)`` beside a program that prints an answer; or what is wrong. With neither, one printed answer is
    right."""
    program, tests = (parts.program, as_assertions(parts.tests)) if parts.tests else split_tests(parts.program)
    if not is_python(program) or not is_python(tests):
        return f"the {'tests are' if is_python(program) else 'program is'} no Python"
    functions = tested(program, tests)
    if functions:
        if not has_assertion(tests):
            return "the tests assert nothing"
        return replace(parts, question=_naming(parts.question, functions), program=program, tests=tests, checker="")
    if parts.tests and not parts.checker and program and not prints(program):
        return "the tests use nothing that the program defines"
    return _with_checker(replace(parts, tests=""))


def _naming(question: str, functions: dict[str, str]) -> str:
    """``question``, which says what to define if it does not name it."""
    unnamed = [head for name, head in functions.items() if name not in question]
    return f"{question}\nReply with the whole program. It has: {' '.join(unnamed)}" if unnamed else question


def _with_checker(parts: ProposalParts) -> ProposalParts | str:
    if not parts.checker:
        return parts
    checker = as_checker(parts.checker)
    if not checker:
        return "the checker is no function of one answer"
    program = parts.program or (f"print({parts.answer!r})" if parts.answer else "")
    return replace(parts, program=program, checker=checker) if program else "the checker comes without a right answer"


def _unfenced(text: str) -> str:
    """``text`` without the one fence around all of it."""
    whole = _whole_fence.fullmatch(text.strip())
    return whole[1].strip("\n") if whole and "```" not in whole[1] else text


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def task_schema(*, long: bool = False) -> dict[str, object]:
    """Return the JSON schema of a proposal, with steps and their programs where it is ``long``."""
    text = {"type": "string"}
    texts = {"type": "array", "items": text}
    required = {"question": text} | ({"subgoals": texts, "programs": texts} if long else {"program": text})
    checks = {} if long else {"tests": text, "checker": text}
    properties = {**required, **checks, "answer_kind": {"enum": list(kinds())}}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
