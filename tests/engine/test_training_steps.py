"""Each step of a training is kept: as many as were taken, and together they come to the metrics of the training."""

import asyncio
import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from agent0.errors import OperationError
from agent0.events.values import TrainingStep, Trajectory
from agent0.infra.models.transformers import BASE, Transformers
from agent0.infra.training.loop import Training
from agent0.infra.training.step_records import token_sums
from agent0.ports.training import Sample, TrainJob
from tests.engine.test_processes import sampled
from tests.engine.test_saving import SETTINGS, job_of
from tests.engine.test_training_kinds import pairs_of
from tests.memory import MemoryArtifacts

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
OF_A_RATIO = ("entropy_estimate", "parent_kl", "clip_above", "mismatch")


def trained(folder: Path, job: TrainJob) -> tuple[dict[str, float], tuple[TrainingStep, ...]]:
    _, metrics, steps, _ = Training(str(folder)).train_with_steps(job, b"")
    return metrics, steps


def job_with(tokenizer: PreTrainedTokenizerFast, **settings: Any) -> TrainJob:
    return job_of(tokenizer, samples=6, **settings)


def mean_by_token(steps: list[TrainingStep], name: str) -> float:
    return math.fsum(getattr(step, name) * step.tokens for step in steps) / sum(step.tokens for step in steps)


@pytest.fixture(scope="module")
def attempts() -> tuple[Sample, ...]:
    """Of the built-in model, by itself."""

    async def written() -> list[Trajectory]:
        model = Transformers(BASE, MemoryArtifacts(), name="tiny", max_batch=8)
        try:
            return await sampled(model, 6)
        finally:
            await model.close()

    return tuple(Sample(path, (-1.0) ** n, 0.2) for n, path in enumerate(asyncio.run(written())))


@pytest.mark.parametrize("objective", ["adpo", "rloo", "sft"])
def test_the_steps_of_the_built_in_model_come_to_the_metrics_of_its_training(
    attempts: tuple[Sample, ...], objective: str
) -> None:
    settings = SETTINGS | {"objective": objective, "epochs": 3}
    metrics, steps = trained(BASE, TrainJob(attempts, attempts[:2], None, 5, settings))
    assert len(steps) == metrics["steps"] == 3 * 3 + 2
    policy, replay = ([step for step in steps if step.kind == kind] for kind in ("policy", "replay"))
    assert len(replay) == 2
    assert fmean(step.loss or 0.0 for step in policy) == pytest.approx(metrics["loss"], rel=1e-12)
    assert fmean(step.loss or 0.0 for step in replay) == pytest.approx(metrics["replay_loss"], rel=1e-12)
    assert sum(step.tokens for step in policy) == metrics["tokens"]
    assert all(step.gradient_norm and not step.skipped for step in steps)
    if objective != "sft":
        clipped = ["clip_above", "clip_below"] if objective == "adpo" else ["clip_above"]
        sides = sum(mean_by_token(policy, name) for name in clipped)
        assert 0 < sides == pytest.approx(metrics["clip_share"], rel=1e-9)
        assert policy[0].mismatch == pytest.approx(0, abs=1e-3), "one program samples and trains"


def test_what_an_earlier_checkpoint_wrote_is_weighed_by_its_own_log_probabilities(
    attempts: tuple[Sample, ...],
) -> None:
    """It is to differ from the model in training, so it neither refuses a training nor counts as a mismatch."""

    def written_by_another(sample: Sample, *, stale: bool) -> Sample:
        path = sample.trajectory
        shifted = path.model_copy(update={"logprobs": tuple(one - 1.0 for one in path.logprobs)})
        return replace(sample, trajectory=shifted, stale=stale)

    settings = SETTINGS | {"objective": "grpo", "epochs": 1, "clip_high": 5.0, "mismatch_limit": 0.3}
    behind = tuple(written_by_another(sample, stale=True) for sample in attempts[3:])
    metrics, steps = trained(BASE, TrainJob((*attempts[:3], *behind), (), None, 5, settings))
    assert metrics["mismatch_mean"] < 0.01 and metrics["ratio"] > 1.3, "the ratio is to whoever wrote it"
    assert all(step.mismatch is None or step.mismatch < 0.01 for step in steps)
    metrics, steps = trained(BASE, TrainJob(behind, (), None, 5, settings))
    assert "mismatch_mean" not in metrics and all(step.mismatch is None for step in steps)
    corrected = settings | {"correction": "truncate", "correction_cap": 2.0}
    assert trained(BASE, TrainJob(behind, (), None, 5, corrected))[0]["loss"] != metrics["loss"]
    with pytest.raises(OperationError, match="nats a token"):
        trained(BASE, TrainJob(tuple(replace(one, stale=False) for one in behind), (), None, 5, settings))


def test_what_an_objective_does_not_have_is_absent(folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    plain = job_with(tokenizer, lr=0.02)
    for objective, ratio in (("adpo", True), ("rloo", True), ("sft", False), ("dpo", False)):
        job = pairs_of(plain) if objective == "dpo" else plain
        _, steps = trained(folder, replace(job, settings={**job.settings, "objective": objective}))
        first = steps[0]
        assert first.kind == "policy"
        assert [getattr(first, name) is not None for name in OF_A_RATIO] == [ratio] * 4
        assert (first.clip_below is not None) == (objective == "adpo")
        assert all(getattr(step, name) is None for step in steps if step.kind == "replay" for name in OF_A_RATIO)


def test_the_first_step_stands_where_the_parent_does(folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    metrics, steps = trained(folder, job_with(tokenizer, lr=0.02, lr_end=0.0))
    first, *others = [step for step in steps if step.kind == "policy"]
    assert first.parent_kl == 0 and first.mismatch == pytest.approx(metrics["mismatch_mean"], rel=0.2)
    assert first.entropy_estimate is not None and 1 < first.entropy_estimate < 20
    assert all(step.parent_kl and step.parent_kl > 0 and step.mismatch is None for step in others)
    rates = [step.learning_rate for step in steps]
    assert rates == sorted(rates, reverse=True) and (rates[0], rates[-1]) == (0.02, 0.0)


def test_a_trainer_that_computes_the_parent_knows_the_mismatch_of_each_step(
    folder: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    job = job_with(tokenizer, lr=0.02, epochs=1, kl=0.1)
    metrics, steps = trained(folder, job)
    policy = [step for step in steps if step.kind == "policy"]
    assert mean_by_token(policy, "mismatch") == pytest.approx(metrics["mismatch_mean"], rel=1e-4)
    assert policy[0].parent_kl == 0 and all(step.parent_kl for step in policy[1:])
    assert mean_by_token(policy, "penalised_kl") == pytest.approx(metrics["kl"], rel=1e-4)
    _, others = trained(folder, replace(job, settings={**job.settings, "kl_to": "base"}))
    assert [step.penalised_kl for step in others if step.kind == "policy"] == pytest.approx(
        [step.penalised_kl for step in policy]  # the parent of the first training is the base
    )
    _, free = trained(folder, job_with(tokenizer, epochs=1))
    assert all(step.penalised_kl is None for step in free)


def test_a_skipped_step_says_so_and_has_no_number_that_is_none(
    folder: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    job = job_with(tokenizer, epochs=1)
    samples = (replace(job.samples[0], advantage=math.nan), *job.samples[1:])
    metrics, steps = trained(folder, replace(job, samples=samples))
    (skipped,) = [step for step in steps if step.skipped]
    assert metrics["skipped"] == 1 and len(steps) == metrics["steps"] + 1
    assert skipped.loss is None and skipped.gradient_norm is None
    assert all(value is None or math.isfinite(value) for value in skipped.model_dump(exclude={"kind"}).values())


def test_sums_by_hand() -> None:
    """Two tokens of three are sampled; of one the model has doubled the probability."""
    model, sampler = (torch.tensor([[0.5, 0.25, 0.5]]).log(), torch.tensor([[0.1, 0.25, 0.25]]).log())
    mask = torch.tensor([[0, 1, 1]])
    sums = {name: float(value) for name, value in token_sums(model, sampler, None, mask, first=False).items()}
    assert sums == {
        "step.entropy_estimate": pytest.approx(math.log(4) + math.log(2)),
        "step.parent_kl": pytest.approx(2 - 1 - math.log(2)),
    }
    at_first = token_sums(model, sampler, None, mask, first=True)
    assert float(at_first["step.mismatch"]) == pytest.approx(math.log(2)) and float(at_first["step.parent_kl"]) == 0
    parent = token_sums(model, sampler, torch.tensor([[0.9, 0.5, 0.5]]).log(), mask, first=False)
    assert float(parent["step.mismatch"]) == pytest.approx(2 * math.log(2))
    assert float(parent["step.parent_kl"]) == pytest.approx(0.5 - 1 + math.log(2))
