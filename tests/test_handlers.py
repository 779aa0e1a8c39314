"""Handlers: each is found under its name, wants only ports there are, and reacts to what it says and nothing else."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import agent0.handlers as room
from agent0.assembly.runtime.plugins import known_handlers
from agent0.assembly.validate.run_config import check_names
from agent0.errors import OperationError
from agent0.events import alarms, checkpoints, runs, tasks
from agent0.events.base import Event, Recorded, event_types, record
from agent0.events.values import Artifact
from agent0.handlers import Handler, handlers, on
from agent0.ports.training import TrainingResult, TrainJob
from agent0.run.lifecycle import RunState, evolve
from agent0.state.run_state import Checkpoint, ValidationScore
from tests.play import finished, play
from tests.world import NOON, Opened, ports, small, started

PORTS = ports()


@cache
def whole_run() -> list[Recorded]:
    return finished(play(started(small()), PORTS))


ARTIFACT = Artifact(sha256="a" * 64, size=3)


def state_at(seq: int) -> RunState:
    held = None
    for recorded in whole_run()[:seq]:
        held = evolve(held, recorded)
    assert held is not None
    return held


async def react(name: str, event: Event, run: RunState, world: Mapping[str, Any] | None = None) -> list[Event]:
    cause = record(event, run=run.run, time=NOON).model_copy(update={"seq": run.seq})
    return await handlers()[name](cause, run, PORTS if world is None else world)


@pytest.mark.parametrize("one", handlers().values(), ids=lambda h: h.name)
def test_a_handler_is_what_it_says(one: Handler) -> None:
    assert one.react.__module__ == f"agent0.handlers.{one.name}"
    assert one.events and set(one.events) <= set(event_types())
    assert set(one.ports) <= {"history", *PORTS}, "a port that nothing plays"
    assert one.react.__doc__ and one.in_flight >= 1


def test_every_request_is_answered_by_somebody() -> None:
    wanted = {name for name in event_types() if name.endswith("Requested")}
    assert wanted <= {name for handler in handlers().values() for name in handler.events}


def test_the_composition_root_knows_the_same_handlers() -> None:
    assert known_handlers() == handlers()
    check_names(small())


def test_what_must_be_in_order_is_alone() -> None:
    alone = {handler.name for handler in handlers().values() if handler.in_flight == 1}
    assert alone == {"train_checkpoint", "measure_gain", "evaluate_checkpoint", "judge_checkpoint", "watch_budget"}


def test_two_handlers_of_one_name_are_refused() -> None:
    async def advance_run(event: Event) -> list[Event]:
        return []

    with pytest.raises(ValueError, match="two handlers are named advance_run"):
        on(runs.RunStarted)(advance_run)


async def test_ports_come_by_name_and_only_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room._handlers, "entries", dict(room._handlers.entries))
    seen: dict[str, Any] = {}

    @on(runs.RunPaused, in_flight=3)
    async def look_around(event: runs.RunPaused, cause: Recorded, artifacts: Any) -> list[Event]:
        seen.update(event=event, cause=cause, artifacts=artifacts)
        return []

    one = room._handlers.entries["look_around"]
    assert (one.events, one.ports, one.in_flight, one.long) == (("RunPaused",), ("artifacts",), 3, False)
    cause = record(runs.RunPaused(), run="r1", time=NOON)
    await one(cause, state_at(1), {"artifacts": "here", "models": "unwanted"})
    assert seen == {"event": cause.event, "cause": cause, "artifacts": "here"}


@pytest.mark.parametrize("one", handlers().values(), ids=lambda h: h.name)
async def test_a_reaction_is_the_same_again(one: Handler) -> None:
    """Redelivered causes must have the same effects; clocks apart."""
    causes = [r for r in whole_run() if r.type in one.events][:6]
    world = {"history": _Told(), **PORTS}
    for cause in causes:
        state = state_at(cause.seq)
        first, again = [await one(cause, state, world) for _ in range(2)]
        assert [_still(e) for e in first] == [_still(e) for e in again]
        assert state == state_at(cause.seq)


class _Told:
    async def read(self, run: str, types: Any = (), after: int = 0, until: int = 0) -> Any:
        for recorded in whole_run()[after : until or None]:
            if recorded.type in types:
                yield recorded


def _still(event: Event) -> dict[str, Any]:
    clocks = {"wall_s", "seconds", "usage", "latency_p50_s", "latency_p95_s", "items", "result"}
    return event.model_dump(exclude=clocks)


def judging(held: float | None, candidate: str | None = "student-0") -> RunState:
    first = state_at(1)
    return replace(
        first,
        phase="judging",
        iteration=0,
        entered=first.seq,
        promoted=(Checkpoint(score=ValidationScore(held) if held is not None else None),),
        candidate=Checkpoint(candidate, ARTIFACT) if candidate else None,
    )


def scored(accuracy: float, checkpoint: str = "student-0") -> checkpoints.CheckpointEvaluated:
    plain = {
        "evaluation": "e",
        "iteration": 0,
        "split": "validation",
        "n": 100,
        "correct": 1,
        "lower95": 0,
        "upper95": 1,
    }
    return checkpoints.CheckpointEvaluated(**plain, checkpoint=checkpoint, accuracy=accuracy, tool_use=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("held", "accuracy", "verdict"),
    [
        (None, 0.0, checkpoints.CheckpointPromoted),
        (0.5, 0.9, checkpoints.CheckpointPromoted),
        (0.5, 0.5, checkpoints.CheckpointPromoted),
        (0.5, 0.49, checkpoints.CheckpointRejected),
    ],
)
async def test_the_gate(held: float | None, accuracy: float, verdict: type[Event]) -> None:
    (told,) = await react("judge_checkpoint", scored(accuracy), judging(held))
    assert isinstance(told, verdict)
    assert (told.accuracy, told.against, told.checkpoint) == (accuracy, held, "student-0")  # type: ignore[attr-defined]


async def test_the_gate_judges_candidates_only() -> None:
    assert await react("judge_checkpoint", scored(0.9, "base"), judging(0.5)) == []
    assert await react("judge_checkpoint", scored(0.9), judging(0.5, None)) == []
    assert await react("judge_checkpoint", scored(0.9), replace(judging(0.5), phase="evaluating")) == []
    assert await react("judge_checkpoint", scored(0.9), replace(judging(0.5), seq=9)) == []


class _Empty:
    async def train(self, job: TrainJob) -> TrainingResult:
        return TrainingResult(Artifact(sha256="e" * 64, size=0), {})


async def test_an_empty_adapter_is_refused() -> None:
    cause = next(r for r in whole_run() if isinstance(r.event, checkpoints.TrainingRequested))
    world = {**PORTS, "history": _Told(), "trainers": Opened(_Empty())}
    with pytest.raises(OperationError, match="empty adapter"):
        await handlers()["train_checkpoint"](cause, state_at(cause.seq), world)


async def test_models_that_can_give_their_memory_back_do_so_before_training() -> None:
    did: list[str] = []

    class Resting:
        async def rest(self) -> None:
            did.append("rest")

    class Noting(_Empty):
        async def train(self, job: TrainJob) -> TrainingResult:
            did.append("train")
            return await super().train(job)

    cause = next(r for r in whole_run() if isinstance(r.event, checkpoints.TrainingRequested))
    world = {**PORTS, "history": _Told(), "models": Opened(Resting()), "trainers": Opened(Noting())}
    with pytest.raises(OperationError, match="empty adapter"):
        await handlers()["train_checkpoint"](cause, state_at(cause.seq), world)
    assert did == ["rest", "rest", "train"]


async def test_alarms_tell_what_a_person_should_see() -> None:
    failed = alarms.ReactionFailed(
        failure="f-1", cause_id="c", cause_seq=3, cause_type="TaskRequested", failed_handler="propose_task",
        error="Broken", message="no idea", deliveries=10,
    )  # fmt: skip
    state = state_at(1)
    waiting = replace(state, config=small(on_failure="wait"))
    (mild,), (grave,) = await react("raise_alarm", failed, state), await react("raise_alarm", failed, waiting)
    assert isinstance(mild, alarms.AlarmRaised) and isinstance(grave, alarms.AlarmRaised)
    assert (mild.severity, grave.severity) == ("warning", "critical")
    assert "propose_task gave up on TaskRequested: no idea" in mild.message
    (told,) = await react("raise_alarm", failed.model_copy(update={"failed_handler": "advance_run"}), state)
    assert isinstance(told, alarms.AlarmRaised) and told.severity == "critical"


async def test_an_alarm_of_a_training_without_samples_names_what_was_left_out_in_words() -> None:
    for skipped, words in (
        ({"off_frontier": 1200, "unscored": 2}, "off_frontier 1,200, unscored 2"),
        ({}, "no samples"),
    ):
        trained = checkpoints.CheckpointTrained(
            checkpoint="student-0", role="student", iteration=0, parent="base", adapter=None, samples=0, skipped=skipped
        )
        (alarm,) = await react("raise_alarm", trained, state_at(1))
        assert isinstance(alarm, alarms.AlarmRaised)
        assert alarm.message == f"student-0: nothing to learn from, base stays ({words})"


async def test_what_is_told_of_tasks_nobody_knows_is_left_alone() -> None:
    state = state_at(1)
    strange = {"task": "t9-000", "iteration": 9}
    verdict = tasks.ResultVerified(**strange, attempt="t9-000-a0", correct=True, verifier="exact", reason="")
    rejected = tasks.TaskRejected(**strange, slot=0, reason="similar")
    assert await react("assign_reward", verdict, state) == await react("assign_reward", rejected, state) == []


def test_attempts_and_held_out_items_say_how_sure_they_were() -> None:
    attempted = [r.event for r in whole_run() if isinstance(r.event, tasks.TaskAttempted)]
    assert attempted and all({"own_tokens", "answer"} <= set(e.signals) for e in attempted if e.answer)
    scored = next(r.event for r in whole_run() if isinstance(r.event, checkpoints.CheckpointEvaluated))
    items = [json.loads(line) for line in PORTS["artifacts"].get(scored.items).splitlines()]
    assert all(item["signals"]["mean_token"] > 0 for item in items)
