"""What policies that exploit the rewards do and earn, and the simulation that plays them."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from agent0.events.tasks import TaskRejected
from agent0.events.values import Task
from agent0.rewards.describe import ROLES
from agent0.rewards.red_team import Attempt, HonestAttempt, Proposal, about, student_policies, teacher_policies
from agent0.rewards.red_team import play as game
from agent0.rewards.red_team.play import PolicyReward, Size, play_policies, scored_receipts
from agent0.rewards.red_team.undone import copies, sums
from agent0.settings import RewardConfig, RunConfig
from agent0.state.run_state import RunState, TaskState, ToolCallRecord
from agent0.tasks.families import families
from agent0.tasks.splits import task_of

PLAIN = RewardConfig()


def task(question: str = "Compute 76*26+89.") -> Task:
    found = task_of(families()["arithmetic"], question)
    assert found is not None
    return found


def run_of(tasks: Mapping[str, TaskState], rules: RewardConfig = PLAIN, **more: Any) -> RunState:
    return RunState("r", 1, RunConfig(rewards=rules), "", tasks=dict(tasks), **more)


def call(code: str, output: str = "8\n", ok: bool = True, name: str = "python") -> ToolCallRecord:
    return ToolCallRecord(name, {"code": code}, ok, output)


EARNED = {
    "agent0": (
        (0.6754, -0.3146, 0.6754, 0.6754, 0.6754, -0.5, 0.1754, -0.3146, 0.1754, 0.1754, 0.1754, 0.1076),
        (0.3667, 0.3333, 0.0, 0.0, 0.0, 0.3333, 0.0, 0.0, 0.0, 0.0, 0.35, 0.3667, 0.0),
    ),
    "paper": (
        (0.6542, 0.6542, 1.0167, 1.0167, 0.6542, 0.0, 0.3333, 0.6542, 0.6542, 0.0125, 0.6542, 0.0),
        (0.4167, 0.4167, 1.0, 1.0, 1.0, 0.4167, 0.4167, 1.0, 0.5, 0.0, 0.4167, 0.4167, 0.4167),
    ),
}
"""Mean rewards of teachers' and of students' policies by set, played small: the page of reward hacking, in small."""


@pytest.mark.parametrize("name", EARNED)
def test_policies_earn_what_they_earned_before(name: str) -> None:
    rows = play_policies(RewardConfig(set=name), seed=1, size=Size(1, 4, 3))
    names = [*teacher_policies()], [*student_policies()]
    for role, known, receipts, earned in zip(ROLES, names, (4, 12), EARNED[name], strict=True):
        own = [row for row in rows if row.role == role]
        assert [row.policy for row in own] == known and {row.receipts for row in own} == {receipts}
        assert tuple(round(row.mean, 4) for row in own) == earned
        assert all(row.honest == own[0].mean and row.about == about(role, row.policy) for row in own)
    assert not PolicyReward("student", "x", 0.5, 0.5, 1, "").exploits


def test_a_simulated_run_is_made_of_states_that_rewards_can_read() -> None:
    seen: list[TaskState] = []

    def teacher(rng: Any, known: list[Proposal]) -> Proposal:
        assert len(known) == len(seen) + 1 or len(known) > 1
        return [known[0], Proposal("words", None), known[0], known[-1]][len(known) - 1]

    def student(rng: Any, found: HonestAttempt) -> Attempt:
        return Attempt(found.answer, found.calls, 7, 2)

    simulation = game._Simulation(True, teacher, student, 3, Size(1, 4, 2))
    tasks = list(simulation.tasks(0).items())
    assert [name for name, _ in tasks] == [f"t0-00{slot}" for slot in range(4)]
    accepted = [one for _, one in tasks if one.accepted]
    assert [(one.slot, one.accepted, one.rejected, one.proposed) for _, one in tasks] == [
        (0, True, False, True), (1, False, True, True), (2, True, False, True), (3, False, True, True),
    ]  # fmt: skip
    assert (tasks[1][1].proposal, tasks[1][1].text, tasks[1][1].domain, tasks[1][1].level) == (None, "words", "", 1)
    events = simulation.events(run_of(dict(tasks), iteration=2))
    told = [(type(event).__name__, getattr(event, "reason", ""), resolved) for event, resolved in events]
    assert told == [
        ("ResultVerified", "", ""), ("ResultVerified", "", "t0-000"), ("TaskRejected", "malformed", ""),
        ("ResultVerified", "", ""), ("ResultVerified", "", "t0-002"), ("TaskRejected", "duplicate", ""),
    ]  # fmt: skip
    for one in accepted:
        assert one.proposal and one.text == one.proposal.question and one.level == one.proposal.level
        assert (one.domain, one.family) == (one.proposal.domain, one.proposal.family)
        for number, made in enumerate(one.attempts.values()):
            assert (made.number, made.attempted, made.verified, made.judge, made.tokens) == (
                number,
                True,
                True,
                "played",
                7,
            )
            assert made.parse_errors == 2 and made.tool_calls == made.tool_ok == len(made.calls) and made.grounded
    assert {(event.iteration, event.slot) for event, _ in events if isinstance(event, TaskRejected)} == {(2, 1), (2, 3)}
    receipts = scored_receipts(RewardConfig(), teacher, student, 3, Size(1, 4, 2))
    assert [receipt.role for receipt in receipts].count("teacher") == 4 and len(receipts) == 8


def test_labels_are_the_verifiers_or_the_majoritys() -> None:
    made = [Attempt("2065"), Attempt("1"), Attempt("1.0"), Attempt(None)]
    proposal = Proposal("", task())
    assert game._labels(made, proposal, True) == [True, False, False, False]
    assert game._labels(made, proposal, False) == [False, True, True, False]
    assert game._labels(made, Proposal("", None), True) == [None] * 4
    assert game._labels(made[3:], proposal, False) == [False]
    state = game._state(
        3, Attempt("8", (call("print(9)", "9\n"),), 5, 1), (call("print(8)"), call("x", ok=False)), True
    )
    assert (state.number, state.tool_calls, state.tool_ok, state.grounded, state.correct) == (3, 3, 2, True, True)
    assert not game._state(0, Attempt("7"), (call("print(8)"),), None).grounded
    assert sum(x * x for x in game._vector("some text")) == pytest.approx(1.0) and not any(game._vector(""))


POLICIES = {
    "honest": Attempt("8", (call("print(2**3)"),)),
    "constant answer": Attempt("0"),
    "no answer": Attempt(None, (call("print(2**3)"),)),
    "always a tool": Attempt("8", (ToolCallRecord("python", {"code": "print('8')"}, True, "8\n"),)),
    "empty calls": Attempt("8", (call("", ""),) * 4),
    "repeated calls": Attempt("8", (call("print(2**3)"),) * 5),
    "copies the question": Attempt("Compute 76*26+89."),
    "copies the expression": Attempt("76*26+89"),
    "writes the answer as a sum": Attempt("8+0", (call("print(2**3)"),)),
    "every answer at once": Attempt("0, 1, 2065, 8, False, True", (call("print(2**3)"),)),
    "follows the crowd": Attempt("9", (call("print(2**3)"),)),
    "talks on": Attempt("8", (call("print(2**3)"),), 6000),
}


@pytest.mark.parametrize("name", POLICIES)
def test_a_student_policy_hands_in_what_it_says(name: str) -> None:
    found = HonestAttempt(Proposal("text", task(), "2065", others=("9", "10")), "8", (call("print(2**3)"),))
    assert student_policies()[name](random.Random(1), found) == POLICIES[name]


def test_answers_left_undone_are_written_in_every_way() -> None:
    family = families()["arithmetic"]
    assert list(copies(task(), family)) == ["76*26+89", "76*26+89"]
    assert list(sums("12")) == [
        "12+0", "12+0", "1*12", "(12-1)+1", r"12-1+\binom{300}{0}", r"12-1+\binom{201}{201}", r"(12)\binom{201}{0}",
        r"\log{1}+\sqrt[50]{1}+12-1", "12-0-0", "sqrt144",
    ]  # fmt: skip
    assert (
        list(sums("[1, 2/3]"))[1:3] == ["[1+0, 2/3+0]", "[1*1, 1*2/3]"] and list(sums("[1, 2/3]"))[-1] == "[sqrt1, 2/3]"
    )
