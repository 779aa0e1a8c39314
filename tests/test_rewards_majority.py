"""Students of ``paper`` and ``released`` are paid for agreeing with the majority, whatever a verifier says."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.events.alarms import ReactionDropped
from agent0.events.base import record
from agent0.events.tasks import ResultVerified
from agent0.rewards.assign import assigned_rewards
from agent0.run.lifecycle import evolve
from agent0.settings import RewardConfig, RunConfig
from agent0.state.run_state import RunState, TaskState
from tests.test_rewards_sets import attempts, task
from tests.world import NOON


def students(rules: RewardConfig, answers: list[str | None], order: list[int], right: str | None) -> dict[str, Any]:
    """Receipts by attempt, and after how many verdicts each came, which were given in ``order``."""
    made = attempts(answers, right)
    held = TaskState(0, "math", "arithmetic", 1, proposed=True, accepted=True, novelty=1.0, proposal=task())
    vars(held).update(attempts={n: replace(a, verified=False, correct=None, judge="") for n, a in made.items()})
    config = RunConfig(tasks=1, attempts=len(answers), rewards=rules)
    state: RunState | None = RunState("r", 9, config, "", iteration=0, phase="tasks", tasks={"t0-000": held})
    found: dict[str, Any] = {}
    for count, place in enumerate(order, 1):
        name = f"t0-000-a{place}"
        plain = {"task": "t0-000", "attempt": name, "iteration": 0, "verifier": "v", "reason": ""}
        verdict = ResultVerified(**plain, correct=made[name].correct)  # type: ignore[arg-type]
        told = record(verdict, run="r", time=NOON).model_copy(update={"seq": 9 + count})
        state = evolve(state, told)
        assert state is not None
        found |= {paid.attempt: (paid, count) for paid in assigned_rewards(verdict, state)}
    return found


@pytest.mark.parametrize("right", ["42", "7", None])
@pytest.mark.parametrize(("name", "part"), [("paper", "pseudo_label"), ("released", "accuracy")])
@given(order=st.permutations(range(5)))
def test_their_student_is_paid_for_agreeing_with_the_majority(
    name: str, part: str, right: str | None, order: list[int]
) -> None:
    """Most say 7. Whether that is right, wrong or unknown, and whose verdict comes last, changes nothing."""
    rules = RewardConfig(set=name)
    found = students(rules, ["42", "7", "7.0", "42", "7"], order, right)
    assert [found[f"t0-000-a{n}"][0].total for n in range(5)] == [0.0, 1.0, 1.0, 0.0, 1.0]
    assert {count for _, count in found.values()} == {5} and "-" in found
    told = {p.name: p.inputs for p in found["t0-000-a0"][0].parts}
    assert told == {part: {"agrees": False, "majority": "7"}}


@pytest.mark.parametrize("name", ["paper", "agent0"])
def test_a_group_whose_receipts_are_given_up_together_is_done(name: str) -> None:
    """Else the run would wait for ever; where each is paid alone, the others' receipts are still to come."""
    made = attempts(["42", "7"])
    held = TaskState(0, "math", "arithmetic", 1, proposed=True, accepted=True, proposal=task(), attempts=made)
    config = RunConfig(tasks=2, attempts=2, rewards=RewardConfig(set=name))
    state = RunState("r", 9, config, "", iteration=0, phase="tasks", tasks={"t0-000": held})
    dropped = ReactionDropped(
        failure="f",
        cause_id="c",
        cause_type="ResultVerified",
        cause_task="t0-000",
        cause_attempt="t0-000-a1",
        failed_handler="assign_reward",
        reason="a part raises",
    )
    after = evolve(state, record(dropped, run="r", time=NOON).model_copy(update={"seq": 10}))
    assert after is not None and after.tasks["t0-000"].done == (name == "paper")


def test_who_gives_no_answer_agrees_with_nobody() -> None:
    for answers, paid_ in (([None, "1", None], [0.0, 1.0, 0.0]), ([None, None, None], [0.0, 0.0, 0.0])):
        found = students(RewardConfig(set="paper"), answers, [0, 2, 1], "1")
        assert [found[f"t0-000-a{n}"][0].total for n in range(3)] == paid_
