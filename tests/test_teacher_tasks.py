"""Free tasks of a teacher: a program that prints no answer is refused before anybody tries, and one that attempts
contradict is named, counted and not learned from."""

from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import pytest

from agent0.events.base import record
from agent0.events.tasks import RefusalReason, RewardAssigned, TaskAccepted, TaskRejected, TaskRequested
from agent0.events.values import Task, ToolState
from agent0.projections.indexes import rejections
from agent0.report.diagnosis.iterations import iterations_of
from agent0.run.diagnosis.causes.teacher import REASONS
from agent0.settings import RunConfig
from agent0.state.run_state import AttemptState, TaskState
from agent0.tasks.screening import Archive, Proposed, decide_batch
from agent0.tasks.splits import split_of_task
from agent0.training.scored_trajectory import ScoredTrajectory
from agent0.training.selection import select
from agent0.verification.task_fault import doubt_of, task_fault
from agent0.verification.verifiers import verifier_for
from tests.test_objectives import WAY
from tests.test_report import told
from tests.test_verifiers import PROGRAM, Printing
from tests.world import NOON, small, started


@pytest.mark.parametrize(
    ("output", "state", "reason", "words"),
    [
        ("42", ToolState.OK, None, ""),
        ("", ToolState.OK, "broken_program", "ended ok and printed 0 characters"),
        ("42", ToolState.TIMEOUT, "broken_program", "ended timeout"),
        ("", ToolState.ERROR, "broken_program", "ended error"),
        ("", ToolState.REFUSED, "broken_program", "ended refused"),
        ("9" * 5000, ToolState.OK, "broken_program", "printed 5000 characters"),
        ("", ToolState.BUSY, None, ""),
        ("", ToolState.SANDBOX_ERROR, None, ""),
    ],
)
async def test_a_program_that_prints_no_answer_is_refused(
    output: str, state: ToolState, reason: str | None, words: str
) -> None:
    fault = await task_fault(PROGRAM, Printing(output, state))
    assert (fault[0] if fault else None) == reason
    assert words in (fault[1] if fault else "")


async def test_a_question_that_states_its_answer_is_trivial_and_families_need_no_program() -> None:
    stated = PROGRAM.model_copy(update={"question": r"The answer is \boxed{42}. What is it?"})
    assert await task_fault(stated, Printing("42")) == ("trivial", "the question states its answer")
    sandbox = Printing("", ToolState.ERROR)
    assert await task_fault(PROGRAM.model_copy(update={"family": "linear"}), sandbox) is None
    assert await task_fault(PROGRAM.model_copy(update={"program": ""}), sandbox) is None
    assert not sandbox.calls


@pytest.mark.parametrize("state", [ToolState.BUSY, ToolState.SANDBOX_ERROR])
@pytest.mark.parametrize("brought", [{"tests": "assert f(1) == 2"}, {"checker": "def check(answer): return True"}])
async def test_where_the_sandbox_fails_nothing_is_said_of_tests_and_checkers(
    brought: dict[str, str], state: ToolState
) -> None:
    task = PROGRAM.model_copy(update={"program": "def f(n): return n + 1\nprint(f(41))", **brought})
    assert await task_fault(task, Printing("42", state)) is None
    (verdict,) = await verifier_for(task).judge(task, ["def f(n): return 2"], Printing("42", state))
    assert verdict.correct is None and state.value in verdict.reason


def test_a_faulty_program_is_no_task_whatever_else_is_well() -> None:
    tasks = (PROGRAM.model_copy(update={"canonical": f"open {n}"}) for n in range(99))
    trained = islice((task for task in tasks if split_of_task(task) == "train"), 2)
    proposals = [Proposed(f"t{n}", n, "logic", task) for n, task in enumerate(trained)]
    vectors = {"t0": [1.0, 0.0], "t1": [0.0, 1.0]}
    faults = {"t1": ("broken_program", "it ended timeout")}
    first, second = decide_batch(proposals, Archive(), vectors, 0.95, programs=faults)  # type: ignore[arg-type]
    assert (first.reason, second.reason, second.detail) == (None, "broken_program", "it ended timeout")


def test_each_reason_is_explained_and_may_be_the_cause_of_a_bad_run() -> None:
    page = (Path(__file__).parents[1] / "docs" / "guide" / "reading-a-report.md").read_text()
    reasons = set(get_args(RefusalReason))
    assert {reason for reason in reasons if f"`{reason}`" not in page} == set()
    assert reasons - REASONS.keys() == {"malformed", "duplicate", "similar"}, "which causes of their own name"


def tried(*answers: tuple[str | None, bool | None], **changes: Any) -> TaskState:
    proposal = Task(**{**PROGRAM.model_dump(), **changes})
    attempts = {
        f"a{n}": AttemptState(n, answer=answer, attempted=True, verified=True, correct=correct)
        for n, (answer, correct) in enumerate(answers)
    }
    return TaskState(0, "logic", "open", 1, proposal=proposal, accepted=True, attempts=attempts)


RIGHT, SAME, NONE = ("42", True), ("24", False), (None, False)


@pytest.mark.parametrize(
    ("answers", "doubt"),
    [
        ([RIGHT, RIGHT, ("1", False), ("2", False)], ""),
        ([SAME, SAME, SAME, RIGHT], "ambiguous"),
        ([SAME, SAME, SAME, SAME], "ambiguous"),
        ([SAME, SAME, RIGHT, RIGHT], ""),
        ([("1", False), ("2", False), ("3", False), NONE], "unanswerable"),
        ([NONE, NONE, NONE, NONE], "unanswerable"),
        ([SAME, SAME], ""),
        ([("1", None), ("2", None), ("3", None)], ""),
    ],
)
def test_attempts_tell_whether_a_program_answers_its_question(
    answers: list[tuple[str | None, bool | None]], doubt: str
) -> None:
    assert doubt_of(tried(*answers)) == doubt
    assert doubt_of(tried(*answers, family="linear")) == "", "a family computes its answers itself"


def scored(n: int, success: bool, doubt: str) -> ScoredTrajectory:
    return ScoredTrajectory(f"e{n}-{doubt}", f"t-{doubt}", "me", WAY, float(success), 0.5, success, doubt=doubt)


def test_what_is_ambiguous_is_not_learned_now_nor_later() -> None:
    paths = [scored(n, n < 2, doubt) for doubt in ("", "ambiguous") for n in range(4)]
    for objective in ("sft", "grpo"):
        config = RunConfig.model_validate({"training": {"student": {"objective": objective}}})
        chosen = select("student", paths, paths, author="me", config=config, seed=0)
        assert chosen.skipped["ambiguous"] == 4
        assert chosen.used and all(name.endswith("-") for name in chosen.used)


def test_each_reason_is_counted_by_name() -> None:
    def request(task: str, slot: int) -> TaskRequested:
        facts = {"iteration": 0, "slot": slot, "domain": "logic", "family": "open", "level": 1, "seed": 0}
        return TaskRequested(task=task, teacher="base", state_sha="", **facts)

    def closed(task: str, doubt: str) -> list[Any]:
        accepted = TaskAccepted(
            task=task, iteration=0, slot=0, proposal=PROGRAM, novelty=1.0, against=0, position=0, embedder=""
        )
        facts = {"solve_rate": 0.0, **({"doubt": doubt} if doubt else {})}
        reward = RewardAssigned(
            task=task, iteration=0, role="teacher", set="plain", parts=(), total=0.0, checkpoint="base", facts=facts
        )
        return [accepted, reward]

    refused = TaskRejected(task="t0-003", iteration=0, slot=3, reason="broken_program", detail="it ended timeout")
    events = [request(f"t0-00{n}", n) for n in range(4)]
    events += [*closed("t0-000", ""), *closed("t0-001", "ambiguous"), *closed("t0-002", "unanswerable"), refused]
    recorded = [record(e, run="r1", time=NOON).model_copy(update={"seq": n + 2}) for n, e in enumerate(events)]
    with closing(told([started(small()).model_copy(update={"seq": 1}), *recorded])) as db:
        counts = {row["reason"]: row["tasks"] for row in rejections(db, "r1")}
        (iteration,) = iterations_of(db, "r1")
    assert counts == {"ambiguous": 1, "broken_program": 1, "unanswerable": 1}
    assert (iteration.accepted, dict(iteration.refused)) == (3, {"broken_program": 1})
