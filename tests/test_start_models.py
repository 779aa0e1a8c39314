"""What a run asks of its models before the first event, and remembers of where they are."""

import asyncio
from pathlib import Path

import pytest

from agent0.assembly.runtime.app import started
from agent0.assembly.validate import requirements
from agent0.assembly.validate.requirements import REQUIREMENTS
from agent0.assembly.validate.room import Check
from agent0.config.loading import load
from agent0.events.runs import RunStarted
from agent0.settings import RunConfig, Settings
from agent0.settings.process import USUAL_OLLAMA
from tests import ollama_wire
from tests.memory import MemoryArtifacts
from tests.terminal import agent0 as call


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def held(home: Path, profile: str, **more: str) -> Settings:
    return load(profile, {"home": str(home), "nats.url": ""} | {k.replace("__", "."): v for k, v in more.items()}, {})


def models(settings: Settings) -> list[Check]:
    return [check for check in asyncio.run(REQUIREMENTS["models"](settings)) if check.state == "fail"]


def test_an_ollama_that_refuses_every_chat_is_found_before_the_start(tmp_path: Path) -> None:
    with ollama_wire.serving(MemoryArtifacts()) as server:
        assert models(held(tmp_path, "ollama", models__ollama_url=server.url)) == []
        assert all(body["options"]["num_predict"] == 1 for body in server.asked) and len(server.asked) == 2
        server.fail, server.failing = 400, 'template: :3: function "raise" not defined'
        found = models(held(tmp_path, "ollama", models__ollama_url=server.url))
    assert [check.name for check in found] == ["student model", "teacher model"]
    assert "not defined" in found[0].detail and "result of a tool call" in found[0].detail
    assert "ollama show --template qwen2.5:7b" in found[0].fix


def test_all_that_profile_vllm_lacks_is_one_message(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    nowhere = "http://127.0.0.1:1/v1"
    own = {"run__student__base_url": nowhere, "run__student__key_env": "NO_SUCH_KEY", "run__teacher__base_url": nowhere}
    found = [check for check in models(held(tmp_path, "vllm", **own)) if check.name == "student model"]
    said = "\n".join(f"{check.detail} {check.fix}" for check in found)
    assert len(found) == 3, said
    assert "export NO_SUCH_KEY=" in said
    assert f"There is no folder {tmp_path / 'Qwen2.5-7B-Instruct'}" in said
    assert "hf download Qwen/Qwen2.5-7B-Instruct --local-dir Qwen2.5-7B-Instruct" in said
    assert "Nothing answers at http://127.0.0.1:1" in said and "Errno" not in said


def test_a_name_alone_is_of_both_roles_and_where_it_is_not_stored_that_is_said(tmp_path: Path) -> None:
    for command in (("run", "start"), ("doctor",)):
        said = call(*command, "--model", "qwen3-0.6b", home=tmp_path)
        text = (said.out + said.err).replace("\t", " ")
        assert said.code == 5 and text.count("It is not stored here (609 MiB, licence Apache-2.0).") == 2, text
        assert text.count("agent0 model get qwen3-0.6b") == 2 and "student model" in text and "teacher model" in text


def test_who_resumes_asks_the_server_that_the_run_began_with(tmp_path: Path) -> None:
    there = held(tmp_path, "ollama", models__ollama_url="http://10.1.2.3:11434")
    event = started(there).event
    assert isinstance(event, RunStarted)
    actor, later = RunConfig.recorded(event.config, event.servers).student, held(tmp_path, "ollama")
    assert later.models.ollama_address(actor) == "http://10.1.2.3:11434"
    moved = held(tmp_path, "ollama", models__ollama_url="http://10.9.9.9:11434")
    assert moved.models.ollama_address(actor) == "http://10.9.9.9:11434", "what is said now wins"
    assert later.models.ollama_address(held(tmp_path, "ollama").run.student) == USUAL_OLLAMA
    assert held(tmp_path, "scripted", models__ollama_url="http://10.1.2.3:1").recorded_run.student.base_url == ""
    secret = held(tmp_path, "ollama", models__ollama_url="http://me:secret@10.1.2.3:11434")
    assert "secret" not in secret.recorded_run.model_dump_json()


def test_the_doctor_takes_settings_as_a_start_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: Settings) -> list[Check]:
        return []

    monkeypatch.setattr("agent0.cli.system.doctor.LOOKS", {"models": REQUIREMENTS["models"]})
    monkeypatch.setitem(requirements.REQUIREMENTS, "sandbox", nothing)
    with ollama_wire.serving(MemoryArtifacts()) as server:
        pair = ("--set", f"models.ollama_url={server.url}")
        said = call("doctor", "--profile", "ollama", *pair, "--json", home=tmp_path / "home")
    assert said.code == 0, said.out


@pytest.mark.parametrize("profile", ["3070ti", "24gb", "80gb", "ollama", "vllm", "cluster"])
def test_every_profile_of_large_models_has_file_tools_and_rollback(profile: str, tmp_path: Path) -> None:
    tools = held(tmp_path, profile).run.student.tools
    assert {"write_file", "read_file", "edit_file", "plan", "rollback", "submit_answer"} <= set(tools)
