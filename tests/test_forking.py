"""A fork begins in the middle of another run: it shares that past, and asks again for what was under way."""

import asyncio
import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from agent0.assembly.log.access import open_log
from agent0.assembly.replay import forks
from agent0.events import checkpoints, runs, tasks
from agent0.events.base import Recorded
from agent0.events.runs import IterationMeasured
from agent0.provenance.fork_history import Branches, ancestry
from agent0.run.forking import has_another_base, redone
from agent0.run.lifecycle import RunState, evolve
from agent0.settings import RunConfig
from tests.memory import MemoryArtifacts
from tests.pasts import keep
from tests.play import Played, finished, play
from tests.world import ports, small, started

CONFIG = small(iterations=3, tasks=6, attempts=3, seed=5)
WORLD = ports()


@cache
def parent_run() -> list[Recorded]:
    return finished(play(started(CONFIG), WORLD))


PLACES = 5
"""So many moments to fork at; the last is the end of the parent."""


@cache
def place(number: int) -> int:
    length = len(parent_run())
    return (*sorted(random.Random(3).sample(range(2, length), PLACES - 1)), length)[number]


def state_at(seq: int, told: list[Recorded], run: str = "r1") -> RunState:
    state = None
    for recorded in told[:seq]:
        state = evolve(state, recorded)
    assert state is not None
    return state


def begin(parent: RunState, seq: int, config: RunConfig, run: str = "f1") -> Recorded:
    plain, another = started(config, run), has_another_base(parent, config)
    assert isinstance(plain.event, runs.RunStarted)
    told = {"redone": redone(parent, config, another_base=another), "another_base": another, "changes": {}}
    event = plain.event.model_copy(update={"parent": parent.run, "parent_seq": seq, **told})
    return plain.model_copy(update={"event": event})


@cache
def forked(seq: int) -> tuple[Recorded, ...]:
    start = begin(state_at(seq, parent_run()), seq, CONFIG)
    return tuple(finished(play(start, WORLD, past=parent_run())))


def branch(told: list[Recorded], run: str) -> list[Recorded]:
    async def read() -> list[Recorded]:
        return [recorded async for recorded in Branches(Played(told)).read(run)]

    return asyncio.run(read())


@pytest.mark.parametrize("number", range(PLACES))
def test_a_fork_goes_on_to_the_end_and_shares_its_past(number: int) -> None:
    seq = place(number)
    told = list(forked(seq))
    assert told[: len(parent_run())] == parent_run()
    own = told[len(parent_run()) :]
    assert {recorded.run for recorded in own} == {"f1"}
    assert isinstance(own[-1].event, runs.RunFinished)
    last = parent_run()[-1].event
    assert isinstance(last, runs.RunFinished)
    assert (own[-1].event.tasks, own[-1].event.iterations) == (last.tasks, last.iterations)


@pytest.mark.parametrize("number", range(PLACES))
def test_every_task_of_a_branch_is_closed_once(number: int) -> None:
    events = branch(list(forked(place(number))), "f1")
    asked = Counter(r.task for r in events if isinstance(r.event, tasks.TaskRequested))
    closed = Counter(r.task for r in events if isinstance(r.event, tasks.RewardAssigned) and r.event.role == "teacher")
    assert asked == closed
    assert set(asked.values()) == {1}
    assert len(asked) == CONFIG.iterations * CONFIG.tasks
    trained = Counter(r.event.checkpoint for r in events if isinstance(r.event, checkpoints.CheckpointTrained))
    assert set(trained.values()) == {1}


def test_nothing_that_was_done_is_asked_for_again() -> None:
    for seq in map(place, range(PLACES)):
        before = state_at(seq, parent_run())
        done = {name for name, task in before.tasks.items() if task.done}
        asked = {r.task for r in forked(seq)[len(parent_run()) :] if isinstance(r.event, tasks.TaskRequested)}
        assert not asked & done


def test_a_fork_of_a_fork_reads_all_three_pasts() -> None:
    seq = place(2)
    told = list(forked(seq))
    middle = (len(parent_run()) + len(told)) // 2
    parent = None
    for recorded in [*parent_run()[:seq], *told[len(parent_run()) : middle]]:
        parent = evolve(parent, recorded)
    assert parent is not None and parent.run == "f1"
    start = begin(parent, middle, CONFIG, "f2")
    again = asyncio.run(play(start, WORLD, past=told))
    assert isinstance(again[-1].event, runs.RunFinished)
    assert [s.run for s in asyncio.run(ancestry(Played(again), "f2"))] == ["r1", "f1", "f2"]
    events = branch(again, "f2")
    asked = Counter(r.task for r in events if isinstance(r.event, tasks.TaskRequested))
    assert set(asked.values()) == {1} and len(asked) == CONFIG.iterations * CONFIG.tasks


def test_a_finished_run_can_be_gone_on_with() -> None:
    longer = CONFIG.model_copy(update={"iterations": 4})
    start = begin(state_at(len(parent_run()), parent_run()), len(parent_run()), longer, "f3")
    told = asyncio.run(play(start, WORLD, past=parent_run()))
    last = told[-1].event
    assert isinstance(last, runs.RunFinished)
    assert last.iterations == 4
    assert {r.event.iteration for r in told[len(parent_run()) :] if isinstance(r.event, tasks.TaskRequested)} == {3}


def test_other_settings_ask_for_the_whole_iteration_again() -> None:
    seq = next(r.seq for r in parent_run() if isinstance(r.event, tasks.RewardAssigned) and r.event.role == "teacher")
    parent = state_at(seq, parent_run())
    wider = CONFIG.model_copy(update={"tasks": 8})
    start = begin(parent, seq, wider, "f4")
    told = asyncio.run(play(start, WORLD, past=parent_run()))
    assert isinstance(told[-1].event, runs.RunFinished)
    first = [
        r for r in told[len(parent_run()) :] if isinstance(r.event, tasks.TaskRequested) and r.event.iteration == 0
    ]
    assert len(first) == 8


UNTRAINED = small(
    iterations=3, tasks=3, attempts=2, seed=5, training={"student": {"enabled": False}, "teacher": {"enabled": False}}
)


@cache
def untrained_run() -> list[Recorded]:
    return finished(play(started(UNTRAINED), WORLD))


def of_another_base(seq: int, run: str) -> list[Recorded]:
    """A fork of ``untrained_run`` at ``seq`` that trains, and has another student model; its own events."""
    settings = {**UNTRAINED.model_dump(), "iterations": 4, "training": CONFIG.training}
    config = RunConfig.model_validate({**settings, "student": {**settings["student"], "model": "another"}})
    start = begin(state_at(seq, untrained_run()), seq, config, run)
    assert start.event.another_base  # type: ignore[attr-defined]
    return asyncio.run(play(start, WORLD, past=untrained_run()))


@pytest.mark.parametrize("moment", [tasks.TaskAttempted, checkpoints.CheckpointEvaluated, runs.RunFinished])
def test_another_base_is_scored_first_and_trained_on_nothing_of_the_former(moment: type) -> None:
    places = [r.seq for r in untrained_run() if isinstance(r.event, moment)]
    seq = places[len(places) // 2]
    before = state_at(seq, untrained_run())
    told = of_another_base(seq, "f5")
    own = told[len(untrained_run()) :]
    first = own[1].event
    assert isinstance(first, checkpoints.EvaluationRequested) and (first.checkpoint, first.split) == (
        "base",
        "validation",
    )
    asked = next(r for r in own if isinstance(r.event, tasks.TaskRequested))
    scored = next(r for r in own if isinstance(r.event, checkpoints.CheckpointEvaluated))
    assert scored.seq < asked.seq
    done = before.iteration + (before.phase != "tasks")
    assert asked.event.iteration == done  # type: ignore[attr-defined]
    trainings = [r.event for r in own if isinstance(r.event, checkpoints.TrainingRequested)]
    assert trainings and min(min(training.after, training.replay_after) for training in trainings) >= own[0].seq
    judged = next(r.event for r in own if isinstance(r.event, checkpoints.CheckpointPromoted))
    assert judged.against == scored.event.accuracy  # type: ignore[attr-defined]
    last = own[-1].event
    assert isinstance(last, runs.RunFinished) and last.iterations == 4
    assert asyncio.run(forks.check_run(Played(told), "f5")).first is None  # type: ignore[arg-type]
    events = branch(told, "f5")
    closed = Counter(r.task for r in events if isinstance(r.event, tasks.TaskRequested))
    assert set(closed.values()) == {1} and len(closed) == last.tasks == 4 * 3


def test_a_checkpoint_of_the_former_base_keeps_a_fork_on_it() -> None:
    """Other models are refused there (``check_bases``), unless they are the same weights."""
    trained = next(s for s in (state_at(seq, parent_run()) for seq in range(1, len(parent_run()))) if s.candidate)
    student = CONFIG.student.model_copy(update={"model": "another"})
    assert not has_another_base(trained, CONFIG.model_copy(update={"student": student}))
    assert not has_another_base(state_at(1, parent_run()), CONFIG)


def test_the_start_of_a_fork_says_whether_its_base_is_another_one(tmp_path: Path) -> None:
    settings = keep(tmp_path, untrained_run(), MemoryArtifacts())
    seq = next(r.seq for r in untrained_run() if isinstance(r.event, tasks.TaskAttempted))

    async def begun(**changes: str) -> runs.RunStarted:
        async with open_log(settings) as log:
            event = (await forks.fork(settings, log, "r1", seq, changes, "")).event
        assert isinstance(event, runs.RunStarted)
        return event

    same, other = asyncio.run(begun(iterations="5")), asyncio.run(begun(**{"student.model": "another"}))
    assert not same.another_base and other.another_base
    assert set(other.redone) == set(state_at(seq, untrained_run()).tasks)


def test_a_fork_of_an_earlier_version_keeps_the_score_of_its_parent() -> None:
    """Its start does not say that its base is another one, and it folds as it did."""
    seq = next(r.seq for r in untrained_run() if isinstance(r.event, tasks.TaskAttempted))
    parent = state_at(seq, untrained_run())
    student = UNTRAINED.student.model_copy(update={"model": "another"})
    start = begin(parent, seq, UNTRAINED.model_copy(update={"student": student}), "f6")
    old = start.event.model_copy(update={"another_base": False, "redone": redone(parent, UNTRAINED)})
    after = evolve(parent, start.model_copy(update={"event": old, "seq": seq + 1}))
    assert after and (after.phase, after.promoted, after.iteration) == ("tasks", parent.promoted, parent.iteration)


def test_a_measure_that_another_version_lacks_is_no_other_decision() -> None:
    def measured(iteration: int, **measures: float) -> IterationMeasured:
        return IterationMeasured(iteration=iteration, student="base", teacher="base", measures=measures)

    def same(one: IterationMeasured, other: IterationMeasured) -> bool:
        return forks._decided(one, other) == forks._decided(other, one)

    before = measured(0, solved=0.5, gone=1.0)
    assert same(before, measured(0, solved=0.5, new=2.0))
    assert not same(before, measured(0, solved=0.6))
    assert not same(before, measured(1, solved=0.5))
