"""What an iteration came to, and what is made of it: alarms that come and go, a pause, a way back."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.alarms import AlarmRaised, AlarmResolved
from agent0.events.checkpoints import CheckpointRolledBack
from agent0.events.runs import RunPaused
from agent0.events.values import Task
from agent0.run.iteration_measures import MEANING
from agent0.run.lifecycle import RunState
from agent0.run.monitors import guards
from agent0.run.monitors.actions import guard_effects, last_good
from agent0.run.monitors.iteration_metrics import measure
from agent0.settings import GuardConfig, RunConfig
from agent0.state.run_state import AttemptState, Checkpoint, TaskState, ValidationScore

PLAN = GuardConfig()
LADDER = {
    "accepted": 1.0, "solve_rate": 0.5, "validation": 0.5, "frontier_level": 9.0, "taught_rate": 0.95,
    "verifier_faults": 0.0, "gate_right": 1.0, "gate_wrong": 0.0,
}  # fmt: skip
GOOD = {
    "answered": 1.0, "tokens": 40.0, "surprise": 0.5, "solve_rate": 0.5, "label_accuracy": 0.9, "largest_family": 0.2,
    "student_reward": 0.4, "validation": 0.5, "variety": 0.5,
}  # fmt: skip


def after(*measures: dict[str, float], scores: tuple[float, ...] = (), **guard: Any) -> RunState:
    """A state whose iterations came to ``measures``; students were promoted with ``scores``."""
    config = RunConfig(guards=GuardConfig(**guard))
    promoted = tuple(Checkpoint(f"student-{n}", None, ValidationScore(s)) for n, s in enumerate(scores)) or (
        Checkpoint(),
    )
    return RunState("r", 9, config, "", measures=measures, promoted=promoted)


def attempt(answer: str | None, correct: bool | None, **facts: Any) -> AttemptState:
    return AttemptState(0, answer=answer, attempted=True, verified=True, correct=correct, **facts)


def task(*attempts: AttemptState, family: str = "linear") -> TaskState:
    decided = [a.correct for a in attempts if a.correct is not None]
    rate = sum(decided) / len(decided) if decided else None
    proposal = Task(domain="math", family=family, level=1, question="?", canonical=f"{family} {attempts}")
    held = {f"a{n}": a for n, a in enumerate(attempts)}
    return TaskState(0, "math", family, 1, proposal=proposal, accepted=True, solve_rate=rate, attempts=held)


def test_an_iteration_in_numbers() -> None:
    right, wrong = attempt("4", True, tokens=10, mean_logprob=-0.5), attempt("5", False, tokens=30, mean_logprob=-1.5)
    tasks = {"t0": task(right, right, wrong, wrong, wrong), "t1": task(right, right, family="lists")}
    tasks["t2"] = TaskState(2, "math", "linear", 1, rejected=True)
    found = measure(replace(after(), tasks=tasks))
    assert found["tasks"] == 3
    assert found["accepted"] == pytest.approx(2 / 3, abs=1e-6)
    assert found["solve_rate"] == pytest.approx(0.7)
    assert found["frontier"] == 0.5
    assert found["label_accuracy"] == 0  # three of five said 5, which is wrong
    assert found["surprise"] == pytest.approx((4 * 0.5 + 3 * 1.5) / 7, abs=1e-6)
    assert found["variety"] == pytest.approx((2 / 5 + 1 / 2) / 2)
    assert found["families"] == pytest.approx(2.0)
    assert found["unread"] == 0
    slipped = {"t0": task(right, attempt(None, None, parse_errors=2), attempt("4", True, parse_errors=1))}
    assert measure(replace(after(), tasks=slipped))["unread"] == 2
    assert "validation" not in found  # nobody scored this student: unknown is not 0


@given(st.lists(st.tuples(st.sampled_from(["1", "2", None]), st.sampled_from([True, False, None])), max_size=5))
def test_measures_are_total_and_named(answers: list[tuple[str | None, bool | None]]) -> None:
    tasks = {"t": task(*(attempt(a, c) for a, c in answers))}
    assert set(measure(replace(after(), tasks=tasks))) <= set(MEANING)
    assert set(measure(after())) <= set(MEANING)


def test_every_guard_has_an_action_and_every_action_a_guard() -> None:
    assert set(guards()) == set(GuardConfig.model_fields) - {"patience"}


def test_wrong_majorities_alarm_only_where_they_are_learned_from() -> None:
    verified, self_labelled = RunConfig(), RunConfig.model_validate({"training": {"student": {"gate": "majority"}}})
    unchecked = RunConfig.model_validate({"verification": {"unchecked": "self_consistency"}})
    assert set(guards(verified)) == set(guards()) - {"labels", "form"}
    assert set(guards(self_labelled)) == set(guards(unchecked)) == set(guards()) - {"form"}


CASES = {
    "labels": [{**GOOD, "label_accuracy": 0.79}, {**GOOD, "label_accuracy": 0.63}],
    "collapse": [GOOD, {**GOOD, "tokens": 4.0}],
    "plateau": [GOOD, *[{**GOOD, "validation": 0.49}] * 3],
    "drift": [GOOD, GOOD, {**GOOD, "student_reward": 0.6, "validation": 0.4}],
    "divergence": [{**GOOD, "solve_rate": 0.01}] * 3,
    "skew": [
        {**GOOD, "digit_entropy": 3.3, "learnable": 0.2},
        {**GOOD, "digit_entropy": 3.0, "learnable": 0.25},
        {**GOOD, "digit_entropy": 2.5, "learnable": 0.4},
    ],
    "form": [{**GOOD, "tokens_answered": 90.0}, {**GOOD, "tokens_right": 60.0, "tokens_answered": 90.0}],
    "gate": [LADDER, {**LADDER, "gate_wrong": 0.05}],
    "verifier": [LADDER, {**LADDER, "verifier_faults": 0.01}],
    "retreat": [{**LADDER, "frontier_level": 12.0}, *[{**LADDER, "frontier_level": 10.0}] * 2],
    "headroom": [{**LADDER, "validation": 0.97, "solve_rate": 0.96}],
    "supply": [LADDER, {**LADDER, "accepted": 0.0}],
}


ALARM = dict.fromkeys(CASES, "alarm")


@pytest.mark.parametrize("name", CASES)
def test_a_guard_speaks_when_it_begins_to_hold_and_when_it_ends(name: str) -> None:
    history = CASES[name]
    told = {guard: watch(history, PLAN) for guard, watch in guards().items()}
    assert [guard for guard, found in told.items() if found] == [name]
    raised, *others = guard_effects(name, guards()[name], after(*history, **ALARM))
    assert isinstance(raised, AlarmRaised) and not others
    assert raised.alarm == f"guard-{name}"
    assert guard_effects(name, guards()[name], after(*history, history[-1])) == []
    better = {**GOOD, "validation": 0.9, "frontier_level": 13.0}
    (resolved,) = guard_effects(name, guards()[name], after(*history, better))
    assert isinstance(resolved, AlarmResolved)
    assert guard_effects(name, guards()[name], after(*history, **{name: "off"})) == []


@pytest.mark.parametrize(
    "one",
    [
        {**GOOD, "answered": 0.2},
        {**GOOD, "readable": 0.4},
        {**GOOD, "surprise": 0.01, "solve_rate": 0.3},
        {**GOOD, "variety": 0.2, "solve_rate": 0.3},
        {**GOOD, "largest_family": 0.9},
    ],
)
def test_every_way_to_collapse_is_seen(one: dict[str, float]) -> None:
    assert guards()["collapse"]([GOOD, one], PLAN)


def test_levels_that_the_base_was_taught_are_watched_where_they_are_attempted() -> None:
    watch = guards()["retreat"]
    assert watch([LADDER, {**LADDER, "taught_rate": 0.8}], PLAN)
    assert not watch([LADDER, {**LADDER, "taught_rate": 0.9}], PLAN)
    assert not watch([{**LADDER, "frontier_level": 12.0}, LADDER], PLAN), "once may be chance"
    without = {name: value for name, value in LADDER.items() if name not in ("taught_rate", "frontier_level")}
    assert not watch([LADDER, without], PLAN)


def test_being_sure_and_right_is_no_collapse() -> None:
    assert not guards()["collapse"]([GOOD, {**GOOD, "surprise": 0.01, "variety": 0.125, "solve_rate": 0.9}], PLAN)


@given(st.lists(st.dictionaries(st.sampled_from(sorted(MEANING)), st.floats(0, 100)), min_size=1, max_size=6))
def test_guards_are_total(history: list[dict[str, float]]) -> None:
    for watch in guards().values():
        watch(history, PLAN)


def test_a_guard_may_pause_or_go_back() -> None:
    history, watch = CASES["collapse"], guards()["collapse"]
    paused = guard_effects("collapse", watch, after(*history, collapse="pause"))
    assert [type(e) for e in paused] == [AlarmRaised, RunPaused]
    state = after(*history, scores=(0.3, 0.6, 0.4), collapse="rollback")
    raised, back = guard_effects("collapse", watch, state)
    assert isinstance(raised, AlarmRaised)
    assert isinstance(back, CheckpointRolledBack)
    assert (back.checkpoint, back.to, back.cause_kind) == ("student-2", "student-1", "guard")


def test_there_is_no_way_back_from_the_best() -> None:
    assert last_good(after(scores=(0.3, 0.6))) is None
    assert last_good(after(scores=(0.3,))) is None
    state = after(*CASES["collapse"], scores=(0.3, 0.6), collapse="rollback")
    assert [type(e) for e in guard_effects("collapse", guards()["collapse"], state)] == [AlarmRaised]
