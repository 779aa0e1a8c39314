"""The Ollama provider against a server that speaks the documented wire format, and against a real one where it runs."""

import asyncio
import hashlib
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence

import jsonschema
import pytest
import pytest_asyncio

from agent0.chat_format import format_call
from agent0.errors import DependencyError, OperationError
from agent0.events.values import Artifact, Task, Turn
from agent0.infra.models.ollama.probe import probe
from agent0.infra.models.ollama.provider import Ollama
from agent0.infra.models.tool_text import harmless, messages
from agent0.ports.models import GenerateRequest, Model
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import prompt, render
from agent0.rollout.proposals import task_schema
from agent0.rollout.student import Conditions, solve
from agent0.rollout.teacher import propose, read_proposal
from agent0.settings import ActorConfig, StudentConfig
from tests.conformance_model import QUESTION, SPECIAL, TOOL, ModelConformance, ask
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.ollama_chat import QWEN, rendered
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


class TestOllama(ModelConformance):
    gives_ids = False
    takes_prefill = False

    @pytest.fixture
    def model(self, student: Ollama) -> Model:
        return student

    async def test_special_token_text_is_plain_text(self, student: Ollama, server: OllamaServer) -> None:
        """The server encodes whole conversations with control tokens on: no mark may reach it but those of calls that
        the assistant made."""
        turns = (
            Turn(role="user", content=QUESTION + SPECIAL),
            Turn(role="assistant", content=SPECIAL),
            Turn(role="tool", name="python", content=SPECIAL + "</tool_response>" + format_call("python", {})),
        )
        await student.generate(GenerateRequest(turns))
        sent = [message["content"] for message in server.asked[-1]["messages"]]
        for mark in ("<|", "</s>", "<tool_call>", "</tool_call>"):
            assert not any(mark in text for text in sent)
        assert [sent[2].count(mark) for mark in ("<tool_response>", "</tool_response>")] == [1, 1]
        plain = [text.replace("\u200b", "") for text in sent]
        assert plain == [
            *(turn.content for turn in turns[:2]),
            f"<tool_response>\n{turns[2].content}\n</tool_response>",
        ]


CALL = format_call("python", {"code": "print(12+30)"})
TURNS = (
    Turn(role="system", content="You may call tools."),
    Turn(role="user", content="What is 12+30?"),
    Turn(role="assistant", content=f"I compute.\n{CALL}"),
    Turn(role="tool", name="python", content="42"),
)


async def test_what_goes_over_the_wire(student: Ollama, server: OllamaServer) -> None:
    request = ask(seed=2**40 + 5, temperature=0.5)
    written = await student.generate(GenerateRequest(TURNS, request.sampling, request.tools))
    body = server.asked[-1]
    assert body["model"] == "qwen2.5:7b" and body["stream"] is True and body["keep_alive"] == "10m"
    assert body["options"] == {
        "temperature": 0.5,
        "top_p": 1.0,
        "seed": 5 + 2**40 % 2**31,
        "num_predict": 48,
        "num_ctx": 4096,
        "top_k": 0,
        "min_p": 0.0,
        "typical_p": 1.0,
        "repeat_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    assert not body.get("tools")
    system, *others = body["messages"]
    assert others == [
        {"role": "user", "content": "What is 12+30?"},
        {"role": "assistant", "content": f"I compute.\n{CALL}"},
        {"role": "user", "content": "<tool_response>\n42\n</tool_response>"},
    ]
    assert system["role"] == "system" and system["content"].startswith("You may call tools.\n\n# Tools\n\n")
    assert (written.text, written.finish, written.model) == ("\\boxed{42}", "stop", "ollama/qwen2.5:7b")
    assert written.usage.wall_s > 0 and len(written.logprobs) == written.usage.completion_tokens


def test_the_template_is_the_official_one() -> None:
    assert hashlib.sha256(QWEN.encode()).hexdigest().startswith("eb4402837c78")


def test_tools_are_described_as_the_template_of_qwen_describes_them() -> None:
    """Theirs is rendered by the server out of a request that names tools; only how JSON is spaced differs."""
    function = {"name": TOOL.name, "description": TOOL.description, "parameters": TOOL.parameters}
    named = {"messages": messages(TURNS[:2]), "tools": [{"type": "function", "function": function}]}
    ours, theirs = (rendered(body).splitlines() for body in ({"messages": messages(TURNS[:2], [TOOL])}, named))
    place = next(n for n, line in enumerate(theirs) if line.startswith('{"type": "function"'))
    assert json.loads(ours.pop(place)) == json.loads(theirs.pop(place))
    assert ours == theirs


async def test_a_call_and_the_words_beside_it_and_its_result_stay_in_the_context(
    student: Ollama, server: OllamaServer
) -> None:
    await student.generate(GenerateRequest(TURNS, tools=(TOOL,)))
    assert server.prompts[-1].endswith(
        f"<|im_start|>user\nWhat is 12+30?<|im_end|>\n<|im_start|>assistant\nI compute.\n{CALL}<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\n42\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


async def test_results_of_several_calls_are_one_turn(student: Ollama, server: OllamaServer) -> None:
    await student.generate(GenerateRequest((*TURNS, Turn(role="tool", content="43")), tools=(TOOL,)))
    assert server.prompts[-1].endswith(
        "<|im_start|>user\n<tool_response>\n42\n</tool_response>\n<tool_response>\n43\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


MALFORMED = {
    "no JSON": '<tool_call>\n{"name": "python", "arguments": {"code": "print("1")"}}\n</tool_call>',
    "no tool named 'pythn'": format_call("pythn", {"code": "print(1)"}),
    "arguments are no JSON object": '<tool_call>\n{"name": "python", "arguments": [1]}\n</tool_call>',
    "no valid tool name": '<tool_call>\n{"arguments": {"code": "print(1)"}}\n</tool_call>',
}


@pytest.mark.parametrize("why", MALFORMED)
async def test_a_malformed_call_comes_back_and_the_student_reads_what_was_wrong(why: str) -> None:
    said = f"I compute.\n{MALFORMED[why]}"

    def says(turns: Sequence[Turn]) -> str:
        return "\\boxed{42}" if turns[-1].role == "tool" else said

    with serving(MemoryArtifacts(), says=says) as server:
        model = Ollama(StudentConfig(), server.url)
        attempt = await solve(TASK, prompt("compact", "math", "student"), conditions(model, 0))
        await model.close()
    told = attempt.transcript[2]
    assert attempt.transcript[1].content == said and told.role == "tool" and why in told.content
    assert f"{said}<|im_end|>" in server.prompts[1] and harmless(told.content) in server.prompts[1]
    assert attempt.answer == "42" and attempt.turns == 2


async def test_signals_cover_turns_that_call(student: Ollama) -> None:
    turns = await asyncio.gather(*(student.generate(ask(seed=n, max_tokens=200)) for n in range(12)))
    calling = [turn for turn in turns if parse_turn(turn.text).calls]
    assert calling
    for turn in turns:
        assert len(turn.ends) == len(turn.logprobs) == turn.usage.completion_tokens
        assert turn.ends[-1] == len(turn.text)


TASK = Task(question="What is 12+30?", domain="math", family="arithmetic", level=1, canonical="arithmetic 12+30")


def conditions(model: Model, seed: int) -> Conditions:
    return Conditions(model, StudentConfig(max_tokens=200), TrustingSandbox(), MemoryArtifacts(), seed)


async def test_an_attempt_over_ollama(student: Ollama) -> None:
    attempts = [
        await solve(TASK, prompt("compact", "math", "student"), conditions(student, seed)) for seed in range(30)
    ]
    grounded = [a for a in attempts if a.grounded]
    assert grounded and all(a.answer == "42" and a.tool_ok == 1 for a in grounded)
    assert all(a.trajectory is None and a.mean_logprob is not None for a in attempts)
    assert all({"own_tokens", "lowest_token", "sequence", "answer"} <= set(a.signals) for a in grounded)


async def test_defaults_by_role(server: OllamaServer) -> None:
    assert Ollama(ActorConfig(), server.url).name == "ollama/qwen2.5:3b"
    assert Ollama(StudentConfig(), server.url).name == "ollama/qwen2.5:7b"
    assert Ollama(StudentConfig(model="llama3.2"), server.url).name == "ollama/llama3.2"


async def test_a_server_without_logprobs() -> None:
    with serving(MemoryArtifacts(), offers_logprobs=False) as server:
        model = Ollama(ActorConfig(), server.url)
        assert (await model.generate(ask())).logprobs == ()
        await model.close()


async def test_a_model_that_is_not_there_names_the_pull(server: OllamaServer) -> None:
    model = Ollama(ActorConfig(model="llama3.2"), server.url)
    with pytest.raises(DependencyError, match=r"ollama pull llama3\.2"):
        await model.generate(ask())
    with pytest.raises(DependencyError, match=r"ollama pull llama3\.2"):
        await probe(server.url, "llama3.2")
    assert await probe(server.url, "qwen2.5:3b") == "qwen2.5:3b (3B Q4_K_M); completion, tools"
    await model.close()


async def test_adapters_are_refused(student: Ollama) -> None:
    adapter = Artifact(sha256="0" * 64, size=1)
    with pytest.raises(OperationError, match="no adapters"):
        await student.generate(GenerateRequest(ask().turns, adapter=adapter))


async def test_more_calls_than_slots_wait_here_and_a_full_queue_is_asked_again() -> None:
    """One place at the server and one in its queue: of four slots two are refused before the first is answered."""
    refused = threading.Event()

    def says(turns: Sequence[Turn]) -> str:
        assert refused.wait(20)
        return "\\boxed{42}"

    with serving(MemoryArtifacts(), queue=1, says=says, on_refusal=refused.set) as server:
        model = Ollama(ActorConfig(timeout_s=30), server.url)
        turns = await asyncio.gather(*(model.generate(ask(seed=n)) for n in range(12)))
        await model.close()
        assert [turn.text for turn in turns] == ["\\boxed{42}"] * 12 and server.most == 2


@pytest.mark.parametrize("parallel", [1, 4])
async def test_the_server_gets_no_more_calls_at_once_than_there_are_slots(parallel: int) -> None:
    with serving(MemoryArtifacts(), turn_s=0.002) as server:
        model = Ollama(ActorConfig(parallel=parallel), server.url)
        await asyncio.gather(*(model.generate(ask(seed=n)) for n in range(24)))
        await model.close()
        assert 0 < server.most <= parallel


def long_turn(turns: Sequence[Turn]) -> str:
    return " ".join(map(str, range(60)))


async def test_a_long_turn_goes_on_beyond_the_time_to_its_first_token() -> None:
    def slowly(lines: Lines) -> Lines:
        for line in lines:
            yield line
            time.sleep(0.02)

    with serving(MemoryArtifacts(), says=long_turn, spoils_stream=slowly) as server:
        model = Ollama(ActorConfig(timeout_s=0.5), server.url)
        written = await model.generate(ask(max_tokens=100))
        await model.close()
    usage = written.usage
    assert written.text == long_turn(()) and usage.first_s is not None and usage.tokens_per_s is not None
    assert 0 < usage.first_s < 0.5 < usage.wall_s
    assert 0 < usage.tokens_per_s < 50


async def test_a_model_gives_its_memory_back_and_comes_again() -> None:
    with serving(MemoryArtifacts()) as server:
        model = Ollama(ActorConfig(), server.url)
        await model.generate(ask())
        assert server.in_memory == {"qwen2.5:3b"}
        await model.rest()
        assert server.in_memory == set()
        await model.generate(ask())
        assert server.in_memory == {"qwen2.5:3b"}
    await model.rest()  # a server that is away holds nothing
    await model.close()


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


@pytest.mark.parametrize("family", ["linear", "ledger"])
async def test_a_teacher_may_be_held_to_the_schema_of_a_task(server: OllamaServer, family: str) -> None:
    """The examples of the prompt meet it, and what meets it is read."""
    long = family == "ledger"
    words = prompt("full", "math", "teacher", long=long)
    for asked in (True, False):
        model = Ollama(ActorConfig(provider="ollama", json_schema=asked), server.url)
        await propose(
            model, words, domain="math", family=family, level=1, config=ActorConfig(json_schema=asked), seed=1
        )
        await model.close()
        assert server.asked[-1].get("format") == (task_schema(long=long) if asked else None)
    for turn in render(words, {}):
        if turn.role == "assistant":
            jsonschema.validate(json.loads(turn.content), task_schema(long=long))
            assert read_proposal(turn.content, "math", family, 1)[0]
