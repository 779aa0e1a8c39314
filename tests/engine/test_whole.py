"""Rank 0: a small model's own weights are trained, kept as an adapter, and served beside its base and LoRA."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from agent0.errors import OperationError
from agent0.events.values import Turn
from agent0.infra.engine.adapter import WHOLE, Adapter, pack, unpack
from agent0.infra.engine.inference import ADAPTERS_KEPT, Engine
from agent0.infra.engine.qwen2_functional import logprobs, parts_of, shape_of, weights_of
from agent0.infra.engine.requests import TurnRequest
from agent0.infra.models.transformers import BASE
from agent0.infra.training.checkpointing import HalfDone
from agent0.infra.training.full_finetune import Whole
from agent0.infra.training.loop import Training
from agent0.infra.training.optimizers import BETAS, OUTER, paired
from agent0.infra.weights.gguf import write_adapter
from agent0.infra.weights.merge import check_fit, merged, read_adapter, read_lora, save_merged
from agent0.infra.weights.safetensors_io import Weights
from agent0.ports.models import Sampling
from agent0.ports.training import TrainJob
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.adapters import adapter
from tests.engine.asking import user, wanted
from tests.engine.models import qwen2, read_qwen2
from tests.engine.test_fast import SMALL
from tests.engine.test_saving import Killed, job_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
PROMPT = (user("What is 3+2?"),)


def whole_of(tokenizer: PreTrainedTokenizerFast, **settings: Any) -> TrainJob:
    return job_of(tokenizer, **{"rank": 0, "lr": 2e-3, "weight_decay": 0.01} | settings)


def bits(model: Any) -> dict[str, torch.Tensor]:
    return {name: one.detach().clone() for name, one in model.state_dict().items()}


def alike(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(found, other[name]) for name, found in one.items())


@pytest.fixture(scope="module")
def training(folder: Path) -> Training:
    return Training(str(folder))


@pytest.fixture(scope="module")
def full(training: Training, tokenizer: PreTrainedTokenizerFast) -> bytes:
    return training.train(whole_of(tokenizer, optimizer="muon", lr=0.02), b"")[0]


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_it_learns_samples_by_heart_and_the_base_stays(
    optimizer: str, training: Training, tokenizer: PreTrainedTokenizerFast, folder: Path
) -> None:
    """LoRA of the same model, after it and before it, is as it was: nothing of a job stays behind."""
    lora = training.train(job_of(tokenizer), b"")[0]
    assert training._loaded
    before = bits(training._loaded[0])
    plain = whole_of(tokenizer, optimizer=optimizer, lr=0.02, objective="sft", epochs=30, replay_steps=0, minibatch=5)
    job = replace(plain, samples=tuple(replace(sample, advantage=1.0) for sample in plain.samples))
    data, _ = training.train(job, b"")
    assert training.train(job, b"")[0] == data
    model = training._loaded[0]
    assert alike(bits(model), before) and alike(before, bits(read_qwen2(folder)))
    assert not any(one.grad is not None for one in model.parameters())
    assert training.train(job_of(tokenizer), b"")[0] == lora
    found = unpack(data)
    assert found.full and set(found.weights) == {name for name, _ in model.named_parameters()}
    assert "lm_head.weight" not in found.weights  # tied
    engine = Engine(str(folder))
    engine.load_adapter("full", data)
    for sample in job.samples:
        path = sample.trajectory
        ids = torch.tensor([path.token_ids])
        score = {name: engine._score(name) for name in ("", "full")}
        with torch.inference_mode():
            own = {n: float(told(ids, torch.ones_like(ids), sum(path.mask)).mean()) for n, told in score.items()}
        assert own[""] < -3 and own["full"] > -0.6


def test_every_weight_moves_by_the_one_whose_it_is(training: Training, tokenizer: PreTrainedTokenizerFast) -> None:
    """Muon between the ends, AdamW at them and for what is no matrix; each weight once."""
    job = whole_of(tokenizer, optimizer="muon", lr=0.01, weight_decay=0.0, minibatch=5, epochs=1, replay_steps=0)
    moved, metrics = training.train(job, b"")
    assert metrics["steps"] == 1 and training._loaded
    base = dict(training._loaded[0].named_parameters())
    changes = {name: one - base[name].detach() for name, one in unpack(moved).weights.items()}
    assert all(bool(change.any()) for change in changes.values())
    for name, change in changes.items():
        if change.ndim == 2 and "embed" not in name:
            sizes = torch.linalg.svdvals(change) / (0.01 * max(1.0, change.shape[0] / change.shape[1]) ** 0.5)
            assert 0.4 < float(sizes.max()) < 1.5
        else:  # Adam's first step is as long for every number that has a gradient
            assert float(change.abs().max()) == pytest.approx(0.01 * OUTER, rel=0.05)
    inner, outer = paired(training._loaded[0], 1.0, 0.25)
    held = [one for two in (inner, outer) for group in two.param_groups for one in group["params"]]
    assert len(held) == len(base) == len({id(one) for one in held})
    assert (outer.param_groups[0]["betas"], outer.param_groups[0]["weight_decay"]) == (BETAS, 0.25)


@pytest.mark.parametrize("tied", [True, False])
def test_gradients_are_those_of_transformers(tied: bool) -> None:
    """In double precision, of every weight; of tied embeddings both their uses added up."""
    torch.manual_seed(2)
    small = qwen2(**SMALL | {"initializer_range": 0.5, "tie_word_embeddings": tied})
    shape = shape_of(small)
    model: Any = Whole(small.eval()).get_base_model().double()
    parts, own = parts_of(model), list(model.parameters())
    assert shape and parts and len(parts[0]) == len(own)
    ids = torch.randint(0, 32, (3, 9))
    seen = torch.ones_like(ids)
    found = logprobs(weights_of(shape, *parts), ids, seen, seen)
    wanted = token_logprobs(model(input_ids=ids).logits, ids)
    grads = (torch.autograd.grad((one * seen.cumsum(-1)).sum(), own) for one in (found, wanted))
    for one, other in zip(*grads, strict=True):
        assert torch.allclose(one, other, atol=1e-5 * float(other.abs().max()))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_killed_it_ends_in_the_same_adapter(
    optimizer: str,
    training: Training,
    tokenizer: PreTrainedTokenizerFast,
    full: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From a full parent, too."""
    job, kept = whole_of(tokenizer, optimizer=optimizer), tmp_path / "half.safetensors"
    whole, _ = training.train(job, full)
    assert whole not in (full, training.train(job, b"")[0])
    saving = HalfDone.save

    def save(self: HalfDone, *arguments: Any) -> None:
        saving(self, *arguments)
        if arguments[2] == 5:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(HalfDone, "save", save)
        with pytest.raises(Killed):
            training.train(job, full, str(kept), 0.0)
    heard: list[Any] = []
    training.report = heard.append  # type: ignore[method-assign]
    try:
        assert Training.train(training, job, full, str(kept), 1e9)[0] == whole
    finally:
        del training.report
    assert heard[0].done == 5


def test_what_is_written_is_what_transformers_computes(full: bytes, folder: Path, tmp_path: Path) -> None:
    """Base, LoRA and a full adapter in turn, in one engine; the full one against a merged folder of its own."""
    engine = Engine(str(folder))
    asked = [wanted("What is 3+2?", seed) for seed in range(3)]
    plain = engine.generate(asked)
    engine.load_adapter("full", full)
    assert engine.generate(asked, "full") != plain
    engine.load_adapter("pairs", adapter(folder))
    save_merged(folder, read_adapter(full), tmp_path)
    (tmp_path / "model.safetensors").chmod(0o600)
    other: Any = read_qwen2(tmp_path)
    alone = Engine(str(folder), through=True)
    alone.load_adapter("pairs", adapter(folder))
    for _ in range(2):
        for name in ("", "full", "pairs"):
            written = engine.generate(asked, name)
            for one in written:
                ids = torch.tensor([one.prompt + one.ids])
                model = other if name == "full" else alone._model
                with torch.inference_mode(), alone._using("pairs" if name == "pairs" else ""):
                    expected = token_logprobs(model(input_ids=ids).logits, ids)[0, len(one.prompt) :]
                assert one.logprobs == pytest.approx(expected.tolist(), abs=1e-4)
    assert [one.ids for one in engine.generate(asked)] == [one.ids for one in plain]
    told = engine.likelihood(PROMPT, ["5", "It is 5."], "full")
    assert told != engine.likelihood(PROMPT, ["5", "It is 5."])


def test_old_ones_of_either_kind_go(full: bytes, folder: Path) -> None:
    engine, pairs = Engine(str(folder)), adapter(folder)
    asked = [wanted("What is 3+2?")]
    fresh = {name: engine_of(folder, data).generate(asked, "x") for name, data in (("f", full), ("l", pairs))}
    plain = [one.ids for one in engine.generate(asked)]
    for number, kind in enumerate("lfffflllfllllffffl"):
        name = f"{kind}{number}"
        engine.load_adapter(name, full if kind == "f" else pairs)
        held = [other for other in engine._adapters if engine.has_adapter(other)]
        assert len(held) == min(number + 1, ADAPTERS_KEPT) and held[-1] == name
        for other in held:
            assert [one.ids for one in engine.generate(asked, other)] == [one.ids for one in fresh[other[0]]]
        assert [one.ids for one in engine.generate(asked)] == plain
        assert set(engine._weights) == {"", *held}


def test_pairs_that_do_not_fit_leave_the_engine_as_it_was(full: bytes, folder: Path) -> None:
    engine, asked = Engine(str(folder)), [wanted("What is 3+2?")]
    plain = [one.ids for one in engine.generate(asked)]
    for names in ([], ["full"], ["full", "pairs"]):
        for name in names:
            if not engine.has_adapter(name):
                engine.load_adapter(name, full if name == "full" else adapter(folder))
        for _ in range(2):
            with pytest.raises(OperationError, match="does not fit this model") as caught:
                engine.load_adapter("x", adapter(BASE))
            assert str(caught.value).endswith("Name the model that it was trained on."), "weights of another size"
            assert "\n" not in str(caught.value)
        assert not engine.has_adapter("x") and [one.ids for one in engine.generate(asked)] == plain


def engine_of(folder: Path, data: bytes) -> Engine:
    found = Engine(str(folder))
    found.load_adapter("x", data)
    return found


def test_the_same_adapter_is_the_same_bytes(full: bytes) -> None:
    found = unpack(full)
    assert found.full and pack(found) == full and found.metadata == {"checkpoint": "student-0"}
    assert {one.dtype for one in found.weights.values()} == {torch.float32}


def changed(full: bytes, change: Callable[[dict[str, torch.Tensor]], object]) -> bytes:
    held = dict(unpack(full).weights)
    change(held)
    return pack(Adapter(WHOLE, held, {}))


NORM = "model.norm.weight"
CHANGES: list[Callable[[dict[str, torch.Tensor]], object]] = [
    lambda held: held.pop(NORM),
    lambda held: held.update(lm_head=torch.ones(2)),
    lambda held: held.update({NORM: torch.ones(31)}),
    lambda held: held.clear(),
]


@pytest.mark.parametrize("change", CHANGES, ids=["one less", "one more", "another shape", "none"])
def test_weights_of_another_model_are_refused(
    change: Callable[[dict[str, torch.Tensor]], object],
    full: bytes,
    folder: Path,
    training: Training,
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    data, engine = changed(full, change), Engine(str(folder))
    with pytest.raises(OperationError, match="does not fit this model"):
        engine.load_adapter("x", data)
    assert not engine.has_adapter("x") and engine.generate([wanted("Hi")])[0].ids
    assert training._loaded
    before = bits(training._loaded[0])
    with pytest.raises(OperationError, match="does not fit this model"):
        training.train(whole_of(tokenizer), data)
    assert alike(bits(training._loaded[0]), before)
    with pytest.raises(OperationError, match="does not fit this base"):
        check_fit(read_adapter(data), Weights.of_folder(folder))


def test_numbers_of_another_kind_are_refused(full: bytes) -> None:
    data = changed(full, lambda held: held.update({NORM: held[NORM].half()}))
    with pytest.raises(OperationError, match=r"no adapter.*float16"):
        unpack(data)
    for whole, told, wrong in ((full, b"FULL", b"LORA"), (adapter(BASE), b"LORA", b"FULL"), (full, b"FULL", b"I3A3")):
        mixed = whole.replace(b'"peft_type": "' + told, b'"peft_type": "' + wrong)
        assert len(mixed) == len(whole) and mixed != whole
        with pytest.raises(OperationError, match="no adapter"):
            unpack(mixed)


def test_where_it_cannot_be_it_is_said(
    full: bytes, folder: Path, training: Training, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OperationError, match=r"rank 0.*134\.2 million.*rank to 1 or more"):
        Engine(str(folder), through=True).load_adapter("x", full)
    with pytest.raises(OperationError, match=r"of the other kind.*a full adapter.*rank is 4.*rank = 0"):
        training.train(job_of(tokenizer), full)
    with pytest.raises(OperationError, match=r"of the other kind.*a LoRA adapter.*rank is 0.*1 or more"):
        training.train(whole_of(tokenizer), adapter(folder))
    assert training._loaded
    before = bits(training._loaded[0])
    monkeypatch.setattr(training._loaded[0].config, "hidden_act", "gelu")
    with pytest.raises(OperationError, match="rank to 1 or more"):
        training.train(whole_of(tokenizer), b"")
    assert alike(bits(training._loaded[0]), before)
    monkeypatch.setattr(training._team, "device", "cuda")
    monkeypatch.setattr(training, "_precision", "bf16")
    with pytest.raises(OperationError, match="in precision fp32"):
        training.train(whole_of(tokenizer), b"")


def test_what_leaves_is_merged(full: bytes, folder: Path, tmp_path: Path) -> None:
    base, found = Weights.of_folder(folder), read_adapter(full)
    weights = unpack(full).weights
    read = merged(found, base)
    assert all(torch.equal(torch.from_numpy(read(name).copy()), weights[name]) for name in base)
    assert torch.equal(torch.from_numpy(read("lm_head.weight").copy()), weights["model.embed_tokens.weight"])
    for refused in (lambda: write_adapter(found, folder, tmp_path / "a.gguf"), lambda: read_lora(full)):
        with pytest.raises(OperationError, match=r"full adapter.*gguf-merged"):
            refused()
    assert not (tmp_path / "a.gguf").exists()
    save_merged(folder, found, tmp_path)
    assert alike(bits(read_qwen2(tmp_path)), weights | {"lm_head.weight": read_tied(weights)})
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is True


def read_tied(weights: dict[str, torch.Tensor]) -> torch.Tensor:
    return weights["model.embed_tokens.weight"]


def test_the_packaged_model_is_one_of_them(tmp_path: Path) -> None:
    """Its file is in half precision; training and serving are not."""
    engine = Engine(str(BASE))
    parts = {name: one.detach() * 1.1 for name, one in engine._model.named_parameters()}
    engine.load_adapter("x", pack(Adapter(WHOLE, parts, {})))
    asked = TurnRequest((Turn(role="user", content="What is 12+34?"),), Sampling(max_tokens=5, seed=1))
    one, base = engine.generate([asked], "x")[0], engine.generate([asked])[0]
    assert one.logprobs != base.logprobs
