"""EvalPlus: the functions of HumanEval and MBPP under many more inputs. A row holds inputs only, so the canonical
solution computes the expected results beside the tests, and both results are compared there."""

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.evaluation.benchmarks.coding import prompt_texts
from agent0.evaluation.benchmarks.rows import Row
from agent0.grading import Grade
from agent0.ports.sandbox import Sandbox
from agent0.verification.programs import Problem, check
from agent0.verification.programs.judged import values
from agent0.verification.programs.source import program_of

WALL_S, MEM_MIB = 60.0, 4096
_ABOUT_ZERO = 1e-6
"""Tolerance of floating-point results where a row names none, as EvalPlus has it."""

_COMPARED = """
from judged import values as _values

def _close(got, wanted, atol):
    if isinstance(wanted, (list, tuple)):
        same = isinstance(got, (list, tuple)) and len(got) == len(wanted)
        return same and all(_close(a, b, atol) for a, b in zip(got, wanted))
    if got == wanted or (got != got and wanted != wanted):
        return True
    return isinstance(got, (int, float, complex)) and abs(got - wanted) <= atol + 1e-7 * abs(wanted)

def _floats(wanted):
    return isinstance(wanted, float) or bool(wanted) and isinstance(wanted, (list, tuple)) and all(
        isinstance(one, float) for one in wanted)

def _agrees(got, wanted, given, rule, atol):
    if rule == "zero":
        return abs(poly(*given, got)) <= atol
    if rule == "set":
        got, wanted = set(got), set(wanted)
    if rule == "truth":
        got, wanted = bool(got), bool(wanted)
    if got == wanted:
        return True
    atol = atol or (ABOUT_ZERO if _floats(wanted) else 0)
    return bool(atol) and _close(got, wanted, atol)

def _wanted(asked):
    try:
        found = _CANONICAL[ENTRY](*_values.unpack(asked)[1])
    except Exception as error:
        raise _values.UndecidedError(f"the canonical solution: {type(error).__name__}: {error}"[:300]) from error
    if RULE == "truth":
        return bool(found)
    try:
        return _values.unpack(_values.pack(list(found) if hasattr(found, "__next__") else found))
    except _values.OpaqueError as error:
        if str(error) in _values.SIZES:
            return _LARGE
        raise _values.UndecidedError("the canonical solution gives nothing to compare with") from error

_LARGE = object()
_CANONICAL = {"__name__": "canonical"}
exec(SOURCE, _CANONICAL)
for _number, _asked in enumerate(CALLS, 1):
    _result = _wanted(_asked)
    if _result is _LARGE:
        continue
    _got = globals()[ENTRY](*_values.unpack(_asked)[1])
    if hasattr(type(_got), "__next__"):
        _got = list(_got)
    assert _agrees(_got, _result, _values.unpack(_asked)[1], RULE, ATOL), f"input {_number} of {len(CALLS)}"
"""


def _read(
    row: Row, prompt: str, question: str, restatements: tuple[str, ...], shapes: Sequence[Any], rule: str
) -> Item:
    entry = str(row["entry_point"])
    if not entry.isidentifier():
        raise ValueError(f"{entry[:40]!r} is no name of a function")
    calls = dict.fromkeys(
        _call(entry, arguments, shapes) for field in ("base_input", "plus_input") for arguments in _listed(row[field])
    )
    if not calls:
        raise ValueError("there are no inputs")
    data = {"calls": list(calls), "rule": rule, "atol": float(row["atol"] or 0)}
    problem = Problem("", prompt, entry, WALL_S, MEM_MIB)
    reference = str(row["canonical_solution"])
    return Item(
        str(row["task_id"]),
        question,
        entry,
        reference,
        problem=problem,
        data=json.dumps(data),
        restatements=restatements,
    )


def _call(entry: str, inputs: Sequence[Any], shapes: Sequence[Any]) -> str:
    arguments = [_argument(value, shape) for value, shape in _paired(inputs, shapes)]
    try:
        return values.pack([entry, arguments, {}])
    except values.OpaqueError as error:
        raise ValueError(f"an argument is {error}") from error


def _listed(inputs: Any) -> list[Any]:
    """MBPP+ writes its further inputs as text, and none as an empty object."""
    parsed = (json.loads(inputs) if isinstance(inputs, str) else inputs) or []
    if not isinstance(parsed, list) or not all(isinstance(arguments, list) for arguments in parsed):
        raise ValueError("inputs are no lists of arguments")
    return parsed


def _humaneval(row: Row) -> Item:
    r"""``{"task_id": "HumanEval/0", "prompt": "from typing import List\n\n\ndef has_close_elements(…", "entry_point":
    "has_close_elements", "canonical_solution": "…", "base_input": [[[1.0, 2.0], 0.3]], "plus_input": […], "atol": 0}``

    HumanEval/32 asks for any zero of a polynomial: its result is put into the prompt's own ``poly``.
    """
    prompt = str(row["prompt"])
    question = f"Complete this Python function. Reply with the whole function.\n```python\n{prompt.rstrip()}\n```"
    return _read(
        row, prompt, question, prompt_texts(prompt), (), "zero" if row["task_id"] == "HumanEval/32" else "equal"
    )


def _mbpp(row: Row) -> Item:
    r"""``{"task_id": "Mbpp/2", "prompt": "\"\"\"\nWrite a function to find … assert set(similar_elements((3, 4, 5, 6),
    (5, 7, 4, 10))) == set((4, 5))\n\"\"\"\n", "entry_point": "similar_elements", "canonical_solution": "…",
    "base_input": [[[3, 4, 5, 6], [5, 7, 4, 10]]], "plus_input": "[[[], []]]", "assertion": "assert …", "atol": 0}``

    JSON knows neither tuples nor sets: what an argument is made of is read off the row's own assertions.
    """
    entry, prompt = str(row["entry_point"]), str(row["prompt"])
    statement = prompt.strip().strip('"').strip()
    tests = list(
        _calls(f"{statement[statement.find('assert') :] if 'assert' in statement else ''}\n{row['assertion']}", entry)
    )
    shapes = [call.args for call, _ in tests]
    rule = next((rule for _, rule in tests if rule != "equal"), "equal")
    restatements = statement, statement.partition("assert")[0].strip() or statement
    return _read(row, "", f"{statement}\nReply with the whole Python function.", restatements, _merged(shapes), rule)


def _calls(code: str, entry: str) -> Iterator[tuple[ast.Call, str]]:
    """(call of ``entry``, how its result is compared) in each assertion; lines that are no program are left out."""
    for line in _statements(code):
        calls = [node for node in ast.walk(line.test) if isinstance(node, ast.Call) and _named(node, entry)]
        sets = [
            node.args[0]
            for node in ast.walk(line.test)
            if isinstance(node, ast.Call) and _named(node, "set") and node.args
        ]
        for call in calls[:1]:
            yield call, "set" if call in sets else "truth" if call is line.test else "equal"


def _named(call: ast.Call, name: str) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == name


def _statements(code: str) -> Iterator[ast.Assert]:
    try:
        yield from (node for node in ast.parse(code).body if isinstance(node, ast.Assert))
    except SyntaxError:
        return


def _merged(calls: Iterable[Sequence[ast.expr]]) -> list[Any]:
    """One shape an argument position, from literal arguments."""
    merged: list[Any] = []
    for arguments in calls:
        for position, argument in enumerate(arguments):
            merged += [None] * (position + 1 - len(merged))
            merged[position] = _joined(merged[position], _shape_of(argument))
    return merged


def _shape_of(argument: ast.expr) -> Any:
    try:
        return _shape(ast.literal_eval(argument))
    except (ValueError, TypeError, SyntaxError):
        return None


def _shape(value: Any) -> Any:
    """(kind, shape of what it holds) of a collection, "number", or "text"."""
    if isinstance(value, dict):
        return "dict", _together(map(_shape, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return type(value).__name__, _together(map(_shape, value))
    return "number" if isinstance(value, int | float | complex) else "text"


def _together(shapes: Iterable[Any]) -> Any:
    whole: Any = None
    for shape in shapes:
        whole = _joined(whole, shape)
    return whole


def _joined(left: Any, right: Any) -> Any:
    """The shape of both; text where numbers are among text, collections where they are among either."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return left[0], _joined(left[1], right[1])
    for shape, other in ((left, right), (right, left)):
        if shape is None or (isinstance(other, tuple) and not isinstance(shape, tuple)):
            return other
    return left if left == right else "text"


def _paired(arguments: Sequence[Any], shapes: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    return ((value, shapes[position] if position < len(shapes) else None) for position, value in enumerate(arguments))


_KINDS: dict[str, Callable[[Iterable[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset, "list": list}


def _shaped(value: Any, shape: Any, above: str = "list") -> Any:
    """``value``, as JSON has it, made of what ``shape`` says; deeper than that, of what it lies in (``above``)."""
    kind, inner = shape if isinstance(shape, tuple) else (above, None)
    if isinstance(value, dict):
        return {key: _shaped(element, inner) for key, element in value.items()}
    if isinstance(value, list):
        below = "tuple" if kind in ("set", "frozenset") else kind
        return _KINDS.get(kind, list)(_shaped(element, inner, below) for element in value)
    return value


def _argument(value: Any, shape: Any) -> Any:
    """A whole argument. Complex numbers, and numbers that stand beside them, are written as text."""
    for kind in (float, complex):
        with suppress(ValueError):
            return kind(value) if shape == "number" and isinstance(value, str) else _shaped(value, shape)
    return value


async def judge(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """Grade by agreement with the canonical solution on every input; undecided where that gives no result to compare.

    The canonical solution runs beside the tests, where the candidate cannot look.
    """
    if item.problem is None or not reply.strip():
        return Grade(False, "no program", item.gold)
    problem, data = item.problem, json.loads(item.data)
    source = program_of(item.reference, problem.setup, problem.entry)
    facts = (_ABOUT_ZERO, problem.entry, source, data["calls"], data["rule"], data["atol"])
    test = f"ABOUT_ZERO, ENTRY, SOURCE, CALLS, RULE, ATOL = {facts!r}\n{_COMPARED}"
    outcome = await check(Problem(test, problem.setup, problem.entry, WALL_S, MEM_MIB), reply, sandbox)
    return Grade(outcome.passed, outcome.reason, item.gold, f"{outcome.calls} calls")


_plus = partial(
    Benchmark,
    domain="code",
    fields=("task_id", "prompt", "entry_point", "canonical_solution"),
    judge=judge,
    licence="Apache-2.0 (EvalPlus)",
)
HUMANEVAL_PLUS = benchmark(
    _plus(
        name="humanevalplus",
        title="HumanEval+, functions from docstrings under more inputs",
        files=("HumanEvalPlus.jsonl", "HumanEvalPlus-NoExtreme.jsonl", "HumanEvalPlus-Mini.jsonl"),
        read=_humaneval,
        source="evalplus/humanevalplus_release",
    )
)
MBPP_PLUS = benchmark(
    _plus(
        name="mbppplus",
        title="MBPP+, basic Python functions under more inputs",
        files=("MbppPlus.jsonl", "MbppPlus-NoExtreme.jsonl"),
        read=_mbpp,
        source="evalplus/mbppplus_release",
    )
)
