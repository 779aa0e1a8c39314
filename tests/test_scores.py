"""Scores and verdicts of evaluations with all their fields, by hand: checkpoints, protocols, calibration, the promotion
gate, a person's decisions."""

import dataclasses
from typing import Any

import pytest

from agent0.errors import Agent0Error, NotFoundError, OperationError
from agent0.evaluation.calibration_report import CalibrationReport, as_row, to_event
from agent0.evaluation.checkpoint_registry import kept, promotion, rollback, side_by_side
from agent0.evaluation.checkpoint_score import ScoredItem as Attempted
from agent0.evaluation.checkpoint_score import score
from agent0.evaluation.failure_modes import FailureMode, ItemOutcome, error_class, failure_counts, failure_modes
from agent0.evaluation.promotion import TeacherVerdict, judge, judge_proposals, lost_benchmark
from agent0.evaluation.protocol import EvaluationProtocol, scores
from agent0.events.checkpoints import CheckpointTrained, EvaluationRequested, StudentExamined
from agent0.events.values import Artifact
from agent0.rollout.confidence.calibration import Candidate, MeasuredCalibrator
from agent0.settings import EvaluationConfig, RunConfig
from agent0.state import run_state
from agent0.state.measurements import Proposals
from agent0.state.run_state import Checkpoint, RunState, ValidationScore
from agent0.stats.calibrators import Bin
from agent0.stats.intervals import wilson
from agent0.stats.paired_tests import agreeing, compare, outcomes

ADAPTER = Artifact(sha256="a" * 64, size=9)


def refused(work: Any, kind: type[Agent0Error]) -> tuple[str, str, str]:
    with pytest.raises(kind) as found:
        work()
    return found.value.what, found.value.why, found.value.fix


def asked(split: str = "test") -> EvaluationRequested:
    return EvaluationRequested.model_validate(
        {"evaluation": "e", "checkpoint": "student-1", "iteration": 1, "split": split, "n": 4, "seed": 1,
         "forced_tool": True, "state_sha": "", "benchmark": "b" if split == "benchmark" else ""}
    )  # fmt: skip


def attempted(domain: str, level: int, correct: bool | None, **more: Any) -> Attempted:
    plain: dict[str, Any] = {"task": "t", "question": "q", "answer": "1", "tool_ok": 0, "tokens": 3, "seconds": 1.0}
    return Attempted(**{**plain, "domain": domain, "level": level, "correct": correct, **more})


def test_a_checkpoints_score_has_all_fields() -> None:
    items = [
        attempted("math", 10, True, seconds=2.0, tool_ok=1, within=2, tries=2, signals={"answer": 0.5}),
        attempted("math", 2, False, seconds=4.0, within=0, tries=5),
        attempted("code", 2, None, seconds=8.0),
        attempted("math", 2, True, seconds=1.0, within=1, tries=1, signals={"answer": 1.0}),
    ]
    low, high = wilson(2, 4)
    plain = {
        "evaluation": "e", "checkpoint": "student-1", "iteration": 1, "split": "test", "forced_tool": True, "n": 4,
        "correct": 2, "accuracy": 0.5, "lower95": low, "upper95": high, "tool_use": 0.25, "undecided": 1,
        "by_domain": {"code": 0.0, "math": pytest.approx(2 / 3)}, "by_level": {"10": 1.0, "2": pytest.approx(1 / 3)},
        "latency_p50_s": 2.0, "latency_p95_s": 8.0, "items": ADAPTER.model_dump(), "outcomes": "10?1", "wall_s": 8.0,
        "benchmark": "", "confidences": "50----99",
    }  # fmt: skip
    found = score(asked(), items, ADAPTER).model_dump()
    unmeasured = {name: field.default for name, field in type(score(asked(), [], ADAPTER)).model_fields.items()}
    assert found == {name: plain.get(name, unmeasured[name]) for name in found}
    low, high = wilson(2, 3)
    within = {
        "checked": 5, "checkable": 3, "outcomes_within": "10-1", "attempts_within": 8, "lower95_within": low,
        "upper95_within": high, "solved_at_once": pytest.approx(2 / 3), "solved_within": pytest.approx(2 / 3),
    }  # fmt: skip
    assert score(asked(), items, ADAPTER, 5).model_dump() == found | within
    none = score(asked("benchmark"), items[2:3], ADAPTER, 5)
    assert (none.checked, none.checkable, none.outcomes_within, none.solved_within) == (5, 0, "-", None)
    assert none.benchmark == "b" and none.confidences == ""
    empty = score(asked(), [], ADAPTER)
    assert (empty.accuracy, empty.tool_use, empty.wall_s, empty.lower95, empty.upper95) == (0.0, 0.0, 0.0, 0.0, 1.0)


def test_a_row_of_the_item_table_leaves_out_what_was_not_measured() -> None:
    item = attempted("math", 2, True)
    assert set(vars(item)) - set(item.row()) == {"within", "tries", "tried", "truncated"}
    assert dataclasses.replace(item, within=0).row() == {**item.row(), "within": 0, "tries": 0, "tried": ()}


def exam(**more: Any) -> StudentExamined:
    plain = {"exam": "e", "checkpoint": "base", "split": "test", "seed": 3, "attempts": 2, "temperature": 1.0}
    return StudentExamined.model_validate({**plain, "right": (0, 2, 1), "majority": "01?", **more})


def test_a_protocol_has_a_name() -> None:
    one = EvaluationProtocol(3, 3, 2, 1.0, "test", True, (2, 4), ("x",))
    assert (one.name, EvaluationProtocol(3, 3).name) == ("2 at T=1, tool forced", "greedy")


def test_scores_of_a_protocol_are_shares_of_tasks_with_intervals() -> None:
    bounds = {n: tuple(round(bound, 4) for bound in wilson(n, 3)) for n in (1, 2)}
    assert scores(exam()) == {
        "exam": "e", "n": 3, "attempts": 2,
        "single": 0.5, "single_lower95": bounds[2][0], "single_upper95": bounds[2][1],
        "within": 0.6667, "within_lower95": bounds[2][0], "within_upper95": bounds[2][1],
        "majority": 0.3333, "majority_lower95": bounds[1][0], "majority_upper95": bounds[1][1],
    }  # fmt: skip


# --- calibration


def test_a_measured_calibrator_becomes_an_event_and_a_row() -> None:
    made = Candidate("answer", "platt", (0.5, 2.0), 40, 0.25)
    one = MeasuredCalibrator(
        made, 50, 0.2, (0.1, 0.3), 0.05, (0.01, 0.0999), 0.02, 0.3, 0.15, 0.8, (), (Bin(0.5, 0.6, 7, 0.55, 0.5),),
        (0.1, 0.2), (0.7, 0.9),
    )  # fmt: skip
    found = CalibrationReport("run", "tiny", "student-1", 3, 0, 9, 1, 1, 40, 50, 0.5, 0.6, (0.1, 0.2), (one,))
    assert to_event(found, one, 4).model_dump() == {
        "name": "tiny", "signal": "answer", "method": "platt", "parameters": (0.5, 2.0), "fitted_on": 40,
        "scored_on": 50, "ece_before": 0.2, "ece_after": 0.05, "lower95": 0.01, "upper95": 0.0999, "brier_before": 0.3,
        "brier_after": 0.15, "source": "run", "revision": 4, "checkpoint": "student-1", "before_lower95": 0.1,
        "before_upper95": 0.3, "reliability": ({"confidence": 0.55, "accuracy": 0.5, "items": 7},), "log_loss": 0.25,
        "auroc": 0.8, "ece_floor": 0.02,
    }  # fmt: skip
    assert as_row(one) == {
        "signal": "answer", "method": "platt", "n": 50, "ece_before": 0.2, "before_95": "0.100 to 0.300",
        "ece_after": 0.05, "after_95": "0.010 to 0.100", "floor": 0.02, "brier_before": 0.3, "brier_after": 0.15,
        "brier_95": "0.100 to 0.200", "auroc": 0.8, "auroc_95": "0.700 to 0.900", "log_loss": 0.25,
    }  # fmt: skip
    assert as_row(dataclasses.replace(one, auroc95=None))["auroc_95"] is None

    def verdict(**more: Any) -> str:
        return dataclasses.replace(found, measured=(dataclasses.replace(one, **more),)).verdict

    assert verdict() == "not shown: only 50 items" and verdict(scored_on=299) == "not shown: only 299 items"
    assert verdict(scored_on=300) == "below 0.10, its whole interval"
    assert verdict(scored_on=300, after95=(0.0, 0.1)) == "below 0.10, not its whole interval"
    assert verdict(scored_on=300, after95=(0.0, 0.1), ece_after=0.1) == "missed: 0.10 or more"


# --- where accuracy is lost


def test_a_failure_mode_has_all_fields_and_the_largest_gain_comes_first() -> None:
    told = [
        ItemOutcome(False, {"domain": "math", "error": "sign", "tool": ""}),
        ItemOutcome(None, {"domain": "math", "error": "undecided"}),
        ItemOutcome(True, {"domain": "math"}),
        ItemOutcome(False, {"domain": "code", "error": "sign", "one": "value"}),
        ItemOutcome(True, {"domain": "text"}),
    ]
    low, high = wilson(2, 5)
    first, *rest = failure_modes(told)
    assert first == FailureMode("error", "sign", 2, 2, 0.0, 2 / 3, 0.4, low, high)
    assert [(one.by, one.mode, one.items, one.wrong, one.accuracy) for one in rest] == [
        ("domain", "math", 3, 2, pytest.approx(1 / 3)), ("domain", "code", 1, 1, 0.0),
        ("error", "undecided", 1, 1, 0.0),
    ]  # fmt: skip
    assert failure_counts(told) == {"items": 5, "wrong": 3} and failure_modes([]) == []


@pytest.mark.parametrize(
    ("answer", "right", "told"),
    [
        ("-3", "3", "sign"), ("4", "3", "off_by_one"), ("2", "3", "off_by_one"), ("1.5", "0.5", "off_by_one"),
        ("22", "20", "near_value"), ("18", "20", "near_value"), ("23", "20", "wrong_value"), ("-2", "9", "wrong_value"),
        ("three", "3", "format"), ("[1,2]", "3", "format"), ("3", "cat", "format"), ("[2,1]", "[1,2]", "order"),
        ("cat", "catfish", "part_of_answer"), ("catfish", "cat", "part_of_answer"), ("dog", "cat", "wrong_value"),
        ("act", "cat", "order"), ("  ", "3", "no_answer"), (None, "3", "no_answer"), ("5", "", "wrong_value"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_told_from_the_right_one(answer: str | None, right: str, told: str) -> None:
    assert error_class(answer, False, right=right) == told
    assert error_class(answer, True, right=right) == "" and error_class(answer, None, right=right) == "undecided"


# --- the gate


def scored(text: str) -> ValidationScore:
    return ValidationScore(text.count("1") / len(text), text)


def test_a_verdict_says_its_evidence_in_full() -> None:
    base = Checkpoint("base", None, scored("1" * 10 + "0" * 10))
    found = judge(scored("1" * 9 + "0" * 10 + "?"), (base,), EvaluationConfig(margin=0.01))
    test = compare(outcomes("1" * 10 + "0" * 10), outcomes("1" * 9 + "0" * 11))
    test = agreeing(test, test.p)
    evidence = (
        f"0 of 20 items gained, 1 lost, -5.0 points ({100 * test.lower95:+.1f} to {100 * test.upper95:+.1f}), p 1; "
        f"a difference below {100 * test.detectable:.1f} points would mostly stay unseen"
    )
    assert found.reason == (
        "validation 0.450 against 0.500 of base, the best so far: more than the margin of 0.01 below it; "
        f"{evidence}; 1 undecided item counts as wrong"
    )
    assert (found.promoted, found.against, found.improved) == (False, 0.5, False)
    assert found.test and found.test.model_dump() == {
        "against": "base", **{key: value for key, value in dataclasses.asdict(test).items() if key != "size"},
    }  # fmt: skip
    at = judge(scored("1" * 9 + "0" * 11), (base,), EvaluationConfig(margin=0.05))
    assert at.promoted and "no loss is proven, nor a gain; 0 of 20" in at.reason, "the margin itself is within it"
    other = judge(scored("1?" * 9), (base,), EvaluationConfig(margin=1))
    apart = "no loss is proven, nor a gain; not scored on the same items, so nothing can be tested"
    assert (
        other.reason
        == f"validation 0.500 against 0.500 of base, the best so far: {apart}; 9 undecided items count as wrong"
    )
    assert other.test is None and other.against == 0.5
    opened = judge(scored("0" * 20), (base,), EvaluationConfig(gate="open"))
    assert opened.promoted and "the best so far: the gate is open; 0 of 20 items gained, 10 lost" in opened.reason
    better = EvaluationConfig(gate="better")
    assert "the best so far: no gain is proven;" in judge(scored("1" * 11 + "0" * 9), (base,), better).reason
    won = judge(scored("1" * 20), (base,), better)
    assert won.promoted and won.improved and "the best so far: a proven gain; 10 of 20 items gained" in won.reason


@pytest.mark.parametrize("lost", [1, 4, 12])
def test_the_gates_interval_says_what_its_p_says(lost: int) -> None:
    base, candidate = Checkpoint("base", None, scored("1" * 12)), scored("1" * (12 - lost) + "0" * lost)
    test = judge(candidate, (base,), EvaluationConfig()).test
    assert test and (test.upper95 < 0) is (test.p < 0.05)


def test_the_best_is_the_latest_of_equals_and_the_student_stands_beside_it() -> None:
    held = [Checkpoint(name, None, scored(text)) for name, text in (("base", "1100"), ("s0", "1100"), ("s1", "1000"))]
    assert "of s0, the best so far" in judge(scored("1100"), held, EvaluationConfig(margin=1)).reason
    many = [Checkpoint("base", None, scored("1" * 30)), Checkpoint("s0", None, scored("0" * 10 + "1" * 19 + "0"))]
    lost = judge(scored("0" * 30), many[1:], EvaluationConfig(margin=1))
    assert not lost.promoted and "of s0, the best so far: a proven loss;" in lost.reason
    held = [Checkpoint("base", None, ValidationScore(0.9)), many[1]]
    beside = judge(scored("0" * 30), held, EvaluationConfig(margin=1))
    assert not beside.promoted and beside.against == 19 / 30
    assert "of s0, the student: a proven loss;" in beside.reason


def test_a_benchmark_that_is_lost_is_told_in_full() -> None:
    def one(name: str, right: int) -> Checkpoint:
        return Checkpoint(
            name, None, None, {"gsm8k/9": scored("1" * right + "0" * (20 - right)), "math/9": scored("10")}
        )

    found = lost_benchmark(one("new", 5), [one("base", 20), Checkpoint("s0"), one("s1", 6)])
    test = compare([1.0] * 20, [1.0] * 5 + [0.0] * 15)
    test = agreeing(test, test.p)
    assert found is not None and (found.promoted, found.against, found.test) == (False, 1.0, None)
    assert found.reason == (
        "gsm8k 0.250 against 1.000 of base: a proven loss on a benchmark; 0 of 20 items gained, 15 lost, -75.0 points "
        f"({100 * test.lower95:+.1f} to {100 * test.upper95:+.1f}), p {test.p:.2g}; a difference below "
        f"{100 * test.detectable:.1f} points would mostly stay unseen"
    )
    later = lost_benchmark(one("new", 5), [one("base", 20), one("s0", 20), one("s1", 6)])
    assert later is not None and " of base: a proven loss" in later.reason, "the last one and the base, nobody between"
    unscored = [Checkpoint("base"), one("s0", 20), one("s1", 6)]
    assert lost_benchmark(one("new", 5), unscored) is None, "the first with a score is not the base"
    assert lost_benchmark(one("new", 5), []) is None


def test_teachers_are_compared_by_both_shares() -> None:
    found = judge_proposals(Proposals(40, 10, 9), Proposals(40, 39, 12), "teacher-0")
    assert found.readable_p is not None and found.accepted_p is not None
    assert found == TeacherVerdict(
        False,
        f"a proven fall of readable proposals against teacher-0: readable 10 of 40 against 39 of 40, "
        f"p {found.readable_p:.2g}; accepted 9 of 40 against 12 of 40, p {found.accepted_p:.2g}",
        found.readable_p,
        found.accepted_p,
    )
    assert found.readable_p < 1e-9 and found.accepted_p > 0.3
    both = judge_proposals(Proposals(40, 1, 1), Proposals(40, 39, 39), "t")
    assert both.reason.startswith("a proven fall of readable and accepted proposals against t: ")
    risen = judge_proposals(Proposals(40, 39, 39), Proposals(40, 1, 1), "t")
    assert risen.promoted and risen.reason.startswith("no fall is proven against t: readable 39 of 40 against 1 of 40")
    for now, then in ((0, 5), (5, 0)):
        none = judge_proposals(Proposals(now, 0, 0), Proposals(then, 0, 0), "t")
        assert none == TeacherVerdict(True, "no proposals of t and it to compare", None, None)


# --- a person's decisions


def state(*names: str, **more: Any) -> RunState:
    promoted = tuple(Checkpoint(name, None, ValidationScore(0.5)) for name in ("base", *names))
    return RunState("r", 9, RunConfig(), "", promoted=promoted, **more)


def trained(**more: Any) -> CheckpointTrained:
    made = {"checkpoint": "student-1", "role": "student", "iteration": 1, "parent": "base", "adapter": ADAPTER}
    return CheckpointTrained.model_validate({**made, "samples": 3, **more})


def test_a_promotion_by_hand_has_all_fields_and_refuses_in_full() -> None:
    assert promotion(state("student-0"), trained(), 0.4, "").model_dump(exclude={"test", "improved"}) == {
        "checkpoint": "student-1", "iteration": 1, "accuracy": 0.4, "against": 0.5, "reason": "a person's word",
        "by": "person", "adapter": ADAPTER.model_dump(),
    }  # fmt: skip
    unscored = dataclasses.replace(state(), promoted=(Checkpoint(),))
    assert promotion(unscored, trained(), 0.4, "why").against is None

    def attempt(**more: Any) -> tuple[str, str, str]:
        return refused(lambda: promotion(state("student-0"), trained(**more), 0.4, ""), OperationError)

    assert attempt(role="teacher") == ("student-1 is the teacher's.", "", "Promote a checkpoint of the student.")
    assert attempt(adapter=None) == ("student-1 has no adapter.", "There was nothing to learn from: it is base.", "")
    assert attempt(checkpoint="student-0") == ("student-0 is the student already.", "", "")


def test_a_rollback_has_all_fields_and_refuses_in_full() -> None:
    assert rollback(state("s0", "s1"), "base", "").model_dump() == {
        "checkpoint": "s1", "to": "base", "reason": "a person's word", "cause_kind": "person", "let_go": ("s0",),
    }  # fmt: skip
    assert refused(lambda: rollback(state("s0"), "x" * 99, ""), NotFoundError) == (
        f"{'x' * 80!r} was not promoted in run r.", "Known: base, s0.", "",
    )  # fmt: skip
    assert refused(lambda: rollback(state("s0"), "s0", ""), OperationError) == ("s0 is the student already.", "", "")


def test_adapters_that_a_run_needs_are_kept() -> None:
    teacher, candidate, tested = (Checkpoint(name) for name in ("teacher-1", "student-9", "teacher-0"))
    plain = state("s0", teacher=teacher)
    assert [one.id for one in kept(plain)] == ["base", "s0", "teacher-1"]
    full = dataclasses.replace(
        plain, candidate=candidate, tested_teacher=run_state.TestedTeacher(tested, Proposals(1, 1, 1))
    )
    assert [one.id for one in kept(full)] == ["base", "s0", "teacher-1", "teacher-0", "student-9"]


def held(name: str, text: str, recipe: dict[str, Any] | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    row = {"run": "r", "checkpoint": name, "status": "promoted", "recipe": recipe}
    facts = {"accuracy": 0.5, "lower95": 0.1, "upper95": 0.9, "solved_within": 0.7, "n": len(text), "tool_use": 0.2}
    score = {"checkpoint": name, "split": "validation", "outcomes": text, **facts}
    return row, [{**score, "accuracy": 0.0}, score, {**score, "split": "test"}, {**score, "outcomes": ""}]


def test_two_checkpoints_side_by_side_have_all_fields() -> None:
    plan = {"validation": 20, "seed": 1, "levels": [], "other": 1}
    one, two = held("s0", "0" * 20, {"lr": 1, "rank": 4}), held("s1", "1" * 20, {"lr": 2, "rank": 4, "alpha": 8})
    found = side_by_side([one[0], two[0]], [one[1], two[1]], [plan, {**plan, "other": 2}])
    plain = compare([0.0] * 20, [1.0] * 20)
    test = agreeing(plain, plain.p)
    facts = {"accuracy": 0.5, "lower95": 0.1, "upper95": 0.9, "solved_within": 0.7, "n": 20, "tool_use": 0.2}
    assert found == {
        "models": [{"model": f"r/{name}", "status": "promoted", **facts} for name in ("s0", "s1")],
        "recipe": [{"setting": "alpha", "first": None, "second": 8}, {"setting": "lr", "first": 1, "second": 2}],
        "test": dataclasses.asdict(test),
        "word": f"the second is better: +100.0 points ({100 * test.lower95:+.1f} to +100.0), p {test.p:.2g}, "
        "20 gained, 0 lost",
    }
    turned = side_by_side([two[0], one[0]], [two[1], one[1]], [plan, plan])
    assert turned["word"].startswith("the second is worse: -100.0 points")
    same = side_by_side([one[0], one[0]], [one[1], one[1]], [plan, plan])
    assert same["word"].startswith("not significant (smallest detectable effect 39.8 points): +0.0")
    assert same["recipe"] == []
    bare = {"run": "r", "checkpoint": "s2", "status": "trained", "recipe": None}
    none = side_by_side([one[0], bare], [one[1], two[1]], [plan, plan])
    assert none["models"][1] == {"model": "r/s2", "status": "trained", **dict.fromkeys(facts)}
    assert none["test"] is None and none["recipe"][0] == {"setting": "lr", "first": 1, "second": None}
    apart = "They were not scored on the same items, so nothing can be tested: agent0 model ab."
    assert none["word"] == apart
    for name in ("validation", "seed", "levels"):
        other = side_by_side([one[0], two[0]], [one[1], two[1]], [plan, {**plan, name: 9}])
        assert other["word"] == apart and other["test"] is None
    longer = held("s1", "1" * 21, {})
    assert side_by_side([one[0], longer[0]], [one[1], longer[1]], [plan, plan])["word"] == apart
