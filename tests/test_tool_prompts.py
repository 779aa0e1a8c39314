"""Two ways to tell a student of its tools: each is read as the same calls, and the question's text stays as it is."""

import pytest

from agent0.chat_format import ACTION_INPUT, OPEN, format_action, format_call
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import prompt, render
from agent0.rollout.student import begin, specs_of
from agent0.rollout.tool_prompts import shown
from agent0.settings import StudentConfig
from agent0.tools import tools
from events.values import Turn
from tests.test_student import CALL, TASK, Playback, play

ACTIONS = StudentConfig(max_tokens=200, tools=("python", "sympy"), tool_form="actions")


@pytest.mark.parametrize("style", ["compact", "full"])
@pytest.mark.parametrize("domain", ["math", "code", "logic"])
@pytest.mark.parametrize("long", [False, True])
def test_examples_of_a_prompt_make_the_same_calls_in_either_way(style: str, domain: str, long: bool) -> None:
    specs = specs_of(ACTIONS.tools)
    plain = render(prompt(style, domain, "student", long=long), {"question": CALL})
    acting = shown(plain, specs, "actions")
    assert shown(plain, specs, "calls") == plain == shown(plain, (), "actions")
    first = acting[0].content
    assert acting[0].role == "system" and all(f"- {spec.name}: {spec.description}" in first for spec in specs)
    assert OPEN not in first and ACTION_INPUT in first
    asked = [turn for turn in acting if turn.role in ("user", "tool")]
    assert asked == [turn for turn in plain if turn.role in ("user", "tool")] and CALL in asked[-1].content
    for before, after in zip(*([t for t in turns if t.role == "assistant"] for turns in (plain, acting)), strict=True):
        wanted, found = parse_turn(before.content), parse_turn(after.content)
        assert [(call.name, call.arguments) for call in wanted.calls] == [(c.name, c.arguments) for c in found.calls]
        assert not any(call.error for call in found.calls) and OPEN not in after.content


@pytest.mark.parametrize("name", sorted(tools()))
def test_every_tools_examples_are_read_back_in_either_way(name: str) -> None:
    for example in tools()[name].examples:
        arguments = dict(example.arguments)
        (call,) = parse_turn(format_call(name, arguments)).calls
        (action,) = parse_turn(f"I try it.\n{format_action(name, arguments)}").calls
        assert (call.name, call.arguments) == (action.name, action.arguments) == (name, arguments)


async def test_a_student_that_is_told_of_actions_calls_its_tool() -> None:
    model = Playback([format_action("python", {"code": "print(12+30)"}), r"\boxed{42}"])
    found = await play(model=model, config=ACTIONS)
    assert (found.answer, [one.call.name for one in found.tool_calls]) == ("42", ["python"])
    assert [request.turn for request in model.asked] == [0, 1]
    assert not any(request.tools for request in model.asked), "the prompt tells of them, no template has to"


def test_a_student_without_calls_is_told_of_no_tools() -> None:
    config = ACTIONS.model_copy(update={"max_calls": 0})
    now = begin(TASK, prompt("compact", "math", "student"), config)
    assert now.transcript == (Turn(role="user", content=TASK.question),)
