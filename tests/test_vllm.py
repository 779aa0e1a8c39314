"""The conformance suite over a real vLLM of the built-in model, its adapters and its draws.

    VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve infra/tiny/base --dtype float32 --enable-lora --max-lora-rank 8
    python -m pytest -m vllm tests/test_vllm.py

VLLM_URL names a server at another address. It must see the files of this machine: adapters are written to a folder.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import torch

from agent0.errors import AuthError, DependencyError, RefusedError
from agent0.events.values import Turn
from agent0.infra.engine.chat_template import chat_of
from agent0.infra.engine.inference import Engine
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.transformers import BASE
from agent0.ports.models import Generation, Model
from agent0.rollout.trajectories import assemble
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.adapters import adapter
from tests.conformance_model import ModelConformance, ask, essence
from tests.memory import MemoryArtifacts
from tests.openai_server import actor

URL = os.environ.get("VLLM_URL", "http://127.0.0.1:8000")
CLOSE = 1e-3
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),  # peft's, 2026-11
]


class Real:
    """A model of the server a test."""

    @pytest_asyncio.fixture
    async def model(self, tmp_path: Path) -> AsyncIterator[Model]:
        held = OpenAIServer(actor(URL), MemoryArtifacts(), shared=tmp_path / "adapters")
        yield held
        await held.close()


class TestVllm(Real, ModelConformance):
    """Token ids in, ids with log-probabilities out."""

    control_ids = chat_of(BASE).stops

    async def test_turns_drawn_in_one_call_are_those_of_the_seeds_that_they_name(self, model: Model) -> None:
        """vLLM draws choice i with seed + i."""
        turns = await asyncio.gather(*(model.generate(replace(ask(seed=n), joint=3)) for n in (90, 3, 500)))
        assert sorted(turn.seed or 0 for turn in turns) == [3, 4, 5]
        for turn in turns:
            assert essence(await model.generate(ask(seed=turn.seed or 0))) == essence(turn)

    async def test_draws_are_from_the_whole_distribution(self, model: Model) -> None:
        turns = [await model.generate(ask(seed=seed, max_tokens=2)) for seed in range(200)]
        assert min(turn.logprobs[-1] for turn in turns) < -5


class TestVllmChat(Real, ModelConformance):
    """The same server without a tokenizer here: it gives ids there, too, and encodes what was said anew each turn."""

    takes_prefill = False

    @pytest_asyncio.fixture
    async def model(self) -> AsyncIterator[Model]:
        held = OpenAIServer(actor(URL, tokenizer=""))
        yield held
        await held.close()

    async def test_a_conversation_goes_on_where_it_ended(self, model: Model) -> None:
        """It does not always; then nothing is trained on, and the reason is recorded."""
        problems = [await self.problem(model, seed) for seed in range(12)]
        assert set(problems) - {""} and all("no prefix" in one or not one for one in problems), problems

    async def problem(self, model: Model, seed: int) -> str:
        request, written = ask(seed=seed), list[Generation]()
        for _ in range(2):
            written.append(await model.generate(request))
            said = Turn(role="assistant", content=written[-1].text)
            request = replace(request, turns=(*request.turns, said, Turn(role="tool", name="python", content="42")))
        return assemble(written)[1]


class TestAdapters(Real):
    async def test_each_answers_to_its_name_as_training_computes_it(self, model: OpenAIServer) -> None:
        """More of them than the server is left with; the first one comes back."""
        engine = Engine(str(BASE))
        held = {f"a{seed}": adapter(BASE, seed=seed) for seed in range(6)}
        assert model._artifacts
        for name in (*held, "a0"):
            if not engine.has_adapter(name):
                engine.load_adapter(name, held[name])
            stored = model._artifacts.put(held[name])
            for seed in range(3):
                written = await model.generate(replace(ask(seed=seed), adapter=stored))
                assert gap(engine, written, name) < CLOSE and written.capture == "tokens"
        base = await model.generate(ask())
        assert gap(engine, base, "") < CLOSE < gap(engine, base, "a0")

    async def test_a_start_tries_one_of_the_rank_that_is_trained(self, model: OpenAIServer, tmp_path: Path) -> None:
        """It is gone afterwards; one of a higher rank than the server takes is named with the words that start it."""
        await model.check(8)
        assert not list((tmp_path / "adapters").iterdir())
        assert not any("trial" in name for name in await model.models())
        with pytest.raises(DependencyError, match="adapter of rank 300") as caught:
            await model.check(300)
        assert "--max-lora-rank 300" in caught.value.fix


def gap(engine: Engine, written: Generation, name: str) -> float:
    """The largest difference, in nats a token, from what training computes with the adapter ``name``."""
    ids = torch.tensor([[*written.prompt_ids, *written.token_ids]])
    with torch.inference_mode(), engine._using(name):
        computed = token_logprobs(engine._model(ids).logits, ids)[0, len(written.prompt_ids) :]
    return float((computed - torch.tensor(written.logprobs)).abs().max())


async def test_a_model_that_it_does_not_have_is_named() -> None:
    model = OpenAIServer(actor(URL, model="nobody"))
    with pytest.raises(RefusedError, match="has no model nobody") as caught:
        await model.generate(ask())
    assert not isinstance(caught.value, AuthError)
    await model.close()
