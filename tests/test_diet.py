"""Whose words a run's checkpoints were trained on, told from the log: for every kind of training, and for
trainers that count nothing."""

import asyncio
import json
from dataclasses import asdict
from typing import Any

import pytest

from agent0.assembly.models.diet import diets, run_ledger
from agent0.events.base import Recorded
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskProposed
from agent0.stats.rank_test import rank_test
from agent0.training.diet import AS_DRAWN, ONCE, Diet, diet_of, total
from tests.play import Played, play
from tests.world import ports, small, started


@pytest.fixture(scope="module")
def played() -> tuple[list[Recorded], dict[str, Any]]:
    """A run in memory whose student and teacher are both trained, and its ports."""
    held = ports()
    return asyncio.run(play(started(small()), held)), held


@pytest.fixture(scope="module")
def told(played: tuple[list[Recorded], dict[str, Any]]) -> list[Diet]:
    events, held = played
    return asyncio.run(diets(Played(events), held["artifacts"], events[0].run))  # type: ignore[arg-type]


def manifest_of(one: CheckpointTrained, held: dict[str, Any]) -> dict[str, Any]:
    assert one.manifest
    found: dict[str, Any] = json.loads(held["artifacts"].get(one.manifest))
    return found


def test_every_checkpoint_of_both_roles_is_told_by_what_its_manifest_names(
    played: tuple[list[Recorded], dict[str, Any]], told: list[Diet]
) -> None:
    events, held = played
    trained = [r.event for r in events if isinstance(r.event, CheckpointTrained) and r.event.manifest]
    assert [(one.checkpoint, one.role) for one in told] == [(one.checkpoint, one.role) for one in trained]
    assert {one.role for one in told} == {"student", "teacher"}
    by_id = {r.id: r.event for r in events}
    for one, diet in zip(trained, told, strict=True):
        names = manifest_of(one, held)["events"]
        sampled = [by_id[name] for name in names]
        kinds = {type(event) for event in sampled}
        assert kinds == {TaskAttempted if one.role == "student" else TaskProposed}
        own = sum(
            sum(e.trajectory.mask) for e in sampled if isinstance(e, TaskAttempted | TaskProposed) and e.trajectory
        )
        assert (diet.own, diet.taught, diet.other, diet.counted) == (own, 0, 0, ONCE) and own > 0
        assert (diet.answers, diet.strange) == (len(set(names)), 0)


def test_answers_that_were_not_right_are_counted(
    played: tuple[list[Recorded], dict[str, Any]], told: list[Diet]
) -> None:
    events, held = played
    verdicts = {r.event.attempt: r.event.correct for r in events if isinstance(r.event, ResultVerified)}
    by_id = {r.id: r.event for r in events}
    student = next(r.event for r in events if isinstance(r.event, CheckpointTrained) and r.event.role == "student")
    attempts = {by_id[name].attempt for name in manifest_of(student, held)["events"]}  # type: ignore[attr-defined]
    assert next(one for one in told if one.role == "student").wrong == sum(not verdicts[name] for name in attempts) > 0


def trained(**fields: Any) -> CheckpointTrained:
    plain: dict[str, Any] = {"checkpoint": "student-1", "role": "student", "iteration": 1, "parent": "base"}
    return CheckpointTrained.model_validate(plain | {"adapter": None, "samples": 1} | fields)


def judged(played: list[Recorded], one: CheckpointTrained, names: list[str], *authors: str) -> Diet:
    written = {r.id: r for r in played if isinstance(r.event, TaskAttempted)}
    return diet_of(one, names, written, lambda stored: stored.event.trajectory, {}, authors or ("base",))  # type: ignore[attr-defined]


def test_what_the_trainer_counted_goes_before_what_was_chosen(played: tuple[list[Recorded], dict[str, Any]]) -> None:
    counts = {"own_tokens": 700.0, "taught_tokens": 80.0, "made_tokens": 20.0}
    found = judged(played[0], trained(metrics=counts), [])
    assert (found.own, found.taught, found.other, found.counted) == (700, 80, 20, AS_DRAWN)
    summed = total([found, found])
    assert (summed.tokens, summed.own_share, summed.other_share) == (1600, 0.875, 0.025)
    assert total([]).own_share is None


def test_an_answer_of_another_line_or_of_nobody_is_strange(played: tuple[list[Recorded], dict[str, Any]]) -> None:
    events = played[0]
    first = next(r for r in events if isinstance(r.event, TaskAttempted))
    assert isinstance(first.event, TaskAttempted) and first.event.student == "base"
    assert asdict(judged(events, trained(), [first.id]))["strange"] == 0
    assert judged(events, trained(), [first.id], "student-7").strange == 1
    found = judged(events, trained(), [first.id, "no such event"])
    assert (found.strange, found.answers) == (1, 2)


def test_the_ledger_has_every_task_once_and_what_became_of_it(played: tuple[list[Recorded], dict[str, Any]]) -> None:
    events, held = played
    ledger = asyncio.run(run_ledger(Played(events), held["artifacts"], events[0].run))  # type: ignore[arg-type]
    by_type = {kind: [e for e in events if e.type == kind] for kind in ("TaskRequested", "TaskAccepted")}
    counts = ledger.counts()
    assert [task.task for task in ledger.tasks] == [e.task for e in by_type["TaskRequested"]]
    assert counts["accepted"] == len(by_type["TaskAccepted"]) and counts["asked"] == len(ledger.tasks)
    assert sum(task.ended for task in ledger.tasks) == sum(e.type == "TaskAttempted" for e in events)
    assert 0 < counts["trained"] <= counts["finished"] and counts["never"] == counts["finished"] - counts["trained"]
    wrote = {e.id: e.task for e in events if e.type == "TaskAttempted"}
    named = [
        json.loads(held["artifacts"].get(e.event.manifest))["events"]
        for e in events
        if isinstance(e.event, CheckpointTrained) and e.event.role == "student" and e.event.manifest
    ]
    assert sum(task.trained for task in ledger.tasks) == sum(id in wrote for ids in named for id in set(ids))
    assert ledger.length.chosen + ledger.length.others <= len(wrote)


def test_a_length_bias_is_seen_within_a_verdict_and_none_where_only_verdicts_differ() -> None:
    longer, shorter = [float(n) for n in range(20, 40)], [float(n) for n in range(20)]
    biased = rank_test([(shorter, longer)])
    assert biased.area == 0 and biased.p is not None and biased.p < 1e-6
    mixed = [longer[::2], longer[1::2]], [shorter[::2], shorter[1::2]]
    fair = rank_test([(mixed[0][0] + mixed[0][1], longer), (mixed[1][0], mixed[1][1])])
    assert fair.p is not None and fair.p > 0.5
    assert rank_test([(longer[:3], shorter)]).p is None and rank_test([([1.0] * 9, [1.0] * 9)]).p is None
