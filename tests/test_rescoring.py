"""Rewards recomputed from what happened: with the same rules the same receipts, whatever the stored ones say."""

import random
from collections.abc import Callable
from functools import cache

import pytest

from agent0.events.base import Recorded
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskAttempted
from agent0.events.values import Role
from agent0.experiments.receipt_diff import Receipt
from agent0.experiments.rescore import RescoredReceipt, RescoreFailure, rescore
from agent0.grading.normal_form import normal_form
from agent0.rewards import Features, _rewards, reward
from agent0.rollout.confidence.signals import agreement
from agent0.settings import RewardConfig
from tests.play import finished, play
from tests.world import ports, small, started


@cache
def paid_at_once() -> list[Recorded]:
    return finished(play(started(small(iterations=3, tasks=9, attempts=4, seed=5)), ports()))


@cache
def live_rewards() -> dict[str, str]:
    return {r.id: r.event.model_dump_json() for r in paid_at_once() if isinstance(r.event, RewardAssigned)}


def told(events: list[Recorded], policy: RewardConfig | None = None) -> dict[str, RewardAssigned]:
    found = list(rescore(events, policy))
    assert all(isinstance(each, RescoredReceipt) for each in found)
    return {each.id: each.reward for each in found if isinstance(each, RescoredReceipt)}


def as_json(rewards: dict[str, RewardAssigned]) -> dict[str, str]:
    return {id: reward.model_dump_json() for id, reward in rewards.items()}


def scrambled(recorded: Recorded, rng: random.Random) -> Recorded:
    """A receipt that says nonsense."""
    event = recorded.event
    if not isinstance(event, RewardAssigned):
        return recorded
    nonsense = {"total": rng.uniform(-9, 9), "parts": (), "facts": {"solve_rate": rng.random()}, "set": "x"}
    return recorded.model_copy(update={"event": event.model_copy(update=nonsense)})


def test_the_same_rules_give_the_live_rewards_to_the_byte() -> None:
    assert live_rewards()
    assert as_json(told(paid_at_once())) == live_rewards()


def test_what_is_kept_of_a_receipt_gives_back_all_of_it() -> None:
    for each in told(paid_at_once()).values():
        assert Receipt.of(each).reward == each
        assert Receipt.of(Receipt.of(each).reward) == Receipt.of(each)


def test_stored_receipts_are_never_read() -> None:
    rng = random.Random(0)
    assert as_json(told([scrambled(r, rng) for r in paid_at_once()])) == live_rewards()


def test_a_flipped_verdict_changes_the_rewards_of_its_task_only() -> None:
    verdicts = [r for r in paid_at_once() if isinstance(r.event, ResultVerified)]
    for chosen in random.Random(1).sample(verdicts, 5):
        assert isinstance(chosen.event, ResultVerified)
        flipped = chosen.event.model_copy(update={"correct": not chosen.event.correct})
        events = [r.model_copy(update={"event": flipped}) if r.id == chosen.id else r for r in paid_at_once()]
        before, after = told(paid_at_once()), told(events)
        assert before.keys() == after.keys()
        changed = {after[id].task for id in after if after[id] != before[id]}
        assert changed == {chosen.task}
        assert {r.attempt for r in after.values() if r.role == "student" and r not in before.values()} == {
            chosen.attempt
        }


def test_another_weight_changes_that_part_and_the_total_only() -> None:
    before, after = told(paid_at_once()), told(paid_at_once(), RewardConfig(weights={"novelty": 0.4}))
    for id, old in before.items():
        new = after[id]
        assert new.facts == old.facts
        for part, former in zip(new.parts, old.parts, strict=True):
            assert (part.name, part.value, part.inputs) == (former.name, former.value, former.inputs)
            assert part.weight == (0.4 if part.name == "novelty" else former.weight)


PAPER = RewardConfig(set="paper")


@cache
def paid_together() -> list[Recorded]:
    return finished(play(started(small(tasks=9, attempts=4, seed=5, rewards=PAPER.model_dump())), ports()))


def test_attempts_that_are_paid_together_are_paid_the_same_again() -> None:
    live = {r.id: r.event.model_dump_json() for r in paid_together() if isinstance(r.event, RewardAssigned)}
    rng = random.Random(2)
    assert as_json(told(paid_together())) == as_json(told([scrambled(r, rng) for r in paid_together()])) == live


@pytest.mark.parametrize(
    ("played", "policy"), [(paid_at_once, PAPER), (paid_together, RewardConfig()), (paid_together, PAPER)]
)
def test_each_receipt_has_its_place_whether_its_group_waits_or_not(
    played: Callable[[], list[Recorded]], policy: RewardConfig
) -> None:
    """A run that paid at once, under rules that compare a group, and the other way round."""
    events = played()
    stored = {r.id: r.event for r in events if isinstance(r.event, RewardAssigned)}
    found = told(events, policy)
    assert {id: (e.task, e.attempt, e.role, e.iteration) for id, e in found.items()} == {
        id: (e.task, e.attempt, e.role, e.iteration) for id, e in stored.items()
    }
    answers: dict[str, dict[str, str | None]] = {}
    for each in events:
        if isinstance(each.event, TaskAttempted):
            answers.setdefault(each.event.task, {})[each.event.attempt] = each.event.answer
    for paid in found.values():
        if paid.role == "student" and policy is PAPER:
            group = answers[paid.task]
            most = agreement(group[name] for name in sorted(group)).majority
            given = group[paid.attempt]
            assert paid.total == float(given is not None and normal_form(given) == most)
    rng = random.Random(3)
    assert as_json(told([scrambled(r, rng) for r in events], policy)) == as_json(found)


def test_what_comes_later_sees_receipts_that_waited() -> None:
    """Normalised by those of earlier iterations: each counts once."""
    found = told(paid_at_once(), RewardConfig(set="paper", normalize=True))
    for iteration in (1, 2):
        before = sum(e.role == "student" and e.iteration < iteration for e in found.values())
        counted = {e.facts["earned"] for e in found.values() if e.role == "student" and e.iteration == iteration}
        assert counted == {before}


@pytest.mark.parametrize("role", ["student", "teacher"])
def test_a_reward_that_raises_costs_its_own_receipts_only(role: Role) -> None:
    known = dict(_rewards.entries)

    @reward("fragile", role=role, weight=1.0, reads=("self_consistency" if role == "teacher" else "tool_ok",))
    def fragile(facts: Features) -> float:
        raise ZeroDivisionError("on purpose")

    try:
        found = list(rescore(paid_at_once()))
    finally:
        _rewards.entries = known
    troubles = [each for each in found if isinstance(each, RescoreFailure)]
    said = ("ZeroDivisionError", f"on purpose It was the {role}'s reward fragile.")
    assert troubles and {(each.error, each.message) for each in troubles} == {said}
    receipts = [(r.id, r.event) for r in paid_at_once() if isinstance(r.event, RewardAssigned)]
    wanted = {(e.task, e.attempt) for _, e in receipts if e.role == role}
    assert {(each.task, each.attempt) for each in troubles} == wanted
    assert {each.id for each in found if isinstance(each, RescoredReceipt)} == {
        id for id, e in receipts if e.role != role
    }
