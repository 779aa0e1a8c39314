"""The life of a run: whatever the order, the failures and the plan, it is told the same way and comes to an end."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.events import alarms, runs, tasks
from agent0.events.base import Event, Recorded, decode, event_types, record
from agent0.events.checkpoints import TrainingRequested
from agent0.events.runs import IterationMeasured
from agent0.handlers import Handler, handlers
from agent0.run.lifecycle import RunState, decide, evolve
from agent0.settings import RunConfig
from agent0.training.dataset import collect_trajectories
from tests.memory import MemoryArtifacts
from tests.play import finished, play
from tests.world import NOON, ports, small, started

FEW = settings(max_examples=8, deadline=None, derandomize=True)


def played(
    config: RunConfig | None = None, chosen: Mapping[str, Handler] | None = None, seed: int | None = None
) -> list[Recorded]:
    """A whole run; reactions in an order drawn by ``seed``, in that of the stream where it is None."""
    pick = random.Random(seed).randrange if seed is not None else lambda _: 0
    return finished(play(started(config or small()), ports(), chosen, pick=pick))


def states(told: Sequence[Recorded]) -> list[RunState]:
    held: list[RunState] = []
    state = None
    for recorded in told:
        state = evolve(state, recorded)
        assert state is not None
        held.append(state)
    return held


@cache
def full_run() -> list[Recorded]:
    return played()


def brief(**changes: Any) -> RunConfig:
    """What is quick to play again and again: fewer tasks, one held-out task a domain."""
    return small(**({"tasks": 4, "evaluation": {"validation": 3, "test": 3}} | changes))


@cache
def brief_run() -> list[Recorded]:
    return played(brief())


# --- the fold ----------------------------------------------------------------------------------------------------


@FEW
@given(st.lists(st.deferred(lambda: st.integers(0, len(full_run()) - 1)), max_size=40))
def test_events_seen_again_change_nothing(again: list[int]) -> None:
    state = None
    for place, recorded in enumerate(full_run()):
        state = evolve(state, recorded)
        for old in again:
            if old <= place:
                assert evolve(state, full_run()[old]) is state


@FEW
@given(st.deferred(lambda: st.integers(1, len(full_run()))), st.integers(0, 10**6))
def test_a_state_is_a_pure_function_of_its_prefix_and_its_digest_of_no_sequence(length: int, shift: int) -> None:
    here = states(full_run()[:length])[-1]
    assert states(full_run()[:length])[-1] == here
    moved = [r.model_copy(update={"seq": shift + 3 * r.seq}) for r in full_run()[:length]]
    there = states(moved)[-1]
    assert there.digest == here.digest
    assert (there == here) is False
    assert [e.model_dump(exclude={"until", "after", "replay_after"}) for e in decide(there, moved[-1].event)] == [
        e.model_dump(exclude={"until", "after", "replay_after"}) for e in decide(here, full_run()[length - 1].event)
    ]


def test_the_digest_tells_states_apart() -> None:
    silent = ("TaskRequested", "TaskProposed", "TaskAccepted", "TaskAttempted", "ResultVerified", "RewardAssigned")
    held = states(full_run())
    told_apart = [h.digest for h, r in zip(held, full_run(), strict=True) if r.type in silent]
    assert len(set(told_apart)) == len(told_apart)


GOLDEN = [decode(line) for line in (Path(__file__).parent / "golden/events.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", sorted(event_types()))
def test_every_event_leaves_the_fold_total(name: str) -> None:
    """Any event may come at any moment: late, early, twice, of a task nobody knows."""
    event = next(r.event for r in GOLDEN if r.type == name)
    for held in [None, *states(full_run())[:: len(full_run()) // 25]]:
        seq = held.seq + 1 if held else 1
        after = evolve(held, record(event, run="r1", time=NOON).model_copy(update={"seq": seq}))
        if after is not None and name != "RunStarted":
            assert after.seq == seq
            decide(after, event)
            assert evolve(after, record(event, run="other", time=NOON).model_copy(update={"seq": seq + 1})) is after


def test_phases_follow_one_another_and_each_asks_once() -> None:
    phases = [(s.phase, s.iteration) for s in states(full_run())]
    seen = list(dict.fromkeys(phases))
    rounds = [(p, i) for i in (0, 1) for p in ("tasks", "training", "evaluating", "judging")]
    assert seen == [("baseline", -1), *rounds, ("final", 1), ("done", 1)]
    asked = Counter((type(r.event).__name__, r.cause) for r in full_run() if r.handler == "advance_run")
    begun = [
        r for r, s in zip(full_run(), states(full_run()), strict=True) if s.entered == s.seq and s.phase != "judging"
    ]
    by_phase = {cause for kind, cause in asked if kind != "AttemptRequested"}
    assert by_phase == {r.id for r in begun}
    assert len({r.id for r in full_run()}) == len(full_run())


def test_decisions_name_the_state_they_were_made_in() -> None:
    by_id = {r.id: s.digest for r, s in zip(full_run(), states(full_run()), strict=True)}
    named = [r for r in full_run() if hasattr(r.event, "state_sha")]
    assert named
    for recorded in named:
        assert recorded.event.state_sha == by_id[recorded.cause]  # type: ignore[attr-defined]


# --- order -------------------------------------------------------------------------------------------------------

VOLATILE = {
    "wall_s",
    "seconds",
    "latency_p50_s",
    "latency_p95_s",
    "cached",
    "position",
    "after",
    "until",
    "replay_after",
}
"""Clocks and places in the stream."""
NAMES_IDS = {"manifest", "items", "dataset"}
"""Artifacts that hold event ids or seconds, and digests of event ids."""


def facts(told: Sequence[Recorded]) -> Counter[str]:
    """What was said, without who was first."""
    return Counter(f"{r.type} {r.task} {r.attempt} {_stable(r.event.model_dump(mode='json'))}" for r in told)


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _stable(v) for k, v in sorted(value.items()) if k not in VOLATILE | NAMES_IDS}
    return [_stable(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(4))
def test_who_finishes_first_does_not_matter(seed: int) -> None:
    """Down to the state digests and the adapters: any order of reactions gives the same facts. Alarms are for people,
    and the last may find the run finished. A phase waits for rewards that land after the teacher's, else what is
    trained on would depend on who was faster."""
    told = played(brief(), seed=seed)
    here, there = ([r for r in one if r.type != "AlarmRaised"] for one in (told, brief_run()))
    assert facts(here) == facts(there)
    for event in (r.event for r in told if isinstance(r.event, TrainingRequested)):
        seen = [r.event for r in told if event.after < r.seq <= event.until]
        judged = {e.attempt for e in seen if isinstance(e, tasks.ResultVerified)}
        paid = {e.attempt for e in seen if isinstance(e, tasks.RewardAssigned) and e.role == "student"}
        assert judged == paid


def test_every_iteration_is_measured_once() -> None:
    told = [r.event for r in full_run() if isinstance(r.event, IterationMeasured)]
    assert [e.iteration for e in told] == list(range(small().iterations))
    assert all(e.measures["attempts"] for e in told)


async def test_a_training_reads_the_same_whoever_was_first() -> None:
    request = next(r.event for r in full_run() if isinstance(r.event, TrainingRequested))

    class Backwards:
        async def read(self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0) -> Any:
            for recorded in reversed(full_run()):
                if after < recorded.seq <= until and recorded.type in types:
                    yield recorded

    class Forwards:
        async def read(self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0) -> Any:
            for recorded in full_run():
                if after < recorded.seq <= until and recorded.type in types:
                    yield recorded

    backwards = await collect_trajectories("r1", request, Backwards(), MemoryArtifacts())
    assert backwards == await collect_trajectories("r1", request, Forwards(), MemoryArtifacts())
    assert backwards[0]


# --- plans -------------------------------------------------------------------------------------------------------

OFF = {"enabled": False}
TO_THE_END: dict[str, Any] = {"max_given_up": 1.0, "max_untrained": 0}
"""Whatever is given up, and though nothing can be trained on."""
PLANS: dict[str, dict[str, Any]] = {
    "one iteration": {"iterations": 1},
    "no test set": {"evaluation": {"validation": 3, "test": 0}},
    "no forced tool": {"evaluation": {"validation": 3, "test": 3, "forced_tool": False}},
    "student only": {"training": {"teacher": OFF}},
    "teacher only": {"training": {"student": OFF}},
    "nobody is trained": {"training": {"student": OFF, "teacher": OFF}},
    "nobody is trained or tested": {"training": {"student": OFF, "teacher": OFF}, "evaluation": {"test": 0}},
    "one task, one attempt": {"tasks": 1, "attempts": 1, **TO_THE_END},
    "no tool": {"student": {"max_calls": 0}},
    "one domain": {"curriculum": {"domains": ("math",), "levels": (2,), "embedder": "ngram"}},
    "permuted rewards": {"training": {"student": {"gate": "permuted"}}},
    "nothing teaches": {"curriculum": {"band": (0.98, 0.99), "embedder": "ngram"}},
    "everything is similar": {"curriculum": {"similarity_limit": 1e-6, "embedder": "ngram"}, "tasks": 4},
}


@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_ends(plan: str) -> None:
    config = small(**PLANS[plan])
    told = played(config)
    last = told[-1].event
    assert isinstance(last, runs.RunFinished)
    assert last.iterations == config.iterations
    assert last.tasks == config.iterations * config.tasks
    assert Counter(r.type for r in told)["RunFinished"] == 1


# --- failures ----------------------------------------------------------------------------------------------------


def failing(name: str, chosen: Sequence[int] = ()) -> dict[str, Handler]:
    """All handlers; of ``name``, the reactions numbered ``chosen`` (none: all) are given up, as the bus would write it.
    A reaction that does nothing cannot fail."""
    known = handlers()
    real, count = known[name], iter(range(10**6))

    class Failing(Handler):
        async def __call__(self, cause: Recorded, run: RunState, ports: Mapping[str, Any]) -> list[Event]:
            effects = await real(cause, run, ports)
            failed = effects and (not chosen or next(count) in chosen)
            return [_given_up(cause, name)] if failed else effects

    return known | {name: Failing(**real.__dict__)}


def _given_up(cause: Recorded, handler: str) -> Event:
    about = cause.event
    return alarms.ReactionFailed(
        failure=f"{handler}-{cause.seq}",
        cause_id=cause.id,
        cause_seq=cause.seq,
        cause_type=cause.type,
        cause_task=getattr(about, "cause_task", cause.task),
        cause_attempt=getattr(about, "cause_attempt", cause.attempt),
        failed_handler=handler,
        error="Broken",
        message="by the test",
        deliveries=10,
    )


IDLE = {
    "continue_attempt",
    "fail_run",
    "guard_run",
    "measure_gain",
    "settle_review",
    "solve_submission",
    "watch_budget",
    "watch_training",
}
"""Handlers that have nothing to do in a brief run of short tasks: none of their reactions can fail there.
``measure_gain`` has its own in ``tests/test_gain.py``, ``guard_run`` in ``tests/test_guards.py``."""
WORKERS = sorted(set(handlers()) - {"advance_run", "raise_alarm"} - IDLE)


def sound(told: Sequence[Recorded]) -> None:
    """Nobody is judged or paid twice, nothing is asked twice."""
    kinds = Counter(
        (r.type, r.task, r.attempt, getattr(r.event, "role", ""), getattr(r.event, "evaluation", ""))
        for r in told
        if r.type in ("TaskAccepted", "AttemptRequested", "ResultVerified", "RewardAssigned", "EvaluationRequested")
    )
    assert not [key for key, count in kinds.items() if count > 1]


@pytest.mark.parametrize("name", WORKERS)
def test_a_run_ends_though_a_handler_always_fails(name: str) -> None:
    told = played(brief(**TO_THE_END), failing(name))
    assert isinstance(told[-1].event, runs.RunFinished)
    sound(told)


def test_every_other_handler_does_something_in_a_brief_run() -> None:
    assert {*WORKERS} <= {r.handler for r in brief_run()}


@pytest.mark.parametrize("name", WORKERS)
@settings(FEW, max_examples=3)
@given(chosen=st.lists(st.integers(0, 25), min_size=1, max_size=6), seed=st.integers(0, 2**32))
def test_a_run_ends_whichever_reactions_are_given_up(name: str, chosen: list[int], seed: int) -> None:
    told = played(brief(**TO_THE_END), failing(name, chosen), seed)
    assert isinstance(told[-1].event, runs.RunFinished)
    sound(told)


UNTEACHABLE = brief(curriculum={"band": (0.98, 0.99), "embedder": "ngram"})


@cache
def untaught_run() -> list[Recorded]:
    return played(UNTEACHABLE)


@settings(FEW, max_examples=4)
@given(chosen=st.lists(st.integers(0, 12), min_size=1, max_size=4), seed=st.integers(0, 2**32))
def test_failing_alarms_change_nothing(chosen: list[int], seed: int) -> None:
    """A drop that settles nothing must not make anything happen twice."""
    config, quiet_run = UNTEACHABLE, untaught_run()
    told = played(config, failing("raise_alarm", chosen), seed)
    sound(told)
    quiet = ("ReactionFailed", "ReactionDropped", "AlarmRaised")
    here, there = ([r for r in one if r.type not in quiet] for one in (told, quiet_run))
    assert {(r.type, r.task, r.attempt) for r in here} == {(r.type, r.task, r.attempt) for r in there}


def test_a_training_given_up_leaves_the_other_to_be_waited_for() -> None:
    told = played(chosen=failing("train_checkpoint", [0]))
    made = [r.event.checkpoint for r in told if r.type == "CheckpointTrained"]  # type: ignore[attr-defined]
    assert made == ["teacher-0", "student-1", "teacher-1"]
    assert states(told)[-1].teacher.id == "teacher-1"


def test_without_a_score_the_former_student_goes_on() -> None:
    told = played(small(iterations=1), failing("evaluate_checkpoint", [3]))
    last = states(told)[-1]
    assert (last.student.id, last.candidate, last.phase) == ("base", None, "done")


def test_a_failure_of_the_run_itself_waits_for_a_person() -> None:
    told = played(chosen=failing("advance_run", [3]))
    assert not any(r.type == "ReactionDropped" for r in told)
    (alarm,) = [r.event for r in told if r.type == "AlarmRaised" and r.event.severity == "critical"]  # type: ignore[attr-defined]
    assert "advance_run" in alarm.message  # type: ignore[attr-defined]


def test_with_the_waiting_policy_nothing_is_dropped() -> None:
    told = played(brief(on_failure="wait"), failing("verify_result", [0]))
    assert not {"ReactionDropped", "RunFinished"} & {r.type for r in told}
    state = states(told)[-1]
    assert len(state.failures) == 1
    name = next(iter(state.failures))
    retried = alarms.ReactionRetried(failure=name, cause_id="x", cause_seq=1, failed_handler="verify_result")
    again = record(retried, run="r1", time=NOON).model_copy(update={"seq": state.seq + 1})
    cured = evolve(state, again)
    assert cured is not None and not cured.failures


# --- status ------------------------------------------------------------------------------------------------------


def test_only_a_living_run_changes_its_status() -> None:
    def after(*events: Event) -> str:
        state = states(full_run()[:20])[-1]
        for n, event in enumerate(events, state.seq + 1):
            following = evolve(state, record(event, run="r1", time=NOON).model_copy(update={"seq": n}))
            assert following is not None
            state = following
        return state.status

    assert after(runs.RunPaused()) == "paused"
    assert after(runs.RunPaused(), runs.RunResumed()) == "running"
    assert after(runs.RunCancelled(), runs.RunResumed()) == "cancelled"
    assert states(full_run())[-1].status == "finished"
    assert evolve(None, record(runs.RunPaused(), run="r1", time=NOON)) is None
    assert replace(states(full_run())[0], seq=0).digest == states(full_run())[0].digest
