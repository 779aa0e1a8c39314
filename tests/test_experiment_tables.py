"""What an experiment says it changed: receipts and verdicts pair by pair, a history with others in their place, stored
answers verified again, runs side by side. Every field of every table, by hand."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest

from agent0.assembly.replay.stored_experiments import experiment_id
from agent0.errors import Agent0Error, ConfigError, LogError
from agent0.events.base import Event, Recorded, effect_id, record, sha256
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.events.tasks import ResultVerified, RewardAssigned, TaskAttempted
from agent0.events.values import Role, Usage
from agent0.experiments.compare_runs import Side, side_by_side, side_of
from agent0.experiments.experiment_events import events_digest, experiment_event_id, start_of
from agent0.experiments.receipt_diff import Change, Receipt, ReceiptPair, crossed_mean, spearman, summary
from agent0.experiments.stored_verdicts import StoredTask, VerdictChange, differences, stored
from agent0.experiments.substitution import Substituted
from agent0.experiments.verdict_diff import VerdictPair, difference
from agent0.stats.intervals import wilson
from agent0.tasks.families import families
from tests.memory import TrustingSandbox


def told(refused: pytest.ExceptionInfo[Agent0Error]) -> tuple[str, str, str]:
    return refused.value.what, refused.value.why, refused.value.fix


def reward(task: str, total: float, role: Role = "student", attempt: str = "-") -> RewardAssigned:
    return RewardAssigned(
        task=task, attempt=attempt, iteration=0, role=role, set="default", parts=(), total=total, checkpoint="base"
    )


def pair(before: RewardAssigned | None, after: RewardAssigned | None) -> ReceiptPair:
    return ReceiptPair(*(one and Receipt.of(one) for one in (before, after)))


# --- receipts


def test_a_receipt_keeps_its_event() -> None:
    event = reward("t1", 0.25, "teacher")
    kept = Receipt.of(event)
    assert (kept.role, kept.task, kept.total, kept.reward) == ("teacher", "t1", 0.25, event)


def test_a_pair_is_of_whichever_there_is_and_the_same_only_where_both_are() -> None:
    old, new = reward("t", 0.0), reward("t", 1.0)
    assert pair(old, new).of == Receipt.of(new) and pair(old, None).of == Receipt.of(old)
    assert pair(old, old).same and Change(old, old).same
    for other in (pair(old, new), pair(old, None), pair(None, old), Change(old, new), Change(None, old)):
        assert not other.same


def test_an_experiments_name_is_made_once_and_must_be_a_token() -> None:
    assert experiment_id("a-b_1") == experiment_id("exp-a-b_1") == "exp-a-b_1"
    assert experiment_id("x" * 60) == "exp-" + "x" * 60
    for name in ("", "a b", "x" * 61, "." * 99):
        with pytest.raises(ConfigError) as refused:
            experiment_id(name) if name else experiment_id("é")
        shown = (name or "é")[:80]
        wanted = f"An experiment cannot be named {shown!r}.", "", "Use letters, digits, '_' and '-', at most 60."
        assert told(refused) == wanted


def test_an_experiment_begins_with_all_that_decides_it() -> None:
    begun = start_of("reverify", "n", "run-1", 7, {"b": 1, "a": 2})
    assert begun.model_dump(exclude={"policy_sha"}) == {
        "name": "n", "kind": "reverify", "source": "run-1", "run": "run-1", "until": 7, "policy": {"b": 1, "a": 2},
        "purged": (),
    }  # fmt: skip
    assert begun.policy_sha == sha256("[('a', 2), ('b', 1)]")
    assert experiment_event_id("exp-n", "cause", 3) == effect_id("cause", "exp-n", 3)


def test_the_digest_is_over_canonical_data_in_order() -> None:
    one, other = reward("t1", 0.0), reward("t2", 1.0)
    lines = [json.dumps(each.model_dump(mode="json"), sort_keys=True) for each in (one, other)]
    assert events_digest([one, other]) == sha256("\n".join(lines)) != events_digest([other, one])


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3, 4], [2, 1, 4, 3], 0.6),
        ([1, 1, 2, 3], [1, 2, 3, 4], 4.5 / (4.5 * 5) ** 0.5),  # the tie has rank 1.5 twice
        ([1, 2, 2, 2], [4, 1, 2, 3], -3.0 / (3 * 5) ** 0.5),
        ([1, 1], [1, 2], None),
        ([1, 2], [5, 5], None),
        ([], [], None),
    ],
)
def test_rank_correlation_gives_ties_their_mean_rank(
    before: list[float], after: list[float], wanted: float | None
) -> None:
    assert spearman(before, after) == (wanted if wanted is None else pytest.approx(wanted))


def test_who_crossed_the_mean_is_above_it_on_one_side_only() -> None:
    totals = {"z": (1.0, 0.0), "a": (0.0, 1.0), "up": (2.0, 2.0), "down": (-2.0, -2.0), "at": (0.25, 1.0)}
    assert crossed_mean(totals) == ["a", "at", "z"]
    assert crossed_mean({"only": (0.0, 9.0)}) == [] == crossed_mean({})


def test_a_summary_counts_each_side_and_compares_what_both_have() -> None:
    pairs = [
        pair(reward("t1", 0.0), reward("t1", 1.0)),
        pair(reward("t2", 1.0), reward("t2", 1.0)),
        pair(reward("t3", 3.0), None),
        pair(None, reward("t4", 1.0)),
        pair(None, reward("t5", 1.0)),
    ]
    assert summary(pairs) == {
        "receipts": 5, "changed": 4, "identical": False, "only_before": 1, "only_after": 2,
        "student": {"n": 2, "changed": 1, "mean_before": 0.5, "mean_after": 1.0, "rank_correlation": None},
        "changed_sides": [],
    }  # fmt: skip
    teachers = [
        pair(reward("t1", 0.0, "teacher"), reward("t1", 1.0, "teacher")),
        pair(reward("t2", 0.5, "teacher"), reward("t2", 0.0, "teacher")),
        pair(reward("t3", 9.0, "teacher"), None),
    ]
    found = summary([*teachers, pairs[0]])
    assert found["changed_sides"] == ["t1", "t2"] and found["teacher"]["rank_correlation"] == pytest.approx(-1)
    same = summary([pair(reward("t1", 0.0), reward("t1", 0.0))])
    assert (same["identical"], same["changed"], same["only_before"], same["only_after"]) == (True, 0, 0, 0)
    assert summary([]) == {
        "receipts": 0, "changed": 0, "identical": True, "only_before": 0, "only_after": 0, "changed_sides": [],
    }  # fmt: skip


# --- verdicts


def verdict(task: str, attempt: str, correct: bool | None, verifier: str = "exact") -> ResultVerified:
    return ResultVerified(task=task, attempt=attempt, iteration=0, correct=correct, verifier=verifier, reason="so")


def side(correct: bool | None, verifier: str = "exact") -> dict[str, Any]:
    plain = {
        "expected": "",
        "got": "",
        "subgoals": [],
        "credit": None,
        "changed_lines": None,
        "votes": [],
        "reason": "so",
    }
    return {**plain, "correct": correct, "verifier": verifier}


def test_verdicts_are_counted_by_verifier_and_by_family_and_each_change_is_shown() -> None:
    pairs = [
        VerdictPair(verdict("t2", "b", True), verdict("t2", "b", False, "panel"), "sums"),
        VerdictPair(verdict("t1", "a", True), verdict("t1", "a", True), "sums"),
        VerdictPair(verdict("t1", "c", None), None, "cubes"),
        VerdictPair(None, verdict("t3", "d", False), "cubes"),
        VerdictPair(verdict("t4", "e", None), verdict("t4", "e", True), "cubes"),
    ]
    assert [one.flip for one in pairs] == ["right to wrong", "", "", "", "undecided to right"]
    none = dict.fromkeys((f"{word}_{when}" for word in ("right", "wrong", "undecided") for when in SIDES), 0)
    assert difference(pairs) == {
        "verdicts": 5, "changed": 4, "flipped": 2, "identical": False, "only_before": 1, "only_after": 1,
        "flips": {"right to wrong": 1, "undecided to right": 1},
        "by_verifier": [
            none | {"verifier": "exact", "n": 4, "changed": 3, "flipped": 1, "right_before": 1, "right_after": 2,
                    "wrong_after": 1, "undecided_before": 2},
            none | {"verifier": "panel", "n": 1, "changed": 1, "flipped": 1, "right_before": 1, "wrong_after": 1},
        ],
        "by_family": [
            none | {"family": "cubes", "n": 3, "changed": 3, "flipped": 1, "right_after": 1, "wrong_after": 1,
                    "undecided_before": 2},
            none | {"family": "sums", "n": 2, "changed": 1, "flipped": 1, "right_before": 2, "right_after": 1,
                    "wrong_after": 1},
        ],
        "tasks": ["t1", "t2", "t3", "t4"],
        "changes": [
            {"task": "t2", "attempt": "b", "family": "sums", "flip": "right to wrong", "before": side(True),
             "after": side(False, "panel")},
            {"task": "t1", "attempt": "c", "family": "cubes", "flip": "", "before": side(None), "after": None},
            {"task": "t3", "attempt": "d", "family": "cubes", "flip": "", "before": None, "after": side(False)},
            {"task": "t4", "attempt": "e", "family": "cubes", "flip": "undecided to right", "before": side(None),
             "after": side(True)},
        ],
    }  # fmt: skip
    assert difference([pairs[1]])["identical"] and difference([])["tasks"] == []


SIDES = ("before", "after")


# --- a history with others in their place


class _Told:
    def __init__(self, events: Sequence[Recorded]) -> None:
        self.events, self.asked = events, []  # type: ignore[var-annotated]

    async def read(
        self, run: str, types: Sequence[str] = (), after: int = 0, until: int = 0
    ) -> AsyncIterator[Recorded]:
        self.asked.append((run, types, after, until))
        for event in self.events:
            yield event


def at(event: Event, **more: Any) -> Recorded:
    return record(event, run="r", time=datetime(2026, 1, 1, tzinfo=UTC)).model_copy(update=more)


def test_receipts_and_verdicts_are_replaced_in_their_place_and_purged_tasks_are_gone() -> None:
    paid, unpaid, purged = reward("t1", 1.0, attempt="a"), reward("t1", 1.0, attempt="b"), reward("t2", 1.0)
    said, kept = verdict("t1", "a", True), verdict("t1", "b", True)
    trained = CheckpointTrained(
        checkpoint="student-0", role="student", iteration=0, parent="base", adapter=None, samples=0
    )
    log = _Told([at(one, seq=n) for n, one in enumerate((said, kept, paid, unpaid, purged, trained), 1)])
    other, otherwise = reward("t1", 0.5, attempt="a"), verdict("t1", "a", False)

    def read(*changes: Any) -> list[tuple[int, Event]]:
        async def work() -> list[tuple[int, Event]]:
            history = Substituted(log, *changes)
            return [(one.seq, one.event) async for one in history.read("r", ("X",), 2, 9)]

        return asyncio.run(work())

    changed = read({("t1", "a", "student"): other}, {"a": otherwise}, frozenset({"t2"}))
    assert changed == [(1, otherwise), (2, kept), (3, other), (6, trained)]
    assert [seq for seq, _ in read({}, {})] == [1, 2, 3, 4, 5, 6], "no other rewards: all stay"
    assert read({("t1", "a", "teacher"): other}, {}) == [(1, said), (2, kept), (6, trained)]
    assert log.asked[0] == ("r", ("X",), 2, 9)


# --- stored answers


def test_answers_of_both_kinds_are_read_with_their_labels_and_verdicts() -> None:
    head = {"domain": "math", "task": "c", "question": "q"}
    exam = {**head, "answers": ["1", None], "correct": [True, None], "most": "1", "most_correct": True}
    scored = {**head, "answer": "2", "correct": False, "tried": ["3", "4"], "within": 2}
    text = f"{json.dumps(exam)}\n\n{json.dumps(scored)}\n{json.dumps({**head, 'answer': None, 'correct': None})}\n"
    assert stored(text.encode()) == [
        StoredTask("math", "c", "q", (("0", "1", True), ("1", None, None), ("most", "1", True))),
        StoredTask("math", "c", "q", (("greedy", "2", False), ("sampled 1", "3", False), ("sampled 2", "4", True))),
        StoredTask("math", "c", "q", (("greedy", None, None),)),
    ]
    assert stored(b"") == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"domain": "math"}', "KeyError: 'task'."),
        ("[]", "TypeError: list indices must be integers or slices, not str."),
        (
            '{"domain": "m", "task": "c", "question": "q", "answers": ["1", "2"], "correct": [true]}',
            "ValueError: zip() argument 2 is shorter than argument 1.",
        ),
    ],
)
def test_what_holds_no_answers_is_refused_with_its_reason(line: str, why: str) -> None:
    with pytest.raises(LogError) as refused:
        stored(line.encode())
    assert told(refused) == ("An artifact of stored answers cannot be read.", why, "See: agent0 artifacts check")


def _sum() -> tuple[str, str, str]:
    """The canonical form, the question and the answer of a task."""
    from agent0.tasks.splits import heldout

    (task,) = heldout("test", 1, 3, ["math"], names=["arithmetic"])
    return task.canonical, task.question, families()[task.family].solve(task.params)


def test_verdicts_that_changed_are_named_with_both() -> None:
    canonical, question, right = _sum()
    wrong = right + "1"
    answers = (
        ("0", right, False), ("1", wrong, False), ("most", right, None), ("greedy", wrong, None),
        ("sampled 1", wrong, None), ("sampled 2", right, False), ("sampled 3", right, True),
    )  # fmt: skip
    found = asyncio.run(differences([StoredTask("math", canonical, question, answers)], TrustingSandbox()))
    assert found == [
        VerdictChange(canonical, "0", right, False, True),
        VerdictChange(canonical, "most", right, None, True),
        VerdictChange(canonical, "greedy", wrong, None, False),
        VerdictChange(canonical, "sampled 2", right, False, True),
    ]
    with pytest.raises(LogError) as refused:
        asyncio.run(differences([StoredTask("math", canonical + "x", question, answers)], TrustingSandbox()))
    assert told(refused) == (
        "A stored task cannot be judged again.",
        f"No family of math reads its question as {(canonical + 'x')[:80]!r}.",
        "Its family may come from a plugin: install it.",
    )


# --- runs side by side


def scored(checkpoint: str, outcomes: str, split: str = "validation", **more: Any) -> CheckpointEvaluated:
    right, n = outcomes.count("1"), len(outcomes)
    facts = {"n": n, "correct": right, "accuracy": right / n, "lower95": 0.0, "upper95": 1.0, "tool_use": 0.25}
    facts |= {"evaluation": "e", "checkpoint": checkpoint, "iteration": 0, "split": split, "outcomes": outcomes}
    return CheckpointEvaluated.model_validate(facts | more)


def test_a_side_collects_rewards_validation_and_cost() -> None:
    usage = Usage(prompt_tokens=10, completion_tokens=5, wall_s=1.5)
    tried = TaskAttempted.model_construct(usage=usage, attempt="a", task="t")
    trained = CheckpointTrained(
        checkpoint="student-0", role="student", iteration=0, parent="base", adapter=None, samples=0, wall_s=2.5
    )
    told_of = [
        reward("t", 0.5, attempt="a"), reward("t", 1.0, "teacher"), scored("s", "10"), scored("s", "11", "test"),
        scored("s", "11", forced_tool=True), trained, tried, tried,
    ]  # fmt: skip
    found = side_of("x", [at(one) for one in told_of])
    assert found == Side(
        "x",
        {("t", "a", "student"): 0.5, ("t", "-", "teacher"): 1.0},
        [scored("s", "10")],
        {"attempts": 2, "tokens": 30, "model_s": 3.0, "training_s": 2.5},
    )
    assert side_of("y", []) == Side("y") and set(Side("y").cost.values()) == {0}


def test_every_other_side_is_compared_with_the_first() -> None:
    keys = [(f"t{n}", "-", "teacher") for n in range(3)]
    cost = {"attempts": 3, "tokens": 7, "model_s": 1.23456, "training_s": 0.0}
    one = Side("one", dict(zip(keys, (0.0, 1.0, 2.0), strict=True)), [scored("s0", "0000000000")], cost)
    two = Side("two", {**dict(zip(keys, (2.0, 1.0, 0.0), strict=True)), ("t", "a", "student"): 4.0})
    two.curve += [scored("s1", "1000000000"), scored("s2", "1111111111")]
    found = side_by_side([one, two])
    assert found["names"] == ["one", "two"]
    assert found["rewards"] == [
        {"name": "one", "role": "teacher", "n": 3, "mean": 1.0, "sd": pytest.approx((2 / 3) ** 0.5),
         "p10": 0.0, "p50": 1.0, "p90": 2.0},
        {"name": "two", "role": "student", "n": 1, "mean": 4.0, "sd": 0.0, "p10": 4.0, "p50": 4.0, "p90": 4.0},
        {"name": "two", "role": "teacher", "n": 3, "mean": 1.0, "sd": pytest.approx((2 / 3) ** 0.5),
         "p10": 0.0, "p50": 1.0, "p90": 2.0},
    ]  # fmt: skip
    low, high = wilson(1, 10)
    assert [row["checkpoint"] for row in found["curves"]["two"]] == ["s1", "s2"]
    assert found["curves"]["two"][0] == {
        "checkpoint": "s1", "iteration": 0, "n": 10, "accuracy": 0.1, "tool_use": 0.25, "lower95": low, "upper95": high,
    }  # fmt: skip
    assert found["cost"] == [
        {"name": "one", **cost, "model_s": 1.235},
        {"name": "two", "attempts": 0, "tokens": 0, "model_s": 0.0, "training_s": 0.0},
    ]
    (row,) = found["against"]
    held_out = row.pop("held_out")
    assert row == {
        "name": "two", "against": "one", "student_rank_correlation": None,
        "teacher_rank_correlation": pytest.approx(-1.0), "deeds_in_common": 3, "changed_sides": ["t0", "t2"],
    }  # fmt: skip
    assert (held_out["word"], held_out["mean"], held_out["gained"], held_out["lost"]) == ("improved", 1.0, 10, 0)
    assert held_out["adjusted_p"] == held_out["p"] == pytest.approx(2 * 0.5**10)
    assert side_by_side([one, Side("none")])["against"][0]["held_out"] is None
    assert asdict(one)["cost"] == cost, "rounded for the table only"
