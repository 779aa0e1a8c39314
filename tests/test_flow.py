"""A whole run in memory, through every real handler, with scripted models: what must hold of any run."""

from collections import Counter, defaultdict
from functools import cache

from agent0.events import checkpoints, runs, tasks
from agent0.events.base import Recorded, effect_id, event_types
from agent0.handlers import handlers
from agent0.tasks.splits import split_of_task
from agent0.verification.verifiers import verifiers
from tests.play import finished, play
from tests.world import ports, small, started

CONFIG = small(iterations=3, tasks=9, attempts=4, seed=5)
WORLD = ports()


@cache
def whole_run() -> list[Recorded]:
    return finished(play(started(CONFIG), WORLD))


def of(kind: type) -> list[Recorded]:
    return [r for r in whole_run() if isinstance(r.event, kind)]


def test_the_run_is_finished_and_counts_itself() -> None:
    last = whole_run()[-1].event
    assert isinstance(last, runs.RunFinished)
    assert last.iterations == CONFIG.iterations
    assert last.tasks == len(of(tasks.TaskRequested)) == CONFIG.iterations * CONFIG.tasks
    assert last.attempts == len(of(tasks.AttemptRequested))


def test_every_task_is_proposed_decided_and_closed() -> None:
    asked = [r.task for r in of(tasks.TaskRequested)]
    assert sorted(r.task for r in of(tasks.TaskProposed)) == sorted(asked)
    assert sorted(r.task for r in (*of(tasks.TaskAccepted), *of(tasks.TaskRejected))) == sorted(asked)
    closed = [r.task for r in of(tasks.RewardAssigned) if r.event.role == "teacher"]  # type: ignore[attr-defined]
    assert sorted(closed) == sorted(asked)
    assert of(tasks.TaskAccepted) and of(tasks.TaskRejected)


def test_every_accepted_task_has_k_attempts_one_verdict_and_one_reward_each() -> None:
    accepted = [r.task for r in of(tasks.TaskAccepted)]
    expected = Counter((task, f"{task}-a{n}") for task in accepted for n in range(CONFIG.attempts))
    paid = [r for r in of(tasks.RewardAssigned) if r.event.role == "student"]  # type: ignore[attr-defined]
    for told in (of(tasks.AttemptRequested), of(tasks.TaskAttempted), of(tasks.ResultVerified), paid):
        assert Counter((r.task, r.attempt) for r in told) == expected


def test_tool_calls_come_before_their_attempt_and_are_counted_in_it() -> None:
    calls: dict[str, list[Recorded]] = defaultdict(list)
    for recorded in of(tasks.ToolCalled):
        calls[recorded.attempt].append(recorded)
    for recorded in of(tasks.TaskAttempted):
        mine, event = calls.pop(recorded.attempt, []), recorded.event
        assert isinstance(event, tasks.TaskAttempted)
        assert event.tool_calls == len(mine)
        assert event.tool_ok == sum(c.event.result.state == "ok" for c in mine)  # type: ignore[attr-defined]
        assert [c.event.number for c in mine] == list(range(len(mine)))  # type: ignore[attr-defined]
        assert [c.seq for c in mine] == list(range(recorded.seq - len(mine), recorded.seq))
    assert not calls


def test_the_chain_of_causes_is_unbroken() -> None:
    known = handlers()
    seen: dict[str, Recorded] = {}
    effects: Counter[tuple[str, str]] = Counter()
    for recorded in whole_run():
        if recorded.cause:
            cause = seen[recorded.cause]
            assert cause.type in known[recorded.handler].events
            assert recorded.id == effect_id(recorded.cause, recorded.handler, effects[recorded.cause, recorded.handler])
            effects[recorded.cause, recorded.handler] += 1
        else:
            assert recorded.type == "RunStarted"
        assert recorded.id not in seen
        seen[recorded.id] = recorded
    assert [r.seq for r in whole_run()] == list(range(1, len(whole_run()) + 1))


def test_checkpoints_follow_from_one_another() -> None:
    student = "base"
    for recorded in whole_run():
        match recorded.event:
            case tasks.AttemptRequested(student=who) | checkpoints.TrainingRequested(role="student", parent=who):
                assert who == student
            case checkpoints.CheckpointPromoted(checkpoint=new):
                student = new
    finals = [e for e in (r.event for r in of(checkpoints.CheckpointEvaluated)) if e.evaluation.endswith("final")]  # type: ignore[attr-defined]
    assert [e.checkpoint for e in finals] == [student]  # type: ignore[attr-defined]
    assert student != "base"


def test_tests_score_first_and_last_and_choose_nothing() -> None:
    by_split = Counter((e.split, e.forced_tool) for e in (r.event for r in of(checkpoints.CheckpointEvaluated)))  # type: ignore[attr-defined]
    assert by_split[("test", False)] == 2 and by_split[("test", True)] == 1
    causes = {r.id: r for r in whole_run()}
    for recorded in (*of(checkpoints.CheckpointPromoted), *of(checkpoints.CheckpointRejected)):
        assert causes[recorded.cause].event.split == "validation"  # type: ignore[attr-defined]


def test_nothing_kept_for_held_out_sets_is_trained_on() -> None:
    forms = [r.event.proposal.canonical for r in of(tasks.TaskAccepted)]  # type: ignore[attr-defined]
    assert len(set(forms)) == len(forms)
    assert {split_of_task(r.event.proposal) for r in of(tasks.TaskAccepted)} == {"train"}  # type: ignore[attr-defined]


def test_the_student_learns_to_call_its_tool() -> None:
    shares = [
        e.tool_use
        for e in (r.event for r in of(checkpoints.CheckpointEvaluated))
        if e.split == "test" and not e.forced_tool
    ]  # type: ignore[attr-defined]
    assert shares[-1] > shares[0]


def test_what_is_large_lies_in_artifacts() -> None:
    for recorded in whole_run():
        assert len(recorded.to_json()) < 200_000
    for recorded in of(checkpoints.CheckpointEvaluated):
        event = recorded.event
        assert isinstance(event, checkpoints.CheckpointEvaluated) and event.items is not None
        assert len(WORLD["artifacts"].get(event.items).splitlines()) == event.n == len(event.outcomes)


def test_the_story_has_every_kind_of_event_a_healthy_run_has() -> None:
    unhealthy = (
        "Reaction Dependency RunPaused RunResumed RunCancelled RunFailed CheckpointRolledBack AlarmResolved Log "
        "Experiment RecomputeFailed EventRedacted MessageExcluded CheckpointPruned CheckpointRepeated ModelsCompared "
        "ModelCalled CallRouted Batch StudentExamined BudgetChanged PriorityChanged RunLabelled RunDeleted"
    )
    other = (
        "TurnAnswered",
        "TurnCompleted",
        "PolicyChanged",
        "Benchmark",
        "ItemScored",
        "CalibratorFitted",
        "TaskReviewed",
        "RowAnswered",
        "TaskSubmitted",
        "GainRequested",
        "ProbeSelected",
        "SubsetMeasured",
        "TrainingMeasured",  # a scripted training has no steps
        "PromptCandidateScored",
    )
    healthy = {name for name in event_types() if not name.startswith((*unhealthy.split(), *other))}
    assert {r.type for r in whole_run()} | {"CheckpointRejected", "AlarmRaised"} == healthy


def test_the_verifier_never_meets_the_students_sandbox() -> None:
    assert WORLD["sandbox"].calls
    judges = {r.event.verifier for r in of(tasks.ResultVerified)}  # type: ignore[attr-defined]
    assert judges == {"exact", "checked"} <= set(verifiers())
    assert not WORLD["verifier_sandbox"].calls
