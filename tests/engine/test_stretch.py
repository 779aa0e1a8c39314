"""Positions that are stretched in training, and what a base was taught, replayed: likelihood of both, counted apart."""

import shutil
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from agent0.errors import DependencyError, OperationError
from agent0.events.values import Turn
from agent0.infra.engine.adapter import unpack
from agent0.infra.engine.inference import load
from agent0.infra.engine.qwen2_functional import logprobs, parts_of, shape_of, weights_of
from agent0.infra.training import course_replay, forward
from agent0.infra.training.checkpointing import HalfDone
from agent0.infra.training.loop import Training
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.engine.test_saving import Killed, job_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
TAUGHT = [(Turn(role="user", content=f"Say {n}."), Turn(role="assistant", content=f"It is {n}.")) for n in range(4)]
RECIPE = {"objective": "sft", "rank": 0, "steps": 6, "fresh": 0.5, "taught": 0.25, "minibatch": 4, "lr_end": 0.1}


@pytest.fixture(scope="module")
def base(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model with random weights, and examples of what it was taught beside them."""
    path = tmp_path_factory.mktemp("base") / "model"
    shutil.copytree(folder, path)
    assert course_replay.write(path, TAUGHT) == 4
    return path


def test_a_stretched_row_is_turned_as_transformers_turns_it(folder: Path) -> None:
    model, _ = load(str(folder), "cpu", "")
    shape, parts = shape_of(model), parts_of(model)
    assert shape and parts
    weights = weights_of(shape, *parts)
    ids = torch.arange(24).view(2, 12) + 20
    seen = torch.ones_like(ids)
    seen[1, 8:] = 0
    stretch = torch.tensor([1.7, 1.2])
    positions = torch.arange(12)[None] * stretch[:, None]
    with torch.no_grad():
        found = logprobs(weights, ids, seen, seen, stretch=stretch)
        logits = model(input_ids=ids, attention_mask=seen, position_ids=positions, use_cache=False).logits
        plain = logprobs(weights, ids, seen, seen)
        assert torch.allclose(found, token_logprobs(logits, ids) * seen, atol=1e-4)
        assert torch.equal(plain, logprobs(weights, ids, seen, seen, stretch=torch.ones(2)))
    assert not torch.allclose(found, plain, atol=1e-2)


def test_each_source_is_counted_as_often_as_it_is_drawn(base: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    job = job_of(tokenizer, **RECIPE)  # type: ignore[arg-type]
    _, metrics = Training(str(base)).train(job, b"")
    own = {sum(sample.trajectory.mask) for sample in (*job.samples, *job.replay)}
    assert metrics["steps"] == 6 and "made_tokens" not in metrics
    assert 6 * 3 * min(own) <= metrics["own_tokens"] <= 6 * 3 * max(own)
    assert metrics["taught_tokens"] == 6 * 1 * len(tokenizer.encode("It is 3.")) + 6, "and the end of each turn"
    assert metrics["tokens"] == metrics["own_tokens"] + metrics["taught_tokens"]
    _, metrics = Training(str(base)).train(job_of(tokenizer), b"")
    assert "taught_tokens" not in metrics and metrics["own_tokens"] > metrics["tokens"], "replay is its own, too"


def test_a_training_that_was_killed_stretches_as_it_would_have(
    base: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, job = Training(str(base)), job_of(tokenizer, **RECIPE, stretch=2.0, warmup=2)  # type: ignore[arg-type]
    whole, _ = training.train(job, b"")
    assert whole != training.train(job_of(tokenizer, **RECIPE, warmup=2), b"")[0]  # type: ignore[arg-type]
    saving, kept = HalfDone.save, tmp_path / "half.safetensors"

    def save(self: HalfDone, *arguments: object) -> None:
        saving(self, *arguments)  # type: ignore[arg-type]
        if arguments[2] == 3:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(HalfDone, "save", save)
        with pytest.raises(Killed):
            training.train(job, b"", str(kept), 0.0)
    assert kept.exists() and training.train(job, b"", str(kept), 0.0)[0] == whole


def test_a_base_without_what_it_was_taught_is_refused(folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(DependencyError, match="What the base was taught"):
        Training(str(folder)).train(job_of(tokenizer, **RECIPE), b"")  # type: ignore[arg-type]


@pytest.mark.parametrize("apart", [True, False], ids=["body and head", "whole"])
def test_a_model_that_is_not_computed_as_a_function_is_stretched_alike(
    base: Path, tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    recipe = RECIPE | {"rank": 4, "stretch": 2.0}
    jobs = [job_of(tokenizer, **recipe | change) for change in ({}, {"stretch": 1.0})]  # type: ignore[arg-type]
    function, plain = (Training(str(base)).train(job, b"")[0] for job in jobs)
    monkeypatch.setattr(forward, "shape_of", lambda model: None)
    if not apart:
        monkeypatch.setattr(forward, "body_and_head", lambda model: None)
    through = Training(str(base)).train(jobs[0], b"")[0]
    weights, same, other = (unpack(one).weights for one in (through, function, plain))
    assert all(torch.allclose(one, same[name], atol=1e-4) for name, one in weights.items())
    assert not all(torch.allclose(one, other[name], atol=1e-4) for name, one in weights.items())


def test_positions_that_are_not_rotary_are_not_stretched() -> None:
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 16, "n_positions": 8}
    with pytest.raises(OperationError, match=r"GPT2LMHeadModel are not rotary.*stretch to 1"):
        forward.check_stretch(GPT2LMHeadModel(GPT2Config(**sizes)))


@pytest.mark.parametrize("text", ["[]\n[[1]]\n", "not json\n", '[["user"]]\n'])
def test_a_damaged_file_of_what_was_taught_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / course_replay.FILE).write_text(text)
    with pytest.raises(DependencyError, match="What the base was taught"):
        course_replay.read(tmp_path)


def test_what_is_kept_is_read_back(base: Path) -> None:
    assert [example.turns for example in course_replay.read(base)] == TAUGHT
