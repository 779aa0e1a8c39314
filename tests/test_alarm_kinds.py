"""Alarms for people: one for each way in which a run dies, however often it was raised, with what shows it."""

import re
from contextlib import closing
from typing import Any

import pytest

from agent0.projections.alarms import list_alarms
from agent0.report.alarm_groups import grouped, kind_of
from agent0.report.diagnosis.iterations import iterations_of
from agent0.run.diagnosis.case import Iteration
from tests.broken_runs import ENOSPC
from tests.test_report import told
from tests.test_run import failing, played
from tests.world import small


@pytest.mark.parametrize(
    ("alarm", "message", "counts", "kind"),
    [
        ("no-signal-student-1", "", {"refused": {"malformed": 8}}, "unreadable-tasks"),
        ("no-signal-student-1", "", {"refused": {"similar": 5, "duplicate": 2, "malformed": 1}}, "known-tasks"),
        ("no-signal-student-1", "", {"refused": {"reserved": 8}}, "refused-tasks"),
        ("no-signal-student-1", "", {"accepted": 8}, "no-contrast"),
        ("no-signal-teacher-1", "", {}, "no-contrast"),
        ("failure-attempt_task-77", "attempt_task gave up on AttemptRequested: no", {}, "gave-up"),
        ("dependency/artifact store/attempt_task", ENOSPC, {}, "disk"),
        ("dependency/Ollama/attempt_task", "Ollama is not available.", {}, "dependency/Ollama"),
        ("rejected-student-3", "", {}, "rejected"),
        ("guard-collapse", "", {}, "guard-collapse"),
        ("run-failed", "", {}, "run-failed"),
    ],
)
def test_every_way_to_die_is_one_kind_of_alarm(alarm: str, message: str, counts: dict[str, Any], kind: str) -> None:
    assert kind_of(alarm, message, [Iteration(number=1, **counts)])[0] == kind


def test_alarms_of_a_kind_are_one_and_name_what_shows_them() -> None:
    broken = played(small(tasks=4), failing("attempt_task", [2, 5]))
    with closing(told([*broken])) as db:
        alarms = list_alarms(db, "r1")
        (gave_up, failed) = sorted(grouped(alarms, iterations_of(db, "r1")), key=lambda one: str(one["alarm"]))
    assert len([one for one in alarms if one["alarm"].startswith("failure-")]) == 2
    assert (gave_up["alarm"], gave_up["times"]) == ("gave-up", 2)
    assert re.search(r"event \d+$", gave_up["evidence"])
    assert (failed["alarm"], failed["severity"]) == ("run-failed", "critical")
    assert failed["evidence"] == f"event {len(broken)}"
