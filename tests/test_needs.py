"""What a model server, a template, a sandbox or an MCP server lacks is named with what mends it, before the first
event, whatever starts a run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.ablations.study import run_study
from agent0.assembly.ablations.study_request import StudyRequest
from agent0.assembly.validate import requirements
from agent0.assembly.validate.requirements import require
from agent0.assembly.validate.room import Check
from agent0.config.loading import load
from agent0.errors import RequirementsError
from agent0.experiments.ablation_study import AblationStudy, Variant
from agent0.settings import Settings
from tests import ollama_wire, openai_server
from tests.loopback import pages
from tests.memory import MemoryArtifacts
from tests.terminal import agent0 as call


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


async def no_sandbox(_: Settings) -> list[Check]:
    return []


def lacks(home: Path, **student: str) -> str:
    """What a run of profile tiny needs and has not, where its student is another."""
    given = {"home": str(home), "nats.url": ""} | {f"run.student.{key}": value for key, value in student.items()}
    if url := student.get("ollama"):
        del given["run.student.ollama"]
        given["models.ollama_url"] = url
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)  # type: ignore[arg-type]
        try:
            asyncio.run(require(load("tiny", given, {})))
        except RequirementsError as error:
            return str(error)
    return ""


def test_a_server_of_models_lacks_the_model_the_key_or_a_template(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    with openai_server.serving(level="logprobs", models=("a", "b")) as server:
        own = {"provider": "openai", "base_url": f"{server.url}/v1"}
        assert lacks(tmp_path, **own, model="a") == ""
        said = lacks(tmp_path, **own, model="nobody")
        assert "- student model: " in said and "no model nobody" in said and "Set run.student.model" in said
        said = lacks(tmp_path, **own, model="a", key_env="NO_SUCH_KEY")
        assert "- student model: " in said and "export NO_SUCH_KEY=..." in said
        server.single = True
        said = lacks(tmp_path, **own, model="a")
        assert "result of a tool call" in said and "must be one user" in said and "--chat-template-file" in said


def test_what_listens_is_a_server_of_another_kind(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    with pages() as url:
        said = lacks(tmp_path, provider="openai", base_url=f"{url}/v1")
        assert "a server of another kind: a page" in said and "correct run.student.base_url" in said
        said = lacks(tmp_path, provider="ollama", ollama=url)
        assert "is another server" in said and "Set models.ollama_url" in said
    with openai_server.serving() as server:
        assert "is a server of OpenAI's API. " in lacks(tmp_path, provider="ollama", ollama=server.url)
        server.key = "k"
        said = lacks(tmp_path, provider="ollama", ollama=server.url)
        assert "is a server of OpenAI's API, which wants a key. " in said and "OLLAMA_API_KEY" not in said
        assert "use provider openai" in said


def test_ollama_lacks_the_model_or_has_one_that_writes_nothing(tmp_path: Path) -> None:
    with ollama_wire.serving(MemoryArtifacts()) as server:
        own = {"provider": "ollama", "ollama": server.url}
        assert lacks(tmp_path, **own) == ""
        missing = lacks(tmp_path, **own, model="nobody")
        assert "It has: qwen2.5:3b" in missing and "ollama pull nobody" in missing
        server.capabilities = ("embedding",)
        said = lacks(tmp_path, **own)
        assert "writes no text" in said and "It can: embedding." in said and "ollama pull" in said
        assert len(server.asked) == 1, "nothing is generated to find that out"


def test_a_fork_asks_for_what_its_settings_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)  # type: ignore[arg-type]
    begun = call("run", "start", "--profile", "scripted", "--detach", "--json", home=tmp_path)
    url = ("--set", "student.provider=openai", "--set", "student.base_url=http://127.0.0.1:1/v1")
    calm = ("--set", "training.student.enabled=false", "--set", "evaluation.forced_tool=false")
    said = call("run", "fork", begun.json["run"], *url, *calm, home=tmp_path)
    assert said.code == 5, said.err
    assert "- student model: " in said.err and "Nothing answers at http://127.0.0.1:1" in said.err
    assert [row["run"] for row in call("run", "list", "--json", home=tmp_path).json] == [begun.json["run"]]


def test_a_study_asks_once_for_what_all_its_variants_need(tmp_path: Path) -> None:
    pytest.importorskip("openai")
    own: dict[str, Any] = {"student.provider": "openai", "student.base_url": "http://127.0.0.1:1/v1"}
    own |= {"training.student.enabled": "false"}
    variants = (Variant("here"), *(Variant(f"there-{n}", {**own, "tasks": str(n)}) for n in (3, 4)))
    study = AblationStudy("Which?", variants, settings={"evaluation.forced_tool": "false"})
    settings = load("scripted", {"home": str(tmp_path), "nats.url": ""}, {})
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RequirementsError) as caught:
        patch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)  # type: ignore[arg-type]
        asyncio.run(run_study(settings, StudyRequest(study, "x", "scripted", (0,))))
    assert str(caught.value).count("- student model: ") == 1
    assert not (tmp_path / "grids").exists()


def test_sandbox_and_mcp_servers_are_in_the_same_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are tested by opening them, and named as all else; what the run would do is not recorded."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "agent0.toml").write_text('[mcp.servers.far]\ntransport = "http"\nurl = "http://127.0.0.1:1/mcp"\n')
    said = call("run", "start", "--profile", "scripted", home=tmp_path / "home")
    assert said.code == 5, said.err
    lines = [line for line in said.err.splitlines() if line.startswith("- ")]
    assert "needs what is not here" in said.err
    assert any(line.startswith("- sandbox zygote-bwrap: ") for line in lines)
    assert any(line.startswith("- mcp servers: ") and "agent0 tool mcp far" in line for line in lines)
    assert call("run", "list", "--json", home=tmp_path / "home").json == []
