"""The built-in model in separate processes: nothing it does is predictable, but every fact has its counterparts."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from agent0.events.base import Recorded
from agent0.events.tasks import RewardAssigned
from tests.processes import Crew

pytestmark = pytest.mark.slow

ATTEMPTS = 3
KINDS = {
    "runner": ("advance_run", "raise_alarm", "measure_iteration", "guard_run"),
    "model": (
        "propose_task",
        "screen_task",
        "attempt_task",
        "continue_attempt",
        "evaluate_checkpoint",
        "evaluate_item",
    ),
    "verifier": ("verify_result", "assign_reward"),
    "trainer": ("train_checkpoint", "judge_checkpoint", "judge_teacher"),
}
"""Each that asks the model loads it, which takes longer than all it does here: one does, and one trains it."""

SIZES = {
    "PROFILE": "tiny",
    "RUN__ITERATIONS": "1",
    "RUN__TASKS": "9",
    "RUN__ATTEMPTS": str(ATTEMPTS),
    "RUN__CURRICULUM__EMBEDDER": "ngram",
    "RUN__EVALUATION__VALIDATION": "6",
    "RUN__EVALUATION__TEST": "6",
}


def test_separate_processes_leave_nothing_over(tmp_path: Path) -> None:
    with Crew(tmp_path, **SIZES) as crew:
        crew.tell("log", "init")
        for kind, handlers in KINDS.items():
            crew.start(kind, "handlers", "run", *handlers)
        crew.start("projector")
        found = crew.tell("run", "start", "--no-handlers", "--json")
        assert found["status"] == "finished"
        told = asyncio.run(crew.facts(found["run"]))
    ids = {r.id for r in told}
    assert len(ids) == len(told)
    assert all(r.cause in ids for r in told if r.type != "RunStarted"), "an orphan"
    accepted = tasks(told, "TaskAccepted")
    assert accepted, "the model proposed nothing of use"
    assert tasks(told, "TaskRequested") == tasks(told, "TaskProposed") == accepted + tasks(told, "TaskRejected")
    for kind in ("AttemptRequested", "TaskAttempted", "ResultVerified"):
        assert tasks(told, kind) == Counter(dict.fromkeys(accepted, ATTEMPTS)), kind
    attempts = Counter(r.attempt for r in told if r.type == "TaskAttempted")
    assert rewarded(told, "student") == attempts == Counter(dict.fromkeys(attempts, 1))
    assert tasks([r for r in told if r.attempt == "-"], "RewardAssigned") == tasks(told, "TaskRequested")


def tasks(told: list[Recorded], kind: str) -> Counter[str]:
    """How often each task is the subject of a ``kind`` of event."""
    return Counter(r.task for r in told if r.type == kind)


def rewarded(told: list[Recorded], role: str) -> Counter[str]:
    """How often each attempt was paid."""
    return Counter(r.attempt for r in told if isinstance(r.event, RewardAssigned) and r.event.role == role)
