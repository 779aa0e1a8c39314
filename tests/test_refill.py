"""Tasks in place of those without contrast: as many as are missing, up to a bound, whoever is killed or forks."""

import asyncio
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.validate.run_config import check_names
from agent0.errors import ConfigError
from agent0.events import runs, tasks
from agent0.events.base import Recorded
from agent0.events.values import QUESTIONS
from agent0.experiments.ablation_runs import describe_compute, requested_compute
from agent0.handlers.screen_task import screen_task
from agent0.projections import Projector, tables
from agent0.report.overview import overview
from agent0.run.lifecycle import RunState, evolve
from agent0.run.refill import has_contrast, refilled, with_contrast
from agent0.settings import RunConfig
from agent0.state.run_state import AttemptState, TaskState
from agent0.tasks.curriculum.sampler import allocate
from agent0.tasks.screening import Archive, Proposed, decide_batch
from tests.play import Played, finished, play
from tests.story import bodies
from tests.test_forking import begin, state_at
from tests.world import ports, small, started

CONFIG = small(iterations=2, tasks=5, attempts=3, seed=2, refill=2.6)
BAND = CONFIG.curriculum.band
WORLD = ports()


@cache
def told() -> tuple[Recorded, ...]:
    return tuple(finished(play(started(CONFIG), WORLD)))


def asked(events: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (e.task, e.iteration, e.domain, e.family, e.level, e.seed)
        for e in (recorded.event for recorded in events)
        if isinstance(e, tasks.TaskRequested)
    )


def at_trainings() -> list[RunState]:
    """The states in which an iteration's training began."""
    states, state = [], None
    for recorded in told():
        before, state = state, evolve(state, recorded)
        if before and state and before.phase == "tasks" and state.phase != "tasks":
            states.append(state)
    return states


def test_an_iteration_ends_with_as_much_contrast_as_was_asked_for_or_at_its_bound() -> None:
    states = at_trainings()
    assert len(states) == CONFIG.iterations
    for state in states:
        assert CONFIG.tasks <= len(state.tasks) == state.tasks_asked <= CONFIG.most_tasks == 13
        assert with_contrast(state) >= CONFIG.tasks or len(state.tasks) == CONFIG.most_tasks
        assert all(task.done for task in state.tasks.values())
    assert any(len(state.tasks) > CONFIG.tasks for state in states), "the run asks for others at all"


async def test_a_repeated_task_is_refused_beside_those_that_the_iteration_accepted_before() -> None:
    """At the event with which the last proposal in place of others is in, one of them says what was said before."""
    state, places = None, []
    for recorded in told():
        state = evolve(state, recorded)
        if state and state.task_target and isinstance(recorded.event, tasks.TaskProposed):
            places.append((recorded, state))
    last, state = next((r, s) for r, s in places if all(t.proposed for t in s.tasks.values()) and s.iteration == 0)
    waiting = {name: task for name, task in state.tasks.items() if not task.accepted and not task.rejected}
    accepted = [task for task in state.tasks.values() if task.accepted]
    name, known = next((n, k) for n, t in waiting.items() for k in accepted if t.domain == k.domain)
    repeated = replace(state, tasks={**state.tasks, name: replace(state.tasks[name], proposal=known.proposal)})
    needs = {key: WORLD[key] for key in ("embedders", "contamination", "verifier_sandbox")}
    effects = await screen_task(last.event, repeated, history=Played([*told()]), **needs)
    refused = [e.reason for e in effects if isinstance(e, tasks.TaskRejected) and e.task == name]
    assert refused == ["duplicate"]
    assert {e.task for e in effects if isinstance(e, tasks.TaskAccepted | tasks.TaskRejected)} == {*waiting}


def test_what_was_asked_first_is_what_a_run_without_it_asks_for() -> None:
    plain = finished(play(started(small(iterations=1, tasks=5, attempts=3, seed=2)), WORLD))
    first = [task for task in asked(told()) if task[1] == 0][: CONFIG.tasks]
    assert first == asked(plain)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_which_work_ends_decides_nothing(seed: int) -> None:
    rng = random.Random(seed)
    again = asyncio.run(play(started(CONFIG), WORLD, pick=lambda n: rng.randrange(n)))
    assert asked(again) == asked(told())
    assert again[-1].event == told()[-1].event


@pytest.mark.parametrize("part", range(6))
def test_a_fork_ends_as_the_run_does_wherever_it_begins(part: int) -> None:
    length = len(told())
    seq = length * (part + 1) // 7
    forked = asyncio.run(play(begin(state_at(seq, [*told()]), seq, CONFIG), WORLD, past=[*told()]))
    last, own = told()[-1].event, forked[-1].event
    assert isinstance(last, runs.RunFinished) and isinstance(own, runs.RunFinished)
    assert (own.tasks, own.attempts) == (last.tasks, last.attempts)
    assert set(asked(forked[length:])) <= set(asked(told()))


def test_a_fork_without_it_begins_the_iteration_again() -> None:
    state = None
    for recorded in told():
        state = evolve(state, recorded)
        if state and state.task_target and state.phase == "tasks":
            break
    assert state
    start = begin(state, state.seq, CONFIG.model_copy(update={"refill": 1.0}))
    forked = asyncio.run(play(start, WORLD, past=[*told()]))[len(told()) :]
    counts = [sum(task[1] == number for task in asked(forked)) for number in range(CONFIG.iterations)]
    assert counts[state.iteration :] == [CONFIG.tasks] * (CONFIG.iterations - state.iteration)


def test_tables_and_answers_say_how_many_were_asked_for_and_taught_nothing() -> None:
    states = at_trainings()
    measured = [r.event.measures for r in told() if isinstance(r.event, runs.IterationMeasured)]
    assert [m["refilled"] for m in measured] == [len(state.tasks) - CONFIG.tasks for state in states]
    tried = [sum(any(a.attempted for a in t.attempts.values()) for t in state.tasks.values()) for state in states]
    assert [m["no_contrast"] for m in measured] == [n - with_contrast(s) for n, s in zip(tried, states, strict=True)]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        Projector(Path("memory"), lambda _: db, tables(), "stream").apply(bodies([*told()]))
        summary = overview(db, "r1")
    assert summary["refilled"] == sum(m["refilled"] for m in measured) > 0
    assert f"({summary['refilled']} tasks in place of others; {summary['no_contrast']} had no" in summary["answer"][0]
    assert not any("refilled" in m for m in finished_measures(small(iterations=1)))


def finished_measures(config: RunConfig) -> list[Any]:
    events = finished(play(started(config), WORLD))
    return [r.event.measures for r in events if isinstance(r.event, runs.IterationMeasured)]


def attempted(*verdicts: bool | None, rewards: tuple[float | None, ...] = ()) -> TaskState:
    pairs = zip(verdicts, rewards or [float(bool(verdict)) for verdict in verdicts], strict=True)
    attempts = {
        f"a{n}": AttemptState(n, attempted=True, correct=verdict, verified=True, reward=reward)
        for n, (verdict, reward) in enumerate(pairs)
    }
    return TaskState(0, "math", "sums", 1, accepted=True, attempts=attempts)


@pytest.mark.parametrize(
    ("task", "contrast"),
    [
        (attempted(True, False), True),
        (attempted(True, True), False),
        (attempted(False, False), False),
        (attempted(False, False, rewards=(0.0, 0.5)), False),  # outside the band: nothing of it is trained on
        (attempted(True, False, rewards=(1.0, 1.0)), False),
        (attempted(True, False, None), True),
        (attempted(None, None), False),
        (attempted(True, False, rewards=(None, None)), False),
        (attempted(), False),
    ],
)
def test_contrast_is_what_a_policy_gradient_learns_from(task: TaskState, contrast: bool) -> None:
    assert has_contrast(task, BAND) is contrast


def state_of(config: RunConfig, tasks_by_name: dict[str, TaskState], target: int = 0) -> RunState:
    return RunState(
        "r1", 1, config, "", phase="tasks", iteration=0, starts=(1,), tasks=tasks_by_name, task_target=target
    )


@settings(max_examples=60, deadline=None)
@given(
    right=st.lists(st.booleans(), min_size=1, max_size=20),
    count=st.integers(1, 6),
    refill=st.floats(1, 10, allow_nan=False),
)
def test_rounds_end_and_no_round_asks_for_fewer(right: list[bool], count: int, refill: float) -> None:
    config = small(tasks=count, refill=refill)
    state, rounds = state_of(config, {}), 0
    while True:
        names = [f"t0-{n:03d}" for n in range(state.tasks_asked)]
        done = {name: attempted(True, not right[n % len(right)]) for n, name in enumerate(names)}
        state = state_of(config, done, state.task_target)
        more = refilled(state)
        assert state.tasks_asked <= more <= max(count, config.most_tasks)
        if more == state.tasks_asked:
            break
        state, rounds = state_of(config, done, more), rounds + 1
    assert with_contrast(state) >= count or state.tasks_asked == max(count, config.most_tasks)
    assert rounds <= config.most_tasks


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["bandit", "uniform", "frontier", "teacher"])
def test_slots_stay_what_they_are_as_more_are_asked_for_and_rows_keep_their_share(share: float, kind: str) -> None:
    questions = {"file": "rows.jsonl", "share": share}
    curriculum = {"embedder": "ngram", "kind": kind, "max_share": 0.5, "long": 0.2 if kind == "bandit" else 0.0}
    config = small(tasks=8, refill=3, questions=questions, curriculum=curriculum)
    chosen = [allocate(state_of(config, {}, target)) for target in (0, 9, 12, 24)]
    assert [len(slots) for slots in chosen] == [8, 9, 12, 24]
    assert all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(chosen))
    for begin_at, end in ((0, 8), (8, 24)):
        rows = sum(family == QUESTIONS for _, family, _ in chosen[-1][begin_at:end])
        assert rows == share * (end - begin_at)
    assert abs(sum(family == QUESTIONS for _, family, _ in chosen[2][8:]) - 4 * share) <= 1


def test_a_task_that_the_iteration_has_accepted_is_not_accepted_again() -> None:
    task = next(e.proposal for e in (recorded.event for recorded in told()) if isinstance(e, tasks.TaskAccepted))
    batch, vectors = [Proposed("t0-006", 6, task.domain, task)], {"t0-006": [1.0, 0.0]}

    def reason(*earlier: tuple[str, list[float]]) -> str | None:
        return decide_batch(batch, Archive(), vectors, 0.9, earlier=earlier)[0].reason

    assert reason() is None is reason(("other", [0.0, 1.0]))
    assert reason((task.canonical, [0.0, 1.0])) == "duplicate"
    assert reason(("other", [0.0, 1.0]), ("another", [1.0, 0.0])) == "similar"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"attempts": 1}, "Nothing learns from contrast"),
        ({"training": {"student": {"objective": "sft"}}}, "Nothing learns from contrast"),
        ({"refill": 1.1}, "6 of 6 tasks"),
    ],
)
def test_a_refill_without_effect_is_refused(changes: dict[str, Any], why: str) -> None:
    check_names(small(refill=2))
    with pytest.raises(ConfigError, match="has no effect") as refused:
        check_names(small(**({"refill": 2} | changes)))
    assert why in str(refused.value)


def test_a_study_counts_what_may_be_asked_for() -> None:
    plain, half = small(tasks=12), small(tasks=6, refill=2)
    assert requested_compute(plain) == requested_compute(half)
    assert describe_compute({"plain": plain, "half": half}).startswith("Asked of every run alike")
    assert describe_compute({"plain": plain, "more": small(tasks=12, refill=2)}).startswith("NOT equal compute")
