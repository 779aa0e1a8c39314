"""A person's verdict: it decides where nothing has, is only recorded afterwards, and never pays anybody twice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from agent0.events import alarms, benchmarks, checkpoints, runs, tasks
from agent0.events.base import Event, Recorded, record
from agent0.events.values import Vote
from agent0.experiments.rescore import RescoredReceipt, rescore
from agent0.handlers import Handler, handlers
from agent0.rewards.assign import assigned_rewards
from agent0.run.lifecycle import RunState, evolve
from agent0.state.run_state import AttemptState, TaskState
from agent0.training.dataset import collect_trajectories
from agent0.verification.human_review import MOST, PERSON, reviewed, verdicts_of
from agent0.verification.verifiers import verifiers
from tests.play import finished, play
from tests.test_uncomputable import uncomputable
from tests.world import NOON, ports, small, started


def state_of(told: Sequence[Recorded]) -> RunState:
    state = None
    for recorded in told:
        state = evolve(state, recorded)
    assert state is not None
    return state


def word(task: str, attempt: str, correct: bool | None, reviewer: str = "Ann") -> benchmarks.TaskReviewed:
    return benchmarks.TaskReviewed(task=task, attempt=attempt, correct=correct, reviewer=reviewer, reason="I looked")


ASKING = small(iterations=1, tasks=3, verification={"unchecked": "panel", "undecided": "ask", "agreeing": 1000})
"""Nothing agrees enough, so every answer is for a person."""


class _Judging(Handler):
    """A person who answers each undecided verdict at once."""

    async def __call__(self, cause: Recorded, run: RunState, world: Any) -> list[Event]:
        event = cause.event
        assert isinstance(event, tasks.ResultVerified)
        if event.correct is not None or event.verifier == PERSON:
            return []
        return [word(event.task, event.attempt, event.attempt.endswith("a0"))]


def with_a_person() -> dict[str, Handler]:
    known = uncomputable()
    person = _Judging(**{**known["raise_alarm"].__dict__, "name": "person", "events": ("ResultVerified",)})
    return known | {"person": person}


@cache
def waiting_run() -> list[Recorded]:
    return finished(play(started(ASKING), ports(), uncomputable()))


@cache
def answered_run() -> list[Recorded]:
    return finished(play(started(ASKING), ports(), with_a_person()))


def test_a_run_that_asks_waits_and_pays_nobody_meanwhile() -> None:
    state = state_of(waiting_run())
    assert state.status == "running" and state.phase == "tasks"
    asked = {name for held in state.tasks.values() for name, a in held.attempts.items() if a.awaits_review}
    undecided = {
        r.event.attempt for r in waiting_run() if isinstance(r.event, tasks.ResultVerified) and r.event.correct is None
    }
    paid = {r.event.attempt for r in waiting_run() if isinstance(r.event, tasks.RewardAssigned)}
    assert asked == undecided != set()
    assert not asked & paid
    wanted = [
        r.event for r in waiting_run() if isinstance(r.event, alarms.AlarmRaised) and "review-wanted" in r.event.alarm
    ]
    assert len(wanted) == 1 and "agent0 task review r1" in wanted[0].message


def test_a_persons_word_settles_pays_once_and_lets_the_run_go_on() -> None:
    assert isinstance(answered_run()[-1].event, runs.RunFinished)
    paid = Counter(
        r.event.attempt for r in answered_run() if isinstance(r.event, tasks.RewardAssigned) if r.event.attempt != "-"
    )
    assert set(paid.values()) == {1}
    words = {r.event.attempt: r.event.correct for r in answered_run() if isinstance(r.event, benchmarks.TaskReviewed)}
    assert words
    for recorded in answered_run():
        if isinstance(recorded.event, tasks.RewardAssigned) and recorded.event.attempt in words:
            assert recorded.event.facts["correct"] == words[recorded.event.attempt]


def test_rewards_can_be_computed_as_persons_decided() -> None:
    """The same deeds, every verdict turned: all other receipts stay as they were."""
    plain = {r.id: r.reward for r in rescore(answered_run()) if isinstance(r, RescoredReceipt)}
    stored = {r.id: r.event for r in answered_run() if isinstance(r.event, tasks.RewardAssigned)}
    assert plain == stored
    words = [r.event for r in answered_run() if isinstance(r.event, benchmarks.TaskReviewed)]
    turned = verdicts_of([w.model_copy(update={"correct": not w.correct}) for w in words])
    other = {r.id: r.reward for r in rescore(answered_run(), verdicts=turned) if isinstance(r, RescoredReceipt)}
    for id, reward in other.items():
        if reward.attempt in turned:
            assert reward.facts["correct"] == turned[reward.attempt].correct != stored[id].facts["correct"]


def one_attempt(**known: Any) -> RunState:
    """A state with one attempt of one task."""
    state = state_of([started(small())])
    held = TaskState(0, "math", "open", 1, accepted=True, attempts={"t0-000-a0": AttemptState(0, **known)})
    return replace(state, phase="tasks", iteration=0, tasks={"t0-000": held}, starts=(1,))


async def react(name: str, event: Event, state: RunState) -> list[Event]:
    cause = record(event, run=state.run, time=NOON).model_copy(update={"seq": state.seq})
    return await handlers()[name](cause, state, ports())


@pytest.mark.parametrize(
    ("known", "settles"),
    [
        ({"attempted": True, "answer": "7"}, True),
        ({"attempted": True, "answer": "7", "awaits_review": True}, True),
        ({}, False),
        ({"attempted": True, "verified": True, "judge": "exact"}, False),
        ({"attempted": True, "dropped": True}, False),
    ],
)
async def test_it_decides_where_an_answer_has_no_verdict(known: dict[str, Any], settles: bool) -> None:
    effects = await react("settle_review", word("t0-000", "t0-000-a0", True), one_attempt(**known))
    assert len(effects) == settles
    for effect in effects:
        assert isinstance(effect, tasks.ResultVerified)
        assert (effect.verifier, effect.correct, effect.reason) == (PERSON, True, "Ann: I looked")
    assert await react("settle_review", word("t9-000", "t9-000-a0", True), one_attempt(**known)) == []


def fold(state: RunState, event: Event) -> RunState:
    after = evolve(state, record(event, run=state.run, time=NOON).model_copy(update={"seq": state.seq + 1}))
    assert after is not None
    return after


def verdict(correct: bool | None, verifier: str, *votes: bool | None) -> tasks.ResultVerified:
    cast = tuple(Vote(check=str(n), correct=vote) for n, vote in enumerate(votes))
    plain = {"task": "t0-000", "attempt": "t0-000-a0", "iteration": 0, "reason": "so"}
    return tasks.ResultVerified(**plain, correct=correct, verifier=verifier, votes=cast)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [("exact", PERSON), (PERSON, "exact")])
def test_of_two_verdicts_that_cross_the_first_counts_and_is_paid(order: tuple[str, str]) -> None:
    state = one_attempt(attempted=True, answer="7")
    paid = []
    for correct, verifier in zip((True, False), order, strict=True):
        event = verdict(correct, verifier)
        state = fold(state, event)
        paid += [r for r in assigned_rewards(event, state) if r.role == "student"]
    assert [r.facts["correct"] for r in paid] == [True]
    assert (state.tasks["t0-000"].attempts["t0-000-a0"].judge, PERSON in verifiers()) == (order[0], False)


@pytest.mark.parametrize(
    ("machine", "person", "alarm"),
    [(True, False, True), (False, True, True), (True, True, False), (None, True, False), (True, None, False)],
)
def test_contradiction_raises_an_alarm(machine: bool | None, person: bool | None, alarm: bool) -> None:
    first, *rest = reviewed(word("t0-000", "t0-000-a0", person), machine, "exact")
    assert isinstance(first, benchmarks.TaskReviewed)
    assert [getattr(event, "alarm", "") for event in rest] == ["review-t0-000-a0"] * alarm


async def test_alarms_of_disagreement_are_few() -> None:
    """However many checks contradict one another: five tasks by name, then one for all others."""
    state = one_attempt()
    number = 3 * MOST
    names = [f"t0-{n:03d}" for n in range(number)]
    held = {
        name: TaskState(n, "math", "open", 1, accepted=True,
                        attempts={f"{name}-a{m}": AttemptState(m, attempted=True) for m in range(3)})
        for n, name in enumerate(names)
    }  # fmt: skip
    state, raised = replace(state, tasks=held), []
    for name in names:
        for attempt in held[name].attempts:
            event = verdict(None, "panel", True, False).model_copy(update={"task": name, "attempt": attempt})
            state = fold(state, event)
            raised += await react("raise_alarm", event, state)
    found = [event.alarm for event in raised if isinstance(event, alarms.AlarmRaised)]
    assert found == [*(f"disagreement-{name}" for name in names[:MOST]), "disagreements-0"]
    calm = verdict(True, "panel", True, True, None)
    assert await react("raise_alarm", calm, fold(one_attempt(attempted=True), calm)) == []


async def test_what_a_person_contradicts_is_not_trained_on() -> None:
    told = [*answered_run()]
    (request,) = [
        r.event for r in told if isinstance(r.event, checkpoints.TrainingRequested) if r.event.role == "student"
    ]
    paid = [r.event for r in told if isinstance(r.event, tasks.RewardAssigned) if r.event.facts.get("correct") is True]

    class Told:
        def __init__(self, *extra: Event) -> None:
            self.all = told + [record(e, run="r1", time=NOON).model_copy(update={"seq": request.until}) for e in extra]

        async def read(self, run: str, types: Any = (), after: int = 0, until: int = 0) -> Any:
            for recorded in self.all:
                if recorded.type in types and after < recorded.seq <= until:
                    yield recorded

    before, _ = await collect_trajectories("r1", request, Told(), ports()["artifacts"])
    wrong = Told(*(word(e.task, e.attempt, False) for e in paid))
    after, memories = await collect_trajectories("r1", request, wrong, ports()["artifacts"])
    assert [d.reward is None for d in after].count(True) == [d.reward is None for d in before].count(True) + len(paid)
    assert paid and not any(d.success for d in after) and not any(d.success for d in memories)
