"""Two data folders that share a log and nothing else: attempts and trainings of a run are made on the other host, and
each has a conductor."""

from pathlib import Path

import pytest

from agent0.infra.log.nats_server import Server
from agent0.infra.storage.artifacts import FileArtifacts
from tests.crashing import SIZES, past_of, watching
from tests.processes import KINDS, Crew

THERE = [name for kind in ("student", "trainer") for name in KINDS[kind][2:]]
HERE = [name for kind, words in KINDS.items() if kind != "projector" for name in words[2:] if name not in THERE]
"""Handlers of the two hosts."""


@pytest.mark.slow  # `make crash`, 21 s
@pytest.mark.timeout(600)
async def test_a_run_over_two_hosts_without_a_folder_in_common(tmp_path: Path, nats_server: Server) -> None:
    password = {role: nats_server.password(role).get_secret_value() for role in ("admin", "app")}
    shared = {"NATS_URL": nats_server.url, "ARTIFACTS__STORE": "nats", "ARTIFACTS__MAX_BYTES": str(1 << 28)}
    sizes = {**SIZES, "RUN__ITERATIONS": "1", "RUN__TASKS": "3", "NATS__MAX_BYTES": str(1 << 28)}

    def crew(name: str, role: str = "app") -> Crew:
        return Crew(tmp_path / name, **sizes, **shared, NATS__USER=role, NATS__PASSWORD=password[role])

    crew("admin", "admin").tell("log", "init")
    with crew("here") as here, crew("there") as there:
        run = here.tell("run", "start", "--detach", "--json")["run"]
        here.start("runner", "handlers", "run", *HERE)
        there.start("student", "handlers", "run", *THERE)
        there.start("second", "handlers", "run", "--role", "conductor")
        here.start("projector")
        async with watching(here, run) as watch:
            await watch.until(lambda: False, "the run to be finished")
        past = await past_of(here, run, watch)
        whole = here.tell("artifacts", "verify", "--json")
        rebuilt = here.tell("projections", "rebuild", "--verify", "--json")
    assert (past.finished, past.lost, past.lost_attempts, past.duplicates) == (True, [], 0, [])
    assert (whole["state"], rebuilt["verified"]) == ("whole", True)
    trained = {artifact.sha256 for artifact, _ in FileArtifacts(tmp_path / "there").stored()}
    assert trained, "the other host wrote what it trained into its own folder"
    assert trained <= {artifact.sha256 for artifact, _ in FileArtifacts(tmp_path / "here").stored()}
