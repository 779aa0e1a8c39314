"""What a teacher's draft, prompts, tools and signals of confidence come to, field by field."""

import json
from dataclasses import replace
from string import ascii_letters
from typing import Any, Literal

import pytest

from agent0.chat_format import format_call
from agent0.errors import NotFoundError
from agent0.events.values import (
    SelfCritique,
    Task,
    Trajectory,
    Turn,
    Usage,
)
from agent0.grading.answer_types import kinds
from agent0.ports.models import GenerateRequest, Generation, Likely, Sampling
from agent0.rollout.confidence.calibration import CalibrationItem, Candidate, fitted, learnable, measured
from agent0.rollout.confidence.self_critique import criticise
from agent0.rollout.confidence.signals import Agreement, agreement, beside, token_confidence
from agent0.rollout.prompts import prompt, prompts, render, styles
from agent0.rollout.proposals import ProposalParts as Parts
from agent0.rollout.proposals import read_parts
from agent0.rollout.student import conclude
from agent0.rollout.teacher import exploring_bias, propose, read_proposal, request_turns
from agent0.rollout.tool_patterns import Call, Trace, tool_shares, transitions, used, with_and_without
from agent0.rollout.tool_prompts import requested, shown
from agent0.settings import ActorConfig, StudentConfig, TeacherConfig
from agent0.stats.intervals import wilson
from tests.test_rollout_records import ADAPTER, SPEC, progress, told

# --- the teacher


@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_a_draft_has_all_fields(finish: Literal["stop", "length"]) -> None:
    asked: list[GenerateRequest] = []

    class Writer:
        name = "writer"

        async def generate(self, request: GenerateRequest) -> Generation:
            asked.append(request)
            usage = Usage(prompt_tokens=4, completion_tokens=1, wall_s=0.5)
            return Generation("What is 12+30?", (5,), (-1.0,), (1,), finish, usage, "m", capture="tokens")

        async def close(self) -> None:
            """Nothing is open."""

    words = prompt("compact", "math", "teacher")
    config = ActorConfig(temperature=0.5, top_p=0.25, max_tokens=77)
    draft = await propose(
        Writer(), words, domain="math", family="arithmetic", level=2, config=config, seed=9, adapter=ADAPTER,
        group="r", bias=[("1", 0.5)],
    )  # fmt: skip
    assert asked == [
        GenerateRequest(
            request_turns(words, "math", "arithmetic", 2), Sampling(0.5, 0.25, 77, 9, (("1", 0.5),)), adapter=ADAPTER,
            group="r",
        )
    ]  # fmt: skip
    kept = draft.proposal.question if draft.proposal else None
    assert (kept, draft.problem) == (
        ("What is 12+30?", "") if finish == "stop" else (None, "the reply was cut off at 77 tokens")
    )
    assert (draft.text, draft.capture, draft.model, draft.trajectory_problem) == ("What is 12+30?", "tokens", "m", "")
    assert draft.usage == Usage(prompt_tokens=4, completion_tokens=1, wall_s=0.5)
    assert draft.trajectory == Trajectory(token_ids=(1, 5), mask=(0, 1), logprobs=(0.0, -1.0))


def test_a_share_of_the_slots_explores() -> None:
    config = TeacherConfig.model_validate({"explore": 0.5, "bias": [["1", 2.0]]})
    assert [bool(exploring_bias(config, slot, 5)) for slot in range(5)] == [True, True, False, False, False]
    assert exploring_bias(config, 0, 4) == config.bias


def test_an_open_task_has_all_fields() -> None:
    body = {"question": "  How  Many? ", "program": "```python\nprint(1)\n```", "answer_kind": next(iter(kinds()))}
    found, problem = read_proposal(json.dumps(body), "logic", "open", 3)
    assert problem == "" and found == Task(
        question="How  Many?", domain="logic", family="open", level=3, canonical="open how many?", program="print(1)",
        params={"answer_kind": body["answer_kind"]},
    )  # fmt: skip
    bare, problem = read_proposal("How many?", "logic", "open", 3, unchecked=True)
    assert problem == "" and bare is not None and (bare.program, bare.params) == ("", {})


def test_programs_keep_whatever_they_begin_and_end_with() -> None:
    for letter in ascii_letters:
        body = f"{letter} = 1\n{letter}"
        written = read_parts(json.dumps({"question": "q", "program": f"\n{body}\n", "programs": [f"\n{body}\n"]}))
        assert isinstance(written, Parts) and (written.program, written.programs) == (body, (body,))


# --- tools as prompts and tables describe them


def test_tools_are_described_in_the_first_turn_where_actions_are_asked_for() -> None:
    introduction = (
        'You may use these tools:\n- python: Runs code. Arguments: {"code": {"type": "string"}}\n\n'
        "To use one, end your turn with two lines, the second a JSON object with the tool's arguments:\n"
        "Action: <the tool's name>\nAction Input: <JSON object>\nIts output is the next message."
    )
    call = format_call("python", {"code": "1"})
    asked = (Turn(role="user", content=f"q {call}"), Turn(role="assistant", content=f"So {call}"))
    system, *rest = shown(asked, (SPEC,), "actions")
    assert system == Turn(role="system", content=introduction) and rest[0] == asked[0]
    assert rest[1].role == "assistant" and "Action: python" in rest[1].content and "<tool_call>" not in rest[1].content
    (merged,) = shown((Turn(role="system", content=f"Be brief. {call}"),), (SPEC,), "actions")
    assert merged.role == "system" and merged.content.endswith(f"\n\n{introduction}")
    assert merged.content.startswith("Be brief. ") and "Action: python" in merged.content.partition("\n\nYou may")[0]
    assert shown(asked, (SPEC,), "calls") is asked is shown(asked, (), "actions")
    assert requested((SPEC,), "actions") == () and requested((SPEC,), "calls") == (SPEC,)


def test_tool_use_is_counted_in_rows() -> None:
    ran, failed, unread = (Call("python", "ok", {}), Call("python", "error", {}), Call("", "error", {}))
    other = Call("sympy", "ok", {})
    traces = [
        Trace("a", "t", True, (ran, failed, other)), Trace("b", "t", False, (failed, unread)),
        Trace("c", "t", None, (ran, ran)), Trace("d", "t", True, ()),
    ]  # fmt: skip
    assert [used(trace.calls) for trace in traces] == ["python+sympy", "no call went well", "python", "no call"]
    assert tool_shares(traces) == [
        {"tool": "python", "calls": 5, "ok": 3, "success": 0.6, "attempts": 3, "share_of_attempts": 0.75},
        {"tool": "(unread)", "calls": 1, "ok": 0, "success": 0.0, "attempts": 1, "share_of_attempts": 0.25},
        {"tool": "sympy", "calls": 1, "ok": 1, "success": 1.0, "attempts": 1, "share_of_attempts": 0.25},
    ]
    assert transitions(traces) == [
        {"from": "(start)", "to": "python", "times": 3, "attempts": 2, "correct": 0.5},
        {"from": "python", "to": "python", "times": 2, "attempts": 1, "correct": 1.0},
        {"from": "(start)", "to": "(answer)", "times": 1, "attempts": 1, "correct": 1.0},
        {"from": "(unread)", "to": "(answer)", "times": 1, "attempts": 1, "correct": 0.0},
        {"from": "python", "to": "(answer)", "times": 1, "attempts": 0, "correct": None},
        {"from": "python", "to": "(unread)", "times": 1, "attempts": 1, "correct": 0.0},
        {"from": "python", "to": "sympy", "times": 1, "attempts": 1, "correct": 1.0},
        {"from": "sympy", "to": "(answer)", "times": 1, "attempts": 1, "correct": 1.0},
    ]
    bounds = {n: wilson(n, 1) for n in (0, 1)}
    assert with_and_without(traces) == [
        {"tools": name, "attempts": 1, "correct": float(n), "lower95": bounds[n][0], "upper95": bounds[n][1]}
        for name, n in (("no call", 1), ("no call went well", 0), ("python+sympy", 1))
    ]


def test_prompts_are_found_by_name_or_refused_in_full() -> None:
    with pytest.raises(NotFoundError) as odd:
        prompt("A" * 99, "math", "student")
    name = f"{'A' * 99}/math/student"[:80]
    assert told(odd) == (f"No prompt is named {name}.", "Names are lower-case letters, digits, _ and -.", "")
    with pytest.raises(NotFoundError) as unknown:
        prompt("compact", "math", "nobody")
    assert told(unknown) == (
        "No prompt is named compact/math/nobody.", f"Styles: {', '.join(styles())}.", "See: agent0 prompt list",
    )  # fmt: skip
    names = [one.name for one in prompts()]
    assert names == sorted(names) and {"compact/any/judge", "compact/any/self_critique"} <= set(names)
    assert {"compact/math/student", "compact/any/student_long", "programs/math/teacher"} <= set(names)
    long = prompt("compact", "math", "student", long=True)
    assert long.name == "compact/math/student_long" and len(long.version) == 12
    one = replace(long, text="@system\nBe {domain}.\n@user\n{question} {level}\n")
    assert render(one, {"domain": "{question}", "question": "why"}) == (
        Turn(role="system", content="Be {question}."), Turn(role="user", content="why {level}"),
    )  # fmt: skip
    assert render(replace(one, text="Just {answer}"), {"answer": 3}) == (Turn(role="user", content="Just 3"),)


def test_answers_agree_as_shares_of_all_attempts() -> None:
    found = agreement(["2", "1", "1.0", None])
    assert found == Agreement("1", 0.5, found.entropy, 2) and found.entropy == pytest.approx(0.63651417)
    assert agreement(["2", "1"]).majority == "2" and agreement([None]) == agreement([]) == Agreement(None, 0.0, 0.0, 0)
    assert token_confidence(None) is None and token_confidence(0.5) == 1.0
    one = conclude(progress(end="answered", answer="42"))
    others = [replace(one, answer="42.0"), replace(one, answer="42", tool_calls=()), replace(one, answer=None)]
    assert beside(one, others) == {"agreement": pytest.approx(2 / 3), "checked": pytest.approx(1 / 3)}
    assert beside(one, []) == {} == beside(replace(one, answer=None), others)
    assert beside(one, [replace(one, tool_calls=(), grounded=False)]) == {"agreement": 1.0, "checked": 0.0}


async def test_a_critique_records_what_was_asked_and_said() -> None:
    class Judge:
        name = "judge"

        async def likelihood(self, turns: Any, texts: Any, adapter: Any = None) -> list[Likely]:
            seen.append((turns, texts, adapter))
            return [Likely(-2.0, 1, 3), Likely(-2.0, 1, 2)]

        async def generate(self, request: GenerateRequest) -> Generation:
            raise AssertionError

        async def close(self) -> None:
            """Nothing is open."""

    seen: list[Any] = []
    words = prompt(StudentConfig().prompts, "any", "self_critique")
    asked = render(words, {"answer": "4" * 2000})
    said = await criticise(
        Judge(), StudentConfig(), [Turn(role="user", content="q")], "4" * 2001, seed=1, adapter=ADAPTER
    )
    assert said == SelfCritique(
        prompt=words.version, question=asked[-1].content, text="Yes", verdict=True, probability=0.5, by="likelihood"
    )
    assert seen == [((Turn(role="user", content="q"), *asked), ("Yes", "No"), ADAPTER)]


def test_calibration_needs_both_outcomes_and_names_what_it_fitted() -> None:
    def item(right: bool, **signals: float) -> CalibrationItem:
        return CalibrationItem(signals, right)

    items = [item(n % 3 > 0, answer=0.2 + 0.6 * (n % 3 > 0) + 0.01 * n, grounded=float(n % 2)) for n in range(12)]
    assert learnable(items) and not learnable(items[:3]) and not learnable([item(True)] * 9 + [item(False)])
    with pytest.raises(ValueError, match=r"^calibration needs at least two right and two wrong answers$"):
        fitted(items[:3])
    found = fitted(items)
    assert sorted(one.signal for one in found) == ["answer", "answer+grounded", "grounded"]
    assert [one.loss for one in found] == sorted(one.loss for one in found) and {one.fitted_on for one in found} == {12}
    fused = next(one for one in found if one.method == "logistic")
    assert fused.names == ("answer", "grounded") and fused.fits({"grounded": 1.0}) and not fused.fits({})
    assert fused.raw({"answer": 0.5, "grounded": 1.0, "other": 9.0}) == 0.75
    several = Candidate("answer+agreement", "logistic", (), 1)
    assert several.fits({"agreement": 1.0}) and not several.fits({"answer": 1.0})
    one = measured(Candidate("answer", "platt", (1.0, 0.0), 12), [*items, item(True, grounded=1.0)])
    assert one.scored_on == 12 and one.auroc == 1.0 and one.brier_before == pytest.approx(one.brier_after)
    assert sum(each.n for each in one.bins) == sum(each.n for each in one.before) == 12
