"""LoRA beside packed matrices is trained as peft trains it, and on what it is sampled with."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peft import set_peft_model_state_dict
from torch.profiler import ProfilerActivity, profile
from transformers import PreTrainedTokenizerFast

from agent0.errors import OperationError
from agent0.events.values import Trajectory
from agent0.infra.engine import memory_need
from agent0.infra.engine.adapter import Adapter, lora_settings, pack, unpack
from agent0.infra.engine.formats import best_format as choice
from agent0.infra.engine.formats.best_format import WORTH
from agent0.infra.engine.formats.packed_engine import PackedEngine
from agent0.infra.engine.formats.packed_need import LEARNED, need_to_generate, need_to_train, recomputed
from agent0.infra.engine.formats.products import FORMATS, ChosenLogprobs, Single
from agent0.infra.engine.inference import load
from agent0.infra.engine.memory_need import shape_of
from agent0.infra.engine.requests import TurnRequest
from agent0.infra.models.transformers import BASE
from agent0.infra.training import loop, step
from agent0.infra.training.batches import padded
from agent0.infra.training.forward import forward_of
from agent0.infra.training.launch.distributed import Team
from agent0.infra.training.launch.recipe import Recipe
from agent0.infra.training.loop import Training
from agent0.infra.training.metrics import ENOUGH_TOKENS, enough
from agent0.infra.training.packed_lora import PackedBase, PackedLora
from agent0.infra.training.step import SHORTEST, shared_length
from agent0.ports.models import Sampling
from agent0.ports.training import Sample, TrainJob
from agent0.training.objectives import MinibatchRows
from agent0.training.objectives.policy_gradient import clipped_surrogate, correction, token_logprobs
from benchmarks.memory import most_alive
from tests.adapters import ALPHA, RANK, adapter, tensors
from tests.engine.asking import user
from tests.engine.models import saved, with_lora

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
RECIPE: dict[str, Any] = {"objective": "grpo", "rank": RANK, "alpha": ALPHA, "minibatch": 2, "replay_steps": 0}


def path(*, start: int = 9, length: int = 30, logprob: float = -1.0) -> Trajectory:
    mask = tuple(int(index > length // 2) for index in range(length))
    return Trajectory(
        token_ids=tuple((start + 7 * index) % 400 for index in range(length)),
        mask=mask,
        logprobs=tuple(logprob * own for own in mask),
    )


PATHS = [path(), path(start=40, length=18), path(start=3, length=50)]


def lora(precision: str) -> PackedLora:
    model = PackedLora(PackedBase(BASE, precision), Adapter(lora_settings(RANK, ALPHA), {}, {}))
    model.take(tensors(BASE, size=0.02))
    return model


def test_chances_and_gradients_are_those_of_peft() -> None:
    team, batch = Team("cpu", "fp32"), padded(PATHS, 0, "cpu")
    model = lora("fp32")
    base, _ = load(str(BASE), "cpu", "")
    theirs = with_lora(base, RANK, ALPHA)
    set_peft_model_state_dict(theirs, tensors(BASE, size=0.02))
    outcomes = []
    for trained in (model, theirs):
        logprobs, _ = forward_of(trained, team.casting)(batch, 0.7)
        (logprobs * batch.mask).square().sum().backward()
        gradients = [p.grad for p in trained.parameters() if p.requires_grad]
        outcomes.append((logprobs * batch.mask, sorted(float(g.norm()) for g in gradients if g is not None)))
    (ours, lengths), (others, their_lengths) = outcomes
    assert torch.allclose(ours, others, atol=1e-4)
    assert lengths == pytest.approx(their_lengths, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_gradient_through_packed_matrices_points_the_same_way(precision: str) -> None:
    team, batch = Team("cpu", "fp32"), padded(PATHS, 0, "cpu")
    gradients = []
    for model in (lora("fp32"), lora(precision)):
        logprobs, _ = forward_of(model, team.casting)(batch, 1.0)
        (logprobs * batch.mask).sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    assert float(torch.cosine_similarity(*gradients, dim=0)) > 0.95


@given(st.integers(1, 2 * LEARNED + 3), st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 99))
def test_chosen_tokens_have_the_gradient_of_a_softmax(count: int, heat: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(5, 11, generator=generator, dtype=torch.float64)
    states = torch.randn(count, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    tokens = torch.randint(0, 11, (count,), generator=generator)
    weights = torch.randn(count, generator=generator, dtype=torch.float64)
    plain = torch.log_softmax(states @ matrix / heat, -1).gather(-1, tokens[:, None])[:, 0]
    (expected,) = torch.autograd.grad((plain * weights).sum(), states)
    chosen = ChosenLogprobs.apply(states, Single(matrix), tokens, heat)
    (gradient,) = torch.autograd.grad((chosen * weights).sum(), states)
    assert torch.allclose(chosen, plain)
    assert torch.allclose(gradient, expected)


def sampled(adapter_bytes: bytes = b"") -> list[Sample]:
    """Turns that the engine in int8 wrote, as trajectories."""
    engine = PackedEngine(str(BASE), precision="int8")
    if adapter_bytes:
        engine.load_adapter("parent", adapter_bytes)
    requests = [TurnRequest((user(f"What is {n}+34?"),), Sampling(max_tokens=20, seed=n)) for n in range(4)]
    samples = []
    for index, turn in enumerate(engine.generate(requests, "parent" if adapter_bytes else "")):
        before = len(turn.prompt)
        path = Trajectory(
            token_ids=(*turn.prompt, *turn.ids),
            mask=(*[0] * before, *[1] * len(turn.ids)),
            logprobs=(*[0.0] * before, *turn.logprobs),
        )
        samples.append(Sample(path, 1.0 if index % 2 else -1.0))
    return samples


@pytest.mark.parametrize("objective", ["grpo", "sft", "dpo"])
def test_what_all_begin_with_is_computed_once_and_teaches_the_same(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(objective)
    beginning = [rng.randrange(400) for _ in range(60)]

    def answer(length: int) -> Trajectory:
        own = [rng.randrange(400) for _ in range(length)]
        mask, logprobs = (*[0] * 65, *[1] * (length - 5)), (*[0.0] * 65, *[-1.0] * (length - 5))
        return Trajectory(token_ids=(*beginning, *own), mask=mask, logprobs=logprobs)

    over = answer(9) if objective == "dpo" else None
    samples = tuple(Sample(answer(8 + 7 * n), (-1.0) ** n, over=over) for n in range(5))
    job = TrainJob(samples, (), None, 3, {**RECIPE, "objective": objective, "minibatch": 5, "kl": 0.1})
    once, metrics = Training(str(BASE), precision="fp32").train(job, adapter(BASE, size=0.02))
    monkeypatch.setattr(step, "shared_length", lambda paths: 0)
    always, expected = Training(str(BASE), precision="fp32").train(job, adapter(BASE, size=0.02))
    assert metrics["loss"] == pytest.approx(expected["loss"], rel=1e-4, abs=1e-6)
    for name, weight in unpack(once).weights.items():
        assert torch.allclose(weight, unpack(always).weights[name], atol=1e-5), name


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80)), min_size=1, max_size=5))
def test_what_is_shared_is_never_learned_nor_predicts_what_is(lengths: list[tuple[int, int]]) -> None:
    paths = [
        Trajectory(
            token_ids=(*range(a), *[500 + n] * (b + 1)), mask=(*[0] * a, *[1] * (b + 1)), logprobs=(0.0,) * (a + b + 1)
        )
        for n, (a, b) in enumerate(lengths)
    ]
    length = shared_length(paths)
    assert length == 0 or length >= SHORTEST
    assert all(not any(path.mask[: length + 1]) for path in paths if length)
    assert len({path.token_ids[:length] for path in paths}) == 1
    assert length or len(paths) == 1 or min(a for a, _ in lengths) - 1 < SHORTEST


@pytest.mark.parametrize("parent", [b"", adapter(BASE, size=0.02)], ids=["base", "adapter"])
def test_what_is_trained_is_what_was_sampled(parent: bytes) -> None:
    samples = sampled(parent)
    job = TrainJob(tuple(samples), (), None, 3, RECIPE)
    training = Training(str(BASE), precision="int8")
    data, metrics = training.train(job, parent)
    assert training.environment()["forward"] == "packed int8"
    assert metrics["mismatch_mean"] < 0.02
    assert metrics["mismatch_share"] == 0
    assert metrics["mismatch_tokens"] == sum(sum(sample.trajectory.mask) for sample in samples)
    assert training.train(job, parent)[0] == data, "the same job gives the same adapter"
    engine = PackedEngine(str(BASE), precision="int8")
    engine.load_adapter("trained", data)
    assert unpack(data).weights.keys() == tensors(BASE).keys()


def test_a_policy_gradient_on_what_another_wrote_is_refused() -> None:
    samples = tuple(Sample(path(logprob=-20.0), 1.0) for _ in range(2))
    job = TrainJob(samples, (), None, 0, {**RECIPE, "mismatch_limit": 0.3})
    training = Training(str(BASE), precision="int8")
    with pytest.raises(OperationError, match=r"policy gradient.*nats a token.*mismatch_limit is 0.3.*precision"):
        training.train(job, b"")
    _, metrics = training.train(replace(job, settings={**job.settings, "objective": "sft"}), b"")
    assert metrics["mismatch_mean"] > 5
    assert metrics["mismatch_share"] == 1.0


@pytest.mark.parametrize(("kind", "expected"), [("truncate", [0.5, 1.0, 2.0, 0.0]), ("mask", [0.5, 1.0, 0.0, 0.0])])
def test_corrections_are_those_of_trl_and_verl(kind: str, expected: list[float]) -> None:
    """TRL 0.24 ``vllm_importance_sampling_mode`` token_truncate and token_mask with a cap of 2; verl 0.6
    ``rollout_is=token``: exp(old - sampled) of each own token, cut at the cap or 0 beyond it."""
    sampled_at = torch.tensor([[-1.0, -2.0, -3.0, -1.0]])
    trained_at = torch.tensor([[-1.0 - 0.6931472, -2.0, -3.0 + 1.5, -1.0]])
    mask = torch.tensor([[1, 1, 1, 0]])
    weights = correction(trained_at, sampled_at, mask, kind, 2.0)
    assert (weights * mask)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_corrected_loss_is_weighed_token_by_token() -> None:
    """-sum w_t min(r A, clip(r) A) as in TRL's ``_compute_loss``, r from the trainer's own log-probabilities."""
    new, old = torch.tensor([[-1.0, -2.0]]), torch.tensor([[-1.1, -2.3]])
    weights, mask, advantage = torch.tensor([[0.5, 2.0]]), torch.ones(1, 2), torch.tensor([1.5])
    loss = clipped_surrogate(MinibatchRows(new, old, mask, advantage, weights, torch.tensor([0.2])), clip_low=0.2).loss
    ratio = (new - old).exp()
    expected = -(weights * torch.minimum(ratio * 1.5, ratio.clamp(0.8, 1.2) * 1.5)).sum()
    assert float(loss) == pytest.approx(float(expected))


@pytest.mark.parametrize("kind", ["truncate", "mask"])
def test_a_training_with_correction_differs_and_repeats(kind: str) -> None:
    samples = tuple(
        replace(sample, trajectory=_shifted(sample.trajectory, 0.5 * (index % 3 - 1)))
        for index, sample in enumerate(sampled())
    )
    job, training = TrainJob(samples, (), None, 3, RECIPE), Training(str(BASE), precision="int8")
    corrected = replace(job, settings={**RECIPE, "correction": kind, "correction_cap": 1.3})
    plain = training.train(job, b"")[0]
    weighed = training.train(corrected, b"")[0]
    assert weighed != plain
    assert training.train(corrected, b"")[0] == weighed


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_the_first_ratio_is_one_where_the_trainer_computes_anew_what_was_sampled(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the sampler computed, and in minibatches: of two, the second is moved by the first alone."""
    monkeypatch.setattr(memory_need, "LARGEST", 0)
    samples = [replace(one, trajectory=_shifted(one.trajectory, 0.7)) for one in sampled()]
    settings = {**RECIPE, "correction": "recompute", "lr": 1e-9}
    for minibatch in (2, 4):
        job = TrainJob(tuple(samples), (), None, 3, {**settings, "minibatch": minibatch})
        _, metrics = Training(str(BASE), precision=precision).train(job, adapter(BASE, size=0.02))
        assert metrics["ratio"] == pytest.approx(1.0, abs=1e-6)
        assert metrics["clip_share"] == 0
        assert metrics["mismatch_mean"] == pytest.approx(0.7, abs=0.1), "which is the sampler's still"
    _, metrics = Training(str(BASE), precision=precision).train(replace(job, settings=RECIPE), b"")
    assert metrics["ratio"] < 0.6


def test_what_a_training_in_single_precision_computes_anew_is_what_transformers_does() -> None:
    model = lora("fp32")
    recipe, team = Recipe.of(TrainJob((), (), None, 0, {**RECIPE, "correction": "recompute"})), Team("cpu", "fp32")
    samples = [Sample(path) for path in PATHS]
    computed = step.Step(model, recipe, team, 0)
    computed.remember([samples[:2], samples[2:]])
    base, _ = load(str(BASE), "cpu", "", "fp32")
    theirs = with_lora(base, RANK, ALPHA)
    set_peft_model_state_dict(theirs, tensors(BASE, size=0.02))
    for sample in samples:
        ids = torch.tensor([sample.trajectory.token_ids])
        with torch.no_grad():
            expected = token_logprobs(theirs(ids).logits, ids)[0]
        [row] = computed._parent[id(sample)]
        own = torch.tensor(sample.trajectory.mask).bool()
        assert torch.allclose(torch.tensor(row)[own], expected[own], atol=1e-4)


def _shifted(trajectory: Trajectory, by: float) -> Trajectory:
    shifted = tuple(x + by * own for x, own in zip(trajectory.logprobs, trajectory.mask, strict=True))
    return trajectory.model_copy(update={"logprobs": shifted})


def test_a_thousand_tokens_are_enough_to_measure_by() -> None:
    samples = [Sample(path(length=400)) for _ in range(20)]
    each = sum(samples[0].trajectory.mask)
    assert len(enough(samples)) == -(-ENOUGH_TOKENS // each)
    assert enough(samples[:2]) == samples[:2]


def test_a_parent_of_another_size_is_refused() -> None:
    weights = tensors(BASE)
    weights[next(iter(weights))] = torch.zeros(RANK, 3)
    parent = pack(Adapter(lora_settings(RANK, ALPHA), weights, {}))
    job = TrainJob(tuple(sampled()), (), None, 3, RECIPE)
    with pytest.raises(OperationError, match="parent adapter does not fit"):
        Training(str(BASE), precision="int8").train(job, parent)


def test_the_best_format_is_measured_once_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    file = tmp_path / ".cache" / "agent0" / "formats.json"
    for name in FORMATS:
        seconds = dict.fromkeys(FORMATS, 2.0) | {name: 0.5}
        monkeypatch.setattr(choice, "measured", lambda seconds=seconds: seconds)
        file.unlink(missing_ok=True)
        choice.best_format.cache_clear()
        assert choice.best_format() == name
        monkeypatch.setattr(choice, "measured", pytest.fail)
        choice.best_format.cache_clear()
        assert choice.best_format() == name, "from the file"
        assert json.loads(file.read_text()).values()
    for damaged in (b"{", b"[]", b'{"a": 1}'):
        file.write_bytes(damaged)
        monkeypatch.setattr(choice, "measured", lambda: {"fp32": 3.0, "bf16": 1.0, "int8": 1.0 / WORTH})
        choice.best_format.cache_clear()
        assert (choice.best_format(), choice.best_format(("fp32", "int8"))) == ("bf16", "int8")
    choice.best_format.cache_clear()


WIDE = {"hidden_size": 64, "intermediate_size": 512, "num_hidden_layers": 4}
DEEP = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 12}


@pytest.mark.parametrize("precision", ["bf16", "int8"])
@pytest.mark.parametrize("checkpointing", ["off", "on", "auto"])
def test_the_memory_of_a_training_is_told_within_a_tenth(
    precision: str,
    checkpointing: str,
    tmp_path: Path,
    tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved(tmp_path, tokenizer, **WIDE)
    monkeypatch.setattr(loop, "packed", lambda *_: True)
    samples = tuple(Sample(path(start=start, length=200), 1.0) for start in range(4))
    settings = RECIPE | {"minibatch": 4, "micro_batch": 4, "gradient_checkpointing": checkpointing}
    training = Training(str(tmp_path), precision=precision)
    base, _ = training._loaded = training._load()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as allocations:
        training.train(TrainJob(samples, (), None, 0, settings), b"")
    need = need_to_train(
        shape_of(tmp_path), rank=RANK, rows=4, tokens=200, learned=99, precision=precision,
        checkpointing=recomputed(checkpointing, 800),
    )  # fmt: skip
    assert base.gradient_checkpointing == checkpointing and recomputed("auto", 800) and not recomputed("auto", 768)
    assert sum(vars(need).values()) - need.weights == pytest.approx(most_alive(allocations), rel=0.1)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_the_memory_of_writing_is_told_within_a_tenth(
    precision: str, tmp_path: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for blocks of earlier texts, which are as many as fit."""
    saved(tmp_path, tokenizer, **DEEP)
    engine = PackedEngine(str(tmp_path), precision=precision, kept=0)
    engine._chat.stops = frozenset()
    requests = [TurnRequest((user(f"{n:04}" + "~" * 180),), Sampling(max_tokens=24, seed=n)) for n in range(24)]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as allocations:
        written = engine.generate(requests)
    prompt = len(written[0].prompt)
    need = need_to_generate(shape_of(tmp_path), rows=24, prompt=prompt, tokens=24, precision=precision, kept=0)
    assert {len(turn.ids) for turn in written} == {24}
    assert need.activations + need.logits == pytest.approx(most_alive(allocations), rel=0.1)
