"""Which attempts are looked at when, and what a verdict says: one an attempt, a collective verifier's all at once."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.tasks import ResultVerified, TaskAttempted
from agent0.events.values import Task
from agent0.settings import RunConfig, VerificationConfig
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.tasks.families import families
from agent0.tasks.splits import task_of
from agent0.verification.verdicts import verdicts
from tests.memory import MemoryArtifacts
from tests.world import KnowingSandbox

SUM = task_of(families()["arithmetic"], "Compute 76*26+89.")
assert SUM is not None
OPEN = Task(question="Find x: 3*x + 7 = 40 - 8*x.", domain="logic", family="open", level=1, canonical="open x")


def attempted(name: str = "a0", task: str = "t", **changes: Any) -> TaskAttempted:
    plain: dict[str, Any] = {"task": task, "attempt": name, "iteration": 9, "number": 0, "student": "base"}
    plain |= {"answer": "?", "end": "answered", "turns": 1, "tool_calls": 0, "tool_ok": 0, "prompt": "p"}
    return TaskAttempted(**(plain | changes))


def given_up(handler: str, task: str = "t") -> ReactionDropped:
    return ReactionDropped(
        failure="f", cause_id="c", cause_type="AttemptRequested", cause_task=task, failed_handler=handler, reason="r"
    )


def state(attempts: Mapping[str, AttemptState], proposal: Task | None = OPEN, **rules: Any) -> RunState:
    config = RunConfig(verification=VerificationConfig(**rules))
    held = TaskState(0, "math", "open", 1, proposed=True, proposal=proposal, attempts=dict(attempts))
    return RunState("r", 0, config, "", iteration=3, tasks={"t": held})


async def found(event: Event, run: RunState, rules: VerificationConfig | None = None) -> list[ResultVerified]:
    return await verdicts(event, run, KnowingSandbox(), None, MemoryArtifacts(), rules)


def said(answer: str | None, number: int = 0, **changes: Any) -> AttemptState:
    return AttemptState(number, answer, **({"attempted": True} | changes))


async def test_a_verdict_names_its_attempt_and_says_what_was_compared() -> None:
    run = state({"a0": said("2065"), "a1": said("2064", 1), "a2": said(None, 2)}, SUM)
    right, wrong, none = [(await found(attempted(f"a{n}"), run)) for n in range(3)]
    assert [
        one.model_dump(include={"task", "attempt", "iteration", "correct", "expected", "got"}) for one in right
    ] == [{"task": "t", "attempt": "a0", "iteration": 3, "correct": True, "expected": "2065", "got": "2065"}]
    assert [(one.attempt, one.correct, one.expected, one.got) for one in wrong] == [("a1", False, "2065", "2064")]
    assert [(one.attempt, one.correct) for one in none] == [("a2", False)]
    assert right[0].verifier == wrong[0].verifier != "panel"
    assert all(one.reason and one.votes == () and one.subgoals == () and one.credit is None for one in right + wrong)


async def test_what_has_a_verdict_or_was_given_up_gets_none() -> None:
    for late in ({"verified": True}, {"dropped": True}):
        assert await found(attempted(), state({"a0": said("2065", **late)}, SUM)) == []


OTHER = ResultVerified(task="t", attempt="a0", iteration=3, correct=True, verifier="v", reason="r")


@pytest.mark.parametrize("event", [attempted(task="t2"), attempted("a9"), given_up("attempt_task"), OTHER])
async def test_nothing_is_decided_about_what_is_not_there(event: Event) -> None:
    assert await found(event, state({"a0": said("2065")}, SUM)) == []
    assert await found(event, state({}, None)) == []


COMING = st.lists(st.sampled_from(["waiting", "in", "dropped", "verified"]), min_size=1, max_size=5)
KINDS = {
    "waiting": {"attempted": False},
    "in": {},
    "dropped": {"attempted": False, "dropped": True},
    "verified": {"verified": True},
}


@given(COMING, st.sampled_from(["attempted", "attempt_task", "continue_attempt", "verify_result", "screen_task"]))
async def test_a_collective_verifier_waits_for_the_last_attempt(coming: list[str], event: str) -> None:
    run = state({f"a{n}": said("3", n, **KINDS[kind]) for n, kind in enumerate(coming)})
    told = await found(attempted(f"a{len(coming) - 1}") if event == "attempted" else given_up(event), run)
    ready = "waiting" not in coming and event != "screen_task"
    assert [one.attempt for one in told] == [f"a{n}" for n, kind in enumerate(coming) if kind == "in" and ready]
    assert {(one.task, one.verifier, one.iteration) for one in told} <= {("t", "panel", 3)}
    assert all(one.votes for one in told)


async def test_rules_are_the_runs_unless_others_are_given() -> None:
    """``unchecked`` names who decides what nothing computes; ``agreeing`` how many must agree."""
    answers = {f"a{n}": said("3", n, computed=True) for n in range(2)}
    strict, lax = VerificationConfig(agreeing=3), VerificationConfig(agreeing=2, unchecked="self_consistency")
    for rules, verifier in ((strict, "panel"), (lax, "self_consistency")):
        own = await found(attempted("a1"), state(answers, **rules.model_dump()))
        other = await found(attempted("a1"), state(answers), rules)
        assert own == other and [one.verifier for one in own] == [verifier] * 2
