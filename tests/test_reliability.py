"""The judges of the crash matrix notice what they are to; docs/results/reliability.md has what they found."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent0.assembly.runtime.stamping import code_rev
from agent0.events.base import Recorded
from benchmarks.crash import State, _tried
from benchmarks.crash_page import PAGE, Line, done_again, page, wrong
from tests.crashing import ROLES, Kill, Past
from tests.play import play
from tests.world import ports, small, started


@pytest.fixture(scope="module")
def told() -> list[Recorded]:
    """A run in memory."""
    return asyncio.run(play(started(small(iterations=1)), ports()))


def past(stored: Sequence[Recorded], heard: Sequence[Recorded], undisturbed: Sequence[Recorded]) -> Past:
    return Past(stored, heard, {r.id: float(r.seq) for r in heard}, undisturbed)


def attempt(told: Sequence[Recorded]) -> Recorded:
    return next(r for r in told if r.type == "TaskAttempted")


def test_a_run_that_was_left_alone_is_as_it_must_be(told: list[Recorded]) -> None:
    found = past(told, told, told)
    assert (found.finished, found.lost, found.lost_attempts, found.duplicates, found.same) == (True, [], 0, [], True)


def test_what_is_gone_is_noticed(told: list[Recorded]) -> None:
    gone = attempt(told)
    found = past([r for r in told if r is not gone], told, told)
    assert (found.lost, found.lost_attempts, found.same) == ([gone], 1, False)
    assert not past(told[:-1], told, told).finished


def test_what_is_there_twice_is_noticed(told: list[Recorded]) -> None:
    one = attempt(told)
    again = one.model_copy(update={"id": "another"})
    for twice in (one, again):
        found = past([*told, twice], told, told)
        assert found.duplicates == [twice]
        assert not found.same


def test_the_middle_of_work_is_told_from_its_end(told: list[Recorded]) -> None:
    """Asked at 10, killed at 11, answered at 12; and killed again when nothing was left to do."""
    one = attempt(told)
    answer = one.model_copy(update={"time": one.time.fromtimestamp(12, one.time.tzinfo)})
    found = Past([answer], [answer], {answer.cause: 10.0, answer.id: 12.5}, told)
    assert found.recovery(Kill("student", 11.0)) == (True, 1.5)
    assert found.recovery(Kill("student", 13.0)) == (False, None)
    assert found.recovery(Kill("teacher", 11.0)) == (False, None)
    assert found.recovery(Kill("projector", 11.0, behind=True, back_s=0.5)) == (True, 0.5)


GOOD: Line = {
    "what": "round",
    "finished": True,
    "rebuilt": True,
    "same": True,
    "missing": 0,
    "load": 1,
    "begun": 0,
    "seconds": 60,
}
KILL: Line = {"role": "student", "middle": True, "back_s": 1.0, "lost": 0, "twice": 0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, []),
        ({"finished": False}, ["not finished"]),
        ({"rebuilt": False}, ["tables differ"]),
        ({"same": False}, ["says something else"]),
        ({"missing": 1}, ["missing"]),
        ({"failed": "AssertionError"}, ["did not come to an end"]),
        ({"kills": [{**KILL, "lost": 1}]}, ["missing"]),
        ({"kills": [{**KILL, "twice": 2}]}, ["there twice"]),
    ],
)
def test_what_is_wrong_is_said(change: Line, words: list[str]) -> None:
    line = {**GOOD, "kills": [KILL], **change}
    assert wrong(line) == words
    said = page([line], (1000, 200), 0, "today", "0")
    assert ("What was not as it must be" in said) == bool(words)
    assert all(word in said for word in words)


def test_what_was_cut_off_is_done_again(tmp_path: Path) -> None:
    state = State(tmp_path / "state.jsonl")
    state.add({**GOOD, "kills": [KILL] * 3})
    with state.path.open("a") as file:
        file.write('{"what": "round", "ki')
    again = State(state.path)
    assert (again.lines, again.kills("round")) == (state.lines, 3)
    again.add({**GOOD, "kills": [KILL]})
    assert State(state.path).kills("round") == 4


def test_what_broke_off_is_done_again_under_other_code_and_still_told(tmp_path: Path) -> None:
    state = State(tmp_path / "state.jsonl")
    broke = {
        "what": "round",
        "number": 0,
        "code": "old",
        "failed": "AssertionError",
        "load": 1,
        "begun": 0,
        "seconds": 9,
    }
    state.add(broke)
    assert _tried(state, "round") == set()
    state.add({**broke, "code": code_rev()})
    assert _tried(state, "round") == {0}
    assert not done_again(broke, state.lines)
    state.add({**GOOD, "number": 0, "code": "new", "kills": [KILL]})
    assert done_again(broke, state.lines)
    assert "round 0 under old: did not come to an end; it did under later code" in page(
        state.lines, (9, 0), 0, "today", "0"
    )


def test_rounds_that_go_on_at_once_take_the_time_of_one() -> None:
    kill, begun = {**KILL, "role": ROLES[0]}, (0, 30, 120)
    rounds = [{**GOOD, "what": "shipped", "begun": moment, "kills": [kill]} for moment in begun]
    text = page(rounds, (3, 0), 0, "today", "0")
    assert "- 3 kills under the shipped settings: 0 attempts lost" in text
    assert "in 2 minutes on two cores, 2 runs at once" in " ".join(text.split())  # from 0 to 90 and from 120 to 180 s


def test_the_page_says_what_was_found() -> None:
    text = PAGE.read_text()
    assert "python -m benchmarks.crash" in text and "make crash" in text
    shipped, _, short = text.partition("## With short waits")
    for part, under in ((shipped, "the shipped settings"), (short.partition("## A training")[0], "settings for short")):
        (total,) = re.findall(r"\*\*(\d+) kills\*\*", part)
        rows = {cells[0]: cells[1:] for line in part.splitlines() if len(cells := _cells(line)) == 7}
        assert set(ROLES) <= set(rows)
        assert all(rows[role][2:4] == ["0", "0"] for role in ROLES), "attempts lost, stored twice"
        assert int(total) == sum(int(rows[role][0]) for role in ROLES)
        assert f"\n- {total} kills under {under}" in text
    assert int(re.findall(r"\n- (\d+) kills under the shipped", text)[0]) >= 1000
    _, _, troubles = text.partition("## What was not as it must be")
    assert all(line.endswith("when it was done again") for line in troubles.splitlines() if line.startswith("- "))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| ") else []
