"""A GGUF file as a folder: the same weights, names and texts as those that it was written of, and what is of another
kind, damaged or too large is named in one line, with nothing left behind."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from agent0.assembly.runtime.providers import provider_of
from agent0.errors import DependencyError, OperationError
from agent0.infra.engine.inference import Engine
from agent0.infra.models.llama_cpp import LlamaCpp
from agent0.infra.models.transformers import BASE
from agent0.infra.weights import dequantise, gguf, gguf_text
from agent0.infra.weights.dequantise import dequantised, folder_of, has_weights, text_folder, unusable
from agent0.infra.weights.gguf import QWEN2_SPLIT, TINY_SPLIT, write_base
from agent0.infra.weights.safetensors_io import Weights
from agent0.settings import StudentConfig
from tests.adapters import adapter
from tests.conformance_model import ask
from tests.llama_server import MISSING
from tests.memory import MemoryArtifacts

quants = pytest.importorskip("gguf.quants")
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's, 2026-11
SIZES: dict[str, Any] = {
    "vocab_size": 650, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "initializer_range": 0.1, "eos_token_id": 613,
}  # fmt: skip


def saved(family: str, folder: Path, **more: Any) -> Path:
    """A model with random weights, norms and biases."""
    import transformers

    torch.manual_seed(3)
    config = getattr(transformers, f"{family}Config")(**SIZES | {"tie_word_embeddings": True} | more)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    with torch.no_grad():
        for name, values in model.named_parameters():
            if "norm" in name or name.endswith("bias"):
                values.add_(torch.randn_like(values) * 0.3)
    model.save_pretrained(folder)
    return with_text(folder)


def with_text(folder: Path) -> Path:
    """The built-in tokenizer and template in ``folder``; it cuts text in a way that GGUF has a name for."""
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(BASE / name, folder / name)
    text = (BASE / "tokenizer.json").read_text(encoding="utf-8")
    (folder / "tokenizer.json").write_text(text.replace(json.dumps(TINY_SPLIT), json.dumps(QWEN2_SPLIT)))
    return folder


def quantised(folder: Path, out: Path, kind_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """``folder`` as a GGUF file whose tensors are of the kind that ``kind_of`` says of their names."""

    def write(writer: Any, shapes: Any, read: Any, half: bool) -> None:
        for name in shapes:
            kind = quants.GGMLQuantizationType[kind_of(name) if len(shapes[name]) > 1 else "F32"]
            writer.add_tensor(name, quants.quantize(np.ascontiguousarray(read(name)), kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    with monkeypatch.context() as patch:
        patch.setattr(gguf, "_write", write)
        write_base(folder, out)
    return out


def distance(first: Path, second: Path) -> float:
    """The largest difference of two folders' weights by size; they have the same names."""
    left, right = Weights.of_folder(first), Weights.of_folder(second)
    assert set(left) == set(right)
    return max(float(np.abs(left.read(n) - right.read(n)).max() / np.abs(left.read(n)).max()) for n in left)


@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("Qwen2", {"tie_word_embeddings": False}),
        ("Qwen2", {"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}),
        ("Qwen3", {"head_dim": 32, "rms_norm_eps": 3e-5}),
        ("Llama", {}),
    ],
)
def test_a_file_is_the_folder_that_it_was_written_of(family: str, more: Any, tmp_path: Path) -> None:
    folder, file = saved(family, tmp_path / "model", **more), tmp_path / "a.gguf"
    write_base(folder, file)
    assert not unusable(file) and not has_weights(file)
    copy = dequantised(file)
    assert distance(folder, copy) < 1e-3 and has_weights(file)
    before, after = (Engine(str(path)) for path in (folder, copy))
    ids = torch.tensor([[612, 5, 615, 361, 285, 220]])
    with torch.inference_mode():
        first, second = (torch.log_softmax(engine._model(ids).logits, -1) for engine in (before, after))
    assert float((first - second).abs().max()) < 0.05
    texts = ["What is 6 * 7?\n\n  Größe 12345 π", "<|im_start|>user\nI'll<|im_end|>", "def f(x):\n    return x"]
    tokenizers = [Tokenizer.from_file(str(path / "tokenizer.json")) for path in (folder, copy)]
    for text in texts:
        assert tokenizers[0].encode(text).ids == tokenizers[1].encode(text).ids
    assert gguf.chat_template(copy) == gguf.chat_template(folder)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "F16"])
def test_blocks_are_dequantised(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved("Qwen2", tmp_path / "model")
    copy = dequantised(quantised(folder, tmp_path / "a.gguf", lambda _: kind, monkeypatch))
    assert distance(folder, copy) < {"Q8_0": 0.01, "Q4_0": 0.15, "F16": 1e-3}[kind]


def test_a_head_that_is_the_embedding_but_for_rounding_is_tied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finer of the two is kept."""
    folder = saved("Qwen2", tmp_path / "model")
    weights = Weights.of_folder(folder)
    shapes = {name: weights.shape(name) for name in weights} | {"lm_head.weight": (650, 64)}
    embedding = weights.read("model.embed_tokens.weight")
    apart = tmp_path / "apart"
    shutil.copytree(folder, apart)
    config = json.loads((folder / "config.json").read_text()) | {"tie_word_embeddings": False}
    (apart / "config.json").write_text(json.dumps(config))
    gguf_io = dequantise.write
    gguf_io(apart / "model.safetensors", shapes, lambda n: embedding if n.startswith("lm") else weights.read(n), "F32")
    kinds = {"output.weight": "Q8_0", "token_embd.weight": "Q4_0"}
    copy = dequantised(quantised(apart, tmp_path / "a.gguf", lambda name: kinds.get(name, "F32"), monkeypatch))
    assert json.loads((copy / "config.json").read_text())["tie_word_embeddings"] is True
    assert distance(folder, copy) < 0.01


def test_llama_3_rotates_by_its_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file holds what comes out of the formula; transformers takes its parameters."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaled = {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 32.0, **dequantise.LLAMA3}
    folder = saved("Llama", tmp_path / "model", rope_parameters={"rope_theta": 500_000.0, "rope_type": "default"})
    from transformers import LlamaConfig

    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](LlamaConfig(**SIZES, rope_parameters=scaled), "cpu")
    plain = 500_000.0 ** -(np.arange(0, 16, 2) / 16)
    write = gguf._write

    def with_divisors(divisors: Any) -> Any:
        def written(writer: Any, shapes: Any, read: Any, half: bool) -> None:
            more = {"rope_freqs.weight": (8,), **shapes}
            write(writer, more, lambda n: divisors if n == "rope_freqs.weight" else read(n), half)

        return written

    for name, divisors in (("a", plain / frequencies.numpy()), ("b", np.full(8, 3.0))):
        monkeypatch.setattr(gguf, "_write", with_divisors(divisors.astype(np.float32)))
        write_base(folder, tmp_path / f"{name}.gguf")
    read = json.loads((text_folder(tmp_path / "a.gguf") / "config.json").read_text())["rope_parameters"]
    assert read == scaled
    assert "Llama 3's formula" in unusable(tmp_path / "b.gguf")


def test_what_is_of_another_kind_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "packaged.gguf"
    write_base(BASE, file)
    assert unusable(file) == f"Its tokenizer is gpt2 superbpe; gpt2 with {', '.join(gguf_text.SPLITS)} is known."
    with pytest.raises(OperationError, match="can be served, not trained"):
        text_folder(file)
    folder = saved("Qwen2", tmp_path / "model")
    monkeypatch.setitem(gguf.FAMILIES, "Qwen2ForCausalLM", "gemma")
    monkeypatch.setattr(gguf, "_names", lambda _: _Qwen2Names())
    write_base(folder, tmp_path / "a.gguf")
    assert unusable(tmp_path / "a.gguf") == "Its architecture is gemma; qwen2, qwen3, llama are known."
    actor = StudentConfig(provider="llamacpp", model=str(tmp_path / "a.gguf"))
    assert "architecture is gemma" in provider_of(actor).untrainable(actor)
    assert {path.name for path in tmp_path.iterdir()} == {"packaged.gguf", "model", "a.gguf"}


class _Qwen2Names:
    def get_name(self, name: str, try_suffixes: Any) -> str | None:
        from gguf import MODEL_ARCH, get_tensor_name_map

        named: str | None = get_tensor_name_map(MODEL_ARCH.QWEN2, 2).get_name(name, try_suffixes)
        return named


def test_a_file_that_is_cut_or_changed_or_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = saved("Qwen2", tmp_path / "model"), tmp_path / "a.gguf"
    write_base(folder, file)
    whole = file.read_bytes()
    file.write_bytes(whole[:-9000])
    with pytest.raises(DependencyError, match=r"a\.gguf is not available\. It ends within .*Download the GGUF"):
        dequantised(file)
    file.write_bytes(whole)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 5000))
    with pytest.raises(DependencyError, match="disk space is not available"):
        dequantised(file)
    assert not has_weights(file) and not list(folder_of(file).glob("*safetensors*"))
    monkeypatch.undo()
    first = (dequantised(file) / "model.safetensors").read_bytes()
    changed = bytearray(whole)
    changed[-9000:-8000] = bytes(1000)
    file.write_bytes(changed)
    assert not has_weights(file)
    assert (dequantised(file) / "model.safetensors").read_bytes() != first


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
async def test_the_quantised_file_answers_with_an_adapter_of_the_dequantised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By token ids; its log-probabilities are those of training but for what the server rounds."""
    artifacts = MemoryArtifacts()
    (folder := tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(BASE / name, folder / name)
    file = quantised(with_text(folder), tmp_path / "a.gguf", lambda _: "Q8_0", monkeypatch)
    actor = StudentConfig(provider="llamacpp", model=str(file), num_ctx=512, parallel=1)
    assert not provider_of(actor).untrainable(actor)
    model = LlamaCpp(file, artifacts, actor, cache=tmp_path / "cache", threads=1)
    try:
        plain = await model.generate(ask())
        data = adapter(dequantised(file), size=0.02)
        trained = await model.generate(replace(ask(), adapter=artifacts.put(data)))
    finally:
        await model.close()
    engine = Engine(str(folder_of(file)))
    engine.load_adapter("trained", data)
    for written, name in ((plain, ""), (trained, "trained")):
        assert written.capture == "tokens" and not written.untrainable
        ids = torch.tensor([[*written.prompt_ids, *written.token_ids]])
        with torch.inference_mode(), engine._using(name):
            spread = torch.log_softmax(engine._model(ids).logits[0, len(written.prompt_ids) - 1 : -1], -1)
        computed = spread.gather(1, torch.tensor(written.token_ids)[:, None])[:, 0]
        assert np.abs(computed.numpy() - np.array(written.logprobs)).mean() < 0.05
