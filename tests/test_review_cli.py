"""``agent0 task review``: what awaits a person's verdict, and what becomes of one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.requests.reviews import review_events
from agent0.config.loading import load
from agent0.errors import Agent0Error
from agent0.events.base import Recorded
from agent0.events.tasks import ResultVerified
from tests.terminal import agent0 as call
from tests.test_reviewing import waiting_run


def decided(told: list[Recorded]) -> list[Recorded]:
    """``told``, but for the last attempt that was undecided, about which the machine was sure."""
    verdicts = [(n, one.event) for n, one in enumerate(told) if isinstance(one.event, ResultVerified)]
    place, event = max((n, event) for n, event in verdicts if event.correct is None)
    event = event.model_copy(update={"correct": True})
    return [*told[:place], told[place].model_copy(update={"event": event}), *told[place + 1 :]]


def review(home: Path, *words: str) -> Any:
    said = call("task", "review", *words, "--json", home=home)
    return said.json if said.code == 0 else said


def test_a_person_sees_what_awaits_a_verdict_and_gives_one(tmp_path: Path) -> None:
    async def fill() -> None:
        async with open_log(load("scripted", {"home": str(tmp_path)}, {}), make=True) as log:
            await log.append(decided(waiting_run()))

    asyncio.run(fill())
    rows = review(tmp_path, "LAST")
    assert [row["correct"] for row in rows] == [None] * (len(rows) - 1) + [1], "undecided ones come first"
    first, last = rows[0], rows[-1]
    told = call("task", "review", "LAST", home=tmp_path).out
    for words in (first["attempt"], first["question"], "agreement", "cannot tell"):
        assert words in told
    said = review(tmp_path, "r1", first["attempt"], "--correct", "--reviewer", "Ann", "--reason", "by hand")
    assert (said["attempts"], len(said["events"])) == ([first["attempt"]], 1)
    said = review(tmp_path, "r1", last["attempt"], "--wrong", "--reviewer", "Bea")
    assert len(said["events"]) == 2, "and an alarm, since it contradicts the machine"
    shown = call("task", "show", first["task"], "--json", home=tmp_path).json
    assert ("Ann", 1, "by hand") in [(r["reviewer"], r["correct"], r["reason"]) for r in shown["reviews"]]
    assert "credit" in shown["attempts"][0]
    missing = review(tmp_path, "r1", "t9-000", "--wrong", "--reviewer", "Ann")
    assert missing.code == 1 and "no task or attempt 't9-000'" in missing.err


ROW = {
    "task": "t0-000",
    "attempt": "t0-000-a0",
    "status": "verified",
    "answer": "7",
    "correct": None,
    "verifier": "panel",
}
OTHER = {**ROW, "attempt": "t0-000-a1", "answer": "7.0"}


@pytest.mark.parametrize(
    ("rows", "given", "reviewer", "reason", "told"),
    [
        ([], [True], "Ann", "", "needs an attempt"),
        ([ROW], [], "Ann", "", "There is no verdict"),
        ([ROW], [True, False], "Ann", "", "There are several verdicts"),
        ([ROW], [True], "", "", "somebody who gives it"),
        ([ROW], [True], " ", "", "somebody who gives it"),
        ([ROW], [True], "A" * 101, "", "somebody who gives it"),
        ([ROW], [True], "Ann", "x" * 2001, "at most 2000"),
        ([{**ROW, "status": "working"}], [True], "Ann", "", "still under way"),
        ([ROW, {**OTHER, "answer": "8"}], [False], "Ann", "", "Name an attempt: t0-000-a0, t0-000-a1"),
        ([ROW, {**OTHER, "answer": None}], [None], "Ann", "", "Name an attempt"),
    ],
)
def test_what_is_no_verdict_is_told(rows: Any, given: Any, reviewer: str, reason: str, told: str) -> None:
    with pytest.raises(Agent0Error) as error:
        review_events(rows, given, reviewer, reason)
    assert told in str(error.value)


def test_attempts_that_agree_are_judged_at_once() -> None:
    events = review_events([ROW, {**OTHER, "correct": 0}], [True], " Ann ", "")
    assert [type(event).__name__ for event in events] == ["TaskReviewed", "TaskReviewed", "AlarmRaised"]
    assert {getattr(event, "reviewer", "Ann") for event in events} == {"Ann"}
