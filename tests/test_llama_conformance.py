"""The conformance suite over a llama.cpp server that the provider starts and owns, once for all of it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from agent0.ports.models import Model
from agent0.settings import StudentConfig
from infra.engine.chat_template import chat_of
from infra.models.llama_cpp import LlamaCpp
from infra.models.tiny import BASE
from tests.conformance_model import ModelConformance, ask, essence
from tests.llama_server import MISSING
from tests.memory import MemoryArtifacts


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
@pytest.mark.asyncio(loop_scope="class")
class TestOwnedLlamaCpp(ModelConformance):
    control_ids = chat_of(BASE).stops

    @pytest_asyncio.fixture(scope="class", loop_scope="class")
    @classmethod
    async def model(cls, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Model]:
        actor = StudentConfig(provider="llamacpp", num_ctx=1024, parallel=4)
        held = LlamaCpp(BASE, MemoryArtifacts(), actor, cache=tmp_path_factory.mktemp("gguf"), threads=1)
        yield held
        await held.close()

    async def test_how_fast_it_writes_is_known(self, model: Model) -> None:
        usage = (await model.generate(ask())).usage
        assert usage.first_s is not None and 0 < usage.first_s <= usage.wall_s
        assert usage.tokens_per_s is not None

    async def test_it_may_be_silent_while_it_reads_what_others_ask(self, model: LlamaCpp) -> None:
        """Its end would be seen, so silence is no sign that it is away."""
        await model.generate(ask())
        assert model._server and model._server._actor.silent_s == model._actor.timeout_s > 30

    async def test_turns_drawn_in_one_call_are_those_of_the_seeds_that_they_name(self, model: Model) -> None:
        """llama.cpp draws choice i with seed + i."""
        turns = await asyncio.gather(*(model.generate(replace(ask(seed=n), joint=3)) for n in (90, 3, 500)))
        assert sorted(turn.seed for turn in turns) == [3, 4, 5]
        for turn in turns:
            assert essence(await model.generate(ask(seed=turn.seed))) == essence(turn)
            assert turn.capture == "tokens" and len(turn.logprobs) == len(turn.token_ids)
