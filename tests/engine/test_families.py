"""Families of models: each, with random weights and the chat template of its publisher, writes, learns with LoRA on all
of its matrices, and writes on with what it learned."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from agent0.events.values import Trajectory, Turn
from agent0.infra.engine.adapter import lora_settings, unpack
from agent0.infra.engine.inference import Engine, load
from agent0.infra.engine.requests import TurnRequest
from agent0.infra.training.loop import Training
from agent0.ports.models import Sampling
from agent0.ports.training import Sample
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.engine.test_official_templates import tokenizer_with
from tests.engine.test_saving import job_of

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")  # peft 0.21's own
FAMILIES = {
    "Qwen2": "qwen2.5",
    "Qwen3": "qwen3",
    "Llama": "llama3.2",
    "Mistral": "mistral-v0.3",
    "Gemma2": "gemma2",
    "Gemma3": "gemma3",
    "SmolLM3": "qwen2.5",
}
"""The chat template that a family's model is tried with. SmolLM3's own is in no package; it is of ChatML, too."""
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TURNS = (Turn(role="user", content="What is 1+2?"),)
LONGER = (Turn(role="user", content="Sort [3, 1, 2] and say which of its numbers is the largest."),)


def saved(family: str, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    import transformers

    name = f"{family}Text" if family == "Gemma3" else family
    library: Any = transformers
    config = getattr(library, f"{name}Config")(
        **SIZES, num_key_value_heads=2, head_dim=8, vocab_size=len(tokenizer), max_position_embeddings=600,
        initializer_range=0.2, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    getattr(library, f"{family}ForCausalLM")(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp(request.param)
    saved(request.param, tokenizer_with(FAMILIES[request.param]), place)
    return place


Reply = tuple[list[int], list[int], list[float]]
"""Tokens of a prompt, tokens written behind it, and their log-probabilities."""


def written(engine: Engine) -> list[Reply]:
    turns = engine.generate([TurnRequest(asked, Sampling(max_tokens=12, seed=7)) for asked in (TURNS, LONGER)])
    assert all(turn.ids and not turn.error for turn in turns)
    return [(turn.prompt, turn.ids, turn.logprobs) for turn in turns]


def computed(folder: Path, prompt: list[int], ids: list[int]) -> list[float]:
    """Log-probabilities of ``ids`` behind ``prompt`` by one pass of transformers."""
    model, _ = load(str(folder), "cpu", "")
    row = torch.tensor([prompt + ids])
    with torch.inference_mode():
        return [float(x) for x in token_logprobs(model(input_ids=row).logits, row)[0, -len(ids) :]]


def test_it_writes_what_transformers_computes_and_learns_on_all_of_its_matrices(folder: Path) -> None:
    engine = Engine(str(folder))
    replies = written(engine)
    for prompt, ids, logprobs in replies:
        assert logprobs == pytest.approx(computed(folder, prompt, ids), abs=1e-4)
    prompt, ids, logprobs = replies[0]

    tokenizer = engine._chat._tokenizer
    own = Trajectory(
        token_ids=(*prompt, *ids),
        mask=(0,) * len(prompt) + (1,) * len(ids),
        logprobs=(0.0,) * len(prompt) + (*logprobs,),
    )
    job = replace(job_of(tokenizer, epochs=6, lr=0.02, minibatch=1), samples=(Sample(own, 1.0, 0.3),), replay=())
    adapter, metrics = Training(str(folder)).train(job, b"")
    assert metrics["mismatch_p99"] == pytest.approx(0, abs=1e-4), "what trains computes what was sampled"
    trained = {name.rpartition(".lora_")[0].rpartition(".")[2] for name in unpack(adapter).weights}
    assert trained == set(lora_settings(1, 1)["target_modules"])

    engine.load_adapter("student-0", adapter)
    text = tokenizer.decode(ids)
    before, after = (engine.likelihood(TURNS, [text], name)[0].logprob for name in ("", "student-0"))
    assert after > before, "what was rewarded became likelier"
