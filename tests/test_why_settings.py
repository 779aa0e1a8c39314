"""A setting that explains by itself what was seen is named first, and what is said to mend a run changes something."""

import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.replay.forks import pairs_of
from agent0.assembly.runtime import plugins
from agent0.config.setting_entries import amended
from agent0.evaluation.promotion import judge
from agent0.report.diagnosis.findings import why_lines
from agent0.report.diagnosis.settings import changes_of
from agent0.run.diagnosis import diagnose
from agent0.run.diagnosis.case import Case, Cause, HeldOutScore, Iteration, Setting, Training
from agent0.settings import RunConfig
from agent0.settings.evaluation import EvaluationConfig
from agent0.state.run_state import Checkpoint, ValidationScore
from tests.plugin_files import forgotten
from tests.test_report import told
from tests.test_run import played
from tests.test_why import PARTS, SCORES, TRAININGS, why
from tests.world import small

VERIFIER = '''
import agent0


@agent0.verifier("strict", applies=lambda task: True, rank=-1)
async def strict(task: agent0.Task, answers: list[str | None], sandbox: agent0.Sandbox) -> list[agent0.Verdict]:
    """Nothing is right."""
    return [agent0.Verdict(False, "no") for _ in answers]
'''
LENIENT = VERIFIER.replace("strict", "lenient").replace("False", "True").replace("Nothing", "Anything")
UNLEARNT = Training("student-0", "student", 0, "base", "unchanged", skipped={"off_frontier": 60})
RUINED = Training("student-0", "student", 0, "base", "rejected", samples=20, metrics={"loss": 0.2}, requested=50)
FELL = (
    HeldOutScore("base", "base", -1, "validation", True, 30, 0.4, outcomes="1" * 12 + "0" * 18),
    HeldOutScore("new", "student-0", 0, "validation", True, 30, 0.1, outcomes="1" * 3 + "0" * 27),
)


def differing(**student: Any) -> dict[str, Any]:
    """The run's settings, the student's changed, and the list of these."""
    usual = RunConfig().student
    changes = tuple(Setting(f"run.student.{k}", v, getattr(usual, k), "profile tiny") for k, v in student.items())
    config = RunConfig.model_validate({"student": student, "max_untrained": 0})
    return {"config": config, "changes": changes}


def found(iteration: Mapping[str, Any], **held: Any) -> list[Cause]:
    config = held.pop("config", RunConfig())
    return [*diagnose(Case("r1", "tiny", "finished", config, iterations=(Iteration(0, **iteration),), **held))]


MIXED = {"attempts": 64, "answered": 64, "right": 30, "wrong": 34, "all_right": 6, "all_wrong": 6, "mixed": 4}


def test_one_turn_is_to_blame_and_not_the_learning_rate_that_the_profile_has() -> None:
    seen = {**MIXED, "answered": 56, "ends": {"answered": 56, "turn_limit": 8}}
    held = {"trainings": (RUINED,), "scores": FELL}
    assert found(MIXED, **held)[0].conclusion.startswith("the student's learning rate ruined student-0: ")
    first = found(seen, **held, **differing(max_turns=1))[0]
    assert first.conclusion.startswith("8 of 64 attempts are truncated at their limit of turns"), first
    assert first.mend.endswith("--set run.student.max_turns=3") or "run.student.max_turns=" in first.mend


def test_a_student_that_attempts_otherwise_is_not_ruined_by_the_usual_learning_rate() -> None:
    limited = MIXED | {"ends": {"answered": 61, "budget": 3}}
    assert "max_calls" not in found(MIXED, trainings=(RUINED,), scores=FELL, **differing(max_calls=1))[0].conclusion
    first = found(limited, trainings=(RUINED,), scores=FELL, **differing(max_calls=1))[0]
    assert first.conclusion.startswith("how the student attempts tasks ruined student-0: it scores 0.100")
    assert "run.student.max_calls is 1, in profile tiny" in first.conclusion and "max_calls=" in first.mend
    both = differing(max_calls=1)
    both["changes"] += (Setting("run.training.student.lr", 3.0, 0.0025, "profile tiny"),)
    first = found(limited, trainings=(RUINED,), scores=FELL, **both)[0]
    assert first.conclusion.startswith("the student's learning rate ruined student-0: ")


@pytest.mark.parametrize(
    ("student", "line"),
    [
        ({"top_p": 0.0001}, "the student's top_p: at 16 of 16 tasks all attempts give the same answer"),
        ({"temperature": 0.1}, "the student's temperature: at 16 of 16 tasks all attempts give the same answer"),
        ({}, "no contrast, so nothing to learn from: at 16 of 16 tasks all attempts give the same answer"),
    ],
)
def test_attempts_that_are_all_the_same_are_blamed_on_how_they_are_sampled(student: dict[str, Any], line: str) -> None:
    seen = {**MIXED, "all_right": 8, "all_wrong": 8, "mixed": 0, "repeated": 16, "alike": 16}
    first = found(seen, trainings=(UNLEARNT,), **differing(**student))[0]
    assert first.conclusion.startswith(line) and "--set run.student." in first.mend


def test_rows_of_a_file_that_nobody_solves_are_not_blamed_on_levels() -> None:
    config = RunConfig.model_validate({"questions": {"file": "/rows.jsonl"}})
    seen = {**MIXED, "right": 0, "wrong": 64, "all_right": 0, "mixed": 0, "all_wrong": 16}
    first = found(seen, config=config, trainings=(UNLEARNT,))[0]
    assert "no attempt solves 16 of 16 tasks: too hard (run.attempts is " in first.conclusion
    assert "--set run.attempts=" in first.mend and "levels" not in first.mend + first.advice
    assert first.advice == "Or begin another run with other rows than those of /rows.jsonl."


def test_one_attempt_a_task_has_no_contrast() -> None:
    said = why_lines(why(played(small(attempts=1, max_untrained=0))))
    what = "one attempt a task has nothing to be compared with (run.attempts is 1, in profile scripted"
    assert said[0].startswith(f"r1: no contrast, so nothing to learn from: {what}"), said
    assert "--set run.attempts=" in said[2]


def test_a_verifier_of_a_plugin_that_calls_right_answers_wrong_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "my_verifier.py"
    file.write_text(VERIFIER)
    with forgotten():
        digest = plugins.load_plugin_file(file)
        events = played(small(plugins={"my_verifier": digest}, max_untrained=0))
    for loaded in (True, False):
        with forgotten():
            if loaded:
                plugins.load_plugin_file(file)
            held = why(events)
        said = why_lines(held)
        assert said[0].startswith("r1: the verifier is broken: ") and held["cause"] == "verifier"
        assert "(verifier strict of plugin my_verifier.py)" in said[0]
        assert "is right by its family" in held["evidence"][0]["text"] and held["evidence"][0]["attempt"]
        assert said[2].endswith(" --set 'run.plugins={}'") and held["advice"].endswith(" --plugin PATH/my_verifier.py")


def test_a_verifier_of_a_plugin_that_calls_wrong_answers_right_is_named_and_can_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(LENIENT)
    with forgotten():
        digest = plugins.load_plugin_file(file)
        held = why(played(small(plugins={"mine": digest}, max_untrained=0)))
    said = why_lines(held)
    assert said[0].startswith("r1: the verifier is too lenient: ") and "(verifier lenient of plugin mine.py)" in said[0]
    assert "is wrong by its family" in held["evidence"][0]["text"] and held["evidence"][0]["attempt"]
    config = RunConfig.model_validate({"plugins": {"mine": digest}})
    assert said[2].endswith("--set 'run.plugins={}'") and not amended(config, {"plugins": "{}"}).plugins
    assert amended(config, {"tasks": "3"}).plugins == {"mine": digest}


def test_a_verifier_of_a_plugin_that_never_says_right_is_named() -> None:
    config = RunConfig.model_validate({"plugins": {"mine": "0" * 64}})
    seen = {
        **MIXED,
        "right": 0,
        "wrong": 64,
        "all_right": 0,
        "mixed": 0,
        "all_wrong": 16,
        "foreign": {"strict": (0, 64)},
    }
    first = found(seen, config=config, trainings=(UNLEARNT,))[0]
    said = "the verifier calls every answer wrong, 64 of 64 (verifier strict of plugin mine.py)"
    assert first.conclusion == said
    seen |= {"right": 1, "wrong": 63, "foreign": {"strict": (1, 63)}}
    assert found(seen, config=config, trainings=(UNLEARNT,))[0].name == "contrast"


@given(st.lists(PARTS, max_size=3), st.lists(TRAININGS, max_size=3), st.lists(SCORES, max_size=3), st.booleans())
def test_what_mends_a_run_changes_it_and_can_be_run(
    parts: list[dict[str, Any]], trainings: list[Training], scores: list[HeldOutScore], mine: bool
) -> None:
    config = RunConfig.model_validate({"plugins": {"my_reward": "0" * 64} if mine else {}})
    counted = tuple(Iteration(number=n, **one) for n, one in enumerate(parts))
    case = Case("r1", "x", "failed", config, iterations=counted, trainings=tuple(trainings), scores=tuple(scores))
    for one in diagnose(case):
        assert not one.mend.startswith(("agent0 curriculum", "agent0 report", "agent0 config", "agent0 tool"))
        assert one.name not in ("contrast", "decline") or "--set" in one.mend
        assert one.mend or one.advice, one
        sets = [words for flag, words in pairwise(shlex.split(one.mend)) if flag == "--set"]
        assert not sets or amended(config, pairs_of(sets)) != config, one
        again = "run fork" in one.mend or "run resume" in one.mend
        assert ("--plugin PATH/my_reward.py" in one.mend) == (mine and again)


SERVED = {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}


def test_a_model_that_a_profile_leaves_open_is_no_mend() -> None:
    """A server's address and model are whose they are; a provider is set back with the names that it is asked for."""
    config = RunConfig.model_validate({"student": SERVED, "training": {"student": {"enabled": True}}})
    with closing(told(played())) as db:
        for profile, keys in (("openai", set()), ("scripted", {f"run.student.{name}" for name in SERVED})):
            row = {"run": "r1", "profile": profile, "started": "2026"}
            changes = changes_of(db, row, config)
            own = [s.key for s in changes if s.key.startswith(("run.student.", "run.training.student."))]
            assert {key for key in own if key.rpartition(".")[2] in (*SERVED, "enabled")} == keys
    case = Case("r1", "scripted", "finished", config, changes=changes)
    mend = case.again(case.changed("run.student.model"))
    assert "--set run.student.provider=scripted" in mend
    assert "--set run.student.model=" in mend and "--set run.student.base_url=" in mend


def test_a_mend_that_a_run_has_already_or_cannot_have_is_none() -> None:
    case = Case("r1", "tiny", "finished", RunConfig())
    assert case.again(values={"run.evaluation.validation": 150}) == ""
    assert case.again(values={"run.attempts": 10**9}) == ""
    assert case.again((Setting("run.attempts", 4, 0, "profile mine"),)) == ""
    mend = case.again((Setting("run.energy.power_w", 5.0, None, "profile tiny"),))
    assert mend.endswith("--set run.energy.power_w=")
    few = tuple(
        HeldOutScore(e, e, n, "validation", True, 4, 0.5, outcomes="1100") for n, e in ((-1, "base"), (0, "student-0"))
    )
    first = found(MIXED, trainings=(MADE,), scores=few)[0]
    assert first.name == "few_items" and not first.mend and first.advice.startswith("There are no more such tasks")


def test_a_weight_of_nothing_is_set_back_to_what_the_part_weighs_by_itself() -> None:
    said = why(played(small(rewards={"weights": {"correctness": 0, "tool_use": 0, "subgoals": 0}})))
    assert "--set run.rewards.weights.correctness=1" in said["mend"], said["mend"]


SIZES = tuple(
    Setting(f"run.{key}", here, there, "profile tiny")
    for key, here, there in (("attempts", 4, 8), ("iterations", 1, 8), ("tasks", 8, 64))
)
WORSE = (
    HeldOutScore("base", "base", -1, "validation", True, 40, 0.4, outcomes="1" * 16 + "0" * 24),
    HeldOutScore("new", "student-0", 0, "validation", True, 40, 0.2, outcomes="1" * 7 + "0" * 32 + "1"),
)
MADE = Training("student-0", "student", 0, "base", "promoted", samples=20)


@pytest.mark.parametrize("limit", [{"timeout_s": 0.001}, {"max_turns": 3}, {"max_calls": 3}, {"parallel": 1}])
def test_a_limit_that_nothing_ran_into_is_not_blamed(limit: dict[str, Any]) -> None:
    (key,) = limit
    held = differing(**limit)
    alone = found(MIXED, trainings=(MADE,), scores=WORSE, **held)[0]
    assert alone.conclusion.startswith("the student got worse") and key not in alone.conclusion + alone.mend
    first = found(MIXED, trainings=(MADE,), scores=WORSE, **held | {"changes": (*held["changes"], *SIZES)})[0]
    small = "run.iterations is 1, run.tasks is 8, run.attempts is 4; in profile tiny 8 and 64 and 8"
    assert f"1 gained; the run is smaller than its profile ({small})" in first.conclusion, first
    assert first.mend.endswith("--set run.iterations=8 --set run.tasks=64 --set run.attempts=8")


def test_a_student_is_called_worse_only_where_a_test_says_so() -> None:
    for lost, gained, word in (
        (5, 1, "is no better"),
        (5, 0, "is no better"),
        (6, 0, "got worse"),
        (10, 4, "is no better"),
    ):
        kept, rest = "1" * 20, "0" * (20 - lost)
        before = replace(WORSE[0], outcomes=f"{kept}{'1' * lost}{rest}", accuracy=(20 + lost) / 40)
        ends = f"{kept}{'0' * lost}{'1' * gained}{rest[gained:]}"
        after = replace(WORSE[1], outcomes=ends, accuracy=(20 + gained) / 40)
        first = found(MIXED, trainings=(MADE,), scores=(before, after))[0]
        assert first.conclusion.startswith(f"the student {word}"), (lost, gained, first)


def test_a_teacher_that_repeats_itself_is_named_and_not_screening() -> None:
    config = RunConfig.model_validate({"teacher": {"temperature": 0.0}})
    for duplicate, similar, cold, said in (
        (
            10,
            1,
            True,
            "the teacher repeats itself: 11 of 12 tasks were there before, differing in nothing (run.teacher.temp",
        ),
        (
            10,
            1,
            False,
            "the teacher repeats itself: 11 of 12 tasks were there before, differing in nothing (run.curriculum",
        ),
        (1, 10, True, "screening is too strict: everything is refused as known, 11 of 12"),
    ):
        part = {"tasks": 12, "accepted": 1, "refused": {"duplicate": duplicate, "similar": similar}}
        first = found(part, config=config if cold else RunConfig())[0]
        assert first.conclusion.startswith(said), first


def test_what_can_have_caused_a_decline_is_named_before_the_sizes() -> None:
    held = differing(timeout_s=0.001, temperature=2.0)
    first = found(MIXED, trainings=(MADE,), scores=WORSE, **held | {"changes": (*held["changes"], *SIZES)})[0]
    assert "1 gained (run.student.temperature is 2, in profile tiny 1); the run is smaller" in first.conclusion
    assert first.mend.endswith("--set run.student.temperature=1")


def test_refusals_of_all_checkpoints_are_told_with_the_reason_of_the_gate_and_what_to_try() -> None:
    """Where chance explains the scores, smaller steps are no mend."""
    base = Checkpoint("base", None, ValidationScore(0.4, "1" * 12 + "0" * 18))
    lower, lost = ValidationScore(11 / 30, "1" * 11 + "0" * 19), ValidationScore(0.1, "1" * 3 + "0" * 27)
    mends = {lower: "run.tasks=", lost: "run.training.student.lr="}
    for score, mend in mends.items():
        reason = judge(score, [base], EvaluationConfig()).reason
        refused = [replace(RUINED, checkpoint=f"student-{n}", iteration=n, reason=reason) for n in range(2)]
        first = found(MIXED, trainings=tuple(refused), scores=FELL[:1])[0]
        assert first.conclusion == f"no checkpoint was promoted: {reason.partition(';')[0]}" and mend in first.mend
    assert (
        "validation 0.367 against 0.400 of base, the best so far: lower"
        in judge(lower, [base], EvaluationConfig()).reason
    )


def test_a_validation_of_one_item_is_named_and_not_what_else_of_the_evaluation_differs() -> None:
    usual = EvaluationConfig()
    own = {"validation": 1, "test": 0, "forced_tool": False}
    changes = tuple(Setting(f"run.evaluation.{k}", v, getattr(usual, k), "profile tiny") for k, v in own.items())
    solved = tuple(
        HeldOutScore(e, e, n, "validation", True, 1, 1.0, outcomes="1") for n, e in ((-1, "base"), (0, "student-0"))
    )
    first = found(MIXED, trainings=(MADE,), scores=solved, changes=changes)[0]
    assert first.conclusion.endswith("(run.evaluation.validation is 1, in profile tiny 150)"), first
    for n in (30, 1):
        few = tuple(replace(one, n=n) for one in solved)
        said = " ".join(one.conclusion for one in found(MIXED, trainings=(UNLEARNT,), scores=few, changes=changes))
        assert "forced_tool" not in said and "evaluation.test" not in said


def test_a_plugin_is_named_and_not_its_digest() -> None:
    assert str(Setting("run.plugins.mine", "ab" * 32, None, "profile tiny")) == (
        "plugin mine (abababababab) is loaded, in profile tiny not"
    )


@pytest.mark.parametrize(("status", "last", "mixed", "again", "accused"), [
    ("finished", 0.95, 0, True, False), ("finished", 0.95, 0, False, False), ("finished", 0.95, 12, True, False),
    ("finished", 0.95, 12, False, True), ("finished", 0.3, 0, True, True), ("failed", 0.95, 0, False, True),
])  # fmt: skip
def test_an_iteration_without_contrast_is_no_fault_of_a_run_that_learned(
    status: str, last: float, mixed: int, again: bool, accused: bool
) -> None:
    seen: dict[str, Any] = {**MIXED, "all_right": 12 - mixed, "all_wrong": 0, "mixed": mixed}
    later = (Training("student-1", "student", 1, "base", "promoted", samples=20),) if again else ()
    scores = tuple(HeldOutScore(f"e{n}", "x", n, "validation", True, 40, one) for n, one in ((-1, 0.3), (0, last)))
    case = Case("r1", "tiny", status, RunConfig(), iterations=(Iteration(0, **seen),), trainings=(UNLEARNT, *later),
                scores=scores)  # fmt: skip
    assert any(one.name == "contrast" for one in diagnose(case)) is accused


def test_tasks_that_were_asked_for_in_vain_are_evidence() -> None:
    found = why(played(small(curriculum={"embedder": "ngram", "band": (0.98, 0.99)}, max_untrained=0, refill=2)))
    said = [row["text"] for row in found["evidence"]]
    assert any("tasks were asked for in place of others (run.refill); " in text for text in said), said
