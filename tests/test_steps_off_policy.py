"""Tasks of the next iteration are attempted while one trains: nobody is more than one training behind, whatever the
order in which things end, and the log alone decides."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

from agent0.assembly.runtime.progress import Progress
from agent0.assembly.validate.run_config import check_names
from agent0.errors import ConfigError
from agent0.events.base import Recorded, record
from agent0.events.checkpoints import (
    CheckpointEvaluated,
    CheckpointPromoted,
    CheckpointRejected,
    CheckpointTrained,
    TrainingRequested,
)
from agent0.events.runs import RunFailed, RunResumed, RunStarted
from agent0.events.tasks import AttemptRequested, TaskAttempted, TaskRequested
from agent0.run.lifecycle import RunState, decide, evolve
from agent0.settings import RunConfig
from agent0.state.snapshot import from_text, to_text
from tests.play import play
from tests.world import NOON, ports, small, started

ITERATIONS = 3
RESULTS = (CheckpointTrained, CheckpointEvaluated, CheckpointPromoted, CheckpointRejected)
STUDENT = {"student": {"minibatch": 4, "replay_steps": 2}}


def ahead(**changes: Any) -> RunConfig:
    training = {**STUDENT, "steps_off_policy": 1} | changes.pop("training", {})
    evaluation = {"validation": 4, "test": 4, "teacher_gate": "open"}
    return small(**{"iterations": ITERATIONS, "tasks": 5, "training": training, "evaluation": evaluation, **changes})


WORLD = ports()


@lru_cache(maxsize=8)
def run_of(seed: int) -> tuple[Recorded, ...]:
    """A whole run whose reactions end in an order drawn with ``seed``; 0: in the order of their causes."""
    drawn = random.Random(seed)
    pick: Callable[[int], int] = (lambda n: drawn.randrange(n)) if seed else (lambda _: 0)
    return tuple(asyncio.run(play(started(ahead()), WORLD, pick=pick)))


def states(events: tuple[Recorded, ...]) -> list[RunState]:
    """The state after each event."""
    found, state = list[RunState](), None
    for recorded in events:
        state = evolve(state, recorded)
        assert state
        found.append(state)
    return found


def places(events: tuple[Recorded, ...], kind: type, **fields: object) -> list[int]:
    return [
        place
        for place, recorded in enumerate(events)
        if isinstance(recorded.event, kind)
        and all(getattr(recorded.event, name) == value for name, value in fields.items())
    ]


@pytest.mark.parametrize("seed", range(3))
def test_attempts_go_on_beside_a_training_and_are_one_behind_at_most(seed: int) -> None:
    events = run_of(seed)
    assert events[-1].type == "RunFinished"
    for n in range(ITERATIONS - 1):
        [asked], [following] = (places(events, TrainingRequested, iteration=one, role="student") for one in (n, n + 1))
        results = [place for kind in RESULTS for place in places(events, kind, iteration=n)]
        assert asked < min(places(events, TaskRequested, iteration=n + 1)) < min(results)
        assert max(results) < following, "the training before was not over"
        if seed:
            assert any(place > min(results) for place in places(events, TaskAttempted, iteration=n + 1))
    for place in places(events, TrainingRequested, role="student"):
        request = events[place].event
        assert isinstance(request, TrainingRequested)
        authors = {
            one.event.student
            for one in events
            if isinstance(one.event, TaskAttempted) and one.event.iteration == request.iteration
        }
        assert authors <= {request.parent, request.earlier} - {""}


@pytest.mark.parametrize("seed", range(3))
def test_every_attempt_ends_once_and_every_token_learned_has_its_author(seed: int) -> None:
    events = run_of(seed)
    asked = Counter(one.event.attempt for one in events if isinstance(one.event, AttemptRequested))
    ended = Counter(one.event.attempt for one in events if isinstance(one.event, TaskAttempted))
    assert asked == ended and set(ended.values()) == {1} and len(ended) >= 5 * ITERATIONS
    stale = 0
    for place in places(events, CheckpointTrained, role="student"):
        trained = events[place].event
        assert isinstance(trained, CheckpointTrained)
        assert bool(trained.authors) == bool(trained.samples) and "other_author" not in trained.skipped
        stale += sum(tokens for author, tokens in trained.authors.items() if author != trained.parent)
    assert stale


@pytest.mark.parametrize("seed", [1, 2])
def test_any_state_is_rebuilt_from_events_or_text_and_decides_the_same(seed: int) -> None:
    events = run_of(seed)
    for recorded, state in [*zip(events, states(events), strict=True)][::7]:
        again = from_text(to_text(state), state.config)
        assert (again, again.digest) == (state, state.digest)
        assert decide(again, recorded.event) == decide(state, recorded.event)
    digests = {state.seq: state.digest for state in states(events) if state.entered == state.seq}
    by_id = {one.id: one.seq for one in events}
    asked = [one for one in events if isinstance(one.event, TrainingRequested | TaskRequested)]
    assert all(one.event.state_sha == digests[by_id[one.cause]] for one in asked)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_person_sees_an_iteration_end_once_it_is_judged_and_what_is_waited_for(seed: int) -> None:
    progress, ends, events = Progress(), list[tuple[int, float | None]](), run_of(seed)
    for place, recorded in enumerate(events):
        milestone, state = progress.feed(recorded), progress.state
        if milestone and milestone.iteration >= 0:
            judged = (CheckpointTrained, CheckpointPromoted, CheckpointRejected)
            assert max(one for kind in judged for one in places(events, kind, iteration=milestone.iteration)) <= place
            ends.append((milestone.iteration, milestone.accuracy))
        pace = progress.pace(NOON)
        assert state and pace and pace.iteration in (state.iteration, state.in_training.iteration)
        if state.learning and pace.iteration == state.iteration:
            waiting = all(task.done for task in state.tasks.values()) and len(state.tasks) == state.tasks_asked
            assert not waiting
    assert [iteration for iteration, _ in ends] == [*range(ITERATIONS)]


def test_switched_off_nothing_is_attempted_ahead() -> None:
    events = tuple(asyncio.run(play(started(ahead(training={"steps_off_policy": 0}, iterations=2)), ports())))
    assert not any(state.learning or state.authors for state in states(events))
    [trained] = places(events, CheckpointTrained, iteration=0, role="student")
    assert min(places(events, TaskRequested, iteration=1)) > trained


def test_a_fork_in_the_middle_attempts_what_was_ahead_again() -> None:
    events = run_of(2)
    middle = [n for n, state in enumerate(states(events)) if state.learning and state.learning.phase == "evaluating"]
    place = middle[len(middle) // 2]
    parent = states(events)[place]
    event = started(ahead(), run="fork").event
    assert isinstance(event, RunStarted)
    fork = record(event.model_copy(update={"parent": "r1", "parent_seq": place + 1}), run="fork", time=NOON, id="fork")
    past = events[: place + 1]
    told = asyncio.run(play(fork, WORLD, past=past))
    begun = evolve(parent, told[place + 1])
    assert begun and begun.learning is None and begun.phase == "evaluating"
    assert begun.iteration == parent.iteration - 1 and len(begun.starts) == begun.iteration + 1
    assert told[-1].type == "RunFinished"
    asked = Counter(one.event.task for one in told[place + 1 :] if isinstance(one.event, TaskRequested))
    assert set(parent.tasks) <= set(asked) and set(asked.values()) == {1}


def test_a_run_in_which_nothing_is_trained_fails_as_soon_as_without_and_goes_on() -> None:
    """One attempt a task has no contrast."""
    changes: dict[str, Any] = {"attempts": 1, "max_untrained": 2, "tasks": 2, "iterations": 4}
    ended = []
    for steps in (0, 1):
        plan = ahead(**changes, training={"schedule": "student", "steps_off_policy": steps})
        events = tuple(asyncio.run(play(started(plan), ports())))
        [failed] = (one.event for one in events if isinstance(one.event, RunFailed))
        ended.append((failed.cause_kind, failed.iteration, len(places(events, CheckpointTrained))))
    assert ended == [("untrained", 1, 2)] * 2
    state = states(events)[-1]
    resumed = record(RunResumed(), run="r1", time=NOON, id="on").model_copy(update={"seq": state.seq + 1})
    going = evolve(state, resumed)
    assert going and going.status == "running" and not going.untrained
    asked = [one for one in decide(going, RunResumed()) if isinstance(one, TaskRequested)]
    assert len(asked) + len(going.tasks) == 2 and {one.iteration for one in asked} <= {2}


def test_a_teacher_on_probation_does_not_fit() -> None:
    plan = ahead(evaluation={"teacher_gate": "no_worse"})
    with pytest.raises(ConfigError, match="steps_off_policy = 1 does not fit"):
        check_names(plan)
    check_names(ahead())
    check_names(ahead(training={"schedule": "student"}, evaluation={"teacher_gate": "no_worse"}))
