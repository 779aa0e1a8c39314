"""A run with a time in place of a number of iterations: it ends by its events' own hours, so every fold agrees."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from agent0.assembly.validate.curriculum import check_curriculum
from agent0.cli.runs.durations import seconds_of, time_or_iterations
from agent0.errors import ConfigError
from agent0.events import runs
from agent0.events.base import Event, Recorded, record
from agent0.run.lifecycle import RunState, decide, evolve
from agent0.settings import RecipeConfig, RunConfig
from agent0.state.run_clock import RunClock, ticked
from agent0.state.run_state import iteration_of
from agent0.state.snapshot import from_text, to_text
from agent0.training.selection import learning_rate, settling
from tests.play import finished, play
from tests.world import NOON, ports, small, started

STEP_S = 1.0
CONFIG = small(tasks=2, attempts=2, iterations=1, evaluation={"validation": 2, "test": 2, "forced_tool": False})


def played(config: RunConfig) -> list[Recorded]:
    """A whole run each of whose events comes a second after the one before."""
    ticks = iter(range(1, 100_000))
    return finished(play(started(config), ports(), clock=lambda: NOON + timedelta(seconds=STEP_S * next(ticks))))


def timed(seconds: float, **changes: Any) -> RunConfig:
    return CONFIG.model_copy(update={"time_limit": seconds, **changes})


def folded(events: Sequence[Recorded]) -> RunState:
    state = None
    for recorded in events:
        state = evolve(state, recorded)
    assert state is not None
    return state


@pytest.mark.parametrize("seconds", [0.5, 60.0, 200.0])
def test_it_finishes_the_iteration_in_which_its_time_ends_and_no_other_begins(seconds: float) -> None:
    events = played(timed(seconds))
    end = events[-1].event
    assert isinstance(end, runs.RunFinished)
    begun = [e.time for e in events if e.type == "TaskRequested" and e.event.slot == 0]  # type: ignore[attr-defined]
    assert len(begun) == end.iterations >= 1
    assert all(time < NOON + timedelta(seconds=seconds) + timedelta(seconds=2) for time in begun[1:])
    assert (events[-1].time - NOON).total_seconds() >= seconds
    assert {e.type for e in events[-8:]} >= {"CheckpointEvaluated", "RunFinished"}  # the last student is scored


def test_a_second_fold_of_its_log_ends_where_the_first_did() -> None:
    events = played(timed(120))
    state = folded(events[:-1])
    assert state.phase == "done" and events[-1].event in decide(state, events[-2].event)
    assert state.clock.used_s == (events[-2].time - NOON).total_seconds()
    assert from_text(to_text(state), state.config) == state


def test_other_hours_of_the_same_events_change_no_digest() -> None:
    events = played(CONFIG)
    later = [e.model_copy(update={"time": e.time + timedelta(days=n)}) for n, e in enumerate(events)]
    assert folded(events).digest == folded(later).digest


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def after(moments: Sequence[tuple[float, Event]]) -> RunState:
    start = started(timed(3600))
    events = [start.model_copy(update={"seq": 1, "time": at(0)})]
    for seq, (seconds, event) in enumerate(moments, 2):
        events.append(record(event, run=start.run, time=at(seconds)).model_copy(update={"seq": seq}))
    return folded(events)


def test_only_work_counts_whether_it_was_paused_failed_or_killed() -> None:
    failed = runs.RunFailed(reason="x", cause_kind="untrained", iteration=0, state_sha="")
    paused = after([(100, runs.RunPaused()), (5000, runs.RunLabelled()), (9000, runs.RunResumed())])
    assert (paused.clock.used_s, paused.last_iteration) == (100, False)
    assert after([(100, failed), (9000, runs.RunResumed()), (9010, runs.RunLabelled())]).clock.used_s == 110
    killed = after([(100, runs.RunLabelled()), (9000, runs.RunResumed()), (9010, runs.RunLabelled())])
    assert killed.clock.used_s == 110  # nothing says when a process was killed but the event before
    assert after([(100, runs.RunPaused()), (200, runs.RunPaused()), (300, runs.RunResumed())]).clock.used_s == 100


def test_a_fork_has_its_whole_time_again() -> None:
    events = played(timed(120))
    parent = folded(events)
    start = events[0].event
    assert isinstance(start, runs.RunStarted)
    child = start.model_copy(update={"parent": events[0].run, "parent_seq": parent.seq})
    begun = evolve(parent, record(child, run="child", time=at(99_999)).model_copy(update={"seq": parent.seq + 1}))
    assert begun is not None and begun.phase == "tasks" and begun.iteration == parent.iteration + 1
    assert begun.clock == RunClock(0.0, at(99_999).timestamp(), at(99_999).timestamp())


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    clock = ticked(ticked(RunClock(), 100.0, working=True), 90.0, working=True)
    assert clock.used_s == 0 and ticked(clock, 130.0, working=False).used_s == 30


def test_where_nobody_knows_how_many_iterations_come_the_rate_stays_and_nothing_settles() -> None:
    recipe = RecipeConfig(lr=1e-3, lr_final=0.2, settle=0.5)
    assert learning_rate(recipe, 7, None) == 1e-3 and settling(recipe, 1e-3, 7, None) == {}
    assert (iteration_of(7, None), iteration_of(7, 10)) == ("7", "7 of 0-9")
    plan = small(curriculum={"kind": "rising", "families": ("chain",), "domains": ("math",)}, time_limit=60)
    with pytest.raises(ConfigError, match=r"rising does not fit run\.time_limit"):
        check_curriculum(plan)


@pytest.mark.parametrize(
    ("text", "seconds"), [("2h", 7200), ("90m", 5400), ("1h30m", 5400), ("1.5 h", 5400), ("45s", 45), ("1d", 86_400)]
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds == time_or_iterations(text, None)


@pytest.mark.parametrize("text", ["2", "h", "0h", "-2h", "2 weeks", "two hours", "400d", "1e3s", "2h, please"])
def test_what_is_no_duration_gets_one_line_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"no duration.*--for 2h") as error:
        seconds_of(text)
    assert "\n" not in str(error.value)


def test_a_time_and_a_number_of_iterations_do_not_go_together() -> None:
    assert time_or_iterations("", 3) is None
    with pytest.raises(ConfigError, match="do not go together"):
        time_or_iterations("2h", 3)
