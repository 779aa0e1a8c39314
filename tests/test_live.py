"""What is shown while a checkpoint trains: steps and time left, and once what memory it needs."""

import asyncio
import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from agent0.assembly.runtime.progress import FailedTries, Milestone, Pace, Progress, milestone_line
from agent0.cli.runs.live import _refresh, describe, training
from agent0.events.alarms import ReactionTried
from agent0.events.base import Recorded, record
from agent0.events.runs import RunPaused
from agent0.infra.training.progress import pace_of, progress_file_name
from agent0.settings import RunConfig
from agent0.state.run_state import RunState
from tests.test_run import played
from tests.world import NOON


@dataclass
class Shown:
    """Plays ``Display``."""

    every_s: float = 0.0
    paces: list[Pace] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def passed(self, made: Milestone, config: RunConfig) -> None:
        self.lines.append(milestone_line(made, config.iterations))

    def show(self, pace: Pace) -> None:
        self.paces.append(pace)

    def say(self, text: str, style: str = "") -> None:
        self.lines.append(text)


async def test_a_training_under_way_is_shown_with_its_steps(tmp_path: Path) -> None:
    state = RunState("r1", 9, RunConfig(), "", phase="training", iteration=1)
    progress, shown = Progress(state, trainings={"teacher-1": 3, "student-1": 7}), Shown()
    assert training(progress, tmp_path) is None
    file = tmp_path / progress_file_name("student-1", 7)
    file.write_text(json.dumps({"done": 12, "total": 40, "left_s": 20.0, "room": "training needs 1 GiB"}))
    watching = asyncio.create_task(_refresh(progress, shown, tmp_path))
    while len(shown.paces) < 3:
        await asyncio.sleep(0)
    watching.cancel()
    assert describe(shown.paces[-1]) == "iteration 1: training adapters: student-1 step 12/40, about 20 s left"
    assert shown.lines == ["student-1: training needs 1 GiB"]
    for odd in ("", "[", "{}x", '{"unknown": 1}'):  # half-written by another version, say
        file.write_text(odd)
        assert pace_of(tmp_path, "student-1", 7) is None


def tried(cause: str, outcome: str = "failed") -> Recorded:
    event = ReactionTried(cause_id=cause, cause_seq=1, cause_type="TaskAttempted", tried_handler="verify_result",
                          outcome=outcome, error="ValueError", message="no\ndigits.")  # fmt: skip
    return record(event, run="r1", time=NOON, cause=cause)


def test_a_handler_that_fails_again_and_again_is_named_and_no_time_is_left() -> None:
    retries = FailedTries()
    retries.feed(tried("a"))
    assert retries.text() == "", "one failure mostly passes"
    retries.feed(tried("b"))
    retries.feed(tried("b", "begun"))
    retries.feed(tried("a"))
    assert retries.text() == "verify_result failed 3 times: ValueError: no digits, tries again"
    retries.feed(record(RunPaused(), run="r1", time=NOON, cause="a", handler="attempt_task"))
    assert "3 times" in retries.text(), "another handler's effect"
    retries.feed(record(RunPaused(), run="r1", time=NOON, cause="a", handler="verify_result"))
    assert retries.text() == "", "what had effects is done"


def test_what_is_left_does_not_grow_while_a_model_answers_many_at_once() -> None:
    progress = Progress()
    events = played()
    for recorded in events[: next(n for n, one in enumerate(events) if one.type == "ResultVerified") + 1]:
        progress.feed(recorded)
    entered = progress._entered
    assert entered
    progress._last = entered + timedelta(seconds=60)
    paces = [progress.pace(entered + timedelta(seconds=seconds)) for seconds in (60, 70, 100_000)]
    first, later, overdue = (pace for pace in paces if pace)
    assert first.left_s and later.left_s == first.left_s - 10 and later.rate == first.rate
    assert overdue.left_s is None and "left" not in describe(overdue)


def test_progress_says_which_handler_fails_until_its_phase_is_over() -> None:
    begun = played()
    first = next(n for n, one in enumerate(begun) if one.type == "ResultVerified")
    progress = Progress()
    for one in begun[: first + 3]:
        progress.feed(one)
    later = NOON + timedelta(seconds=60)
    sound = progress.pace(later)
    assert sound and sound.left_s is not None and ", about " in describe(sound)
    for _ in range(3):
        progress.feed(tried("x"))
    failing = progress.pace(later)
    assert failing and failing.left_s is None
    assert describe(failing).endswith(": verify_result failed 3 times: ValueError: no digits, tries again")
    assert f" {failing.done}/{failing.total}: " in describe(failing)
    for one in begun[first + 3 :]:
        progress.feed(one)
    over = progress.pace(later)
    assert over and not over.failing
