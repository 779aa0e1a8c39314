"""What the widgets of `%load_ext agent0` are told, and the one line where they cannot be had; in JupyterLab itself:
``integrations/jupyter/check.sh``."""

import json
import sys
from contextlib import closing
from typing import Any, ClassVar

import pytest

import agent0
from agent0.assembly.api import notebook
from agent0.assembly.api.notebook import LISTED, LONGEST, AttemptRecord, curve_state
from agent0.events.tasks import ResultVerified, TaskAttempted
from agent0.events.values import Turn
from agent0.report.overview import overview
from tests.story import whole_run
from tests.story_hostile import hostile_words
from tests.test_report import told


def test_a_notebook_without_anywidget_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    usage_error = pytest.importorskip("IPython.core.error").UsageError
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(usage_error, match=r"^agent0's widgets need anywidget: pip install 'agent0-train\[jupyter\]'$"):
        agent0.load_ipython_extension(object())


@pytest.mark.parametrize("line", ["", "curv x", "curve nothing-like-it", "curve a b c"])
def test_a_wrong_magic_is_told_in_one_line(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usage_error = pytest.importorskip("IPython.core.error").UsageError
    monkeypatch.setattr(notebook, "connect", lambda: agent0.connect("http://127.0.0.1:1"))

    class Shell:
        user_ns: ClassVar[dict[str, Any]] = {"nothing-like-it": 5}

    with pytest.raises(usage_error) as refused:
        notebook._magic(Shell(), line)
    assert "\n" not in str(refused.value) and (
        "%agent0 curve RUN" in str(refused.value) or "127.0.0.1:1" in str(refused.value)
    )


def test_a_curve_has_every_point_with_its_interval() -> None:
    with closing(told(whole_run(iterations=3))) as db:
        state = curve_state(overview(db, "r1"))
    assert [point["x"] for point in state["points"]] == ["untrained", "0", "1", "2"]
    assert all(point["low"] <= point["y"] <= point["high"] for point in state["points"])
    assert state["status"] == "finished" and {score["x"] for score in state["tests"]} and json.dumps(state)


def test_a_transcript_is_of_the_newest_attempt_or_the_one_that_is_chosen() -> None:
    story, record = whole_run(iterations=1), AttemptRecord("r1")
    assert record.state("")["note"] == "No attempt yet."
    attempted = [e.event for e in story if isinstance(e.event, TaskAttempted)]
    verdicts = {e.event.attempt: e.event.correct for e in story if isinstance(e.event, ResultVerified)}
    record.add(story)
    state = record.state("")
    assert [row["id"] for row in state["attempts"]] == [event.attempt for event in reversed(attempted)][:LISTED]
    assert state["status"] == "finished" and state["answer"] == attempted[-1].answer
    first = record.state(attempted[0].attempt)
    assert [turn["text"] for turn in first["turns"]] == [turn.content for turn in attempted[0].transcript] and first[
        "question"
    ]
    assert first["verdict"] == {True: "right", False: "wrong", None: "undecided"}[verdicts[attempted[0].attempt]]
    assert "no attempt t9-9 yet" in record.state("t9-9")["note"]


def test_hostile_text_obeys_nobody_and_long_text_is_cut() -> None:
    """Markup stays text, as the widget makes text nodes of it; what terminals and readers obey is shown as escapes."""
    story, record = [hostile_words(e) for e in whole_run(iterations=1)], AttemptRecord("r1")
    record.add(story)
    state = record.state("")
    shown = json.dumps(state, ensure_ascii=False)
    assert "<script>alert(1)</script>" in shown and not set("\x00\x1b\u202e") & set(shown)
    long = next(e for e in reversed(story) if isinstance(e.event, TaskAttempted))
    turn = Turn(role="assistant", content="x" * (LONGEST + 5))
    record.add([long.model_copy(update={"event": long.event.model_copy(update={"transcript": (turn,)})})])
    assert len(record.state("")["turns"][0]["text"]) == LONGEST + 2
