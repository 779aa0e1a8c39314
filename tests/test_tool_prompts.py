"""Two ways to tell a student of its tools: each is read as the same calls, and the question's text stays as it is."""

import pytest

from agent0.chat_format import ACTION_INPUT, OPEN, format_action, format_call
from agent0.events.values import Turn
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import prompt, render
from agent0.rollout.student import begin, specs_of
from agent0.rollout.tool_prompts import FENCE, FORMS, IN_PYTHON, shown, toolbox
from agent0.settings import StudentConfig
from agent0.tools import tools
from tests.test_student import CALL, TASK, Playback, play

ACTIONS = StudentConfig(max_tokens=200, tools=("python", "sympy"), tool_form="actions")

OPENINGS = {"actions": ACTION_INPUT, "brackets": "[tool_call]", FENCE: "```python"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("style", ["compact", "full"])
@pytest.mark.parametrize("domain", ["math", "code", "logic"])
@pytest.mark.parametrize("long", [False, True])
def test_examples_of_a_prompt_make_the_same_calls_in_every_form(style: str, domain: str, long: bool, form: str) -> None:
    """What a prompt shows is what is read; in blocks of code, without those that Python has as well."""
    specs = specs_of(tuple(tools()) if long else ACTIONS.tools)
    plain = render(prompt(style, domain, "student", long=long), {"question": CALL})
    formed = shown(plain, specs, form)
    assert shown(plain, specs, "template") == plain == shown(plain, (), form)
    described = [spec for spec in specs if form != FENCE or spec.name not in IN_PYTHON]
    first = formed[0].content
    assert formed[0].role == "system" and all(f"- {spec.name}: " in first for spec in described)
    assert OPEN not in first and OPENINGS[form] in first
    kept = [turn for turn in formed if turn.role in ("user", "tool")]
    assert kept == [turn for turn in plain if turn.role in ("user", "tool")] or form == FENCE
    assert CALL in kept[-1].content
    calls, expected = (
        [
            (call.name, call.arguments, call.error)
            for turn in turns
            if turn.role == "assistant"
            for call in parse_turn(turn.content, toolbox(specs), form=way).calls
        ]
        for turns, way in ((formed, form), (plain, "template"))
    )
    assert calls == [call for call in expected if form != FENCE or call[0] not in IN_PYTHON] or form == FENCE
    assert {call[0] for call in calls} <= {spec.name for spec in described} or long
    assert not any(call[2] for call in calls)
    assert not any(OPEN in turn.content for turn in formed if turn.role == "assistant")
    if style == "full" and not long:
        assert calls


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
    assert (found.answer, [tool_call.call.name for tool_call in found.tool_calls]) == ("42", ["python"])
    assert [request.turn for request in model.asked] == [0, 1]
    assert not any(request.tools for request in model.asked), "the prompt tells of them, no template has to"


def test_a_student_without_calls_is_told_of_no_tools() -> None:
    config = ACTIONS.model_copy(update={"max_calls": 0})
    now = begin(TASK, prompt("compact", "math", "student"), config)
    assert now.transcript == (Turn(role="user", content=TASK.question),)
