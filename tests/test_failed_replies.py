"""Why items of an evaluation failed: each reply's kind, three of them quoted before another model is named as the
cure; and a run that is slow but moving is not called bad."""

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.cli.runs.why import print_diagnosis
from agent0.events.base import Recorded
from agent0.report.diagnosis.findings import diagnosis
from agent0.report.diagnosis.replies import reply_lines
from agent0.run.diagnosis.replies import (
    CUT,
    EMPTY,
    LIMITED,
    OF_SETTINGS,
    SILENT,
    UNCLOSED,
    UNDECIDED,
    UNREAD,
    WRONG,
    kind_of_reply,
)
from tests.broken_runs import altered, saying
from tests.story_hostile import HOSTILE
from tests.test_report import told
from tests.test_run import played
from tests.world import small

CALLS = (
    "```python\nprint(6 * 7)\n```",
    'I compute it.\n```json\n{"name": "python", "arguments": {"code": "1"}}\n```',
    '{"name": "python", "arguments": {"code": "print(1)"}}',
    '{"name": "python", "parameters": {"code": "print(1)"}}',
    "<tool_call>\nprint(1)",
    "<|tool_call|>[python(code='1')]",
    "[TOOL_CALLS] [{}]",
    "[tool_call] python(1)",
    "<function=python><parameter=code>1</parameter></function>",
    '<invoke name="python">1</invoke>',
    "<|python_tag|>print(1)",
    "Thought: compute\nAction: python[print(1)",
    "<think>easy</think>\n```py\nprint(1)\n```",
)
PROSE = (
    "I had rather not say.",
    "The answer is 42",
    "Let me think about it step by step.",
    "It has arguments on both sides.",
    "a < b and c > d",
    "Use `print(1)` for that.",
    "The action: wait and see.",
    "<think>``` no code</think> 12",
    "[1, 2, 3]",
    '{"answer": 42}',
    "f(x) = x",
)
THOUGHTS = (
    "<think>\nFirst, 6 * 7",
    "<think>one</think> and <think>two",
    "[THINK]well",
    "<thinking>\n```python\nprint(1)\n```",
    "<|begin_of_thought|> hm",
    "◁think▷ hm",
    "<reasoning>so",
    "<|channel|>analysis<|message|>We need",
    "<think>it is \\boxed{42}",
    "<seed:think>hm",
)
BLANK = ("", " ", "\n\n", "\t", "\r\n", "\u00a0", "\u2003\n", " \x0b\x0c", "\u3000", "\u2028")


def kind(reply: str, end: str = "no_answer", **more: Any) -> str:
    held: dict[str, Any] = {"answer": None, "correct": False, "called": False} | more
    return kind_of_reply(reply, held["answer"], held["correct"], end, called=held["called"])


def test_each_reply_is_of_its_kind() -> None:
    for end in ("no_answer", "turn_limit"):
        assert {reply: kind(reply, end) for reply in CALLS} == dict.fromkeys(CALLS, UNREAD)
    assert {reply: kind(reply) for reply in PROSE} == dict.fromkeys(PROSE, SILENT)
    assert {reply: kind(reply, "length") for reply in (*CALLS, *PROSE)} == dict.fromkeys((*CALLS, *PROSE), CUT)
    for end in ("no_answer", "length", "budget"):
        assert {reply: kind(reply, end) for reply in THOUGHTS} == dict.fromkeys(THOUGHTS, UNCLOSED)
        assert {reply: kind(reply, end) for reply in BLANK} == dict.fromkeys(BLANK, EMPTY)
    for end in ("turn_limit", "budget"):  # a call that was read is no unread one
        assert {reply: kind(reply, end, called=True) for reply in CALLS} == dict.fromkeys(CALLS, LIMITED)
        assert {reply: kind(reply, end) for reply in PROSE} == dict.fromkeys(PROSE, LIMITED)
    for reply in (*CALLS, *PROSE, *THOUGHTS, *BLANK):
        assert kind(reply, "answered", answer="1") == WRONG
        assert kind(reply, "answered", answer="1", correct=None) == UNDECIDED


@given(st.text() | st.from_regex(r"(<think>|```|\[){0,9000}"), st.sampled_from(("", "length", "budget", "no_answer")))
def test_any_text_has_a_kind(text: str, end: str) -> None:
    assert kind(text, end) in {EMPTY, UNCLOSED, CUT, UNREAD, SILENT, LIMITED}


def why(events: list[Recorded], **here: Any) -> dict[str, Any]:
    with closing(told(events)) as db:
        return diagnosis(db, "r1", here)


def run_of(reply: str) -> list[Recorded]:
    """A run whose student writes nothing but ``reply``, and is another model than its profile's."""
    alter = saying(reply)
    config = small(student={"model": "little-1b"}, max_untrained=0)
    return altered("student", lambda asked, said: replace(alter(asked, said), finish="stop"), config)


@pytest.mark.parametrize(("reply", "kind"), [
    (CALLS[0], UNREAD), (THOUGHTS[0], UNCLOSED), ("I had rather not say.", SILENT), ("", EMPTY), ("\\boxed{-1}", WRONG),
])  # fmt: skip
def test_failed_replies_are_quoted_before_another_model_is_named(
    reply: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = why(run_of(reply))
    replies = found["replies"]
    assert replies["evaluation"].endswith("-validation") and set(replies["kinds"]) == {kind}
    assert replies["failed"] == replies["items"] == sum(replies["kinds"].values())
    assert [example["wrote"] for example in replies["examples"]] == [" ".join(reply.split())] * 3
    print_diagnosis(found)
    shown = capsys.readouterr().out
    counted = shown.index(f"{replies['failed']} of {replies['items']} items of {replies['evaluation']} failed: ")
    assert not found["well"] and all(example["attempt"] in shown for example in replies["examples"])
    if kind in OF_SETTINGS:
        assert "run.student.model" not in found["conclusion"] + found["mend"], found
    elif "run.student.model=" in found["mend"]:
        assert counted < shown.index("To mend it:")
    if kind in (UNREAD, UNCLOSED):
        assert found["cause"] == "replies_unread"
        mended = "--set run.student.tool_form=fence" if kind == UNREAD else "--set run.student.max_tokens=384"
        assert found["mend"].endswith(mended)
    if kind == SILENT:
        assert "run.student.model=" in found["mend"], "what no setting mends may be the model's doing"


def test_hostile_replies_stay_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_diagnosis(why(run_of(HOSTILE)))
    shown = capsys.readouterr().out
    assert "How items failed" in shown or "items of" in shown
    assert not set("\x00\x1b\u202e") & set(shown)


def test_nothing_is_quoted_where_nothing_failed_and_no_run_that_went_well_is_accused() -> None:
    assert reply_lines(None) == []
    found = why(played())
    assert found["well"] and (found["replies"] is None or found["replies"]["failed"])


SLOW = {"carried": True, "idle_s": 4000.0, "waits": "the first token of m at u, 900 s"}


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8])
def test_a_run_that_is_slow_but_executed_is_not_called_bad(share: float) -> None:
    events = played()[: int(share * len(played()))]
    found = why(events, **SLOW, first_word=SLOW["waits"])
    line = found["conclusion"]
    assert found["well"] and found["mend"] == "" and line.startswith("r1: it runs, "), line
    requested, ended = (
        {event.attempt for event in events if event.type == name} for name in ("AttemptRequested", "ResultVerified")
    )
    assert (" attempts (since " in line) == bool(requested - ended) and "the first token of m at u, 900 s" in line
    assert "its last event was 4,000 s ago" in line
    stopped = why(events, **SLOW | {"carried": False})
    assert stopped["cause"] == "stopped" and "no process executes it" in stopped["conclusion"]
