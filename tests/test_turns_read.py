"""What a model wrote, read exactly: calls in each dialect, answers, proposals, trajectories, and what is wrong with
them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.base import sha256
from agent0.events.values import ToolCall, Trajectory, Usage
from agent0.ports.models import Generation
from agent0.rollout.attempt import AttemptProgress, generations
from agent0.rollout.confidence.signals import Agreement, agreement
from agent0.rollout.parsing import DEEPEST, LONGEST, MOST_CALLS, ParsedTurn, parse_turn
from agent0.rollout.solution_diversity import expected_patterns, signature, variety
from agent0.rollout.teacher import LONGEST_PROGRAM, LONGEST_QUESTION, normal, read_proposal
from agent0.rollout.tool_patterns import Call
from agent0.rollout.trajectories import assemble, mean_logprob, total_usage

GOOD = '{"name": "python", "arguments": {"code": "1"}}'
MADE = {"name": "python", "arguments": {"code": "1"}}


def call(raw: str, error: str = "", name: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, raw=raw, error=error)


def marked(body: str) -> str:
    return f"<tool_call>{body}</tool_call>"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("{", "no JSON: "),
        ("[1] x", "text after the JSON object"),
        ("[1]", "no JSON object"),
        ('{"arguments": {}}', "no valid tool name"),
        ('{"name": "a b", "arguments": {}}', "no valid tool name"),
        ('{"name": 1}', "no valid tool name"),
        ('{"name": "f", "arguments": [1]}', "arguments are no JSON object"),
        ('{"name": "f", "arguments": "[1]"}', "arguments are no JSON object"),
        ('{"name": "f", "arguments": "{} x"}', "arguments are no JSON object"),
        ('{"name": "f", "arguments": {"x": "\\ud800"}}', "half a surrogate pair in a string"),
        ('{"name": "f", "arguments": {"\\ud800": 1}}', "half a surrogate pair in a string"),
        ('{"name": "f", "arguments": {"x": NaN}}', "no JSON: NaN is no JSON"),
        ('{"name": "f", "arguments": {"x": 1e999}}', "no JSON: number out of range"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_what_is_wrong_with_a_call_is_said(body: str, error: str) -> None:
    (found,) = parse_turn(marked(body)).calls
    assert found.error.startswith(error) and found.arguments == {} and len(found.error) <= 129
    assert found.raw == body[: LONGEST - len("<tool_call>")]
    assert found.name == ("f" if error.startswith(("arguments", "half")) else "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"So {marked(GOOD)} then", ParsedTurn((call(GOOD, **MADE["arguments"], name="python"),))),
        (f"<tool_call>{GOOD} and", ParsedTurn((call(f"{GOOD} and", name="python", code="1"),))),
        (marked('{"name": "f", "parameters": {"x": 1}}'),
         ParsedTurn((call('{"name": "f", "parameters": {"x": 1}}', name="f", x=1),))),
        (marked('{"name": "f", "arguments": "{\\"x\\": 1} "}'),
         ParsedTurn((call('{"name": "f", "arguments": "{\\"x\\": 1} "}', name="f", x=1),))),
        (marked('{"name": "f"}'), ParsedTurn((call('{"name": "f"}', name="f"),))),
        (f"a ```json\n{GOOD}\n``` \\boxed{{7}}", ParsedTurn((call(f"{GOOD}\n", name="python", code="1"),), "7")),
        ('```json\n{"x": 1}\n```', ParsedTurn()),
        (f"```json\n{GOOD}", ParsedTurn((call(GOOD, name="python", code="1"),))),
        ("Action: python[1+1]", ParsedTurn((call("python[1+1]", name="python", code="1+1"),))),
        ("Action: other[1+1]", ParsedTurn((call("other[1+1]", name="other", input="1+1"),))),
        ("Action: python", ParsedTurn((call("python", name="python"),))),
        ("Action: `python`\nAction Input: 1", ParsedTurn((call("`python`\n1", name="python", code="1"),))),
        ('Action: python\nAction Input: {"code": "2"}',
         ParsedTurn((call('python\n{"code": "2"}', name="python", code="2"),))),
        ("Action: python\nAction Input: ```py\n1\n```",
         ParsedTurn((call("python\n```py\n1\n```", name="python", code="1"),))),
        ("Action: a b", ParsedTurn((call("a b", "no valid tool name"),))),
        ("Action:", ParsedTurn((call("?", "no valid tool name"),))),
        ("Action: f\nThought: so\nAnswer: 3", ParsedTurn((call("f", name="f"),), "3")),
        ("Action: f\nObservation: 4\nAnswer: 4", ParsedTurn((call("f", name="f"),))),
        ("Observation: 4\nAnswer: 4", ParsedTurn((), "4")),
        ("Action: f\nAction: g", ParsedTurn((call("f", name="f"), call("g", name="g")))),
        ("**Final Answer:** $42$ \nmore", ParsedTurn((), "42")),
        ("Answer: 1\nAnswer:\nAnswer: 2", ParsedTurn((), "2")),
        ("Answer: 1\n\\boxed{2}", ParsedTurn((), "2")),
        ("\\boxed{ }", ParsedTurn()),
        ("nothing", ParsedTurn()),
    ],
)  # fmt: skip
def test_a_turn_is_read_as_exactly_this(text: str, expected: ParsedTurn) -> None:
    assert parse_turn(text, {"python": "code"}) == expected


@given(st.integers(MOST_CALLS - 1, MOST_CALLS + 2))
def test_so_many_calls_are_read_and_the_rest_counted(count: int) -> None:
    found = parse_turn(marked(GOOD) * count)
    assert len(found.calls) == min(count, MOST_CALLS)
    assert found.errors == ((f"{count} calls, {MOST_CALLS} read",) if count > MOST_CALLS else ())


@pytest.mark.parametrize("depth", [DEEPEST - 1, DEEPEST, DEEPEST + 1])
def test_arguments_nest_so_deeply(depth: int) -> None:
    value = "[" * (depth - 1) + "1" + "]" * (depth - 1)
    (found,) = parse_turn(marked(f'{{"name": "f", "arguments": {{"x": {value}}}}}')).calls
    assert found.error == ("" if depth <= DEEPEST else "nested too deeply")


@pytest.mark.parametrize("more", [0, 1])
def test_a_long_turn_is_cut(more: int) -> None:
    found = parse_turn("x" * (LONGEST + more - 10) + "\\boxed{12}")
    assert found == (ParsedTurn((), None, (f"cut at {LONGEST} characters",)) if more else ParsedTurn((), "12"))


PROGRAM = {"question": "Why?", "program": "print(1)"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" ", "nothing was written"),
        ("```json\n```", "nothing was written"),
        ("{", "broken JSON"),
        ("{" + " " * (LONGEST_QUESTION + 2 * LONGEST_PROGRAM), "broken JSON"),
        ('{"x": "' + " " * (LONGEST_QUESTION + 2 * LONGEST_PROGRAM) + '"}', "the JSON is too long"),
        ('{"question": 1}', "question and program must be text"),
        ('{"program": "x"}', "question and program must be text"),
        ('{"question": "Why?", "program": 1}', "question and program must be text"),
        ('{"question": "Why?", "answer_kind": "odd"}', "there is no kind of answer 'odd'"),
        ('{"question": "Why?", "answer_kind": 7}', "there is no kind of answer '7'"),
        ('{"question": "Why?", "subgoals": "x"}', "subgoals and programs must be lists of text"),
        ('{"question": "Why?", "programs": [1]}', "subgoals and programs must be lists of text"),
        ('{"question": "", "program": "x"}', "no question"),
        ('{"question": "Why?", "subgoals": [" "]}', "no subgoal"),
        ("Why?\x07", "control characters in the question"),
        ('{"question": "Why?", "program": "\\u200b"}', "control characters in the program"),
        ("W" * (LONGEST_QUESTION + 1), f"the question is longer than {LONGEST_QUESTION} characters"),
        (json.dumps(PROGRAM | {"program": "p" * (LONGEST_PROGRAM + 1)}),
         f"the program is longer than {LONGEST_PROGRAM} characters"),
        ("Why?", "no family reads this question, and it brings no program"),
    ],
)  # fmt: skip
def test_what_is_no_proposal_is_said_why(text: str, problem: str) -> None:
    assert read_proposal(text, "math", "linear", 2) == (None, problem)


def test_an_open_question_and_a_long_one() -> None:
    task, problem = read_proposal(f"```json\n{json.dumps(PROGRAM)}\n```", "code", "linear", 3)
    assert task and (task.question, task.domain, task.family, task.level) == ("Why?", "code", "open", 3) and not problem
    assert (task.canonical, task.program, task.params, task.kind) == ("open why?", "print(1)", {}, "short")
    named, _ = read_proposal(json.dumps(PROGRAM | {"answer_kind": "value"}), "math", "linear", 1)
    assert named and named.params == {"answer_kind": "value"}
    unchecked, _ = read_proposal(" Why? ", "math", "linear", 1, unchecked=True)
    assert unchecked and unchecked.question == "Why?" and unchecked.program == ""
    own, _ = read_proposal("Solve 2*x+3=9.", "logic", "open", 4)
    assert own and (own.family, own.domain, own.params) == ("linear", "math", {"equation": "2*x+3=9"})


def test_a_long_question_has_steps_and_as_many_programs() -> None:
    steps = {"question": "Why?", "subgoals": ["one  x", "two"], "programs": ["print(1)\n", "print(2)"]}
    task, _ = read_proposal(json.dumps(steps), "math", "chain", 2)
    assert task and (task.kind, task.subgoals, task.programs) == ("long", ("one x", "two"), ("print(1)", "print(2)"))
    assert task.program == "print(2)"
    few, problem = read_proposal(json.dumps(steps | {"programs": ["p"]}), "math", "chain", 2)
    assert (few, problem) == (None, "there are 1 programs for 2 steps")
    none, problem = read_proposal(json.dumps(PROGRAM), "math", "chain", 2)
    assert none is None and problem.startswith("a long task has 2 to ") and problem.endswith("; none are found here")


@given(st.integers(199, 202))
def test_questions_are_compared_without_case_and_spaces(length: int) -> None:
    assert normal(" \uff37HY \n So ") == "why so"
    text = "w" * length
    assert normal(text.upper()) == (text if length <= 200 else sha256(text))


def turn(seen: tuple[int, ...], own: tuple[int, ...], logprobs: tuple[float, ...] | None = None) -> Generation:
    likely = tuple(-n / 4 for n in own) if logprobs is None else logprobs
    usage = Usage(prompt_tokens=len(seen), completion_tokens=len(own), wall_s=0.5)
    return Generation("x", own, likely, seen, "stop", usage, "m")


def test_turns_become_one_trajectory() -> None:
    turns = [turn((1, 2), (3,)), turn((1, 2, 3, 4), (5, 6))]
    path = Trajectory(token_ids=(1, 2, 3, 4, 5, 6), mask=(0, 0, 1, 0, 1, 1), logprobs=(0, 0, -0.75, 0, -1.25, -1.5))
    assert assemble(turns) == (path, "")
    assert mean_logprob(turns) == -3.5 / 3 and mean_logprob([]) is None
    assert total_usage(turns) == Usage(prompt_tokens=6, completion_tokens=3, wall_s=1.0)
    timed = [replace(one, usage=one.usage.model_copy(update={"first_s": 0.25})) for one in turns]
    assert total_usage(timed).first_s == 0.5 and total_usage([timed[0], turns[1]]).first_s is None
    for silent in ([], [turn((), (1,))], [turn((1,), ())]):
        assert assemble(silent) == (None, "the model gives no token ids")
    assert assemble([turn((1,), (2,), ())]) == (None, "the model gives no log-probabilities")
    other = [turn((9, 2), (3,)), turns[1]]
    assert assemble(other) == (None, "turn 0 is no prefix of the last context")


def test_turns_are_stored_once_and_rebuilt() -> None:
    turns = [turn((1, 2), (3,)), turn((1, 2, 3, 4), (5, 6)), turn((9,), (7,))]
    now = AttemptProgress(transcript=(), prompt="p", turns=5, calls=4, seconds=1.0, characters=9)
    for n, one in enumerate(turns):
        now = now.wrote(one, n)
    assert generations(now) == turns
    assert [(one.shared, one.prompt_ids) for one in now.written] == [(0, (1, 2)), (3, (4,)), (0, (9,))]
    assert (now.turns, now.errors, [one.role for one in now.transcript]) == (2, 3, ["assistant"] * 3)


def test_answers_agree_by_value() -> None:
    assert agreement([]) == agreement([None]) == Agreement(None, 0.0, 0.0)
    found = agreement(["2", "1/2", "2.0", None])
    assert (found.majority, found.share, found.count) == ("2", 0.5, 2)
    assert found.entropy == pytest.approx(0.6365141682948128)
    assert agreement(["b", "a"]).majority == "b"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x = 1\nprint(x + y)", "z = 2\nprint(y + z)", True),
        ("print(1 + 2 * 3)", "print(2 * 5 + 7)", True),
        ("print(1 + (2 + 3))", "print(1 + 2 + 3)", True),
        ("print(a - 1)", "print(1 - a)", False),
        ("print([1, 2])", "print([5])", True),
        ("print([1, 2])", "print((1, 2))", False),
        ("print([1, 'a'])", "print([1])", False),
        ("print(-1)", "print(1)", True),
        ("def f(a): return a", "def g(b): return b", True),
        ("def f(a): return a", "def g(b): return b + 1", False),
        ("print(max(x))", "print(min(x))", False),
        ("What is 12.5?", "What is  7?", True),
        ("say 'a b'", "say \"c\"", True),
        ("say a", "say b", False),
    ],
)  # fmt: skip
def test_calls_of_one_shape_have_one_signature(one: str, other: str, same: bool) -> None:
    first, second = (signature([Call("python", "ok", {"code": text})]) for text in (one, other))
    assert (first == second) is same and first.startswith("python(code=")


def test_signatures_of_other_arguments_and_of_none() -> None:
    made = [Call("f", "ok", {"b": 1, "a": [1, 2, "x y"]}), Call("g", "error", {})]
    assert signature(made) == "f(a=[int, x y], b=int) > g()"
    assert signature([]) == "no call: " and signature([], "linear/2") == "no call: linear/2"


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_draws_of_everything_hold_every_pattern(counts: list[int]) -> None:
    total = sum(counts)
    assert expected_patterns(counts, total) == pytest.approx(len(counts)) == expected_patterns(counts, 10 * total)
    assert expected_patterns(counts, 1) == pytest.approx(1)
    found = variety([str(n) for n, count in enumerate(counts) for _ in range(count)])
    assert (found.tasks, found.patterns) == (total, len(counts))
    assert found.per_1000 == pytest.approx(1000 * len(counts) / total)
    assert 1 - 1e-9 <= found.effective <= len(counts) + 1e-9


def test_patterns_of_many_tasks_are_those_of_a_thousand() -> None:
    found = variety(["a"] * 1000 + ["b"] * 1000)
    assert (found.patterns, found.per_1000, found.effective) == (2, pytest.approx(2), pytest.approx(2))
    assert variety(["a"] * 4 + ["b"]).effective == pytest.approx(1.6493848884661177)
    assert variety([]).per_1000 is None and variety([]).effective == 0.0
