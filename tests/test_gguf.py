"""What llama.cpp computes from exported files is what transformers computes from the folder: by token ids, over the
whole vocabulary."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agent0.errors import DependencyError, OperationError
from agent0.evaluation.serving_parity import DecodedToken, parity, probes
from agent0.infra.engine.adapter import CONFIG, WEIGHTS, Adapter, lora_settings, pack
from agent0.infra.engine.inference import Engine
from agent0.infra.models.llama_server import LlamaServer
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.gguf import check_config, split_name, tokens, write_adapter, write_base
from agent0.infra.weights.merge import check_fit, merged, read_lora, save_merged
from agent0.infra.weights.model_config import ModelConfig
from agent0.infra.weights.safetensors_io import Weights, digest, write
from tests.adapters import adapter, tensors
from tests.engine.models import llama, qwen2, read_qwen2
from tests.llama_server import MISSING, serving

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's, 2026-11
CLOSE = 1e-3
PROMPTS = [[612], [615, 361, 285, 220, 283, 10, 318, 30, 613, 617], list(range(40, 640, 7))]
real = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="module")
def random_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the built-in base lacks: a head of its own, biases that are not zero, bfloat16, several files, another
    base of the rotation, an odd epsilon."""
    folder = tmp_path_factory.mktemp("random") / "model"
    torch.manual_seed(1)
    model = qwen2(
        vocab_size=650, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=False, initializer_range=0.15,
        rms_norm_eps=3e-5, rope_parameters={"rope_theta": 1e6, "rope_type": "default"}, eos_token_id=613,
    )  # fmt: skip
    with torch.no_grad():
        for name, found in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                found.add_(torch.randn_like(found) * 0.3)
    model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="100KB")
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(BASE / name, folder / name)
    return folder


def spread(engine: Engine, ids: list[int], name: str) -> np.ndarray:
    """Log-probabilities of every next token, as transformers computes them."""
    with torch.inference_mode(), engine._using(name):
        return torch.log_softmax(engine._model(torch.tensor([ids])).logits[0, -1].double(), -1).numpy()


async def served(url: str, ids: list[int], scales: dict[int, float], size: int) -> np.ndarray:
    server = LlamaServer(url)
    try:
        said = await server.go_on(ids, 1, scales, size, forced=40)
    finally:
        await server.close()
    found = np.full(size, np.nan)
    for token, logprob in said.steps[0].others.items():
        found[int(token)] = logprob
    return found


def exported(folder: Path, data: bytes, out: Path) -> tuple[Path, Path]:
    write_base(folder, out / "base.gguf")
    write_adapter(read_lora(data), folder, out / "adapter.gguf")
    return out / "base.gguf", out / "adapter.gguf"


@real
@pytest.mark.parametrize("stabilised", [False, True])
def test_llama_cpp_computes_what_transformers_does(stabilised: bool, random_base: Path, tmp_path: Path) -> None:
    folder = random_base if stabilised else BASE
    size = 650 if stabilised else 644
    data = adapter(folder, use_rslora=stabilised)
    engine = Engine(str(folder))
    engine.load_adapter("trained", data)
    with serving(*exported(folder, data, tmp_path)) as url:
        for ids in PROMPTS:
            plain, trained = (asyncio.run(served(url, ids, {0: scale}, size)) for scale in (0.0, 1.0))
            assert np.abs(plain - spread(engine, ids, "")).max() < CLOSE
            assert np.abs(trained - spread(engine, ids, "trained")).max() < CLOSE
            assert np.abs(trained - plain).max() > 0.5


@real
def test_heads_that_turn_neighbours_are_written_so(tmp_path: Path) -> None:
    """Of Llama, queries and keys with their adapters; more heads of queries than of keys."""
    folder = tmp_path / "llama"
    torch.manual_seed(2)
    llama(
        vocab_size=650, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=True, initializer_range=0.3,
    ).save_pretrained(folder)  # fmt: skip
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(BASE / name, folder / name)
    data = adapter(folder, size=0.3)
    engine = Engine(str(folder))
    engine.load_adapter("trained", data)
    with serving(*exported(folder, data, tmp_path)) as url:
        for ids in PROMPTS:
            plain, trained = (asyncio.run(served(url, ids, {0: scale}, 650)) for scale in (0.0, 1.0))
            assert np.abs(plain - spread(engine, ids, "")).max() < CLOSE
            assert np.abs(trained - spread(engine, ids, "trained")).max() < CLOSE
            assert np.abs(trained - plain).max() > 0.5


@real
def test_a_merged_file_is_base_and_adapter(random_base: Path, tmp_path: Path) -> None:
    data = adapter(random_base)
    engine = Engine(str(random_base))
    engine.load_adapter("trained", data)
    lora = read_lora(data)
    write_base(random_base, tmp_path / "model.gguf", merged(lora, Weights.of_folder(random_base)))
    (tmp_path / "folder").mkdir()
    save_merged(random_base, lora, tmp_path / "folder")
    whole = Engine(str(tmp_path / "folder"))
    with serving(tmp_path / "model.gguf") as url:
        for ids in PROMPTS:
            expected = spread(engine, ids, "trained")
            assert np.abs(spread(whole, ids, "") - expected).max() < 1e-4
            assert np.abs(asyncio.run(served(url, ids, {}, 650)) - expected).max() < CLOSE


def test_the_same_weights_give_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made.append([path.read_bytes() for path in exported(BASE, adapter(BASE), tmp_path / name)])
    assert made[0] == made[1]


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_a_merged_folder_has_the_numbers_that_were_asked_for(kind: str, random_base: Path, tmp_path: Path) -> None:
    save_merged(random_base, read_lora(adapter(random_base)), tmp_path, kind)
    found = read_qwen2(tmp_path, dtype="auto")
    assert found.dtype == getattr(torch, kind)
    lora, base = read_lora(adapter(random_base)), Weights.of_folder(random_base)
    expected = torch.from_numpy(merged(lora, base)("model.layers.1.mlp.up_proj.weight")).to(found.dtype)
    assert torch.equal(found.model.layers[1].mlp.up_proj.weight.detach(), expected)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_numbers_are_rounded_as_torch_rounds_them(values: list[float]) -> None:
    from tempfile import TemporaryDirectory

    held = np.array(values, np.float32)
    for kind, dtype in (("F32", torch.float32), ("BF16", torch.bfloat16)):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "x.safetensors"
            write(path, {"a": held.shape}, lambda _: held, kind)
            found = Weights({"x": path.read_bytes()}).read("a")
        assert torch.equal(torch.from_numpy(found), torch.from_numpy(held).to(dtype).float())


@given(st.data())
def test_what_is_no_whole_file_is_refused(data: st.DataObject) -> None:
    whole = (BASE / "model.safetensors").read_bytes()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    junk = data.draw(st.binary(max_size=64))
    for broken in (cut, junk, (1 << 60).to_bytes(8, "little") + junk):
        with pytest.raises(OperationError, match="no whole safetensors"):
            Weights({"model.safetensors": broken})


def remade(change: dict[str, Any] | None = None, drop: str = "", add: str = "") -> bytes:
    """An adapter with settings or tensors of another kind."""
    import io
    import tarfile

    from safetensors.torch import save

    held = {name: found for name, found in tensors(BASE).items() if name != drop}
    held |= {add: torch.ones(3)} if add else {}
    settings = {"peft_type": "LORA", **lora_settings(8, 16), **(change or {})}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in ((CONFIG, json.dumps(settings).encode()), (WEIGHTS, save(held))):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


ONE = "base_model.model.model.layers.0.mlp.up_proj"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (remade({"use_dora": True}), "use_dora"),
        (remade({"bias": "all"}), "bias"),
        (remade({"modules_to_save": ["lm_head"]}), "modules_to_save"),
        (remade({"alpha_pattern": {"q_proj": 3}}), "alpha_pattern"),
        (remade({"lora_alpha": None}), "no adapter"),
        (remade(drop=f"{ONE}.lora_B.weight"), "lora_B"),
        (remade(add=f"{ONE}.lora_magnitude_vector.weight"), "magnitude"),
        (b"no tar", "no adapter"),
        (b"", "no adapter"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_adapter_that_does_more_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(OperationError, match=words):
        read_lora(data)


def test_an_adapter_of_another_base_is_refused(random_base: Path, tmp_path: Path) -> None:
    lora = read_lora(adapter(random_base))
    with pytest.raises(OperationError, match=r"does not fit this base.*--base"):
        check_fit(lora, Weights.of_folder(BASE))
    with pytest.raises(OperationError, match="does not fit"):
        write_adapter(lora, BASE, tmp_path / "adapter.gguf")
    assert not (tmp_path / "adapter.gguf").exists()
    deeper = pack(
        Adapter(lora_settings(8, 16), {k.replace("layers.0", "layers.9"): v for k, v in tensors(BASE).items()}, {})
    )
    with pytest.raises(OperationError, match=r"The base has no model\.layers\.9"):
        check_fit(read_lora(deeper), Weights.of_folder(BASE))


CONFIGURATION = json.loads((BASE / "config.json").read_text())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"architectures": ["Gemma3ForCausalLM"]}, "Gemma3ForCausalLM"),
        ({"architectures": ["LlamaForCausalLM"], "attention_bias": True}, "biases"),
        ({"head_dim": 64}, "heads of 64"),
        ({"use_sliding_window": True}, "sliding"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "yarn"),
        ({"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2.0}}, "rope"),
    ],
)
def test_a_base_that_llama_cpp_computes_otherwise_is_refused(change: dict[str, Any], words: str) -> None:
    check_config(ModelConfig.model_validate(CONFIGURATION))
    with pytest.raises(OperationError, match=f"{words}.*--format merged"):
        check_config(ModelConfig.model_validate({**CONFIGURATION, **change}))


def test_tokens_keep_their_ids(random_base: Path) -> None:
    tokenizer = json.loads((BASE / "tokenizer.json").read_text())
    texts, kinds, merges = tokens(tokenizer, 650)
    assert len(texts) == len(kinds) == 650 and len(set(texts)) == 650
    assert all(texts[i] == text for text, i in tokenizer["model"]["vocab"].items())
    assert (texts[613], kinds[613], kinds[620], kinds[5], kinds[649]) == ("<|im_end|>", 3, 4, 1, 5)
    assert len(merges) == len(tokenizer["model"]["merges"]) and all(len(m.split(" ")) == 2 for m in merges)
    with pytest.raises(OperationError, match="does not fit the model"):
        tokens(tokenizer, 600)
    with pytest.raises(OperationError, match="byte-level"):
        tokens({**tokenizer, "model": {"type": "Unigram"}}, 650)


def test_only_what_is_known_is_called_exact() -> None:
    from agent0.infra.weights.gguf import QWEN2_SPLIT

    def cutting(pattern: str) -> dict[str, Any]:
        return {
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": pattern}}]}
        }

    assert split_name(cutting(QWEN2_SPLIT)) == ("qwen2", True)
    assert split_name(cutting(QWEN2_SPLIT[:-1])) == ("gpt-2", False)
    assert split_name(json.loads((BASE / "tokenizer.json").read_text()))[1] is False
    apart = [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    ]
    assert split_name({"pre_tokenizer": {"type": "Sequence", "pretokenizers": apart}}) == ("smollm", True)
    assert not split_name({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, apart[1]]}})[1]


def test_a_base_is_known_by_its_weights(random_base: Path, tmp_path: Path) -> None:
    assert digest(BASE) == json.loads((BASE / "provenance.json").read_text())["sha256"]
    shutil.copytree(random_base, tmp_path / "copy")
    assert digest(tmp_path / "copy") == digest(random_base)
    first = sorted((tmp_path / "copy").glob("*.safetensors"))[0]
    first.write_bytes(first.read_bytes()[:-1] + b"\0")
    assert digest(tmp_path / "copy") != digest(random_base)
    with pytest.raises(DependencyError, match=r"config\.json"):
        write_base(tmp_path, tmp_path / "x.gguf")


def steps(*logprobs: float, first: int = 0) -> list[DecodedToken]:
    return [DecodedToken(first + n, value) for n, value in enumerate(logprobs)]


def test_parity_counts_what_differs() -> None:
    same = parity([steps(-1, -2)], [steps(-1, -2)])
    assert (same.compared, same.largest, same.parted, same.unseen) == (2, 0, 0, 0) and same.within(0)
    off = parity([steps(-1, -2)], [steps(-1, -2.5)])
    assert (off.largest, off.mean) == (0.5, 0.25) and off.within(0.5) and not off.within(0.4)
    tie = parity(
        [steps(-1, -2, -3)], [[DecodedToken(0, -1), DecodedToken(9, -1.9999, {1: -2.0001}), DecodedToken(7, -9)]]
    )
    assert (tie.compared, tie.parted) == (2, 1) and tie.within(1e-3)
    for gone in ([[]], [steps(-1, -2, first=5)]):
        found = parity([steps(-1, -2)], gone)
        assert found.unseen == 1 and not found.within(100)
    assert not parity([[]], [[]]).within(1)


def test_probes_are_always_the_same() -> None:
    assert probes(8) == probes(8) and len({turns[0].content for turns in probes(8)}) == 8
