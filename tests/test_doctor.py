"""The doctor: what it finds, what it says to do, and that a sick part never takes it down."""

import asyncio
import shutil
from pathlib import Path

import pytest

from agent0.assembly.runtime import doctor
from agent0.assembly.validate import requirements
from agent0.assembly.validate.requirements import examine
from agent0.assembly.validate.room import Check
from agent0.cli import console
from agent0.config.loading import load
from agent0.errors import DependencyError
from agent0.events.runs import RunStarted
from agent0.infra.sandbox import Probe, selection
from agent0.infra.sandbox.selection import Backend
from agent0.settings import SandboxSettings, Settings
from tests.terminal import agent0 as call

CHEAP = ("packages", "data folder", "log", "credentials")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def held(home: Path, **more: str) -> Settings:
    return load("tiny", {"home": str(home), **{key.replace("__", "."): value for key, value in more.items()}}, {})


async def look(settings: Settings, *names: str) -> dict[str, Check]:
    """Only the named looks; a whole examination starts a sandbox."""
    return {check.name: check async for check in examine(settings, {name: doctor.LOOKS[name] for name in names})}


def test_a_healthy_machine_runs_tiny(tmp_path):
    said = call("doctor", "--json", home=tmp_path / "home")
    assert said.code == 0, said.out
    found = {check["name"]: check for check in said.json["checks"]}
    assert said.json["healthy"] is True
    for name in ("python", "packages", "packages [train]", "data folder", "disk space", "log server", "log fsync"):
        assert found[name]["state"] == "ok", found[name]
    for name in ("sandbox", "tiny model", "embedding model"):
        assert found[name]["state"] == "ok", found[name]
    assert all(check["fix"] for check in found.values() if check["state"] != "ok")


async def test_a_made_log_is_checked_for_drift_and_rights(tmp_path):
    fresh = await look(held(tmp_path), *CHEAP)
    assert fresh["log streams"].state == "warn"
    assert "agent0 log init" in fresh["log streams"].fix
    from agent0.assembly.log.access import provision

    await provision(held(tmp_path))
    made = await look(held(tmp_path), *CHEAP)
    assert {made[name].state for name in ("log server", "log streams", "log fsync", "log permissions")} == {"ok"}
    assert "cannot delete" in made["log permissions"].detail
    drifted = await look(held(tmp_path, nats__duplicate_window_s="99"), *CHEAP)
    assert drifted["log"].state == "fail"
    assert "duplicate_window" in drifted["log"].detail


async def test_rights_that_would_allow_deletion_are_found(tmp_path, monkeypatch):
    from agent0.assembly.log.access import provision
    from agent0.infra.log.nats_server import Server

    await provision(held(tmp_path))
    options = Server.options
    monkeypatch.setattr(Server, "options", lambda self, role: options(self, "admin"))
    assert (await look(held(tmp_path), "log"))["log permissions"].state == "fail"


async def test_credentials_open_to_others_are_found(tmp_path):
    await look(held(tmp_path), "log")
    assert (await look(held(tmp_path), "credentials"))["credentials"].state == "ok"
    (tmp_path / "nats" / "app.password").chmod(0o644)
    found = (await look(held(tmp_path), "credentials"))["credentials"]
    assert found.state == "fail"
    assert "app.password" in found.detail


def test_tables_that_are_damaged_or_stopped_are_found(tmp_path):
    from agent0.assembly.log.access import open_log
    from agent0.assembly.runtime.read_models import catch_up, live_path
    from agent0.assembly.runtime.stamping import recorded

    settings = held(tmp_path)

    async def poisoned() -> tuple[Check, Check]:
        async with open_log(settings, make=True) as log:
            begin = RunStarted(name="x", profile="tiny", seed=0, config={}, config_sha="")
            await log.append([recorded("r1", begin)])
            await catch_up(settings, log)
            before = await look(settings, "tables")
            await log.append([recorded("r2", begin.model_copy(update={"seed": 10**23}))])
            return before["tables"], (await look(settings, "tables"))["tables"]

    whole, stopped = asyncio.run(poisoned())
    assert whole.state == "ok"
    assert (stopped.state, "Event 2 " in stopped.detail, "rebuild" in stopped.fix) == ("fail", True, True)
    shown = call("run", "list", "--json", home=tmp_path)
    assert [row["run"] for row in shown.json] == ["r1"]
    assert "stopped at event 1" in shown.err
    body = live_path(settings).read_bytes()
    live_path(settings).resolve().write_bytes(body[:4096] + b"\x5a" * (len(body) - 4096))
    damaged = asyncio.run(look(settings, "tables"))["tables"]
    assert (damaged.state, "projections rebuild" in damaged.fix) == ("fail", True)


@pytest.mark.parametrize(("free", "state"), [(100 << 20, "fail"), (1 << 30, "warn"), (10 << 30, "ok")])
async def test_disk_space(tmp_path, monkeypatch, free, state):
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert (await look(held(tmp_path), "data folder"))["disk space"].state == state


async def test_missing_packages_are_named_with_what_to_install(tmp_path, monkeypatch):
    there = requirements._version
    monkeypatch.setattr(
        requirements, "_version", lambda package: "" if package in ("peft", "typer") else there(package)
    )
    found = await look(held(tmp_path), "packages")
    assert (found["packages"].state, found["packages [train]"].state) == ("fail", "fail")
    assert "peft" in found["packages [train]"].detail
    assert found["packages [train]"].fix == "make setup"


async def test_a_sandbox_that_misses_a_probe_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = await look(held(tmp_path), "sandbox")
    assert {check.state for check in found.values()} == {"fail"}
    assert any("bubblewrap" in check.detail + check.fix for check in found.values())


async def test_no_backend_is_tried_behind_one_that_passes(tmp_path, monkeypatch):
    tried: list[Backend] = []

    async def passes_second(backend: Backend, _: SandboxSettings) -> tuple[list[Probe], str]:
        tried.append(backend)
        return [Probe("starts", len(tried) == 2, "seen")], ""

    monkeypatch.setattr(selection, "_probe", passes_second)
    found = await look(held(tmp_path), "sandbox")
    first, second, *rest = selection.BACKENDS.values()
    assert found["sandbox"].detail.startswith("zygote-docker") and rest
    assert tried == [first, second]
    tried.clear()
    assert len(await selection.survey(SandboxSettings())) == len(tried) == len(selection.BACKENDS)


async def test_no_gpu_and_no_ollama_are_no_failures_where_nothing_needs_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    here = held(tmp_path, models__ollama_url="http://127.0.0.1:1")
    found = await look(here, "gpu", "models")
    assert {name: check.state for name, check in found.items() if name != "memory"} == {
        "gpu": "warn", "tiny model": "ok", "student model": "ok", "teacher model": "ok"
    }  # fmt: skip
    assert await look(here, "ollama") == {}, "of one that does not answer nothing is said"
    needed = await look(
        held(tmp_path, models__ollama_url="http://127.0.0.1:1", run__teacher__provider="ollama"), "models"
    )
    assert [name for name, check in needed.items() if check.state == "fail"] == ["teacher model"]
    assert "ollama pull qwen2.5:3b" in needed["teacher model"].fix


async def test_a_look_that_breaks_is_a_failed_check(tmp_path, monkeypatch):
    async def broken(_: Settings) -> list[Check]:
        raise DependencyError("something", "It broke.", "Mend it.")

    found = {check.name: check async for check in examine(held(tmp_path), {"gpu": broken})}["gpu"]
    assert (found.state, found.fix) == ("fail", "Mend it.")


BROKEN = "\x1b[31mbroken"


def test_what_cannot_run_is_exit_5(tmp_path, monkeypatch):
    async def broken(_: Settings) -> list[Check]:
        return [Check("something", "fail", BROKEN, "Mend it.")]

    monkeypatch.setattr("agent0.cli.system.doctor.LOOKS", {"something": broken})
    said = call("doctor", home=tmp_path)
    assert said.code == 5
    assert said.out == f"fail\tsomething\t{console.one_line(BROKEN, 300)}\n\t\tfix: Mend it.\n"
    assert "\x1b" not in said.out


def test_smoke_carries_a_run_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("agent0.cli.system.doctor.LOOKS", {})
    said = call("doctor", "--smoke", "--json", home=tmp_path / "home")
    assert said.code == 0, said.err
    assert said.json["checks"][-1]["name"] == "smoke run"
    assert "finished" in said.json["checks"][-1]["detail"]
    assert not (tmp_path / "home").exists()
