"""The Ollama provider over a server that fails, is busy, or would cut a prompt."""

import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import pytest
import pytest_asyncio

from agent0.errors import AuthError, DependencyError, OperationError, TransientError
from agent0.events.values import Turn
from agent0.infra.models.ollama.probe import probe
from agent0.infra.models.ollama.provider import Ollama
from agent0.ports.models import GenerateRequest, Model
from agent0.settings import ActorConfig, StudentConfig
from tests.conformance_model import FailureConformance, ask
from tests.memory import MemoryArtifacts
from tests.ollama_server import Lines, OllamaServer
from tests.ollama_wire import serving


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with serving(MemoryArtifacts()) as ollama:
        yield ollama


@pytest_asyncio.fixture
async def student(server: OllamaServer) -> AsyncIterator[Ollama]:
    model = Ollama(StudentConfig(num_ctx=4096), server.url)
    yield model
    await model.close()


class TestOllamaFails(FailureConformance):
    @pytest.fixture
    def model(self, student: Ollama) -> Model:
        return student

    @pytest.fixture
    def fail(self, server: OllamaServer) -> Iterator[Callable[[str], None]]:
        over = threading.Event()

        def spoilt(fault: str, lines: Lines) -> Iterator[Any]:
            server.spoils_stream = iter
            if fault != "hang":
                yield next(lines)
            if fault == "json":
                yield b'{"message": {"con'
            if fault in ("hang", "silent"):
                over.wait(20)
            if fault != "ended":
                raise ConnectionAbortedError

        def fail(fault: str) -> None:
            server.full = int(fault == "busy")
            server.spoils_stream = iter if fault == "busy" else partial(spoilt, fault)

        yield fail
        over.set()


async def test_no_server_is_a_missing_dependency() -> None:
    with serving(MemoryArtifacts()) as server:
        gone = server.url
    model = Ollama(ActorConfig(timeout_s=5), gone)
    with pytest.raises(DependencyError, match="ollama serve") as caught:
        await model.generate(ask())
    assert gone in caught.value.why and "ollama pull qwen2.5:3b" in caught.value.fix
    with pytest.raises(DependencyError, match="ollama serve"):
        await probe(gone, "qwen2.5:3b")
    await model.close()


@pytest.mark.parametrize(("status", "error"), [(500, TransientError), (400, OperationError), (401, AuthError)])
async def test_refusals(student: Ollama, server: OllamaServer, status: int, error: type[Exception]) -> None:
    server.fail = status
    with pytest.raises(error, match="made to fail"):
        await student.generate(ask())


@pytest.mark.parametrize("status", [400, 500])
async def test_an_error_does_not_repeat_what_was_asked(student: Ollama, server: OllamaServer, status: int) -> None:
    server.fail, server.failing = status, "template: 7: no role in [{user What is 12+30, and a secret besides?}]"
    asked = GenerateRequest((Turn(role="user", content="What is 12+30, and a secret besides?"),))
    with pytest.raises((OperationError, TransientError), match="quotes the request") as caught:
        await student.generate(asked)
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    if status == 400:
        assert isinstance(caught.value, OperationError) and "ollama show --template" in caught.value.fix


async def test_a_slow_answer_is_tried_again_later(server: OllamaServer) -> None:
    server.stall = threading.Event()
    model = Ollama(ActorConfig(timeout_s=0.2), server.url)
    with pytest.raises(TransientError, match="took too long"):
        await model.generate(ask())
    await model.close()


async def test_a_server_that_stays_busy_is_waited_for_as_one_that_is_away() -> None:
    with serving(MemoryArtifacts(), parallel=0, queue=0) as server:
        model = Ollama(ActorConfig(timeout_s=0.3), server.url)
        with pytest.raises(DependencyError, match="maximum pending requests exceeded"):
            await model.generate(ask())
        await model.close()


async def test_a_turn_that_was_stopped_for_repeating_itself_is_cut_off() -> None:
    """After 30 equal tokens the server ends its answer without a last line."""

    def stopped(lines: Lines) -> Lines:
        yield from islice(lines, 31)

    with serving(MemoryArtifacts(), says=lambda _: "haha" * 60, spoils_stream=stopped) as server:
        model = Ollama(ActorConfig(), server.url)
        written = await model.generate(ask(max_tokens=100))
        await model.close()
    assert (written.text, written.finish, written.usage.completion_tokens) == ("haha" * 31, "length", 31)


LONG = (
    Turn(role="user", content="the number is 4711"),
    Turn(role="assistant", content="x, " * 2000),
    Turn(role="user", content="What is 12+30?"),
)


@pytest.mark.parametrize(("version", "says"), [("0.12.11", "exceeds the available context size"), ("0.9.6", "update")])
async def test_a_prompt_that_would_be_cut_is_refused_and_the_setting_named(version: str, says: str) -> None:
    """A server drops the oldest messages, and answers as if it had read them."""
    with serving(MemoryArtifacts(), version=version) as server:
        model = Ollama(ActorConfig(num_ctx=1024), server.url)
        with pytest.raises(OperationError, match=says) as caught:
            await model.generate(GenerateRequest(LONG))
        assert "num_ctx, which is 1024" in caught.value.fix and not server.prompts
        assert (await model.generate(ask())).text
        await model.close()


async def test_a_context_that_was_dropped_on_the_way_is_no_turn(server: OllamaServer) -> None:
    server.version = "0.13.0"
    server.spoils_stream = lambda lines: ({**line, "prompt_eval_count": 1024} for line in lines)
    model = Ollama(ActorConfig(num_ctx=1000), server.url)
    with pytest.raises(OperationError, match="the beginning was dropped"):
        await model.generate(ask(max_tokens=200))
    await model.close()
