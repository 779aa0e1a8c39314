"""Who is there, and what waits for whom: by asking the processes themselves."""

import time
from collections import Counter
from pathlib import Path

from agent0.assembly.runtime.plugins import known_handlers
from agent0.cli.system.cluster import _unattended
from agent0.infra.log.streams import GIVEN_UP
from agent0.infra.log.users.roles import ROLES, roles_of
from tests.patience import PATIENCE_S
from tests.processes import Crew, halt
from tests.terminal import agent0 as call


def test_every_handler_is_in_one_role() -> None:
    assert Counter(name for names in ROLES.values() for name in names) == Counter(list(known_handlers()))
    assert roles_of([*ROLES["teacher"], "attempt_task", "mine"]) == ["teacher", "attempt_task", "mine"]
    assert roles_of(list(known_handlers())) == list(ROLES)


def test_a_wrong_role_names_those_there_are(tmp_path: Path) -> None:
    refused = call("handlers", "run", "--role", "studnet", home=tmp_path)
    assert refused.code == 2 and "Did you mean student" in refused.err


def test_processes_say_what_they_do_and_what_nobody_does_is_named(tmp_path: Path) -> None:
    slow = {"RUN__STUDENT__MODEL": "latency=600"}
    with Crew(tmp_path, RUN__ITERATIONS="1", RUN__TASKS="3", RUN__ATTEMPTS="1", **slow) as crew:
        run = crew.tell("run", "start", "--detach", "--priority", "40", "--json")["run"]
        for role in ("conductor", "student"):
            crew.start(role, "handlers", "run", "--role", role, "--slots", "3")
        until = time.monotonic() + PATIENCE_S
        while True:  # until both have begun
            status = call("cluster", "status", "--json", home=tmp_path).json  # a process costs a second
            if len(status["processes"]) == 2 and any("_item" in process["longest"] for process in status["processes"]):
                break
            assert time.monotonic() < until, status
        plain = crew.tell("cluster", "status")
        halt(crew.running["student"].pid)
        silent = crew.tell("cluster", "status", "--json")
        crew.kill("student")
    does = {process["does"]: process["slots"] for process in status["processes"]}
    assert set(does) == {"conductor", "student"} and does["student"] == 3
    assert status["faults"] == ["No process runs teacher, verifier, trainer: runs that need it wait."]
    assert {row["processes"] for row in status["handlers"] if row["handler"] == "evaluate_item"} == {1}
    assert "conductor" in plain and run in plain
    [row] = status["runs"]
    assert (row["run"], row["priority"]) == (run, 40)
    assert row["share"] == (1.0 if row["wait"] or row["in_hand"] else None)
    [student] = [process for process in status["processes"] if process["does"] == "student"]
    assert student["in_hand"] >= 1 and "evaluate_" in student["longest"]
    assert [process["does"] for process in silent["processes"]] == ["conductor"]
    left = "evaluate_item with a process that does not answer: delivered again 30 s after its last sign."
    assert any(left in fault for fault in silent["faults"]), silent["faults"]


def test_where_nobody_is_there_the_roles_are_named_and_nothing_else() -> None:
    rows = [{"handler": name, "processes": 0} for name in (*known_handlers(), GIVEN_UP)]
    assert _unattended(rows) == [f"No process runs {', '.join(ROLES)}: runs that need it wait."]
    assert _unattended([{"handler": GIVEN_UP, "processes": 0}]) == []
