"""A checkpoint becomes a model of an Ollama server by the way that its version takes, and told from the base there."""

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader

from agent0.assembly.runtime.doctor import LOOKS
from agent0.assembly.validate.requirements import examine
from agent0.config.loading import load
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.merge import merged, read_lora
from agent0.infra.weights.safetensors_io import Weights
from tests.adapters import adapter
from tests.ollama_server import OllamaServer
from tests.serving.conftest import RUN, STEP, call

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's, 2026-11
PUSH = ("push", f"{RUN}/{STEP}", "--name", "student")


def test_what_is_pushed_is_asked_whether_it_is_the_trained_one(home: Path, server: OllamaServer, here: None) -> None:
    """By the very command, merged or apart, and the base alone is told apart by the same questions."""
    for way in ("adapter", "merged"):
        said = call(home, *PUSH, "--host", server.url, "--as", way, "--replace")
        assert said.code == 0 and said.json["way"] == way, said.err
        verdict, numbers = said.json["verify"]["verdict"], said.json["verify"]["probes"]
        assert verdict.startswith(f"this is {RUN}/{STEP} as trained") and numbers["same_text"] == numbers["probes"] == 8
        assert numbers["largest"] < 1e-3 < said.json["verify"]["untrained"]["mean"]
    server.made["student"] = {"files": {"base.gguf": next(iter(server.blobs))}}
    base = call(home, "verify", f"{RUN}/{STEP}", "--name", "student", "--url", server.url)
    assert base.code == 3 and "as the untrained base does" in base.json["verdict"]
    with pytest.MonkeyPatch.context() as patch:  # a server that makes what it is given, but serves the base
        patch.setattr(server, "adapted", lambda name: False)
        said = call(home, *PUSH, "--host", server.url, "--replace")
    assert said.code == 3 and "ollama rm student" in said.err
    assert "as the untrained base does" in said.json["verify"]["verdict"]
    other = call(home, "verify", "exp-again/s009", "--name", "student", "--url", server.url)
    assert other.json["verdict"].startswith("this is not exp-again/s009 as trained: probes")


def test_an_adapter_that_hardly_moved_its_quantised_base_is_told_by_its_file(
    home: Path, server: OllamaServer, here: None
) -> None:
    """Where probes cannot tell; merged, where there is no file of its own, nothing can."""
    exact = server.writes
    assert exact is not None

    def rounded(model: str, prompt: str, most: int) -> tuple[str, list[tuple[str, float]]]:
        text, tokens = exact("base", prompt, most)
        return text, [(token, value - 0.1) for token, value in tokens]

    server.writes = rounded
    words = ("push", "exp-again/s010", "--name", "weak", "--host", server.url, "--from", "qwen2.5:3b", "--replace")
    said = call(home, *words)
    assert said.code == 0 and "exp-again/s010, by its adapter's file alone" in said.json["verify"]["verdict"]
    said = call(home, *words, "--as", "merged")
    assert said.code == 3 and "not distinguish this from the untrained base" in said.json["verify"]["verdict"]
    assert said.json["quantize"] == "Q4_K_M" and "--quantize q8_0" in said.err
    said = call(home, *PUSH, "--host", server.url, "--from", "qwen2.5:3b")
    assert said.code == 3 and "as the untrained base does" in said.json["verify"]["verdict"]


def test_a_name_that_is_taken_is_left_alone(home: Path, server: OllamaServer) -> None:
    server.made["student"] = {"files": {"model.gguf": "sha256:1"}}
    said = call(home, *PUSH, "--host", server.url, "--no-verify")
    assert said.code == 1 and "a model student already" in said.err and "--replace" in said.err
    assert server.made["student"] == {"files": {"model.gguf": "sha256:1"}} and not server.blobs and not server.asked
    assert call(home, *PUSH, "--host", server.url, "--no-verify", "--replace").code == 0
    assert "adapters" in server.made["student"]


def test_a_merged_model_gets_the_quantisation_of_its_base(home: Path, server: OllamaServer) -> None:
    server.version = "0.34.1"
    words = (*PUSH, "--host", server.url, "--no-verify", "--replace", "--from", "qwen2.5:3b")
    said = call(home, *words)
    assert said.code == 0 and (said.json["way"], said.json["quantize"]) == ("merged", "Q4_K_M")
    (sha,) = server.made["student"]["files"].values()
    assert server.asked[-1] == {
        "model": "student",
        "stream": False,
        "files": {"model.gguf": sha},
        "quantize": "Q4_K_M",
        "parameters": {"num_ctx": 2048, "stop": ["<|im_end|>"]},
    }
    path = home / "read-back.gguf"
    path.write_bytes(server.blobs[sha])
    reader = GGUFReader(path)
    weight = merged(read_lora(adapter(BASE)), Weights.of_folder(BASE))("model.layers.0.mlp.up_proj.weight")
    written = next(tensor for tensor in reader.tensors if tensor.name == "blk.0.ffn_up.weight")
    assert written.data.dtype == np.float16 and (written.data == weight.astype(np.float16)).all()
    assert next(t for t in reader.tensors if t.name == "blk.0.ffn_norm.weight").data.dtype == np.float32
    server.level = "Q4_0"
    said = call(home, *words)
    assert said.code == 1 and "does not quantise to Q4_0" in said.err and "Q8_0" in said.err
    refused = call(home, *words, "--quantize", "q3").err
    assert "does not quantise to Q3" in refused and "is Q3" not in refused
    assert call(home, *words, "--quantize", "q8_0").json["quantize"] == "Q8_0"


def test_a_making_that_fails_half_way_is_told_and_can_be_repeated(
    home: Path, server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends, its disk is full, or this machine's is: one sentence each, and the next push succeeds."""
    words = (*PUSH, "--host", server.url, "--no-verify")
    make = server.create

    def ends(_: object) -> None:
        raise ConnectionAbortedError

    monkeypatch.setattr(server, "create", ends)
    said = call(home, *words)
    assert said.code == 5 and "It ended while it made student" in said.err and server.made == {}
    full = "write /models/blobs/sha256-1: no space left on device"
    monkeypatch.setattr(server, "create", lambda body: (500, {"error": full}))
    said = call(home, *words)
    assert said.code == 5 and full in said.err and "OLLAMA_MODELS" in said.err and server.made == {}
    monkeypatch.setattr("agent0.assembly.models.export.ROOM", 1e12)
    assert "TMPDIR" in call(home, *words).err
    monkeypatch.undo()
    monkeypatch.setattr(server, "create", make)
    assert call(home, *words).code == 0 and "student" in server.made


@pytest.mark.parametrize(
    ("version", "state", "words"),
    [
        ("0.12.11", "warn", "older than 0.30"),
        ("0.33.0", "ok", "an adapter beside its base"),
        ("0.34.1", "ok", "takes no adapters"),
    ],
)
async def test_the_doctor_tells_how_a_version_takes_it(
    server: OllamaServer, version: str, state: str, words: str
) -> None:
    server.version = version
    look = {"ollama": LOOKS["ollama"]}
    [check] = [check async for check in examine(load("tiny", {"models.ollama_url": server.url}, {}), look)]
    assert (check.state, check.detail.startswith(version), words in check.detail) == (state, True, True)
    nobody = load("tiny", {"models.ollama_url": "http://127.0.0.1:9"}, {})
    assert [check async for check in examine(nobody, look)] == []
