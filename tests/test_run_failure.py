"""A run that gave up too much, or that had nothing to train on, ends failed and says why; it can be resumed."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent0.assembly.replay.forks import check_run
from agent0.errors import ErrorKind
from agent0.events import runs
from agent0.events.alarms import DependencyLost
from agent0.events.base import Event, Recorded, record
from agent0.handlers import Handler
from agent0.run.lifecycle import decide
from agent0.run.run_failure import dependency_failed, lost_attempts
from agent0.settings import RunConfig
from tests.kept_open import attached
from tests.play import Played, play
from tests.terminal import agent0 as call
from tests.test_cli_run import SMALL
from tests.test_run import _stable, failing, full_run, played, sound, states
from tests.world import NOON, ports, small

BARREN: dict[str, Any] = {
    "curriculum": {"band": (0.98, 0.99), "embedder": "ngram"},
    "training": {"teacher": {"enabled": False}},
}
"""No task is within the band, and the teacher is not trained."""


def failed(told: Sequence[Recorded]) -> runs.RunFailed:
    """How a run ended that failed."""
    ended = told[-1].event
    assert isinstance(ended, runs.RunFailed), told[-1].type
    assert states(told)[-1].status == "failed"
    assert "\n" not in ended.reason
    return ended


def resumed(told: Sequence[Recorded], handlers: Mapping[str, Handler] | None = None) -> list[Recorded]:
    """The whole run, after whoever looks after it said that it goes on."""
    return asyncio.run(play(record(runs.RunResumed(), run="r1", time=NOON), ports(), handlers, past=told))


def trained(told: Sequence[Recorded]) -> list[str]:
    return [r.event.checkpoint for r in told if r.type == "TrainingRequested"]  # type: ignore[attr-defined]


def test_a_run_that_gave_up_too_many_attempts_trains_on_none_of_them() -> None:
    told = played(small(tasks=4), failing("attempt_task", [2, 5]))
    ended = failed(told)
    assert (ended.cause_kind, ended.iteration) == ("given_up", 0)
    assert ended.reason.startswith("2 of 6 attempts of iteration 0 were given up")
    assert "attempt_task: Broken: by the test" in ended.reason
    assert not trained(told)


def test_a_failure_that_an_earlier_version_worded_otherwise_is_decided_alike_today() -> None:
    *told, last = played(small(tasks=4), failing("attempt_task", [2, 5]))
    for change, alike in (({"reason": "2 of 6 attempts of iteration 0"}, True), ({"cause_kind": "untrained"}, False)):
        event = last.event.model_copy(update=change)
        found = asyncio.run(check_run(Played([*told, last.model_copy(update={"event": event})]), "r1"))  # type: ignore[arg-type]
        assert (found.first is None) is alike


@pytest.mark.parametrize(("limit", "fails"), [(0.0, True), (0.16, True), (0.17, False), (1.0, False)])
def test_the_share_is_of_all_attempts_of_the_iteration(limit: float, fails: bool) -> None:
    told = played(small(tasks=4, max_given_up=limit), failing("attempt_task", [3]))  # 1 of 6
    assert told[-1].type == ("RunFailed" if fails else "RunFinished")


def test_attempts_never_made_since_their_proposal_was_given_up_count() -> None:
    told = played(small(tasks=4), failing("propose_task", [0]))
    accepted = sum(r.type == "TaskAccepted" for r in told)
    assert failed(told).reason.startswith(f"3 of {3 * (accepted + 1)} attempts")


def test_what_screening_rejects_is_not_given_up() -> None:
    alike = {"similarity_limit": 1e-6, "embedder": "ngram"}
    config = small(tasks=4, max_given_up=0.0, max_untrained=0, curriculum=alike)
    told = played(config)
    assert "TaskRejected" in {r.type for r in told}
    assert told[-1].type == "RunFinished"


def test_without_any_training_the_share_counts_all_the_same() -> None:
    off = {"student": {"enabled": False}, "teacher": {"enabled": False}}
    told = played(small(tasks=4, training=off), failing("verify_result", [0, 1]))
    assert (failed(told).cause_kind, failed(told).iteration) == ("given_up", 0)


def test_two_iterations_with_nothing_to_train_on_fail_a_run() -> None:
    told = played(small(iterations=3, **BARREN))
    ended = failed(told)
    assert (ended.cause_kind, ended.iteration) == ("untrained", 1)
    assert "off_frontier" in ended.reason and "for 2 iterations in a row, the last of them 1 (" in ended.reason
    assert trained(told) == ["student-0", "student-1"]
    assert played(small(iterations=1, **BARREN))[-1].type == "RunFinished"


def test_trainings_that_fail_train_nothing_either() -> None:
    told = played(small(), failing("train_checkpoint"))
    assert failed(told).cause_kind == "untrained"
    assert "train_checkpoint: Broken" in failed(told).reason
    assert played(small(), failing("train_checkpoint", [0, 1, 2]))[-1].type == "RunFinished"


def test_a_plan_that_trains_nobody_does_not_fail() -> None:
    none = {"objective": "none", "replay_steps": 0}
    told = played(small(training={"student": none, "teacher": none}))
    assert not any(r.event.adapter for r in told if r.type == "CheckpointTrained")  # type: ignore[attr-defined]
    assert told[-1].type == "RunFinished"


def test_a_healthy_run_is_told_the_same_with_the_rule_and_without() -> None:
    """But for its configuration, and the digests of states that hold it."""
    free = played(small(max_given_up=1.0, max_untrained=0))
    own = {"state_sha", "config", "config_sha"}
    told = [
        [(r.type, r.task, r.attempt, _stable(r.event.model_dump(mode="json", exclude=own))) for r in one]
        for one in (free, full_run())
    ]
    assert told[0] == told[1]
    assert not [s for s in states(full_run()) if s.lost or s.untrained > 1]


def test_a_failed_run_that_is_resumed_goes_on_with_what_it_has() -> None:
    before = played(small(tasks=4), failing("attempt_task", [2, 5]))
    told = resumed(before)
    assert told[: len(before)] == before
    assert told[-1].type == "RunFinished"
    assert trained(told) == ["student-0", "teacher-0", "student-1", "teacher-1"]
    sound(told)
    assert states(told)[-1].iteration == small().iterations - 1


def test_what_failed_a_run_is_not_counted_again_and_what_comes_after_is() -> None:
    config = small(iterations=5, **BARREN)
    first = played(config)
    second = resumed(first)
    assert (failed(first).iteration, failed(second).iteration) == (1, 3)
    third = resumed(second)
    assert third[-1].type == "RunFinished"
    sound(third)


def test_a_resume_of_a_run_that_did_not_fail_asks_for_nothing() -> None:
    for length in (5, len(full_run()) // 2, len(full_run())):
        held = states(full_run()[:length])[-1]
        more = [runs.RunPaused(), runs.RunResumed()]
        told = [record(e, run="r1", time=NOON).model_copy(update={"seq": held.seq + n}) for n, e in enumerate(more, 1)]
        after = states([*full_run()[:length], *told])[-1]
        assert decide(after, told[-1].event) == []


def test_a_failed_run_can_be_cancelled_and_not_paused() -> None:
    told = played(small(tasks=4), failing("attempt_task", [2, 5]))

    def after(event: Any) -> str:
        seq = told[-1].seq + 1
        return states([*told, record(event, run="r1", time=NOON).model_copy(update={"seq": seq})])[-1].status

    assert after(runs.RunPaused()) == "failed"
    assert after(runs.RunCancelled()) == "cancelled"


@settings(max_examples=6, deadline=None, derandomize=True)
@given(chosen=st.lists(st.integers(0, 25), min_size=1, max_size=6), seed=st.integers(0, 2**32))
def test_whichever_attempts_are_given_up_a_run_ends_and_is_told_once(chosen: list[int], seed: int) -> None:
    told = played(small(tasks=4, iterations=1), failing("attempt_task", chosen), seed)
    dropped = sum(r.type == "ReactionDropped" for r in told)
    asked = sum(r.type == "AttemptRequested" for r in told)
    assert told[-1].type == ("RunFailed" if dropped > 0.05 * asked else "RunFinished")
    sound(told)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with attached(tmp_path):
        yield tmp_path


@pytest.mark.slow  # part of make crash
def test_every_screen_says_that_a_run_failed_and_it_can_be_resumed(home: Path, tmp_path: Path) -> None:
    barren = ("-s", "run.curriculum.band=[0.98,0.99]", "-s", "run.training.teacher.enabled=false")
    ended = call("run", "start", *SMALL, *barren, home=home)
    assert ended.code == ErrorKind.RUN_FAILED.exit_code == 6
    cause = "nothing could be trained on for 2 iterations in a row"
    assert "failed" in ended.err and cause in ended.err.lower() and "run resume" in ended.err
    assert cause in ended.out
    (listed,) = call("run", "list", "--json", home=home).json
    assert (listed["status"], cause in listed["failed"]) == ("failed", True)
    assert "failed" in call("run", "list", home=home).out
    assert cause in call("run", "show", home=home).out
    assert call("run", "watch", home=home).code == 6
    page = tmp_path / "page.html"
    assert call("report", "LAST", "--out", str(page), home=home).code == 0
    assert cause in page.read_text()
    assert "RunFailed" in call("run", "story", home=home).out
    assert call("run", "check", home=home).code == 0
    again = call("run", "resume", "--json", home=home)
    assert (again.code, again.json["status"], again.json["failed"]) == (0, "finished", None)
    steps = [row["type"] for row in call("run", "story", "--json", home=home).json]
    assert [step for step in steps if step.startswith("Run")] == [
        "RunStarted",
        "RunFailed",
        "RunResumed",
        "RunFinished",
    ]
    assert call("run", "check", home=home).code == 0


def test_a_dependency_that_stays_away_fails_a_run_that_says_for_how_long() -> None:
    def lost(waiting: str, waited_s: float) -> DependencyLost:
        return DependencyLost(dependency="ollama", waiting=waiting, message="Refused.", waited_s=waited_s)

    def after(config: RunConfig, *more: Event) -> list[Event]:
        told = played(config)[: len(played(config)) // 2]
        later = [
            record(e, run="r1", time=NOON).model_copy(update={"seq": told[-1].seq + n}) for n, e in enumerate(more, 1)
        ]
        assert isinstance(more[-1], DependencyLost)
        return dependency_failed(states([*told, *later])[-1], more[-1])

    patient, late = small(give_up_after=60), lost("attempt_task", 61)
    for waited_s in (0, 59):
        assert after(patient, lost("attempt_task", waited_s)) == []
    assert after(small(), lost("attempt_task", 1e6)) == []
    (ended,) = after(patient, lost("attempt_task", 0), late)
    assert isinstance(ended, runs.RunFailed) and ended.cause_kind == "dependency"
    assert ended.reason == "attempt_task waited 61 s for ollama (run.give_up_after is 60): Refused."
    assert after(patient, late, lost("propose_task", 62)) == [], "handled only after it is resumed, it would end it"
    resumed = after(patient, late, ended, runs.RunResumed(), lost("propose_task", 62))
    assert [type(event) for event in resumed] == [runs.RunFailed]


def test_a_run_resumed_in_the_middle_of_a_phase_asks_for_nothing_twice() -> None:
    for length in range(5, len(full_run()), 17):
        before = states(full_run()[:length])[-1]
        end = runs.RunFailed(reason="away", cause_kind="dependency", iteration=0, state_sha="")
        more = [
            record(e, run="r1", time=NOON).model_copy(update={"seq": before.seq + n})
            for n, e in enumerate((end, runs.RunResumed()), 1)
        ]
        after = states([*full_run()[:length], *more])[-1]
        assert decide(after, more[-1].event) == []
        assert (after.status, after.phase, after.pending) == ("running", before.phase, before.pending)
        assert after.tasks == before.tasks


def test_nothing_is_lost_where_nothing_was_asked() -> None:
    assert lost_attempts(states(full_run())[0]) == ()
