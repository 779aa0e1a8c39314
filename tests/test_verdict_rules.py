"""Votes, reviews and labelled pairs with every field, and the alarms that verdicts raise."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from agent0.errors import Agent0Error, ConfigError
from agent0.events.alarms import AlarmRaised
from agent0.events.benchmarks import TaskReviewed
from agent0.events.tasks import ResultVerified
from agent0.events.values import Task, Vote
from agent0.settings import RunConfig, VerificationConfig
from agent0.state.run_state import AttemptState, RunState, TaskState
from agent0.stats.intervals import wilson
from agent0.verification.human_review import awaits_person, reviewed, verdict_alarms, verdict_of, verdicts_of
from agent0.verification.labelled_pairs import Decided, decoded, read_pairs, summary
from agent0.verification.panel import VerificationContext, case_of, checks, combine_votes, disputed, votes_on

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def told(work: Any, kind: type[Agent0Error] = ConfigError) -> tuple[str, str, str]:
    with pytest.raises(kind) as found:
        work()
    return found.value.what, found.value.why, found.value.fix


def votes(*said: bool | None) -> tuple[Vote, ...]:
    return tuple(Vote(check=str(n), correct=one) for n, one in enumerate(said))


def test_votes_are_combined_by_two_that_agree() -> None:
    told_of = {(True, True): True, (True,): None, (True, True, False): None, (False, False): False, (False,): None,
               (False, False, True): False, (False, False, True, True): None, (None, None): None}  # fmt: skip
    assert {said: combine_votes(votes(*said)) for said in told_of} == told_of
    assert disputed(votes(True, False)) and not disputed(votes(True, None)) and not disputed(votes(False, None))


QUESTION = "Solve for x: 2x = 10. Answer in exactly one word without using the letter 'z'."


async def test_every_check_says_its_vote_and_why() -> None:
    async def judge(task: Task, answer: str) -> tuple[bool | None, str]:
        asked.append(answer)
        return answer == "5", "r" * 300

    asked: list[str] = []
    task = Task(question=QUESTION, domain="math", family="open", level=1, canonical="c")
    rules = VerificationConfig(agreeing=2, agreement=0.51)
    context = VerificationContext((True, True, False, False, False), rules, judge)
    case = case_of(task, ["5", "5.0", "5", "6", None], context)
    assert case.groups == (0, 0, 0, 1, None)
    rows = [{vote.check: (vote.correct, vote.reason) for vote in row} for row in await votes_on(case)]
    assert list(rows[0]) == list(checks())
    unsaid, computed = (None, "no answer"), (True, "its own tools computed it")
    others = (False, "the tools of 2 other attempts computed another answer")
    assert [row["agreement"] for row in rows] == [(n < 3, "3 of 5 attempts agree") for n in range(5)]
    assert [row["computation"] for row in rows] == [
        computed, computed, (None, "no tool computed it"), others, others,
    ]  # fmt: skip
    right, wrong = (True, "r" * 200), (False, "r" * 200)
    assert [row["opinion"] for row in rows] == [right, wrong, right, wrong, unsaid] and asked == ["5", "5.0", "6"]
    solves, fails = (True, "it solves the equation"), (False, "it does not solve the equation")
    assert [row["substitution"] for row in rows] == [solves, solves, solves, fails, unsaid]
    assert [row["wording"] for row in rows] == [(True, "2 stated rules are kept")] * 4 + [unsaid]
    silent = case_of(task.model_copy(update={"question": "Why?"}), ["5"], VerificationContext((), rules))
    ((*found,),) = await votes_on(silent)
    assert {vote.check: vote.reason for vote in found} == {
        "agreement": "1 of 1 attempts agree", "computation": "no tool computed it",
        "opinion": "no judge model is configured", "substitution": "the question is no single equation",
        "wording": "the question states no form",
    }  # fmt: skip
    undone = case_of(task, ["2+3"], VerificationContext((True,), rules, judge))
    (found_,) = await votes_on(undone)
    assert {vote.check: vote.correct for vote in found_}["computation"] is None
    assert [vote.reason for vote in found_ if vote.check == "computation"] == [
        "work left undone where a value is wanted"
    ]


def verdict(attempt: str = "a", correct: bool | None = None, verifier: str = "panel", **more: Any) -> ResultVerified:
    return ResultVerified(
        task="t", attempt=attempt, iteration=2, correct=correct, verifier=verifier, reason="so", **more
    )


def review(attempt: str, correct: bool | None, reason: str = "") -> TaskReviewed:
    return TaskReviewed.model_validate(
        {"task": "t", "attempt": attempt, "correct": correct, "reviewer": "Ann", "reason": reason}
    )


def test_a_review_is_recorded_with_an_alarm_where_it_contradicts() -> None:
    one = review("a", True, "x" * 600)
    for machine in (None, True):
        assert reviewed(one, machine, "exact") == [one]
    assert reviewed(review("a", None), False, "exact") == [review("a", None)]
    facts = {"attempt": "a", "verifier": "exact", "reason": "x" * 500}
    message = "a: Ann says right, exact said wrong"
    assert reviewed(one, False, "exact") == [
        one, AlarmRaised(alarm="review-a", severity="warning", message=message, facts=facts),
    ]  # fmt: skip
    assert verdict_of(one, 3, "y" * 300) == ResultVerified(
        task="t", attempt="a", iteration=3, correct=True, verifier="person", reason=f"Ann: {'x' * 495}", got="y" * 200
    )
    assert verdict_of(review("a", False), 3, None).reason == "Ann" and verdict_of(one, 3, None).got == ""
    later = [review("a", True), review("b", None), review("a", False)]
    assert verdicts_of(later) == {"a": verdict_of(later[2], 0, None)}


def test_alarms_name_a_few_disputes_and_who_is_waited_for() -> None:
    ask = RunConfig.model_validate({"verification": {"undecided": "ask"}})

    def run(disputes: int, asked: Sequence[str] = (), config: RunConfig = ask) -> RunState:
        tasks = {"t": TaskState(0, "math", "f", 1, attempts={
            "a": AttemptState(0, disputed=disputes > 0, awaits_review="a" in asked),
            "b": AttemptState(1, awaits_review="b" in asked),
        })}  # fmt: skip
        more = {f"t{n}": TaskState(n, "math", "f", 1, attempts={f"x{n}": AttemptState(0, disputed=True)})
                for n in range(1, disputes)}  # fmt: skip
        return RunState("r", 1, config, "", iteration=2, tasks=tasks | more)

    split = verdict(votes=votes(True, False))
    named = AlarmRaised(alarm="disagreement-t", severity="info", message="a: so", facts={"0": True, "1": False})
    more = AlarmRaised(
        alarm="disagreements-2", severity="warning",
        message="checks disagree about more than 5 tasks of iteration 2; no more are named",
    )  # fmt: skip
    assert [verdict_alarms(split, run(n)) for n in (1, 5, 6, 7)] == [[named], [named], [more], []]
    assert verdict_alarms(split, run(0)) == [] == verdict_alarms(verdict(), run(1))
    waits = AlarmRaised(
        alarm="review-wanted-2", severity="warning",
        message="iteration 2 waits for a person's verdicts: agent0 task review r",
    )  # fmt: skip
    assert verdict_alarms(verdict(), run(0, "a")) == [waits] and verdict_alarms(verdict(), run(0, "ab")) == []
    for other in (verdict(correct=True), verdict(verifier="person")):
        assert not awaits_person(other, ask) and verdict_alarms(other, run(0, "a")) == []
    assert verdict_alarms(verdict(), run(0, "a", RunConfig())) == []
    assert verdict_alarms(verdict().model_copy(update={"task": "gone"}), run(0, "a")) == []


def test_labelled_pairs_are_counted_apart_from_those_of_policy() -> None:
    decided = [
        Decided("z", True, True, "", 1.0, False), Decided("y", True, None, "", 3.0, False),
        Decided("x", False, True, "", 2.0, False), Decided("w", False, None, "", 0.0, False),
        Decided("p", True, False, "", 9.0, True),
    ]  # fmt: skip
    none = {"n": 0, "accuracy": None, "lower95": None, "tpr": None, "fpr": None, "undecided": 0, "slowest_s": 0.0,
            "wrong": []}  # fmt: skip
    assert summary(decided) == {
        "n": 4, "accuracy": 0.5, "lower95": wilson(2, 4)[0], "tpr": 0.5, "fpr": 0.5, "undecided": 2, "slowest_s": 3.0,
        "wrong": ["x", "y"],
        "policy": {"n": 1, "accuracy": 0.0, "lower95": wilson(0, 1)[0], "tpr": 0.0, "fpr": None, "undecided": 0,
                   "slowest_s": 9.0, "wrong": ["p"]},
    }  # fmt: skip
    assert summary([]) == {**none, "policy": none}


def test_rows_that_are_no_pairs_are_refused_in_full() -> None:
    good = {"pair_id": "p", "gold": "1", "candidate": "1", "form": "answer", "label": "accept"}
    code = {"pair_id": "p", "setup": "", "test": "", "entry_point": "f", "candidate": "", "label": "accept"}
    wanted = "Wanted: pair_id, gold, candidate, form, label."

    def of(*rows: Any) -> tuple[str, str, str]:
        return told(
            lambda: read_pairs("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "f")
        )

    assert read_pairs(f"\n{json.dumps(good)}\n", "f") == [good] and read_pairs(json.dumps(code), "f") == [code]
    assert of("") == ("f has no rows.", "It is read as one JSON object a line.", "")
    assert of('{"a": 1, "a": 2}') == ("f, line 1: the field 'a' is there twice.", "", "")
    assert of("", "x") == ("f, line 2: no JSON.", "Expecting value: line 1 column 1 (char 0).", "")
    assert of("[]") == ("f, line 1: no JSON object.", "", "")
    assert of(good, good) == ("f, line 2: pair_id 'p' is that of line 1 too.", "", "")
    assert of({**good, "candidate": 1}) == ("f, line 1: candidate is missing or no text.", wanted, "")
    assert of({**code, "entry_point": None})[1] == "Wanted: pair_id, setup, test, entry_point, candidate, label."
    assert of({**good, "pair_id": ""})[0] == "f, line 1: pair_id is empty."
    assert of({**good, "gold": " "})[0] == "f, line 1: gold is empty."
    assert of({**good, "label": "yes"})[0] == "f, line 1: label 'yes' is none of accept, reject."
    assert of({**good, "form": "x"})[0] == "f, line 1: form 'x' is none of answer, response."
    assert of({**good, "policy": 1})[0] == "f, line 1: policy is neither true nor false."
    assert of({**good, "kind": "x"})[0].startswith("f, line 1: kind 'x' is none of ")
    assert decoded("ä".encode(), "f") == "ä"
    assert told(lambda: decoded(b"a\nb\xff", "f")) == ("f, line 2: no UTF-8.", "Byte 0xff stands for nothing.", "")
