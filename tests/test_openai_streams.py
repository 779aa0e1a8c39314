"""Answers of OpenAI-compatible servers as they come, part by part: SGLang's own way, and every end that is none."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from agent0.errors import DependencyError, TransientError
from agent0.infra.models.openai.dialects import Way
from agent0.infra.models.openai.provider import OpenAIServer, untrainable
from agent0.infra.models.openai.replies import Reading
from agent0.ports.models import Model, Sampling
from tests.conformance_model import FailureConformance, ModelConformance, ask, essence
from tests.openai_server import OpenAIStandIn, actor, serving

MIDDLE = {"cut": "broken", "json": "garbled"}


class Served:
    """A stand-in a class, and a model of it a test."""

    level, tokenizer, incremental, streams = "tokens", True, False, True

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls) -> Iterator[OpenAIStandIn]:
        with serving(level=cls.level) as there:
            there.incremental, there.streams = cls.incremental, cls.streams
            yield there

    @pytest_asyncio.fixture
    async def model(self, server: OpenAIStandIn) -> AsyncIterator[Model]:
        server.asked.clear()
        model = OpenAIServer(actor(server.url, **({} if self.tokenizer else {"tokenizer": ""})))
        yield model
        server.faults.clear()
        await model.close()


class Failing(Served, FailureConformance):
    @pytest.fixture
    def fail(self, server: OpenAIStandIn) -> Callable[[str], None]:
        """Within the answer, where it is streamed."""
        return lambda fault: server.faults.append(MIDDLE.get(fault, fault))

    def hurry(self, model: Any, limit: str) -> None:
        super().hurry(model._connection, limit)


class TestCompletionsFail(Failing):
    """vLLM's."""


class TestChatFails(Failing):
    level, tokenizer = "logprobs", False


class TestSGLangFails(Failing):
    level = "sglang"

    async def test_an_error_in_the_middle_is_no_answer(self, model: Model, fail: Callable[[str], None]) -> None:
        expected = await model.generate(ask())
        fail("error")
        with pytest.raises(TransientError, match="before it was whole"):
            await model.generate(ask())
        assert essence(await model.generate(ask())) == essence(expected)


class TestSGLang(Served, ModelConformance):
    """Ids in, ids with log-probabilities out; each part has all that was written before."""

    level = "sglang"

    async def test_what_goes_over_the_wire(self, model: Model, server: OpenAIStandIn) -> None:
        written = await model.generate(ask(seed=2**40 + 5))
        path, body = server.asked[-1]
        given = body["sampling_params"]
        assert path == "/generate" and body["input_ids"] == list(written.prompt_ids)
        assert body["return_logprob"] is True and given["sampling_seed"] == 5 + 2**40 % 2**31
        assert (given["temperature"], given["top_p"], given["top_k"], given["min_p"]) == (1.0, 1.0, -1, 0.0)
        assert (given["repetition_penalty"], given["presence_penalty"], given["frequency_penalty"]) == (1.0, 0.0, 0.0)
        assert (written.capture, written.untrainable) == ("tokens", "")


class TestSGLangPiecemeal(TestSGLang):
    """The same, started so that each part has what is new."""

    incremental = True


class TestNoStreams(Served, ModelConformance):
    """A server that answers in one piece although a stream was asked for."""

    streams = False


async def test_a_kept_connection_that_was_closed_meanwhile_is_no_server_that_is_away() -> None:
    with serving() as server:
        model = OpenAIServer(actor(server.url))
        expected = await model.generate(ask())
        server.faults = ["closed"]
        assert essence(await model.generate(ask())) == essence(expected)
        server.faults = ["closed", "closed"]
        with pytest.raises(DependencyError, match="without an answer in HTTP"):
            await model.generate(ask())
        await model.close()


async def test_all_ways_read_the_same_answer() -> None:
    found = []
    for level in ("tokens", "sglang"):
        with serving(level=level) as server:
            for server.incremental, server.streams in ((False, True), (True, False)):
                model = OpenAIServer(actor(server.url))
                found.append(essence(await model.generate(ask(seed=3))))
                await model.close()
    assert len(set(found)) == 1


def test_hidden_tokens_are_noticed_and_not_trained_on() -> None:
    """llama.cpp counts tokens whose text ends within a character, and tells nothing else of them."""
    for predicted, capture, why in ((2, "tokens", ""), (3, "logprobs", "hides tokens")):
        reading = Reading(Way("llama.cpp", "tokens"))
        steps = [{"id": 5, "logprob": -0.5}, {"id": 6, "logprob": -0.5}]
        reading.add({"content": "ab", "stop": False, "completion_probabilities": steps})
        assert reading.begun and not reading.whole
        end = {"content": "", "stop": True, "stop_type": "eos", "tokens_evaluated": 1, "tokens_predicted": predicted}
        reading.add(end)
        [reply] = reading.replies()
        known = replace(reply, prompt_ids=(1,))
        assert reading.whole and known.capture == capture and why in untrainable(known, Sampling())
        assert bool(why) == bool(untrainable(known, Sampling()))
