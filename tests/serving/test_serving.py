"""Checkpoints leave for other programs whole or not at all, and what is served there is told from what was trained."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agent0.infra.models.transformers import BASE
from agent0.infra.storage.files import file_digest
from agent0.infra.weights.gguf import write_adapter
from agent0.infra.weights.merge import read_lora
from agent0.infra.weights.safetensors_io import Weights, digest, write
from tests import llama_server
from tests.ollama_server import OllamaServer
from tests.serving.conftest import OTHER, RETRAIN, RUN, STEP, call

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's, 2026-11
real = pytest.mark.skipif(bool(llama_server.MISSING), reason=llama_server.MISSING)
ONLY = ("--replace", "--no-verify", "--host")


@pytest.mark.parametrize(
    ("form", "files"),
    [
        ("adapter", {"adapter_config.json", "adapter_model.safetensors", "metadata.json"}),
        ("gguf", {"base.gguf", "adapter.gguf"}),
        ("gguf-merged", {"model.gguf"}),
        ("merged", {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"}),
    ],
)
def test_every_form_is_written_whole_and_told_by_digest(home: Path, tmp_path: Path, form: str, files: set[str]) -> None:
    out = tmp_path / "deep" / "out"
    said = call(home, "export", f"{RUN}/{STEP}", "--format", form, "--out", str(out))
    assert said.code == 0, said.err
    found = said.json["files"]
    assert files <= set(found) and set(found) | {"served.json"} == {path.name for path in out.iterdir()}
    assert all(file_digest(out / name) == sha for name, sha in found.items())
    assert said.json["base"]["sha256"] == digest(BASE) and said.json["checkpoint"] == f"{RUN}/{STEP}"
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert call(home, "verify", f"{RUN}/{STEP}", "--folder", str(out)).json["agree"] is True
    assert ("text may be cut elsewhere" in said.err) is form.startswith("gguf")
    again = call(home, "export", f"{RUN}/{STEP}", "--format", form, "--out", str(out))
    assert again.code != 0 and "no empty folder" in again.err
    victim = out / sorted(files)[0]
    victim.write_bytes(victim.read_bytes() + b"x")
    damaged = call(home, "verify", f"{RUN}/{STEP}", "--folder", str(out))
    assert damaged.code != 0 and "damaged" in damaged.err and "agent0 model export" in damaged.err
    victim.unlink()
    assert "missing" in call(home, "verify", f"{RUN}/{STEP}", "--folder", str(out)).err


def test_files_of_another_checkpoint_are_told(home: Path, tmp_path: Path) -> None:
    assert call(home, "export", "exp-again/s009", "--format", "adapter", "--out", str(tmp_path / "a")).code == 0
    said = call(home, "verify", f"{RUN}/{STEP}", "--folder", str(tmp_path / "a"))
    assert said.code != 0 and "another checkpoint" in said.err
    assert "no note of an export" in call(home, "verify", f"{RUN}/{STEP}", "--folder", str(tmp_path)).err


@pytest.fixture(scope="module")
def wider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base of another shape."""
    folder = tmp_path_factory.mktemp("wider") / "base"
    shutil.copytree(BASE, folder)
    base = Weights.of_folder(BASE)
    shapes = {name: tuple(2 * n for n in base.shape(name)) for name in base}
    write(folder / "model.safetensors", shapes, lambda name: _doubled(base.read(name)), "F32")
    return folder


def _doubled(array: Any) -> Any:
    return array.repeat(2, 0) if array.ndim == 1 else array.repeat(2, 0).repeat(2, 1)


@pytest.mark.parametrize(
    ("checkpoint", "words"),
    [
        (f"{RUN}/s002", "no weights of its own"),
        (f"{RUN}/s003", "damaged"),
        (f"{RUN}/s007", f"was pruned: its adapter was thrown away. To save room. To make it again: {RETRAIN} {RUN}"),
        (f"{RUN}/s004", "does not fit this base"),
        (f"{RUN}/s005", "no checkpoint"),
        (f"{OTHER}/{STEP}", "provider scripted hold no weights"),
    ],
)
def test_what_cannot_be_served_leaves_nothing_behind(home: Path, tmp_path: Path, checkpoint: str, words: str) -> None:
    said = call(home, "export", checkpoint, "--out", str(tmp_path / "out"))
    assert said.code != 0 and words in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_base_of_another_shape_is_refused(home: Path, tmp_path: Path, wider: Path) -> None:
    out = ("--out", str(tmp_path / "out"), "--base")
    for checkpoint in (f"{RUN}/{STEP}", "exp-again/s009"):
        said = call(home, "export", checkpoint, *out, str(wider))
        assert said.code != 0 and "does not fit this base" in said.err and "--base" in said.err
    assert "There is no folder" in call(home, "export", f"{RUN}/{STEP}", *out, str(tmp_path / "none")).err
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_leaves_nothing(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agent0.infra.weights.gguf._write", full)
    said = call(home, "export", f"{RUN}/{STEP}", "--out", str(tmp_path / "out"))
    assert said.code != 0 and list(tmp_path.iterdir()) == []
    monkeypatch.setattr("agent0.assembly.models.export.ROOM", 1e12)
    assert "disk space" in call(home, "export", f"{RUN}/{STEP}", "--out", str(tmp_path / "out")).err


@real
@pytest.mark.slow  # part of make crash
def test_a_real_server_is_told_from_one_with_other_weights(home: Path, tmp_path: Path, here: None) -> None:
    out = tmp_path / "out"
    assert call(home, "export", f"{RUN}/{STEP}", "--out", str(out)).code == 0
    with llama_server.serving(out / "base.gguf", out / "adapter.gguf") as url:
        said = call(home, "verify", f"{RUN}/{STEP}", "--url", url)
        other = call(home, "verify", "exp-again/s009", "--url", url)
    found = said.json if said.code == 0 else pytest.fail(said.err)
    assert found["agrees"] and found["adapter"]["agree"] and found["template"]["agree"]
    for name in ("probes", "base"):
        assert found[name]["agree"] and found[name]["largest"] < 1e-3 and found[name]["tokens"] > 20
    assert not found["untrained"]["agree"]
    assert other.code == 3 and "what was trained" in other.err
    assert not other.json["adapter"]["agree"] and not other.json["probes"]["agree"] and other.json["base"]["agree"]


def test_a_full_adapter_leaves_merged(home: Path, server: OllamaServer, tmp_path: Path, here: None) -> None:
    """As files and to a server that would take an adapter; what it serves is told by its probes."""
    for form, name in (("adapter", "adapter_model.safetensors"), ("merged", "model.safetensors")):
        assert call(home, "export", f"{RUN}/s006", "--format", form, "--out", str(tmp_path / form)).code == 0
        assert (tmp_path / form / name).is_file()
        assert call(home, "verify", f"{RUN}/s006", "--folder", str(tmp_path / form)).json["agree"] is True
    kept, left = (Weights.of_folder(tmp_path / form) for form in ("adapter", "merged"))
    assert set(kept) == set(left) and all((kept.read(name) == left.read(name)).all() for name in kept)
    said = call(home, "export", f"{RUN}/s006", "--format", "gguf", "--out", str(tmp_path / "gguf"))
    assert said.code != 0 and "gguf-merged" in said.err and not (tmp_path / "gguf").exists()
    words = ("push", f"{RUN}/s006", "--name", "student", "--host", server.url, "--no-verify")
    said = call(home, *words, "--as", "adapter")
    assert said.code != 0 and "--as merged" in said.err and not server.asked
    assert call(home, *words).code == 0
    assert set(server.asked[-1]["files"]) == {"model.gguf"} and "adapters" not in server.asked[-1]
    found = call(home, "verify", f"{RUN}/s006", "--name", "student", "--url", server.url).json
    assert found["agrees"] and found["adapter"]["agree"] is None and not found["untrained"]["agree"]
    assert not call(home, "verify", "exp-again/s009", "--name", "student", "--url", server.url).json["probes"]["agree"]


@real
def test_a_merged_model_is_told_by_its_probes(home: Path, tmp_path: Path, here: None) -> None:
    out = tmp_path / "out"
    call(home, "export", f"{RUN}/{STEP}", "--format", "gguf-merged", "--out", str(out))
    with llama_server.serving(out / "model.gguf") as url:
        found = call(home, "verify", f"{RUN}/{STEP}", "--url", url).json
    assert found["agrees"] and found["adapter"]["agree"] is None and found["base"] == "not computed by this server"


def test_an_adapter_is_handed_over_and_found_again(
    home: Path, server: OllamaServer, data: bytes, tmp_path: Path, here: None
) -> None:
    assert call(home, "push", f"{RUN}/{STEP}", "--name", "student:i001", *ONLY, server.url).code == 0
    (asked,) = server.asked
    write_adapter(read_lora(data), BASE, tmp_path / "adapter.gguf")
    assert asked["adapters"] == {"adapter.gguf": f"sha256:{file_digest(tmp_path / 'adapter.gguf')}"}
    assert set(asked["files"]) == {"base.gguf"} and "from" not in asked and asked["stream"] is False
    assert asked["parameters"] == {"num_ctx": 2048, "stop": ["<|im_end|>"]} and len(server.blobs) == 2
    assert call(home, "push", f"{RUN}/{STEP}", "--name", "student:i001", *ONLY, server.url).code == 0
    found = call(home, "verify", f"{RUN}/{STEP}", "--name", "student:i001", "--url", server.url)
    assert found.code == 0 and found.json["adapter"]["agree"] and found.json["template"]["agree"]
    assert found.json["probes"]["by"] == "token text" and found.json["probes"]["largest"] < 1e-4
    server.offers_logprobs = False
    found = call(home, "verify", f"{RUN}/{STEP}", "--name", "student:i001", "--url", server.url)
    assert found.code == 0 and "no log-probabilities" in found.json["probes"]["note"]
    other = call(home, "verify", "exp-again/s009", "--name", "student:i001", "--url", server.url)
    assert other.code == 3 and not other.json["probes"]["agree"]


def test_a_base_that_the_server_has_is_named_not_sent(home: Path, server: OllamaServer, here: None) -> None:
    words = ("push", f"{RUN}/{STEP}", "--name", "student", *ONLY, server.url, "--from", "qwen2.5:3b")
    assert call(home, *words).code == 0
    assert (server.asked[-1]["from"], "files" in server.asked[-1], len(server.blobs)) == ("qwen2.5:3b", False, 1)
    found = call(home, "verify", f"{RUN}/{STEP}", "--name", "student", "--url", server.url).json
    assert found["base"]["agree"] and not found["untrained"]["agree"]
    server.infos["qwen2.5:3b"] = {"qwen2.embedding_length": 2048}
    said = call(home, *words)
    assert said.code != 0 and "embedding_length 2048, not 128" in said.err
    assert "not found" in call(home, *words[:-1], "llama3.2").err


def test_newer_servers_get_it_merged(home: Path, server: OllamaServer, here: None) -> None:
    server.version = "0.34.1"
    words = ("push", f"{RUN}/{STEP}", "--name", "student", *ONLY, server.url)
    assert call(home, *words, "--quantize", "q8_0").code == 0
    asked = server.asked[-1]
    assert set(asked["files"]) == {"model.gguf"} and "adapters" not in asked and asked["quantize"] == "Q8_0"
    said = call(home, *words, "--as", "adapter")
    assert said.code != 0 and "0.34.1" in said.err and "merged" in said.err
    found = call(home, "verify", f"{RUN}/{STEP}", "--name", "student", "--url", server.url).json
    assert found["agrees"] and found["adapter"]["agree"] is None


def test_old_and_absent_servers_are_clear(home: Path, server: OllamaServer) -> None:
    words = ("push", f"{RUN}/{STEP}", "--name", "student", "--host")
    server.version = "0.12.11"
    said = call(home, *words, server.url)
    assert said.code == 5 and "0.12.11, not 0.30" in said.err and "Update Ollama" in said.err
    server.version = "0.33.0-rc1"
    server.spoils = True
    said = call(home, *words, server.url)
    assert said.code != 0 and "digest mismatch" in said.err and server.made == {}
    for there in ("http://127.0.0.1:9", "nonsense"):
        said = call(home, *words, there)
        assert said.code == 5 and "Nothing answers" in said.err and "ollama serve" in said.err


def test_which_model_must_be_said_and_be_there(home: Path, server: OllamaServer, here: None) -> None:
    said = call(home, "verify", f"{RUN}/{STEP}", "--url", server.url)
    assert said.code == 2 and "--name" in said.err
    assert "ollama list" in call(home, "verify", f"{RUN}/{STEP}", "--url", server.url, "--name", "nobody").err
    assert call(home, "verify", f"{RUN}/{STEP}", "--url", "http://127.0.0.1:9").code == 5


def test_a_rewritten_file_and_another_template_are_shown(home: Path, server: OllamaServer, here: None) -> None:
    call(home, "push", f"{RUN}/{STEP}", "--name", "student", *ONLY, server.url)
    server.made["student"] |= {"adapters": {"adapter.gguf": f"sha256:{'f' * 64}"}}
    rewritten = call(home, "verify", f"{RUN}/{STEP}", "--name", "student", "--url", server.url)
    assert rewritten.code == 0 and rewritten.json["adapter"]["agree"] is None
    server.renders = lambda messages: f"[INST] {messages[0]['content']} [/INST]"
    said = call(home, "verify", f"{RUN}/{STEP}", "--name", "student", "--url", server.url)
    assert said.code == 3 and said.json["template"]["differs"].startswith("[INST]") and said.json["probes"]["agree"]


@pytest.mark.ollama
def test_a_real_ollama_serves_what_was_trained(home: Path) -> None:
    """Needs ``ollama serve`` (0.30 or newer) on its default port."""
    words = ("--name", "agent0-parity-test", "--url", "http://127.0.0.1:11434")
    assert call(home, "push", f"{RUN}/{STEP}", *words, "--replace").json["verify"]["agrees"]
