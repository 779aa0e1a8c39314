"""A model with random weights, its chat, its engine, its processes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import torch
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from infra.engine.chat_template import Chat
from infra.engine.inference import Engine
from infra.models.transformers import Transformers
from infra.tiny.tokenizer import make_tokenizer
from infra.training.lora_trainer import LoraTrainer
from tests.memory import MemoryArtifacts


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer(0)


@pytest.fixture(scope="module")
def context() -> int:
    """Tokens that the model can take in."""
    return 400


@pytest.fixture(scope="module")
def folder(tokenizer: PreTrainedTokenizerFast, context: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with random weights; large ones, so that it has opinions."""
    path = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=context, tie_word_embeddings=True, initializer_range=0.2,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def chat(tokenizer: PreTrainedTokenizerFast) -> Chat:
    return Chat(tokenizer)


@pytest.fixture
def engine(folder: Path) -> Engine:
    return Engine(str(folder))


@pytest.fixture(scope="module")
def artifacts() -> MemoryArtifacts:
    return MemoryArtifacts()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(folder: Path, artifacts: MemoryArtifacts) -> AsyncIterator[Transformers]:
    opened = Transformers(folder, artifacts, name="random", max_batch=8)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def trainer(folder: Path, artifacts: MemoryArtifacts) -> AsyncIterator[LoraTrainer]:
    opened = LoraTrainer(folder, artifacts)
    yield opened
    await opened.close()
