"""The Ollama provider against a server that speaks the documented wire format, and against a real one where it runs."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from agent0.chat_format import format_call
from agent0.errors import AuthError, DependencyError, OperationError, TransientError
from agent0.ports.models import GenerateRequest, Model
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, solve
from agent0.settings import ActorConfig, StudentConfig
from events.values import Artifact, Task, Turn
from infra.models.ollama import Ollama, harmless, probe
from tests.conformance_model import QUESTION, SPECIAL, TOOL, ModelConformance, ask
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.ollama_server import OllamaServer, serving


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with serving(MemoryArtifacts()) as ollama:
        yield ollama


@pytest_asyncio.fixture
async def student(server: OllamaServer) -> AsyncIterator[Ollama]:
    model = Ollama(StudentConfig(num_ctx=4096), server.url)
    yield model
    await model.close()


class TestOllama(ModelConformance):
    gives_ids = False
    takes_prefill = False

    @pytest.fixture
    def model(self, student: Ollama) -> Model:
        return student

    async def test_special_token_text_is_plain_text(self, student: Ollama, server: OllamaServer) -> None:
        """The server encodes whole conversations with control tokens on: no mark may reach it."""
        turns = (
            Turn(role="user", content=QUESTION + SPECIAL),
            Turn(role="assistant", content=SPECIAL),
            Turn(role="tool", name="python", content=SPECIAL + format_call("python", {})),
        )
        await student.generate(GenerateRequest(turns))
        sent = [message["content"] for message in server.asked[-1]["messages"]]
        for mark in ("<|", "</s>", "<tool_call>", "</tool_call>"):
            assert not any(mark in text for text in sent)
        assert [text.replace("\u200b", "") for text in sent] == [turn.content for turn in turns]


async def test_what_goes_over_the_wire(student: Ollama, server: OllamaServer) -> None:
    call = format_call("python", {"code": "print(12+30)"})
    turns = (
        Turn(role="system", content="You may call tools."),
        Turn(role="user", content="What is 12+30?"),
        Turn(role="assistant", content=f"I compute.\n{call}"),
        Turn(role="tool", name="python", content="42"),
    )
    request = ask(seed=2**40 + 5, temperature=0.5)
    written = await student.generate(GenerateRequest(turns, request.sampling, request.tools))
    body = server.asked[-1]
    assert body["model"] == "qwen2.5:7b" and body["stream"] is False and body["keep_alive"] == "10m"
    assert body["options"] == {
        "temperature": 0.5,
        "top_p": 1.0,
        "seed": 5 + 2**40 % 2**31,
        "num_predict": 48,
        "num_ctx": 4096,
    }
    assert body["messages"] == [
        {"role": "system", "content": "You may call tools."},
        {"role": "user", "content": "What is 12+30?"},
        {
            "role": "assistant",
            "content": "I compute.",
            "tool_calls": [{"function": {"name": "python", "arguments": {"code": "print(12+30)"}}}],
        },
        {"role": "tool", "content": "42", "tool_name": "python"},
    ]
    (tool,) = body["tools"]
    assert tool["type"] == "function"
    assert (tool["function"]["name"], tool["function"]["description"]) == (TOOL.name, TOOL.description)
    assert tool["function"]["parameters"]["properties"]["code"]["type"] == "string"
    assert tool["function"]["parameters"]["required"] == ["code"]
    assert (written.text, written.finish, written.model) == ("\\boxed{42}", "stop", "ollama/qwen2.5:7b")
    assert written.usage.wall_s > 0 and len(written.logprobs) == written.usage.completion_tokens


async def test_native_calls_become_text_for_the_one_parser(student: Ollama, server: OllamaServer) -> None:
    seeds = range(12)
    turns = await asyncio.gather(*(student.generate(ask(seed=n, max_tokens=200)) for n in seeds))
    calls = [call for turn in turns for call in parse_turn(turn.text).calls if not call.error]
    assert calls and all((c.name, c.arguments) == ("python", {"code": "print(12+30)"}) for c in calls)


async def test_an_attempt_over_ollama(student: Ollama) -> None:
    task = Task(question="What is 12+30?", domain="math", family="arithmetic", level=1, canonical="arithmetic 12+30")
    attempts = [
        await solve(
            task,
            prompt("compact", "math", "student"),
            Conditions(student, StudentConfig(max_tokens=200), TrustingSandbox(), MemoryArtifacts(), seed),
        )
        for seed in range(30)
    ]
    grounded = [a for a in attempts if a.grounded]
    assert grounded and all(a.answer == "42" and a.tool_ok == 1 for a in grounded)
    assert all(a.trajectory is None and a.mean_logprob is not None for a in attempts)


async def test_defaults_by_role(server: OllamaServer) -> None:
    assert Ollama(ActorConfig(), server.url).name == "ollama/qwen2.5:3b"
    assert Ollama(StudentConfig(), server.url).name == "ollama/qwen2.5:7b"
    assert Ollama(StudentConfig(model="llama3.2"), server.url).name == "ollama/llama3.2"


async def test_a_server_without_logprobs() -> None:
    with serving(MemoryArtifacts(), offers_logprobs=False) as server:
        model = Ollama(ActorConfig(), server.url)
        assert (await model.generate(ask())).logprobs == ()
        await model.close()


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


async def test_a_model_that_is_not_there_names_the_pull(server: OllamaServer) -> None:
    model = Ollama(ActorConfig(model="llama3.2"), server.url)
    with pytest.raises(DependencyError, match=r"ollama pull llama3\.2"):
        await model.generate(ask())
    with pytest.raises(DependencyError, match=r"ollama pull llama3\.2"):
        await probe(server.url, "llama3.2")
    assert await probe(server.url, "qwen2.5:3b") == "qwen2.5:3b (3B Q4_K_M); completion, tools"
    await model.close()


@pytest.mark.parametrize(
    ("status", "error"), [(500, TransientError), (503, TransientError), (400, OperationError), (401, AuthError)]
)
async def test_refusals(student: Ollama, server: OllamaServer, status: int, error: type[Exception]) -> None:
    server.fail = status
    with pytest.raises(error, match="made to fail"):
        await student.generate(ask())


async def test_a_slow_answer_is_tried_again_later(server: OllamaServer) -> None:
    server.stall = threading.Event()
    model = Ollama(ActorConfig(timeout_s=0.2), server.url)
    with pytest.raises(TransientError, match="took too long"):
        await model.generate(ask())
    await model.close()


async def test_adapters_are_refused(student: Ollama) -> None:
    adapter = Artifact(sha256="0" * 64, size=1)
    with pytest.raises(OperationError, match="no adapters"):
        await student.generate(GenerateRequest(ask().turns, adapter=adapter))


@pytest.mark.parametrize("text", ["a<b", "x < y", "<", "2<3>1 or <", "[1, 2]", "def f(x) -> list[int]: ...", "a || b"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.ollama
class TestRealOllama:
    """Needs ``ollama serve`` on its default port with qwen2.5:3b."""

    async def test_a_real_model_answers_and_calls(self) -> None:
        model = Ollama(ActorConfig(model="qwen2.5:3b"), "http://127.0.0.1:11434")
        assert "qwen2.5:3b" in await probe("http://127.0.0.1:11434", "qwen2.5:3b")
        request = ask("Use the python tool to compute 12345*6789.", temperature=0.0, max_tokens=200)
        first, again = await model.generate(request), await model.generate(request)
        await model.close()
        assert first.text == again.text
        assert [call.name for call in parse_turn(first.text).calls] == ["python"]
