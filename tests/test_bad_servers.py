"""What is wrong with a run's models is found by ``run start`` before the first event: it is named, with the command
that mends it, and neither a key nor a prompt is in what is said or kept."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from agent0.assembly.validate import requirements
from agent0.assembly.validate.room import Check
from agent0.errors import RequirementsError
from agent0.infra.models.transformers import BASE, PACKAGED
from agent0.infra.weights.readable import check_readable
from agent0.settings import Settings
from tests.loopback import pages
from tests.memory import MemoryArtifacts
from tests.ollama_wire import serving as ollama
from tests.openai_server import serving as openai
from tests.terminal import Said
from tests.terminal import agent0 as call

KEY = "sk-not-to-be-shown"
UNTRAINED = ("run.training.student.enabled=false", "run.evaluation.forced_tool=false")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_sandbox(_: Settings) -> list[Check]:
        return [Check("sandbox", "ok", "has tests of its own")]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SERVER_KEY", KEY)
    monkeypatch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)


def refused(home: Path, *pairs: str) -> Said:
    """What a start with a student of these settings says: nothing may come of it."""
    sets = [word for pair in pairs for word in ("--set", pair)]
    said = call("run", "start", "--profile", "scripted", *sets, home=home)
    assert said.code in (2, 5), said.err
    assert not (home / "nats").exists() and not said.out
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert KEY not in said.err and KEY.encode() not in kept
    assert "Put your final answer" not in said.err and "You are" not in said.err
    return said


def by_ollama(url: str, name: str) -> tuple[str, ...]:
    return ("run.student.provider=ollama", f"run.student.model={name}", f"models.ollama_url={url}", *UNTRAINED)


def by_openai(url: str, name: str) -> tuple[str, ...]:
    own = ("run.student.provider=openai", f"run.student.model={name}", f"run.student.base_url={url}/v1")
    return (*own, "run.student.key_env=SERVER_KEY", *UNTRAINED)


def test_a_model_that_does_not_exist(tmp_path: Path) -> None:
    with ollama(MemoryArtifacts()) as server:
        said = refused(tmp_path / "home", *by_ollama(server.url, "nobody:7b"))
    assert "- student model: " in said.err and "ollama pull nobody:7b" in said.err
    with openai(models=("somebody",), key=KEY) as other:
        said = refused(tmp_path / "home", *by_openai(other.url, "nobody"))
    assert "no model nobody" in said.err and "somebody" in said.err
    said = refused(tmp_path / "home", "run.student.provider=transformers", "run.student.model=nobody")
    assert f"There is no folder {tmp_path / 'nobody'}" in said.err and "Name a folder" in said.err


def test_a_server_of_another_kind(tmp_path: Path) -> None:
    with pages() as url:
        for pairs, fix in (
            (by_ollama(url, "qwen2.5:3b"), "Set models.ollama_url"),
            (by_openai(url, "any"), "base_url"),
        ):
            said = refused(tmp_path / "home", *pairs)
            assert "- student model: " in said.err and url in said.err and fix in said.err, said.err
    with openai() as server:
        said = refused(tmp_path / "home", *by_ollama(server.url, "qwen2.5:3b"))
    assert "- student model: " in said.err and server.url in said.err and "use provider openai" in said.err
    with ollama(MemoryArtifacts()) as other:
        said = refused(tmp_path / "home", *by_openai(other.url, "nobody"))
    assert "- student model: " in said.err and other.url in said.err


def test_a_key_that_is_missing_or_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai(key=f"{KEY}-another") as server:
        said = refused(tmp_path / "home", *by_openai(server.url, "student"))
        assert "- student model: " in said.err and "SERVER_KEY" in said.err
        monkeypatch.delenv("SERVER_KEY")
        said = refused(tmp_path / "home", *by_openai(server.url, "student"))
    assert "SERVER_KEY is not set" in said.err and "export SERVER_KEY=" in said.err


def weights(folder: Path, template: str | None, size: int = 1 << 20) -> tuple[str, ...]:
    """Settings of a student with files as a saved model has them; the weights are empty but for their size."""
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(size)
    return ("run.student.provider=transformers", f"run.student.model={folder}")


def test_a_template_that_refuses_the_role_of_tools(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{% if m.role == 'tool' or m.role == 'user' and '<tool_response>' in m.content %}"
        "{{ raise_exception('Unknown role.') }}{% endif %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    )
    said = refused(tmp_path / "home", *weights(tmp_path / "model", template))
    assert "- student model: " in said.err and "Unknown role." in said.err and "chat template" in said.err


def test_a_tokenizer_without_a_template(tmp_path: Path) -> None:
    said = refused(tmp_path / "home", *weights(tmp_path / "model", None))
    assert "no chat template" in said.err and "Take an instruct model" in said.err


def test_weights_that_the_card_cannot_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cards() -> tuple[list[int], str]:
        return [8 << 30], "a card of 8 GiB"

    template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    monkeypatch.setattr(requirements, "_cards", cards)
    monkeypatch.setattr(requirements, "_version", lambda package: "1")
    pairs = (*weights(tmp_path / "model", template, 15 << 30), "run.student.device=cuda")
    said = refused(tmp_path / "home", *pairs)
    assert "- gpu memory: generating needs 16.5 GiB; 8.0 GiB free" in said.err and "4bit" in said.err


def adapter() -> bytes:
    """What a folder of an adapter has where weights are looked for."""
    return save({"base_model.model.layers.0.self_attn.q_proj.lora_A.weight": np.zeros((2, 2), np.float32)})


def test_a_folder_that_cannot_be_loaded(tmp_path: Path) -> None:
    """A broken download, a tokenizer that is none, a config.json of another model: before anything is loaded."""
    held = {path.name: path.read_bytes() for path in BASE.iterdir()}
    listed = json.dumps({"weight_map": {"lm_head.weight": "model-2.safetensors"}}).encode()
    config = json.loads(held["config.json"])
    changed: tuple[tuple[str, bytes, str], ...] = (
        ("model.safetensors", held["model.safetensors"][:200_000], "model.safetensors cannot be read"),
        ("tokenizer.json", b"{}", "tokenizer.json cannot be read"),
        ("config.json", json.dumps(config | {"hidden_size": 256}).encode(), "by config.json"),
        (
            "config.json",
            json.dumps(config | {"num_hidden_layers": 9, "layer_types": ["full_attention"] * 9}).encode(),
            "would be drawn at random",
        ),
        ("config.json", json.dumps(config | {"model_type": "qwen99"}).encode(), "describes no model"),
        ("config.json", b"{", "config.json cannot be read"),
        ("config.json", b"[]", "config.json cannot be read"),
        ("model.safetensors", (PACKAGED["climb"] / "model.safetensors").read_bytes(), "are of two models"),
        ("model.safetensors", adapter(), "None of its 1 tensors is one of the model"),
        ("tokenizer.json", (PACKAGED["long"] / "tokenizer.json").read_bytes(), "of 644 embeddings"),
        ("model.safetensors.index.json", listed, "lists tensors in model-2.safetensors"),
    )
    for number, (name, data, why) in enumerate(changed):
        folder = tmp_path / str(number)
        folder.mkdir()
        for one, content in (held | {name: data}).items():
            (folder / one).write_bytes(content)
        with pytest.raises(RequirementsError, match=re.escape(why)) as raised:
            check_readable(folder)
        assert "again" in raised.value.fix
    said = refused(tmp_path / "home", "run.student.provider=transformers", f"run.student.model={tmp_path / '0'}")
    assert "- student model: The weights" in said.err and "Download or save the model again" in said.err
    check_readable(BASE)


def test_a_key_that_is_written_where_its_name_belongs_is_not_repeated(tmp_path: Path) -> None:
    given = "run.student.provider=openai", "run.student.base_url=http://127.0.0.1:9/v1", *UNTRAINED
    for key in ("hf_secretSECRET5", "sk-secret3"):
        said = refused(tmp_path / "home", *given, f"run.student.key_env={key}")
        assert key not in said.err and "not the key" in said.err, said.err
