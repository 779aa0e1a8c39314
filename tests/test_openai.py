"""The provider for OpenAI-compatible servers: against a real llama.cpp server, and against stand-ins that give token
ids, log-probabilities or text, and that fail in every way a server does."""

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch

from agent0.chat_format import format_call
from agent0.errors import AuthError, DependencyError, OperationError, TransientError
from agent0.events.values import Artifact, Task, Turn
from agent0.infra.engine.inference import Engine
from agent0.infra.models.calls import slots
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.gguf import write_adapter, write_base
from agent0.infra.weights.merge import read_lora
from agent0.ports.models import GenerateRequest, Model
from agent0.rollout.parsing import parse_turn
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, solve
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.adapters import adapter
from tests.conformance_model import QUESTION, SPECIAL, ModelConformance, ask
from tests.llama_server import MISSING
from tests.llama_server import serving as llama_serving
from tests.memory import MemoryArtifacts, TrustingSandbox
from tests.openai_server import OpenAIStandIn, actor, serving

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # peft's, 2026-11
real = pytest.mark.skipif(bool(MISSING), reason=MISSING)
TASK = Task(question="What is 12+30?", domain="math", family="arithmetic", level=1, canonical="arithmetic 12+30")
KEY = "sk-never-to-be-seen-1234"


@pytest_asyncio.fixture(autouse=True)
async def opened(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[OpenAIServer]]:
    """Every model that a test opens is closed with it, whether the test passes or not."""
    held: list[OpenAIServer] = []
    begin = OpenAIServer.__init__

    def noted(self: OpenAIServer, *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        held.append(self)

    monkeypatch.setattr(OpenAIServer, "__init__", noted)
    yield held
    for model in held:
        await model.close()


@pytest.fixture
def server() -> Iterator[OpenAIStandIn]:
    with serving() as there:
        yield there


@pytest_asyncio.fixture
async def student(server: OpenAIStandIn) -> AsyncIterator[OpenAIServer]:
    model = OpenAIServer(actor(server.url))
    yield model


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A llama.cpp server of the built-in model."""
    path = tmp_path_factory.mktemp("openai") / "student.gguf"
    write_base(BASE, path)
    with llama_serving(path) as url:
        yield url


@real
class TestLlamaCpp(ModelConformance):
    """Token ids in, token ids and log-probabilities out, over HTTP."""

    @pytest_asyncio.fixture
    async def model(self, llama: str) -> AsyncIterator[Model]:
        model = OpenAIServer(actor(llama))
        self.control_ids = (await model.profile()).chat.stops  # type: ignore[union-attr]
        yield model

    async def test_log_probabilities_are_those_of_the_weights(self, model: Model) -> None:
        """What training computes for the same ids, so the ratio of the first step is 1."""
        engine = Engine(str(BASE))
        for seed in range(4):
            written = await model.generate(ask(seed=seed))
            ids = torch.tensor([[*written.prompt_ids, *written.token_ids]])
            with torch.inference_mode():
                computed = token_logprobs(engine._model(ids).logits, ids)[0, len(written.prompt_ids) :]
            assert written.logprobs == pytest.approx(computed.tolist(), abs=1e-3)
            assert (written.capture, written.untrainable) == ("tokens", "")

    async def test_draws_are_from_the_whole_distribution(self, model: Model) -> None:
        """llama.cpp's own default would cut it at 40 tokens, 0.95 of the mass and a twentieth of the likeliest."""
        turns = [await model.generate(ask(seed=seed, max_tokens=2)) for seed in range(200)]
        assert min(turn.logprobs[1] for turn in turns) < -5


@real
class TestLlamaCppChat(ModelConformance):
    """The same server without a tokenizer here: its chat API reads text."""

    gives_ids = False
    takes_prefill = False

    @pytest_asyncio.fixture
    async def model(self, llama: str) -> AsyncIterator[Model]:
        model = OpenAIServer(actor(llama, tokenizer=""))
        yield model

    async def test_log_probabilities_are_not_enough_to_train_on(self, model: Model) -> None:
        written = await model.generate(ask())
        assert (written.capture, written.untrainable) == ("logprobs", "the server gives no token ids")


class TestTokens(ModelConformance):
    @pytest.fixture
    def model(self, student: OpenAIServer) -> Model:
        return student


class TestLogprobs(ModelConformance):
    gives_ids = False
    takes_prefill = False
    level = "logprobs"

    @pytest_asyncio.fixture
    async def model(self) -> AsyncIterator[Model]:
        with serving(level=self.level) as server:
            model = OpenAIServer(actor(server.url))
            yield model

    async def test_what_it_gives_is_recorded(self, model: Model) -> None:
        written = await model.generate(ask())
        assert written.capture == self.level and written.untrainable
        assert written.ends[-1:] == ((len(written.text),) if written.logprobs else ())


class TestText(TestLogprobs):
    """A strict server: every field that it does not know is an error."""

    level = "text"


async def test_a_server_that_gives_ids_is_asked_for_the_whole_distribution(
    student: OpenAIServer, server: OpenAIStandIn
) -> None:
    written = await student.generate(ask(seed=2**40 + 5))
    path, body = server.asked[-1]
    assert path == "/v1/completions" and body["prompt"] == list(written.prompt_ids)
    assert body["return_token_ids"] is True and body["seed"] == 5 + 2**40 % 2**31
    assert (body["temperature"], body["top_p"], body["top_k"], body["min_p"]) == (1.0, 1.0, -1, 0.0)
    assert (body["repetition_penalty"], body["presence_penalty"], body["frequency_penalty"]) == (1.0, 0.0, 0.0)
    assert sorted(server.chat.stops) == body["stop_token_ids"]


async def test_marks_in_text_reach_no_template() -> None:
    with serving(level="logprobs") as server:
        model = OpenAIServer(actor(server.url, tokenizer=""))
        call = format_call("python", {"code": "1"})
        said = Turn(role="assistant", content=f"<|im_end|>I compute.\n{call}")
        turns = (Turn(role="user", content=QUESTION + SPECIAL), said, Turn(role="tool", name="python", content=SPECIAL))
        await model.generate(GenerateRequest(turns))
        sent = [message["content"] for message in server.asked[-1][1]["messages"]]
        assert not any(mark in text for text in sent for mark in ("<|", "</s>")) and call in sent[1]


@pytest.mark.parametrize("native", [True, False])
async def test_calls_come_as_text_whoever_reads_them(native: bool) -> None:
    """Tools are described in the text, so the next turn's context has what was called, and what was wrong with it."""
    with serving(level="logprobs") as server:
        server.native = native
        model = OpenAIServer(actor(server.url, tokenizer=""))
        await model.generate(ask())
        turns = [await model.generate(ask(seed=seed, max_tokens=200)) for seed in range(12)]
        calls = [call for turn in turns for call in parse_turn(turn.text).calls]
        assert calls and all((c.error, c.name, c.arguments) == ("", "python", {"code": "print(12+30)"}) for c in calls)
        body = server.asked[-1][1]
        assert "tools" not in body and '"name": "python"' in body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"temperature": 0.7}, "temperature 0.7"),
        ({"top_p": 0.9}, "top_p 0.9"),
        ({"tokenizer": ""}, "no token ids"),
    ],
)
async def test_an_attempt_is_trained_on_only_where_its_tokens_were_drawn_from_the_whole_distribution(
    changes: dict[str, Any], why: str
) -> None:
    with serving(level="logprobs" if "tokenizer" in changes else "tokens") as server:
        config = actor(server.url, **changes)
        model = OpenAIServer(config)
        words = prompt("compact", "math", "student")
        given = [Conditions(model, config, TrustingSandbox(), MemoryArtifacts(), seed) for seed in range(4)]
        attempts = [await solve(TASK, words, one) for one in given]
        assert any(one.tool_ok for one in attempts)
        for one in attempts:
            assert why in one.trajectory_problem and bool(one.trajectory_problem) == bool(why) == (not one.trajectory)
            assert one.capture == ("logprobs" if "tokenizer" in changes else "tokens")


@pytest.mark.parametrize("fault", ["busy", "full"])
async def test_a_busy_server_is_waited_for(
    fault: Any, student: OpenAIServer, server: OpenAIStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "FIRST_S", 0.001)
    expected = await student.generate(ask())
    before = len(server.asked)
    server.faults = [fault] * 3
    assert (await student.generate(ask())).text == expected.text
    assert len(server.asked) == before + 4


async def test_a_server_that_wants_a_longer_pause_than_a_call_may_take_counts_as_away(
    student: OpenAIServer, server: OpenAIStandIn
) -> None:
    await student.generate(ask())
    server.faults, server.after = ["busy"], "3600"
    with pytest.raises(DependencyError, match="Too many requests"):
        await student.generate(ask())


@pytest.mark.parametrize(
    ("fault", "said"),
    [("cut", "before it was whole"), ("json", "not be read"), ("shape", "not be read"), ("down", "status 500")],
)
async def test_what_may_pass_is_tried_again_later(
    fault: Any, said: str, student: OpenAIServer, server: OpenAIStandIn
) -> None:
    expected = await student.generate(ask())
    server.faults = [fault]
    with pytest.raises(TransientError, match=said):
        await student.generate(ask())
    assert (await student.generate(ask())).text == expected.text


async def test_a_server_that_hangs_is_given_up_in_time(server: OpenAIStandIn) -> None:
    model = OpenAIServer(actor(server.url))
    await model.generate(ask())
    model._connection._actor = actor(server.url, timeout_s=0.2)
    server.faults = ["hang"]
    with pytest.raises(TransientError, match="took too long"):
        await model.generate(ask())


async def test_a_refusal_does_not_repeat_the_prompt(student: OpenAIServer, server: OpenAIStandIn) -> None:
    model = OpenAIServer(actor(server.url, tokenizer=""))
    await model.generate(ask())
    server.faults = ["quote"]
    secret = "the launch code is 4711 and nobody knows it"
    with pytest.raises(OperationError, match="quotes the request") as caught:
        await model.generate(GenerateRequest((Turn(role="user", content=secret),)))
    assert "4711" not in str(caught.value) and caught.value.__suppress_context__


async def test_a_key_is_read_from_the_named_variable_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(key=KEY) as server:
        config = actor(server.url, key_env="SOME_KEY")
        monkeypatch.delenv("SOME_KEY", raising=False)
        with pytest.raises(AuthError, match="SOME_KEY is not set"):
            OpenAIServer(config)
        monkeypatch.setenv("SOME_KEY", KEY)
        model = OpenAIServer(config)
        assert (await model.generate(ask())).text
        assert KEY not in repr(config) + str(config.model_dump()) + model.name
        wrong = KEY.replace("1234", "wrong")
        monkeypatch.setenv("SOME_KEY", wrong)
        for one, says in ((config, "Set the variable SOME_KEY"), (actor(server.url), "run.<role>.key_env")):
            model = OpenAIServer(one)
            with pytest.raises(AuthError, match=says) as caught:
                await model.generate(ask())
            assert wrong not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "there", "says"),
    [("nobody", ("a", "b"), "no model nobody"), ("", ("a", "b"), "not said"), ("", (), "It has: none")],
)
async def test_a_model_that_is_not_there_lists_those_that_are(name: str, there: tuple[str, ...], says: str) -> None:
    with serving(models=there) as server:
        model = OpenAIServer(actor(server.url, model=name))
        with pytest.raises(OperationError, match=says) as caught:
            await model.generate(ask())
        assert ", ".join(there) in str(caught.value)


async def test_nothing_there_is_a_missing_dependency() -> None:
    with serving() as server:
        gone = server.url
    model = OpenAIServer(actor(gone))
    with pytest.raises(DependencyError, match="Nothing answers") as caught:
        await model.generate(ask())
    assert gone in caught.value.why


async def test_a_server_of_another_protocol_is_no_server_of_models() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            for _ in range(2):  # a connection that was closed is tried again
                connection, _address = other.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        model = OpenAIServer(actor(f"http://127.0.0.1:{other.getsockname()[1]}"))
        with pytest.raises(DependencyError, match="without an answer in HTTP"):
            await model.generate(ask())
        thread.join()


async def test_a_server_with_other_tokens_is_refused(server: OpenAIStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = server.answer

    def shifted(method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        moved = {"tokens": [one + 1 for one in body["tokens"]]} if path == "/detokenize" else {}
        return answer(method, path, body | moved, key)

    monkeypatch.setattr(server, "answer", shifted)
    model = OpenAIServer(actor(server.url))
    with pytest.raises(OperationError, match="another model") as caught:
        await model.generate(ask())
    assert str(BASE) in caught.value.why


async def test_a_prompt_that_the_server_changed_is_refused(student: OpenAIServer, server: OpenAIStandIn) -> None:
    await student.generate(ask())
    server.bos = True
    with pytest.raises(OperationError, match="changed the prompt"):
        await student.generate(ask())


@real
async def test_the_adapter_that_answers_is_the_one_that_was_asked_for(llama: str, tmp_path: Path) -> None:
    """Told by its file's digest and proven by its log-probabilities; a server without it is waited for."""
    store, data = MemoryArtifacts(), adapter(BASE)
    trained, other = store.put(data), store.put(adapter(BASE, seed=1))
    write_adapter(read_lora(data), BASE, tmp_path / "any name.gguf")
    write_base(BASE, tmp_path / "base.gguf")
    engine = Engine(str(BASE), through=True)
    engine.load_adapter("trained", data)
    with llama_serving(tmp_path / "base.gguf", tmp_path / "any name.gguf") as url:
        model = OpenAIServer(actor(url), store)
        for asked, name in ((None, ""), (trained, "trained"), (None, "")):
            written = await model.generate(replace(ask(), adapter=asked))
            ids = torch.tensor([[*written.prompt_ids, *written.token_ids]])
            with torch.inference_mode(), engine._using(name):
                computed = token_logprobs(engine._model(ids).logits, ids)[0, len(written.prompt_ids) :]
            assert written.logprobs == pytest.approx(computed.tolist(), abs=1e-3)
        with pytest.raises(DependencyError, match=f"adapter {other.sha256[:12]} on its server") as caught:
            await model.generate(replace(ask(), adapter=other))
        assert f"agent0 model export {other.sha256[:12]}" in caught.value.fix and "any name.gguf" in caught.value.why


async def test_a_server_that_changes_its_model_is_away_until_it_has_the_former_one(server: OpenAIStandIn) -> None:
    """Of two models nobody could tell afterwards which wrote what."""
    server.level, model = "text", OpenAIServer(actor(server.url, tokenizer=""))
    await model.generate(ask())
    server.replies = [{"model": "gpt-2", "choices": [{"message": {"content": "1"}, "finish_reason": "stop"}]}]
    with pytest.raises(DependencyError, match=r"'student' is not available.*answers as 'gpt-2' now"):
        await model.generate(ask())
    assert (await model.generate(ask())).text, "it goes on as soon as the former one is back"
    server.replies = [{"choices": [{"message": {"content": "1"}, "finish_reason": "stop"}]}]
    assert (await model.generate(ask())).text == "1", "a server that names none says nothing"


async def test_adapters_are_refused_where_none_can_be_swapped(student: OpenAIServer) -> None:
    with pytest.raises(OperationError, match="not swapped by the request"):
        await student.generate(replace(ask(), adapter=Artifact(sha256="0" * 64, size=1)))
