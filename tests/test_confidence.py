"""Signals of an attempt: what a format forces counts nowhere, what cannot be known is absent, all are in [0, 1]."""

import json
import math
import random
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.chat_format import format_call
from agent0.events.values import ToolCall, ToolResult, ToolState, ToolUse, Usage
from agent0.ports.models import Generation
from agent0.rollout.attempt import AttemptResult
from agent0.rollout.confidence.calibration import FEWEST, CalibrationItem, Candidate, fitted, learnable, measured
from agent0.rollout.confidence.signals import (
    MEANING,
    SELF_CRITIQUE,
    SEVERAL,
    agreement,
    beside,
    signals,
    token_confidence,
)
from agent0.rollout.confidence.token_spans import answer_span, own_spans, within
from agent0.rollout.parsing import parse_turn

CALL = format_call("python", {"code": 'print("a", 2)'})
TEXTS = st.text(st.sampled_from('ab1 \\{}"<>:\n/é') | st.characters(codec="utf-8"), max_size=40)


def kept(text: str) -> list[str]:
    return [text[start:end] for start, end in own_spans(text)]


def written(text: str, logprob: float = -0.5, forced: int = 0, **sure: float) -> Generation:
    """``text`` in one token a character, after ``forced`` characters nobody sampled; ``sure`` are log-probabilities of
    the characters of a part of it."""
    values = [logprob] * len(text)
    for part, value in sure.items():
        start = text.index(part)
        values[start : start + len(part)] = [value] * len(part)
    ends = tuple(range(forced + 1, len(text) + 1))
    return Generation(text, (7,) * len(ends), tuple(values[forced:]), (1,), ends=ends)


def told(*turns: Generation, answer: str | None = "42", calls: int = 0, good: int = 0) -> dict[str, float]:
    return signals(turns, answer, grounded=False, calls=calls, calls_ok=good)


# --- what a format asks for


def test_of_a_call_only_its_values_are_the_students_own() -> None:
    assert kept(f"I compute.\n{CALL}\nThen {CALL}") == [
        "I compute.\n", "python", 'print(\\"a\\", 2)', "\nThen ", "python", 'print(\\"a\\", 2)'
    ]  # fmt: skip
    assert kept(format_call("f", {"n": -3, "deep": {"on": True, "all": ["x", 1.5]}})) == ["f", "-3", "true", "x", "1.5"]
    assert kept('<tool_call>\n{"name": "python", "arguments": {"code": "unclosed') == ["python", "unclosed"]


def test_of_a_box_only_its_content_is_the_students_own() -> None:
    assert kept("So \\boxed{\\frac{1}{2}}.") == ["So ", "\\frac{1}{2}", "."]
    assert kept("\\boxed{\\boxed{7}} {8}") == ["7", " {8}"]
    assert kept("\\boxed{4") == ["4"]


@given(st.dictionaries(st.sampled_from(["code", "a b", "n"]), TEXTS, max_size=3))
def test_values_are_found_whatever_they_hold(arguments: dict[str, str]) -> None:
    call = format_call("tool", arguments)
    body = call.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    wanted = ["tool", *json.loads(body)["arguments"].values()]
    found = [json.loads(f'"{part}"') for part in kept(call)]
    assert [one for one in found if one.strip()] == [one for one in wanted if one.strip()]


@given(st.lists(TEXTS | st.sampled_from(["<tool_call>", "</tool_call>", "\\boxed{", '"', "}", CALL]), max_size=8))
def test_spans_are_in_order_and_inside(parts: list[str]) -> None:
    text = "".join(parts)
    spans = own_spans(text)
    places = [place for span in spans for place in span]
    assert places == sorted(places) and all(start < end for start, end in spans)
    assert not places or (places[0] >= 0 and places[-1] <= len(text))


@pytest.mark.parametrize("bomb", ["\\boxed{", "<tool_call>", '"', '\\"', '"\\', "{}", "</tool_call>", '"a":'])
def test_hostile_text_is_read_in_one_go(bomb: str) -> None:
    text = "<tool_call>" * (bomb[0] == '"') + bomb * 20_000
    assert len(own_spans(text)) <= len(text)
    answer_span(text, "7")


@given(TEXTS, TEXTS)
def test_the_answer_that_was_read_is_where_the_span_says(before: str, answer: str) -> None:
    text = f"{before} \\boxed{{1}} so \\boxed{{ {answer} }}"
    found = parse_turn(text).answer
    if found and found in text:  # a reader of labelled lines may have written its line ends anew
        span = answer_span(text, found)
        assert span and text[span[0] : span[1]] == found


def test_an_answer_is_found_in_a_call_and_after_a_label() -> None:
    call = format_call("submit_answer", {"answer": 'a "b"\n'})
    span = answer_span(call, 'a "b"')
    assert span and call[span[0] : span[1]] == 'a \\"b\\"'
    assert answer_span("Answer: 7", "7") == (8, 9)
    assert answer_span("\\boxed{8}", "9") is None


@given(st.lists(st.integers(0, 4), max_size=12), st.lists(st.integers(1, 4), max_size=8))
def test_tokens_within_spans_are_those_that_share_a_character(sizes: list[int], steps: list[int]) -> None:
    ends = list(accumulate(sizes))
    edges = list(accumulate(steps))
    spans = list(zip(edges[::2], edges[1::2], strict=False))
    shared = [
        place
        for place, end in enumerate(ends)
        if any(max(start, end - sizes[place]) < min(stop, end) for start, stop in spans)
    ]
    assert within(spans, ends) == shared


# --- signals


def test_what_the_format_forces_counts_nowhere_and_what_is_own_counts() -> None:
    turns = written(CALL), written("\\boxed{42}")
    plain = told(*turns)
    unsure = told(written(CALL, **{"<tool_call>\n{": -9.0, '": ': -9.0}), written("\\boxed{42}", **{"\\boxed{": -9.0}))
    assert unsure.pop("mean_token") < plain.pop("mean_token")
    assert unsure == plain
    assert plain["lowest_token"] == pytest.approx(math.exp(-0.5)) == pytest.approx(plain["own_tokens"])
    assert plain["answer"] == pytest.approx(math.exp(-1.0))
    program = told(written(CALL, **{"print": -3.0}), turns[1])
    assert program["lowest_token"] == pytest.approx(math.exp(-3.0))
    assert program["sequence"] < plain["sequence"] and program["answer"] == plain["answer"]
    guess = told(turns[0], written("\\boxed{42}", **{"2": -3.0}))
    assert guess["answer"] == pytest.approx(math.exp(-3.5))


def test_a_forced_prefix_was_never_sampled() -> None:
    forced, free = written(CALL, forced=len("<tool_call>")), written(CALL)
    assert len(forced.logprobs) < len(free.logprobs)
    assert {**told(forced), "mean_token": 0} == {**told(free), "mean_token": 0}


def test_what_cannot_be_known_is_absent() -> None:
    whole = written("\\boxed{42}")
    assert set(told(whole, calls=2, good=1)) == set(MEANING) - {*SEVERAL, SELF_CRITIQUE}
    assert told(whole, calls=2, good=1)["calls_ok"] == 0.5
    assert set(told(Generation("\\boxed{42}", logprobs=(-0.5,)))) == {"mean_token", "grounded"}
    assert set(told(Generation("\\boxed{42}"))) == {"grounded"}
    assert set(told(written("hm"), answer=None)) == {"mean_token", "own_tokens", "lowest_token", "sequence"}
    assert set(told(written("42", logprob=math.nan))) == {"grounded"}
    assert told(Generation(""), answer=None) == {}


@given(st.lists(st.tuples(TEXTS, st.floats(max_value=1, allow_nan=False)), min_size=1, max_size=3), st.none() | TEXTS)
def test_every_signal_is_a_share(parts: list[tuple[str, float]], answer: str | None) -> None:
    found = told(*(written(text, value) for text, value in parts), answer=answer)
    assert all(0 <= value <= 1 for value in found.values()) and set(found) <= set(MEANING)


def solved(answer: str | None, code: str = "", grounded: bool = False) -> AttemptResult:
    held: Any = ToolCall(name="python", arguments={"code": code})
    calls = (ToolUse(turn=0, call=held, result=ToolResult(state=ToolState.OK, output=answer or "")),) if code else ()
    return AttemptResult(
        answer, "answered", 1, calls, len(calls), 0, grounded, (), None, "", None, {}, Usage(), "", "", (), None
    )


def test_further_samples_agree_or_check_by_another_way() -> None:
    one = solved("42", "print(42)", True)
    others = [
        solved("42.0"), solved("42", "print(42)", True), solved("42", "print(6*7)", True), solved("41", "1", True),
        solved(None),
    ]  # fmt: skip
    assert beside(one, others) == {"agreement": pytest.approx(0.6), "checked": pytest.approx(0.2)}
    assert beside(one, []) == {} == beside(solved(None), others)


@given(st.lists(st.none() | st.sampled_from(["7", "7.0", "8", "x"]), max_size=9))
def test_agreement_is_of_answers_that_are_equal(answers: list[str | None]) -> None:
    """Shares are of all attempts, the entropy is of those that answered."""
    groups = [sum(a in same for a in answers) for same in (("7", "7.0"), ("8",), ("x",))]
    given_ = sum(groups)
    found = agreement(answers)
    if not given_:
        assert (found.majority, found.share, found.entropy, found.count) == (None, 0.0, 0.0, 0)
        return
    assert found.count == max(groups) and found.share == pytest.approx(max(groups) / len(answers))
    assert found.entropy == pytest.approx(-sum(n / given_ * math.log(n / given_) for n in groups if n))
    place = {"7": 0, "7.0": 0, "8": 1, "x": 2}
    first = next(a for a in answers if a and groups[place[a]] == max(groups))
    assert found.majority == agreement([first]).majority, "ties go to whom was first"


def test_the_confidence_of_tokens_is_a_geometric_mean() -> None:
    assert token_confidence(None) is None
    assert token_confidence(math.log(0.25)) == pytest.approx(0.25)
    assert token_confidence(0.5) == token_confidence(0.0) == 1.0, "rounding may make a log-probability positive"


@given(st.lists(st.booleans(), max_size=8))
def test_two_of_either_outcome_can_be_learned_from(rights: list[bool]) -> None:
    items = [CalibrationItem({"answer": 0.5}, right) for right in rights]
    assert learnable(items) == (rights.count(True) >= 2 and rights.count(False) >= 2)


def test_a_signal_that_few_items_have_is_not_fused() -> None:
    rng = random.Random(2)
    for number, read in ((FEWEST - 1, {"answer", "sequence"}), (FEWEST, {"answer", "sequence", "calls_ok"})):
        held = [
            CalibrationItem(
                {"answer": rng.random(), "sequence": rng.random()} | ({"calls_ok": 1.0} if n < number else {}),
                n % 3 > 0,
            )
            for n in range(40)
        ]
        fused = [one for one in fitted(held) if one.method == "logistic"]
        assert [set(one.names) for one in fused] == [read]
        assert {one.signal for one in fitted(held) if one.method != "logistic"} == {"answer", "sequence"}


def test_further_samples_are_fused_beside_what_needs_none() -> None:
    rng = random.Random(3)
    held = [
        CalibrationItem({name: rng.random() for name in ("answer", "sequence", "agreement")}, n % 2 > 0)
        for n in range(30)
    ]
    found = fitted(held)
    assert {one.names for one in found if one.method == "logistic"} == {
        ("sequence", "answer"), ("sequence", "answer", "agreement"),
    }  # fmt: skip
    assert all(one.fitted_on == 30 for one in found)
    assert found == fitted(held, seed=0) and [one.loss for one in found] != [one.loss for one in fitted(held, seed=1)]


def test_a_candidate_is_measured_where_it_fits_before_and_after() -> None:
    """An identity map: what is after is what was before."""
    same = Candidate("answer", "platt", (1.0, 0.0), 10)
    held = [
        CalibrationItem({"answer": share}, right)
        for share, right in ((0.9, True), (0.8, False), (0.3, False), (0.2, True))
    ]
    found = measured(same, [*held, CalibrationItem({"sequence": 0.1}, True)])
    assert (found.candidate, found.scored_on) == (same, 4)
    assert found.brier_before == pytest.approx((0.01 + 0.64 + 0.09 + 0.64) / 4) == pytest.approx(found.brier_after)
    assert found.ece_before == pytest.approx((0.1 + 0.8 + 0.3 + 0.8) / 4) == pytest.approx(found.ece_after)
    assert found.before95 == pytest.approx(found.after95) and found.before95[0] <= found.ece_before <= found.before95[1]
    assert found.auroc == pytest.approx(0.5) and 0 < found.floor < 1
    assert [(one.n, one.confidence) for one in found.before] == [(1, 0.2), (1, 0.3), (1, 0.8), (1, 0.9)]
    assert [(one.n, one.accuracy) for one in found.bins] == [(1, 1.0), (1, 0.0), (1, 0.0), (1, 1.0)]
    assert measured(same, held, seed=1).after95 == measured(same, held, seed=1).after95
