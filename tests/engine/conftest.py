"""A model with random weights, its chat, its engine, its processes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from transformers import PreTrainedTokenizerFast

from agent0.infra.engine.chat_template import Chat
from agent0.infra.engine.inference import Engine
from agent0.infra.models.transformers import Transformers
from agent0.infra.tiny.tokenizer import make_tokenizer
from agent0.infra.training.lora_trainer import LoraTrainer
from tests.engine.models import saved
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
    """A saved model with random weights."""
    place = tmp_path_factory.mktemp("model")
    return saved(place, tokenizer, hidden_size=32, intermediate_size=48, max_position_embeddings=context)


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
