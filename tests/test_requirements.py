"""What a run needs is asked for at once, before its first event, and by the same functions as the doctor's."""

import asyncio
import shutil
from pathlib import Path

import pytest

from agent0.assembly.runtime import doctor
from agent0.assembly.validate import requirements
from agent0.assembly.validate.requirements import REQUIREMENTS, examine, require
from agent0.assembly.validate.room import Check
from agent0.config.loading import load, profiles
from agent0.errors import ConfigError, RequirementsError
from agent0.infra.log import connection
from agent0.settings import Settings
from tests.terminal import agent0 as call


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def held(home: Path, profile: str = "tiny", **more: str) -> Settings:
    given = {"home": str(home), "nats.url": ""} | {key.replace("__", "."): value for key, value in more.items()}
    return load(profile, given, {})


async def no_sandbox(_: Settings) -> list[Check]:
    return [Check("sandbox", "ok", "not looked at")]


ADDRESSED = [name for name in profiles() if name != "openai"]
"""Profiles that hold as they are: that one has no address until a person names one."""


def missing_by_start(settings: Settings) -> str:
    try:
        asyncio.run(require(settings))
    except RequirementsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("profile", ADDRESSED)
def test_the_doctor_and_a_start_say_the_same(profile, tmp_path, monkeypatch):
    """The sandbox apart: its self-test takes seconds, and has tests of its own."""
    monkeypatch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)
    settings = held(tmp_path, profile)
    assert all(doctor.LOOKS[name] is look for name, look in REQUIREMENTS.items() if name != "sandbox")
    looks = {name: look for name, look in doctor.LOOKS.items() if name != "sandbox"}

    async def failed() -> list[Check]:
        return [check async for check in examine(settings, looks) if check.state == "fail"]

    by_doctor, by_start = asyncio.run(failed()), missing_by_start(settings)
    assert [f"{check.name}: {check.detail.rstrip('.')}. {check.fix}" for check in by_doctor] == [
        line.removeprefix("- ") for line in by_start.splitlines()[1:]
    ]
    assert all(check.fix for check in by_doctor)


@pytest.mark.parametrize("profile", ADDRESSED)
def test_the_doctors_exit_code_is_that_of_a_start(profile, tmp_path, monkeypatch):
    """The commands themselves, on a machine without weights and servers; where nothing is missing no run is made."""
    monkeypatch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)
    monkeypatch.setitem(requirements.REQUIREMENTS, "log server", no_server)
    looks = ("settings", *(name for name in REQUIREMENTS if name != "sandbox"))
    chosen = {name: {**doctor.LOOKS, **REQUIREMENTS}[name] for name in looks}
    monkeypatch.setattr("agent0.cli.system.doctor.LOOKS", chosen)
    examined = call("doctor", "--json", "--profile", profile, home=tmp_path / "home")
    missing = [check["name"] for check in examined.json["checks"] if check["state"] == "fail"]
    if profile in ("tiny", "climb", "climb-teacher", "scripted", "long", "long-tiny", "llamacpp"):
        assert (examined.code, missing) == (0, [])
        return
    begun = call("run", "start", "--profile", profile, home=tmp_path / "home")
    named = [line.partition(":")[0].removeprefix("- ") for line in begun.err.splitlines() if line.startswith("- ")]
    assert (examined.code, begun.code) == (5, 5)
    assert named == missing and {"student model", "teacher model"} <= set(missing)
    assert not (tmp_path / "home" / "nats").exists()


async def no_server(_: Settings) -> list[Check]:
    return []


def test_a_start_names_everything_that_is_missing_and_records_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)
    usage = shutil.disk_usage(tmp_path)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    monkeypatch.setenv("PATH", str(tmp_path))
    url = "models.ollama_url=http://127.0.0.1:1"
    teacher = ("--set", "run.teacher.provider=ollama", "--set", "run.teacher.model=qwen2.5:3b")
    sets = ("--set", url, *teacher, "--set", "run.training.teacher.enabled=false")
    said = call("run", "start", "--profile", "3070ti", *sets, home=tmp_path / "home")
    assert said.code == 5
    for name in ("disk space", "student model", "teacher model", "gpu"):
        assert f"- {name}: " in said.err, name
    assert "ollama pull qwen2.5:3b" in said.err
    assert not (tmp_path / "home" / "nats").exists()


def test_a_start_that_waits_goes_on_when_nothing_is_missing(tmp_path, monkeypatch):
    looks = iter([["gpu", "disk"], ["gpu", "disk"], ["disk"], []])
    said: list[str] = []

    async def some(_: Settings) -> list[Check]:
        return [Check(name, "fail", "away", "Mend it.") for name in next(looks)]

    async def at_once(_: float) -> None:
        """No waiting here."""

    monkeypatch.setattr(requirements, "REQUIREMENTS", {"some": some})
    monkeypatch.setattr(requirements.asyncio, "sleep", at_once)
    asyncio.run(require(held(tmp_path), said.append))
    assert ["gpu" in text for text in said] == [True, False]
    assert next(looks, None) is None


def test_settings_that_hold_nowhere_are_no_missing_thing(tmp_path):
    with pytest.raises(ConfigError, match="no built-in model"):
        asyncio.run(require(held(tmp_path, run__student__model="none")))
    with pytest.raises(ConfigError, match="folder of a model"):
        asyncio.run(require(held(tmp_path, run__student__provider="transformers")))


def model(folder: Path) -> Path:
    """A folder of files as a saved model has them; the weights are empty but for their size."""
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(1 << 43)
    return folder


def first(checks: list[Check]) -> dict[str, Check]:
    """The first of each name: of this folder the template, before its weights."""
    return {check.name: check for check in reversed(checks)}


async def test_a_model_without_chat_template_and_too_large_for_memory_is_found(tmp_path):
    folder = model(tmp_path / "weights")
    settings = held(tmp_path, run__student__provider="transformers", run__student__model=str(folder))
    looks = {name: REQUIREMENTS[name] for name in ("models", "gpu")}
    found = first([check async for check in examine(settings, looks)])
    assert "chat template" in found["student model"].detail
    assert found["teacher model"].state == "ok"
    assert (found["memory"].state, found["gpu"].state) == ("fail", "warn")
    assert found["memory"].fix


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ messages[-1].content }}", "drops turn 0 (system)"),
        ("{{ raise_exception('Only users here!') }}", "Only users here!"),
        ("{% for message in messages %}", "cannot be read"),
    ],
)
async def test_a_template_that_refuses_or_loses_turns_is_found(tmp_path, template, said):
    folder = model(tmp_path / "weights")
    (folder / "chat_template.jinja").write_text(template)
    settings = held(tmp_path, run__student__provider="transformers", run__student__model=str(folder))
    found = first(await REQUIREMENTS["models"](settings))
    assert found["student model"].state == "fail" and found["teacher model"].state == "ok"
    assert said in found["student model"].detail and "chat template" in found["student model"].fix


async def test_only_packages_that_the_profile_uses_are_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(requirements, "_version", lambda package: "" if package in ("peft", "bitsandbytes") else "1")
    for profile, state in (("scripted", ["warn", "warn"]), ("tiny", ["fail", "warn"]), ("24gb", ["fail", "fail"])):
        found = {check.name: check for check in await REQUIREMENTS["packages"](held(tmp_path, profile))}
        assert [found[f"packages [{extra}]"].state for extra in ("train", "qlora")] == state


async def test_a_server_that_does_not_answer_is_missing_whatever_its_kind(tmp_path):
    pytest.importorskip("openai")
    nobody = {"models__ollama_url": "http://127.0.0.1:1", "run__student__base_url": "http://127.0.0.1:1/v1"}
    roles = {"run__student__provider": "openai", "run__teacher__provider": "ollama"}
    found = {check.name: check for check in await REQUIREMENTS["models"](held(tmp_path, **nobody, **roles))}
    assert (found["student model"].state, found["teacher model"].state) == ("fail", "fail")
    assert found["student model"].fix and found["teacher model"].fix
    assert "127.0.0.1:1" in found["student model"].detail


def test_a_log_server_that_is_away_is_named_with_everything_else_and_once(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "CONNECT_S", 0.1)
    monkeypatch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)
    settings = held(tmp_path, "ollama", nats__url="nats://127.0.0.1:1", models__ollama_url="http://127.0.0.1:1")
    said = missing_by_start(settings).splitlines()[1:]
    assert [line.partition(":")[0] for line in said] == ["- log server", "- student model", "- teacher model"]
    assert "nats://127.0.0.1:1 does not answer" in said[0] and "AGENT0_NATS_URL" in said[0]

    async def failed() -> list[str]:
        looks = {name: doctor.LOOKS[name] for name in ("log server", "log")}
        return [check.name async for check in examine(settings, looks) if check.state == "fail"]

    assert asyncio.run(failed()) == ["log server"]
