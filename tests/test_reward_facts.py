"""What a reward is computed from and what is told of it, with all fields: facts of proposals and attempts, scaling,
rows and explanations, useful calls, clusters."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agent0 import rewards as room
from agent0.events.alarms import ReactionDropped
from agent0.events.base import Event
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskRejected
from agent0.events.values import RewardPart, Task, Usage
from agent0.registry import Registry
from agent0.rewards import (
    Reward,
    features_read,
    receipt,
    reward,
    reward_sets,
    rewards,
    total,
    waits_for_group,
)
from agent0.rewards.assign import assigned_rewards, pending_rewards, questions_to_compare
from agent0.rewards.batch_similarity import bleu, clusters, distances
from agent0.rewards.describe import UNKNOWN_PART, explain_receipt, formula, part_rows, set_rows
from agent0.rewards.features import calibrated, confidence, questions_of
from agent0.rewards.skill_signature import of_calls, of_program, of_task
from agent0.rewards.tool_utility import rests_on, useful
from agent0.run.reducers import FOLDS
from agent0.settings import RewardConfig, RunConfig
from agent0.state.reward_history import Moments, RewardHistory
from agent0.state.run_state import AttemptState, RunState, TaskState, ToolCallRecord
from agent0.tasks.families import families
from agent0.tasks.splits import task_of

PLAIN = RewardConfig()


def task(question: str = "Compute 76*26+89.") -> Task:
    found = task_of(families()["arithmetic"], question)
    assert found is not None
    return found


def attempt(number: int, answer: str | None, correct: bool | None = None, **more: Any) -> AttemptState:
    return AttemptState(number, answer, True, correct=correct, verified=True, judge="exact", **more)


def held(*attempts: AttemptState, **more: Any) -> TaskState:
    named = {f"a{one.number}": one for one in attempts}
    plain = {"proposed": True, "accepted": True, "proposal": task(), "novelty": 0.5}
    return TaskState(0, "math", "arithmetic", 1, attempts=named, **{**plain, **more})


def run_of(tasks: Mapping[str, TaskState], rules: RewardConfig = PLAIN, **more: Any) -> RunState:
    return RunState("r", 1, RunConfig(rewards=rules), "", tasks=dict(tasks), **more)


def verdict(task_: str = "t", attempt_: str = "a0", verifier: str = "exact") -> ResultVerified:
    return ResultVerified(task=task_, attempt=attempt_, iteration=0, correct=True, verifier=verifier, reason="")


def dropped() -> ReactionDropped:
    return ReactionDropped(failure="f", cause_id="c", cause_type="T", failed_handler="h", reason="r")


def facts(event: Event, run: RunState) -> list[tuple[str, str, str, Mapping[str, Any]]]:
    return [
        (pending_reward.role, pending_reward.task, pending_reward.attempt, pending_reward.facts)
        for pending_reward in pending_rewards(event, run)
    ]


# --- what is assigned, and from which facts


def test_a_students_facts_are_those_of_its_attempt() -> None:
    one = attempt(
        0, "1", True, credit=0.5, grounded=True, tool_ok=2, tool_calls=3, parse_errors=4, tokens=5, mean_logprob=-1.0
    )
    ((role, name, of, found),) = facts(verdict(), run_of({"t": held(one)}))
    assert (role, name, of) == ("student", "t", "a0")
    assert found == {
        "correct": True, "credit": 0.5, "grounded": True, "tool_ok": 2, "tool_calls": 3, "parse_errors": 4,
        "answered": True, "tokens": 5, "token_confidence": pytest.approx(0.36787944),
    }  # fmt: skip
    ((*_, found),) = facts(verdict(), run_of({"t": held(attempt(0, None))}))
    assert (found["answered"], found["token_confidence"], found["correct"]) == (False, None, None)


def test_a_teachers_facts_are_those_of_the_attempts_that_were_made() -> None:
    made = held(
        attempt(0, "1", True, tool_ok=2, mean_logprob=-1.0), attempt(1, "1", False, tool_ok=0, mean_logprob=-3.0),
        attempt(2, "2", None, tool_ok=1), replace(attempt(3, "9", True), attempted=False, dropped=True),
    )  # fmt: skip
    run = run_of({"t": made}, just_settled="t")
    assert [fact[:3] for fact in facts(verdict(), run)] == [("student", "t", "a0"), ("teacher", "t", "-")]
    ((*_, found),) = facts(dropped(), run)
    assert found == {
        "accepted": True, "reason": "", "novelty": 0.5, "solve_rate": 0.5, "self_consistency": pytest.approx(2 / 3),
        "answer_entropy": pytest.approx(0.63651417), "token_confidence": pytest.approx(0.13533528),
        "mean_tool_ok": 1.0, "tool_share": pytest.approx(2 / 3), "attempts": 3,
    }  # fmt: skip
    ((*_, none),) = facts(dropped(), run_of({"t": held()}, just_settled="t"))
    assert none == {
        "accepted": True, "reason": "", "novelty": 0.5, "attempts": 0, "solve_rate": None, "self_consistency": None,
        "answer_entropy": None, "token_confidence": None, "mean_tool_ok": None, "tool_share": None,
    }  # fmt: skip


def test_a_rejected_tasks_facts_say_why() -> None:
    event = TaskRejected(task="t", iteration=0, slot=0, reason="similar", novelty=0.25)
    ((role, name, of, found),) = facts(event, run_of({"t": held(accepted=False, rejected=True)}))
    assert (role, name, of) == ("teacher", "t", "-")
    assert found == {
        "solve_rate": None, "self_consistency": None, "token_confidence": None, "mean_tool_ok": None,
        "accepted": False, "reason": "similar", "novelty": 0.25,
    }  # fmt: skip


def test_nothing_is_assigned_twice_or_for_what_is_not_known() -> None:
    rejected = TaskRejected(task="t", iteration=0, slot=0, reason="similar", novelty=None)
    one = attempt(0, "1", True)
    for event in (rejected, verdict(), dropped()):
        assert facts(event, run_of({}, just_settled="t")) == []
    assert facts(rejected, run_of({"t": held(one, closed=True)})) == []
    assert facts(dropped(), run_of({"t": held(one, closed=True)}, just_settled="t")) == []
    assert facts(dropped(), run_of({"t": held(one)}, just_settled="")) == []
    assert [fact[0] for fact in facts(verdict(), run_of({"t": held(one)}, just_settled="other"))] == ["student"]


def test_a_group_is_rewarded_in_order_once_it_is_whole() -> None:
    paper = RewardConfig(set="paper")
    made = held(
        attempt(1, "2"), attempt(0, "1"), replace(attempt(2, "1"), verified=False), attempt(3, "1", dropped=True)
    )
    run = run_of({"t": made}, paper)
    assert facts(verdict(), run) == []
    told = [fact[:3] for fact in facts(verdict(), replace(run, just_settled="t"))]
    assert told == [("student", "t", "a1"), ("student", "t", "a0"), ("teacher", "t", "-")]
    own = replace(run_of({"t": made}), just_settled="t")
    assert [pending_reward.attempt for pending_reward in pending_rewards(verdict(), own, paper)] == ["a1", "a0", "-"]
    assert [pending_reward.rules for pending_reward in pending_rewards(verdict(), own, paper)] == [paper] * 3


def test_a_receipt_has_all_fields_and_says_how_it_was_scaled() -> None:
    rules = RewardConfig(normalize=True, clip=0.75)
    earned = {"student": Moments(2, 10**9, 10**18)}  # mean 1/2, deviation 1/2
    run = run_of({"t": held(attempt(0, "1", True))}, rules, iteration=3, ledger=RewardHistory(1, {}, earned, {}, {}))
    (plain,) = assigned_rewards(verdict(), run_of({"t": held(attempt(0, "1", True))}))
    (found,) = assigned_rewards(verdict(), run)
    assert found.parts == plain.parts and plain.total == total("student", plain.parts)
    assert (found.task, found.attempt, found.iteration, found.role, found.set) == ("t", "a0", 3, "student", "agent0")
    assert (found.checkpoint, found.total) == (run.student.id, min(0.75, (plain.total - 0.5) / 0.5))
    scaled = {"raw_total": plain.total, "earned": 2, "earned_mean": 0.5, "earned_deviation": 0.5}
    assert found.facts == plain.facts | scaled
    (unscaled,) = assigned_rewards(verdict(), replace(run, config=RunConfig(rewards=RewardConfig(clip=0.125))))
    assert unscaled.total == 0.125 and unscaled.facts == plain.facts | {"raw_total": plain.total}
    alike = {"student": Moments(2, 2 * 10**9, 2 * 10**18)}  # deviation 0: only centred
    normal = RunConfig(rewards=RewardConfig(normalize=True))
    (centred,) = assigned_rewards(verdict(), replace(run, config=normal, ledger=RewardHistory(1, {}, alike, {}, {})))
    assert centred.total == pytest.approx(plain.total - 1)
    teacher = assigned_rewards(dropped(), run_of({"t": held(attempt(0, "1", True))}, just_settled="t"))[0]
    assert (teacher.role, teacher.checkpoint) == ("teacher", run.teacher.id)


def test_questions_are_compared_for_a_teachers_receipt_alone() -> None:
    paper = RewardConfig(set="paper")
    tasks = {"u": replace(held(), slot=1, proposal=None), "t": held(attempt(0, "1"))}
    run = run_of(tasks, paper, just_settled="t")
    assert questions_of(run) == questions_to_compare(dropped(), run) == ("Compute 76*26+89.", "")
    assert questions_to_compare(dropped(), replace(run, just_settled="")) is None
    assert "cluster_share" not in features_read("teacher", {})
    assert questions_to_compare(dropped(), run_of(tasks, just_settled="t")) is None, "this set reads no clusters"
    alone = replace(run, config=RunConfig(rewards=RewardConfig(weights={"repetition": -0.1})))
    assert questions_to_compare(verdict(), alone) == questions_of(run)
    assert questions_to_compare(verdict(), replace(alone, just_settled="")) is None, "a student's receipt compares none"


# --- sets and parts


def test_a_part_is_registered_with_all_that_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_rewards", Registry("rewards"))

    def score(known: Mapping[str, Any]) -> float | None:
        """Half
        of it."""
        return float(known["x"] / 2)

    assert reward("half", role="student", weight=0.25, reads=("x",))(score) is score
    reward("half", role="teacher", weight=0.5, reads=("x", "y"), set="paper")(score)
    own, other = (
        Reward("half", "student", 0.25, ("x",), score),
        Reward("half", "teacher", 0.5, ("x", "y"), score, "paper"),
    )
    assert rewards("student") == {"half": own} and rewards("teacher", "paper") == {"half": other}
    assert rewards("teacher") == {} and own.set == "agent0" and formula(own) == "Half of it."
    parts, whole = receipt("student", {"x": 1.0, "z": 3}, {})
    assert parts == (RewardPart(name="half", inputs={"x": 1.0}, value=0.5, weight=0.25),) and whole == 0.125
    assert receipt("student", {}, {"half": 0.0}) == ((), 0.0)
    with pytest.raises(TypeError) as failed:
        receipt("student", {}, {})
    assert failed.value.__notes__ == ["It was the student's reward half."]
    assert part_rows("agent0") == [
        {"role": "student", "part": "half", "weight": 0.25, "reads": "x", "formula": "Half of it."}
    ]
    assert features_read("student", {"half": 0.0}) == frozenset() and features_read("student", {}) == {"x"}


def test_sets_by_whose_word_they_reward() -> None:
    waits = {name: waits_for_group(RewardConfig(set=name)) for name in reward_sets()}
    assert {name for name, waiting in waits.items() if waiting} == {"paper", "released"}
    assert not waits_for_group(RewardConfig(set="paper", weights={"pseudo_label": 0.0}))
    rows = {row["set"]: row for row in set_rows()}
    assert rows["paper"]["label"] == "majority" and rows["agent0"]["label"] == "verifier"
    assert all(row["formula"] == reward_sets()[name].about for name, row in rows.items())


def test_a_receipt_is_explained_part_by_part() -> None:
    (found,) = assigned_rewards(verdict(), run_of({"t": held(attempt(0, "1", True, tokens=60))}))
    row = {**found.model_dump(), "reward_set": found.set}
    one = explain_receipt(row)
    assert {name: one[name] for name in ("task", "attempt", "role", "reward_set", "total", "checkpoint", "check")} == {
        "task": "t", "attempt": "a0", "role": "student", "reward_set": "agent0", "total": found.total,
        "checkpoint": "base", "check": found.total,
    }  # fmt: skip
    assert one["scaled"] == "" and one["formula"] == reward_sets()["agent0"].about
    for part, told in zip(found.parts, one["parts"], strict=True):
        worth = None if part.value is None else part.value * part.weight
        assert told == {
            "part": part.name, "inputs": part.inputs, "value": part.value, "weight": part.weight, "worth": worth,
            "contribution": worth if worth is None else pytest.approx(worth, abs=1e-12),
            "formula": formula(rewards("student")[part.name]),
        }  # fmt: skip

    def scaled(**told: float) -> str:
        return str(explain_receipt({**row, "facts": told})["scaled"])

    assert scaled(raw_total=0.5) == "raw 0.5, kept within bounds"
    assert scaled(raw_total=0.5, earned=3, earned_mean=0.25, earned_deviation=0.125) == (
        "raw 0.5, less 0.2500, by 0.1250: 3 receipts of earlier iterations"
    )
    gone = explain_receipt({**row, "reward_set": "gone"})
    assert gone["formula"] == "this version has no such set" and gone["check"] is None
    assert {(part["contribution"], part["formula"]) for part in gone["parts"]} == {(None, UNKNOWN_PART)}


def test_confidence_is_the_calibrators_or_the_answers_own() -> None:
    plan = {"signal": "answer", "method": "platt", "parameters": (1.0, 0.0)}
    rules = RewardConfig.model_validate({"calibrator": plan})
    assert confidence(PLAIN, {"answer": 0.3}) == 0.3 and confidence(PLAIN, {"own_tokens": 0.3}) is None
    assert confidence(rules, {"answer": 0.3}) == calibrated(rules, {"answer": 0.3}) == pytest.approx(0.3)
    assert confidence(rules, {"own_tokens": 0.3}) is None is calibrated(PLAIN, {"answer": 0.3})


# --- calls, skills, clusters


def call(code: str, output: str = "8\n", ok: bool = True, name: str = "python") -> ToolCallRecord:
    return ToolCallRecord(name, {"code": code}, ok, output)


def test_calls_are_useful_once_and_where_they_computed() -> None:
    worked, other = call("print(2**3)"), call("print(4*2)")
    calls = [worked, worked, call("print(8)"), call("print(-8)"), call("print(not 8)"), other, call("2**3", ok=False),
             call("1+1", " \n"), call("2**3"), call("x = [", "?"), call("print(str(8))"), call("len('abc')"),
             call("#" + "x" * 20_000), call("#" + "x" * 19_999)]  # fmt: skip
    assert useful(calls) == [worked, call("print(not 8)"), other, call("x = [", "?"), call("len('abc')"),
                             call("#" + "x" * 20_000)]  # fmt: skip
    assert rests_on("8", [worked], "What is 2**3?") and not rests_on("9", [worked], "")
    assert not rests_on("8", [call("print(8*1)")], "?") and rests_on("8", [call("print(8*1)")], "Is it 8?")
    assert not rests_on(None, [worked], "") and not rests_on("", [worked], "") and not rests_on("8", [], "8")
    assert rests_on("8", [call("print(8*1)"), worked], "?")


def test_a_skill_is_the_shortest_useful_way_of_a_right_attempt() -> None:
    long, short = (call("print(2**3)"), call("print(4*2)")), (call("print(len('abc'))"),)
    right = held(attempt(1, "8", True, calls=long), attempt(0, "8", True, calls=short), attempt(2, "9", False))
    assert of_task(right) == of_calls(short) != of_calls(long) and len(of_calls(short)) == 16
    same = held(attempt(1, "8", True, calls=long[:1]), attempt(0, "8", True, calls=short))
    assert of_task(same) == of_calls(short), "the first of equals"
    bare = held(attempt(0, "8", True))
    assert of_task(bare) == of_task(held(attempt(0, "8", True, calls=(call("print(8)"),)))) != ""
    assert of_task(bare) != of_task(replace(bare, level=2)) != of_task(replace(bare, level=2, family="other"))
    program = replace(bare, proposal=task().model_copy(update={"program": "print(1+1)"}))
    assert of_task(program) == of_program("print(2+3)") != of_task(bare)
    assert of_task(held(attempt(0, "9", False, calls=short))) == "" == of_calls([])


def test_distances_and_clusters_by_hand() -> None:
    assert bleu(["a", "b", "c", "d"], ["a", "b", "c", "d"]) == 1.0 and bleu(["a"], ["b"]) == 0.0
    short = bleu(["a", "b", "c", "d", "e", "f", "g", "h"], ["a", "b", "c", "d"])
    assert short == pytest.approx(2.718281828 ** (1 - 8 / 4))
    one = distances([["a"], ["b"], ["a"]])
    assert [one[n][n] for n in range(3)] == [0.0] * 3 and one[0][1] == one[1][0] == 1.0 and one[0][2] == one[2][0]
    line = [[abs(a - b) for b in (0.0, 0.1, 0.5, 0.6, 3.0)] for a in (0.0, 0.1, 0.5, 0.6, 3.0)]
    assert clusters(line, 0.2) == [0, 0, 1, 1, 2] and clusters(line, 0.5) == [0, 0, 1, 1, 2]
    assert clusters(line, 0.51) == [0, 0, 0, 0, 1] and clusters(line, 9.0) == [0] * 5 and clusters(line, 0.0) == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip
    assert clusters([], 1.0) == []


@pytest.mark.parametrize(
    ("tokens", "cut_off", "kind", "value"),
    [
        (0, False, "short", 0.0),
        (307, False, "short", 0.0),  # four fifths of four turns of 96 tokens
        (346, False, "short", -0.505),
        (384, False, "short", -1.0),
        (9_999, False, "short", -1.0),
        (100, True, "short", -1.0),
        (1_843, False, "long", 0.0),  # six times the turns
        (2_304, False, "long", -1.0),
    ],
)
def test_long_attempts_are_punished_softly(tokens: int, cut_off: bool, kind: Any, value: float) -> None:
    """DAPO's equation 13, by hand; what an event says of the attempt's end reaches the receipt."""
    rules = RewardConfig(weights={"overlong": 0.5})
    proposal = task().model_copy(update={"kind": kind})
    state = run_of({"t0-000": held(AttemptState(0), proposal=proposal)}, rules, iteration=0, phase="tasks")
    ended = TaskAttempted(
        task="t0-000", attempt="a0", iteration=0, number=0, student="base", answer="1", turns=1, tool_calls=0,
        tool_ok=0, prompt="p", end="length" if cut_off else "answered", usage=Usage(completion_tokens=tokens),
    )  # fmt: skip
    state = FOLDS[TaskAttempted](state, ended)
    verified = ResultVerified(task="t0-000", attempt="a0", iteration=0, correct=True, verifier="exact", reason="")
    receipts = assigned_rewards(verified, FOLDS[ResultVerified](state, verified))
    part = next(part for receipt in receipts for part in receipt.parts if part.name == "overlong")
    assert part.value == pytest.approx(value, abs=1e-3) and part.weight == 0.5
