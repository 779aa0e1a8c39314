"""Training in this process: every objective, the parent as reference, examples, halves of a minibatch, and memory."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import set_peft_model_state_dict
from torch.profiler import ProfilerActivity, profile
from transformers import PreTrainedTokenizerFast

from agent0.cli.runs.live import steps
from agent0.errors import DependencyError, OperationError
from agent0.events.values import Trajectory, Turn
from agent0.infra.engine import memory_need, qwen2_functional
from agent0.infra.engine.adapter import unpack
from agent0.infra.engine.inference import load
from agent0.infra.engine.memory_need import MemoryNeed, need, need_to_generate, shape_of
from agent0.infra.training.checkpointing import HalfDone
from agent0.infra.training.launch.distributed import Team
from agent0.infra.training.launch.memory_estimate import check_room, fit_or_refuse, memory_need_of
from agent0.infra.training.launch.recipe import Recipe
from agent0.infra.training.loop import Training
from agent0.infra.training.progress import StepProgress
from agent0.infra.training.step import Step
from agent0.ports.training import Sample, TrainingExample, TrainJob
from agent0.training.objectives.policy_gradient import token_logprobs
from benchmarks.memory import most_alive
from tests.engine.models import qwen2, saved, with_lora
from tests.engine.test_saving import Killed, job_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
RANK = {"rank": 4, "alpha": 8}


@pytest.fixture(scope="module")
def training(folder: Path) -> Training:
    return Training(str(folder))


def path_of(tokenizer: PreTrainedTokenizerFast, text: str, tools: int = 2) -> Trajectory:
    """Prompt, own tokens, ``tools`` tokens of a tool, own tokens."""
    ids = tuple(tokenizer.encode(text))
    mask = tuple(int(n > 3 and not 6 <= n < 6 + tools) for n in range(len(ids)))
    return Trajectory(token_ids=ids, mask=mask, logprobs=tuple(-1.5 * m for m in mask))


def weights_of(adapter: bytes) -> torch.Tensor:
    return torch.cat([tensor.flatten() for _, tensor in sorted(unpack(adapter).weights.items())])


def pairs_of(job: TrainJob) -> TrainJob:
    better, worse = job.samples[::2], job.samples[1::2]
    return replace(job, samples=tuple(replace(a, over=b.trajectory) for a, b in zip(better, worse, strict=False)))


@pytest.mark.parametrize("name", ["adpo", "grpo", "dr_grpo", "gspo", "cispo", "reinforce", "rloo", "sft", "dpo"])
def test_every_objective_trains_and_is_resumed(
    name: str, training: Training, tokenizer: PreTrainedTokenizerFast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = job_of(tokenizer, samples=6, temperature=0.8, **({} if name in ("sft", "dpo") else {"kl": 0.2}))
    job = replace(pairs_of(plain) if name == "dpo" else plain, settings={**plain.settings, "objective": name})
    whole, metrics = training.train(job, b"")
    assert metrics["skipped"] == 0 and metrics["steps"] == (2 * 2 + 2 if name == "dpo" else 2 * 3 + 2)
    assert ("kl" in metrics, "preferred" in metrics) == (name not in ("sft", "dpo"), name == "dpo")
    saving, kept = HalfDone.save, tmp_path / "half.safetensors"

    def save(self: HalfDone, *arguments: Any) -> None:
        saving(self, *arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(HalfDone, "save", save)
        with pytest.raises(Killed):
            training.train(job, b"", str(kept), 0.0)
    again, told = training.train(job, b"", str(kept), 1e9)
    assert again == whole  # the parent stands for itself, though the model has moved on
    assert {k: v for k, v in told.items() if k != "seconds"} == {k: v for k, v in metrics.items() if k != "seconds"}


def _step(folder: Path, recipe: Recipe) -> tuple[Step, Any, list[torch.nn.Parameter]]:
    """In double precision, LoRA's second matrices no longer zero."""
    base, tokenizer = load(str(folder), "cpu", "")
    torch.manual_seed(3)
    model: Any = with_lora(base, 4, 8).double()
    own = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with torch.no_grad():
        for one in own:
            one.add_(torch.randn_like(one) * 0.05)
    return Step(model, recipe, Team("cpu", "fp32"), int(tokenizer.pad_token_id)), model, own


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_minibatch_is_the_sum_of_its_rows_alone(folder: Path, tokenizer: PreTrainedTokenizerFast, rows: int) -> None:
    """Padding, other rows and parts change nothing: the gradient of every LoRA weight, to 1e-6, against each row run
    by itself and the formula written out."""
    recipe = Recipe(objective="adpo", micro_batch=rows, temperature=0.5)
    step, model, own = _step(folder, recipe)
    texts = ("What is 1+2?", "Say it.", "12345678901234567", "Sort [3, 1, 2] and say it.", "abcde")
    batch = [
        Sample(path_of(tokenizer, text, n), (-1.0) ** n * (1 + n), 0.25 + n / 8, 0.5 + n / 4)
        for n, text in enumerate(texts)
    ]
    told = step.gradients("policy", batch)
    found = [one.grad.clone() for one in own if one.grad is not None]
    total = sum(sum(sample.trajectory.mask) for sample in batch)
    loss = torch.zeros(())
    for sample in batch:
        ids = torch.tensor([sample.trajectory.token_ids])
        new = token_logprobs(model(input_ids=ids).logits, ids, 0.5)[0]
        terms = [
            torch.minimum(
                (new[t] - old).exp() * sample.advantage,
                (new[t] - old).exp().clamp(0.8, 1 + sample.clip_high) * sample.advantage,
            )
            for t, old in enumerate(sample.trajectory.logprobs)
            if sample.trajectory.mask[t]
        ]
        loss = loss - sample.weight * sum(terms, torch.zeros(())) / total
    expected = torch.autograd.grad(loss, own)
    assert told["loss"] == pytest.approx(float(loss.detach()), rel=1e-6) and told["tokens"] == total
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-9 * float(other.abs().max()) + 1e-15)


def test_a_tools_words_never_matter_to_the_gradient_of_their_own(
    folder: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    """A trajectory without a token of its own has none at all."""
    step, _, own = _step(folder, Recipe())
    path = path_of(tokenizer, "What is 1+2?")
    silent = path.model_copy(update={"mask": (0,) * len(path.mask)})
    step.gradients("policy", [Sample(silent, 3.0)])
    step.gradients("replay", [Sample(silent, 1.0)])
    assert all(one.grad is None or not bool(one.grad.any()) for one in own)


def test_computing_activations_twice_changes_no_bit(training: Training, tokenizer: PreTrainedTokenizerFast) -> None:
    job = job_of(tokenizer)
    kept = training.train(job, b"")[0]
    twice = training.train(replace(job, settings={**job.settings, "gradient_checkpointing": "on"}), b"")[0]
    assert kept == twice == training.train(job, b"")[0]


def test_a_penalty_keeps_the_model_near_its_parent(training: Training, tokenizer: PreTrainedTokenizerFast) -> None:
    job = replace(job_of(tokenizer, samples=4, epochs=3, clip_low=5.0), replay=())
    parent = training.train(job, b"")[0]
    moved = []
    for kl in (1e-9, 3.0):
        _, metrics = training.train(replace(job, settings={**job.settings, "kl": kl}), parent)
        moved.append(metrics["kl"])
    assert 0 <= moved[1] < 0.7 * moved[0]
    still = training.train(replace(job, settings={**job.settings, "kl": 1.0, "lr": 1e-12}), parent)[1]
    assert still["kl"] == pytest.approx(0, abs=1e-6)  # the reference is the parent with its adapter, not the base


@pytest.mark.parametrize("way", ["function", "transformers", "packed", "whole"])
def test_a_penalty_may_be_measured_from_the_base(
    way: str, folder: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way in ("transformers", "packed"):
        for module in (qwen2_functional, memory_need):
            monkeypatch.setattr(module, "LARGEST", 0)
    training = Training(str(folder), precision="fp32")
    if way == "transformers":
        training._loaded = load(str(folder), "cpu", "")
    job = replace(job_of(tokenizer, samples=4, temperature=0.8, kl=1.0, epochs=1), replay=())
    job = replace(job, settings={**job.settings, "objective": "grpo", **({"rank": 0} if way == "whole" else {})})
    parent = training.train(job, b"")[0]

    def distance(kl_to: str, parent: bytes) -> float:
        settings = {**job.settings, "kl_to": kl_to, "lr": 1e-12, "minibatch": 4}
        return training.train(replace(job, settings=settings), parent)[1]["kl"]

    assert distance("base", b"") == pytest.approx(0, abs=1e-6) == distance("parent", parent)
    assert distance("base", parent) == pytest.approx(expected_distance(folder, parent, job), rel=1e-3) and (
        distance("base", parent) > 1e-3
    )
    assert (
        training.train(replace(job, settings={**job.settings, "kl_to": "base"}), parent)[0]
        != (training.train(job, parent)[0])
    )


def expected_distance(folder: Path, adapter: bytes, job: TrainJob) -> float:
    """k3 from transformers' base to the same with ``adapter``, a token, at temperature 0.8."""
    trained = unpack(adapter)
    rows = []
    for moved in (True, False):
        model, _ = load(str(folder), "cpu", "")
        if moved and trained.full:
            model.load_state_dict(trained.weights, strict=False)
        elif moved:
            model = with_lora(model, RANK["rank"], RANK["alpha"])
            set_peft_model_state_dict(model, trained.weights)
        with torch.no_grad():
            rows.append(
                [
                    token_logprobs(model(input_ids=ids).logits, ids, 0.8)[0, mask]
                    for sample in job.samples
                    for ids, mask in [
                        (torch.tensor([sample.trajectory.token_ids]), torch.tensor(sample.trajectory.mask) > 0)
                    ]
                ]
            )
    gap = torch.cat(rows[1]) - torch.cat(rows[0])
    return float((gap.exp() - gap - 1).mean())


def test_pairs_are_measured_against_the_parent(training: Training, tokenizer: PreTrainedTokenizerFast) -> None:
    """At temperature 1 by what it said when it wrote them, else by what it says now."""
    job = pairs_of(job_of(tokenizer, samples=6, lr=1e-12, epochs=1, objective="dpo"))  # type: ignore[arg-type]
    then, now = (training.train(replace(job, settings={**job.settings, "temperature": t}), b"")[1] for t in (1.0, 0.7))
    assert abs(then["margin"]) > 1e-2 > 1e-4 > abs(now["margin"])
    learned = training.train(replace(job, settings={**job.settings, "lr": 5e-3, "epochs": 8, "temperature": 0.7}), b"")
    assert learned[1]["preferred"] > 0.8 and learned[1]["margin"] > 0


def test_examples_are_learned_and_those_too_long_are_counted(
    training: Training, tokenizer: PreTrainedTokenizerFast
) -> None:
    asked = Turn(role="user", content="What is 2+2?")
    example = TrainingExample(
        (asked, Turn(role="assistant", content="seven"), Turn(role="tool", content="no")), event="e1"
    )
    job = TrainJob((), (), None, 5, {**RANK, "lr": 2e-2, "replay_steps": 5}, examples=(example,))
    adapter, metrics = training.train(job, b"")
    assert (metrics["examples"], metrics["steps"], metrics["tokens"]) == (1, 5, 0)
    once = replace(job, settings={**job.settings, "replay_steps": 1, "lr": 1e-12})
    assert training.train(once, adapter)[1]["replay_loss"] < training.train(once, b"")[1]["replay_loss"] / 2
    silent = TrainingExample((asked,))
    long = replace(example, turns=(asked, Turn(role="assistant", content="x" * 500)))
    assert training.train(replace(once, examples=(example, silent, long)), b"")[1]["examples_left_out"] == 2
    halved = replace(once, examples=(replace(example, weight=0.5),))
    assert training.train(halved, b"")[1]["replay_loss"] == training.train(once, b"")[1]["replay_loss"] / 2


def test_tokens_of_another_model_are_refused(training: Training, tokenizer: PreTrainedTokenizerFast) -> None:
    odd = Trajectory(token_ids=(1, len(tokenizer)), mask=(0, 1), logprobs=(0.0, -1.0))
    job = replace(job_of(tokenizer), samples=(Sample(odd, 1.0),))
    with pytest.raises(OperationError, match="another model"):
        training.train(job, b"")
    with pytest.raises(OperationError, match="no objective"):
        training.train(replace(job_of(tokenizer), settings={"objective": "ppo"}), b"")


def test_half_precision_trains(folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    """Casting is accelerate's; on a GPU the same lines run."""
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)  # it knows one precision a process
    try:
        half = Training(str(folder), precision="bf16")
        adapter, metrics = half.train(job_of(tokenizer), b"")
        assert half._loaded is not None and half._loaded[0].dtype == torch.bfloat16
    finally:
        AcceleratorState._reset_state(True)
    full = Training(str(folder)).train(job_of(tokenizer), b"")[0]
    assert metrics["skipped"] == 0 and bool(torch.isfinite(weights_of(adapter)).all())
    assert torch.nn.functional.cosine_similarity(weights_of(adapter), weights_of(full), dim=0) > 0.9


def test_it_tells_how_far_it_is(training: Training, tokenizer: PreTrainedTokenizerFast) -> None:
    heard: list[StepProgress] = []
    training.report = heard.append  # type: ignore[method-assign]
    try:
        training.train(job_of(tokenizer), b"")
    finally:
        del training.report
    assert (heard[0].done, heard[-1].done) == (0, 8) and {told.total for told in heard} == {8}
    assert heard[0].left_s is None and heard[-1].left_s == 0.0
    assert steps("student-3", StepProgress(12, 40, 75.2)) == "student-3 step 12/40, about 1 min 15 s left"
    assert steps("student-3", StepProgress()) == "student-3: loading the model"


# --- memory


@pytest.fixture
def counted() -> Iterator[list[int]]:
    """Bytes that autograd keeps for the way back, each storage once, parameters left out."""
    seen: dict[int, int] = {}
    sizes: list[int] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if not isinstance(tensor, torch.nn.Parameter) and not tensor.is_leaf:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in seen:
                seen[storage.data_ptr()] = storage.nbytes()
                sizes.append(storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield sizes


def test_the_estimate_is_near_what_is_kept(tmp_path: Path, counted: list[int]) -> None:
    """On a model wide enough that its layers and logits are what counts: within a tenth."""
    base = qwen2(
        vocab_size=512, hidden_size=64, intermediate_size=256, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=True,
    )  # fmt: skip
    base.save_pretrained(tmp_path)
    model: Any = with_lora(base, 4, 8).train()
    ids = torch.randint(0, 512, (4, 48))
    token_logprobs(model(input_ids=ids, use_cache=False).logits, ids).sum()
    shape = shape_of(tmp_path)
    frozen = sum(parameter.numel() for parameter in model.parameters() if not parameter.requires_grad)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    assert (shape.weights, 4 * shape.ways, shape.layers, shape.vocabulary) == (frozen, trained, 3, 512)
    found = need(shape, rank=4, rows=4, tokens=48, learned=48, precision="fp32", quantized=False, checkpointing=False)
    assert found.weights == 4 * frozen and found.adapter == found.optimizer == 8 * trained
    assert found.logits == 12.0 * 4 * 48 * 512  # of which log-softmax is kept for the way back
    assert sum(counted) == pytest.approx(found.activations + found.logits / 3, rel=0.1)


def test_a_layer_that_is_computed_again_is_in_the_estimate(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted by tensors, on a model whose layers are wide within: within a tenth."""
    for module in (qwen2_functional, memory_need):
        monkeypatch.setattr(module, "LARGEST", 0)
    saved(tmp_path, tokenizer, hidden_size=64, intermediate_size=512)
    ids = tuple(5 + n % 90 for n in range(200))
    mask = (0,) * 180 + (1,) * 20
    sample = Sample(Trajectory(token_ids=ids, mask=mask, logprobs=(-1.0,) * 200), 1.0)
    settings = RANK | {"micro_batch": 4, "minibatch": 4, "gradient_checkpointing": "on", "replay_steps": 0}
    job = TrainJob((sample,) * 4, (), None, 0, settings)
    trainer = Training(str(tmp_path))
    model, _ = trainer._loaded = load(str(tmp_path), "cpu", "")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        trainer.train(job, b"")
    measured = most_alive(seen) + sum(parameter.nbytes for parameter in model.parameters())
    told = memory_need_of(tmp_path, job, Recipe.of(job), "cpu", "", "fp32")
    assert sum(vars(told).values()) == pytest.approx(measured, rel=0.1)


def test_settings_that_save_memory_lower_the_estimate(folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    shape = shape_of(folder)
    plain = {
        "rank": 8,
        "rows": 4,
        "tokens": 64,
        "learned": 32,
        "precision": "bf16",
        "quantized": False,
        "checkpointing": False,
    }
    full = need(shape, **plain)  # type: ignore[arg-type]
    for change in ({"rows": 1}, {"tokens": 32}, {"checkpointing": True}, {"quantized": True}, {"rank": 2}):
        assert need(shape, **plain | change).total < full.total  # type: ignore[arg-type]
    assert need(shape, **plain | {"precision": "fp32"}).total > full.total  # type: ignore[arg-type]
    job = job_of(tokenizer)
    longest = max(len(sample.trajectory.token_ids) for sample in job.samples)
    told = memory_need_of(folder, job, Recipe.of(job), "cuda", "", "bf16")
    own = max(sum(sample.trajectory.mask) for sample in job.samples)
    change = {"rank": 4, "rows": 2, "tokens": longest, "learned": own, "checkpointing": True}
    assert told == need(shape, **plain | change)  # type: ignore[arg-type]


def test_a_rollout_needs_more_for_more_rows_and_longer_prompts(folder: Path) -> None:
    shape = shape_of(folder)
    plain = {"rows": 4, "prompt": 64, "tokens": 16, "precision": "bf16", "quantized": False}
    found = need_to_generate(shape, **plain)  # type: ignore[arg-type]
    for more in ({"rows": 5}, {"prompt": 80}, {"tokens": 20}, {"precision": "fp32"}):
        assert need_to_generate(shape, **plain | more).total > found.total  # type: ignore[arg-type]
    assert need_to_generate(shape, **plain | {"quantized": True}).total < found.total  # type: ignore[arg-type]
    assert (found.adapter, found.optimizer) == (0, 0)
    keys_and_values = 2 * 2 * shape.cached * (shape.layers + 1) * 4 * 80
    assert shape.cached == 16 and found.activations == keys_and_values + 2 * 4 * 64 * (3 * 48 + 2 * 32)


def test_no_room_is_said_with_the_setting_to_change() -> None:
    gib = 2.0**30
    small = MemoryNeed(2 * gib, 0.1 * gib, 0.1 * gib, gib, gib)
    assert fit_or_refuse(small, 8 * gib, "cuda", "").startswith("training needs about 4.62 GiB (weights 2.00")
    for found, quantization, words in (
        (replace(small, logits=9 * gib), "", "micro_batch = 1"),
        (replace(small, weights=9 * gib), "", "quantization = 4bit"),
        (replace(small, weights=9 * gib), "4bit", "smaller model"),
    ):
        with pytest.raises(OperationError, match=words):
            fit_or_refuse(found, 8 * gib, "cuda", quantization)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_named_before_anything_is_loaded(
    tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({}))
    with pytest.raises(DependencyError, match="sees no GPU"):
        check_room(tmp_path, job_of(tokenizer), Recipe(), "cuda", "", "bf16")
