"""What clients of Ollama did wrong before, done again to the stand-in by the official client: it shows each fault, and
the provider of today does not have it. A stand-in that forgave one would prove nothing."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from ollama import AsyncClient, ResponseError

from agent0.chat_format import format_call
from agent0.errors import OperationError
from agent0.events.values import Turn
from agent0.infra.models.ollama.provider import Ollama
from agent0.ports.models import GenerateRequest, Sampling
from agent0.settings import StudentConfig
from tests.conformance_model import TOOL, ask
from tests.memory import MemoryArtifacts
from tests.ollama_server import OllamaServer
from tests.ollama_wire import serving

MODEL = "qwen2.5:7b"
CALL = {"function": {"name": "python", "arguments": {"code": "print(12+34)"}}}
SPEC = {"type": "function", "function": {"name": "python", "description": "Runs.", "parameters": {"type": "object"}}}
CUT = '<tool_call>\n{"name": "python", "arguments": {"code": \n</tool_call>'


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with serving(MemoryArtifacts()) as ollama:
        yield ollama


async def naive(server: OllamaServer, *messages: dict[str, Any], **given: Any) -> Any:
    """As the provider asked before: native calls, no limit of calls at once, nothing said of windows."""
    client = AsyncClient(server.url)
    try:
        return await client.chat(MODEL, list(messages), **given)
    finally:
        await client.close()  # type: ignore[no-untyped-call]


async def written(server: OllamaServer, *turns: Turn, **given: Any) -> Any:
    """As the provider asks today."""
    model = Ollama(StudentConfig(num_ctx=given.pop("num_ctx", 4096)), server.url)
    try:
        return await model.generate(GenerateRequest(turns, Sampling(max_tokens=64), **given))
    finally:
        await model.close()


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def test_a_native_call_beside_text_vanishes_from_the_context(server: OllamaServer) -> None:
    said = {"role": "assistant", "content": "I compute it.", "tool_calls": [CALL]}
    await naive(server, user("What is 12+34?"), said, {"role": "tool", "content": "46"})
    assert "print(12+34)" not in server.prompts[-1], "the template prints the text or the call"
    text = "I compute it.\n" + format_call("python", CALL["function"]["arguments"])  # type: ignore[arg-type]
    turns = Turn(role="user", content="?"), Turn(role="assistant", content=text), Turn(role="tool", content="46")
    await written(server, *turns)
    assert "I compute it." in server.prompts[-1] and "print(12+34)" in server.prompts[-1]


async def test_a_malformed_native_call_is_dropped(server: OllamaServer) -> None:
    server.says = lambda _: CUT
    got = await naive(server, user("What is 12+34?"), tools=[SPEC])
    assert not got.message.tool_calls and "python" not in (got.message.content or ""), "nobody learns what was wrong"
    assert (await written(server, Turn(role="user", content="?"), tools=(TOOL,))).text == CUT


async def test_calls_without_a_limit_are_refused_by_a_full_queue() -> None:
    with serving(MemoryArtifacts(), parallel=1, queue=1, turn_s=0.05) as server:
        came = await asyncio.gather(*(naive(server, user(f"{n}")) for n in range(8)), return_exceptions=True)
        refused = [one for one in came if isinstance(one, ResponseError)]
        assert refused and {one.status_code for one in refused} == {503}
        model = Ollama(StudentConfig(num_ctx=4096, parallel=2), server.url)
        server.most = 0
        await asyncio.gather(*(model.generate(ask(f"{n}")) for n in range(8)))
        assert server.most <= 2
        await model.close()


async def test_a_prompt_that_does_not_fit_is_cut_without_a_word(server: OllamaServer) -> None:
    history = [user("The rule: add one."), {"role": "assistant", "content": "x, " * 2000}]
    await naive(server, *history, user("What is 1?"), options={"num_ctx": 1024})
    assert "add one" not in server.prompts[-1]
    turns = [Turn(role="user", content="The rule: add one."), Turn(role="assistant", content="x, " * 2000)]
    with pytest.raises(OperationError, match="does not fit into the window"):
        await written(server, *turns, Turn(role="user", content="What is 1?"), num_ctx=1024)


async def test_a_model_stays_in_memory_beside_a_training(server: OllamaServer) -> None:
    await naive(server, user("What is 12+34?"))
    assert MODEL in server.in_memory
    model = Ollama(StudentConfig(num_ctx=4096), server.url)
    await model.generate(ask("What is 12+34?"))
    await model.rest()
    assert MODEL not in server.in_memory
    await model.close()
