"""Replies that no server should send: half characters, NUL, endless nesting, numbers beyond reach. Whatever a provider
is sent, it gives a turn that the log can hold, or one of Agent0's errors."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import pytest

from agent0.errors import Agent0Error, TransientError, clean_text
from agent0.events.values import Turn
from agent0.infra.models.anthropic.provider import Anthropic
from agent0.infra.models.calls.slots import BusyError
from agent0.infra.models.ollama.provider import Ollama
from agent0.infra.models.openai.dialects import Way
from agent0.infra.models.openai.provider import OpenAIServer
from agent0.infra.models.openai.replies import Reading
from agent0.ports.models import Generation, Model, Served
from agent0.settings import ActorConfig
from tests.anthropic_server import serving as anthropic_serving
from tests.conformance_model import ask
from tests.memory import MemoryArtifacts
from tests.ollama_wire import serving as ollama_serving
from tests.openai_server import actor
from tests.openai_server import serving as openai_serving

HIGH, LOW = "\ud835", "\udc9c"
TEXTS = (
    ("\\boxed{42} " + HIGH, "\\boxed{42} \ufffd"),
    (LOW + " \\boxed{42}", "\ufffd \\boxed{42}"),
    (f"a{HIGH}{LOW}b", "a\U0001d49cb"),
    (f"a{LOW}{HIGH}b", "a\ufffd\ufffdb"),
    (f"{HIGH}{HIGH}{LOW}", "\ufffd\U0001d49c"),
    (HIGH * 3, "\ufffd" * 3),
    ("4\x002", "4\ufffd2"),
    ("\x00", "\ufffd"),
    (f"\x00{HIGH}\x00", "\ufffd" * 3),
    ("print('\\ud835')", "print('\\ud835')"),
    ("plain", "plain"),
    ("\U0001d49c is one", "\U0001d49c is one"),
    ("\ufffd\u2028\ufeff stay", "\ufffd\u2028\ufeff stay"),
    ("", ""),
)
"""What is written, and what the turn holds."""


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_text_is_cleaned(text: str, expected: str) -> None:
    assert clean_text(text) == expected
    written = Generation(text, ends=tuple(range(1, len(text) + 1)))
    assert written.text == expected and len(written.ends) in (0, len(text))
    assert not written.ends or written.ends[-1:] == ((len(expected),) if expected else ())
    Turn(role="assistant", content=written.text).model_dump_json()


def test_what_a_server_says_of_itself_is_cleaned() -> None:
    served = Served(model=HIGH * 10_000, fingerprint="\x00", limits={f"x{LOW}": HIGH})
    assert len(served.model) < 1000 and json.dumps(asdict(served), ensure_ascii=False).encode()


@pytest.mark.parametrize("message", ["\ud835 is wrong", "half \udc9c", "\x00"])
def test_an_error_can_be_recorded(message: str) -> None:
    for error in (Agent0Error(message, message, message), Agent0Error("a", "b", message)):
        assert all(b"\x00" not in text.encode() for text in (str(error), error.what, error.why, error.fix))


@asynccontextmanager
async def openai(stream: bool, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Model, Any]]:
    """A model of a server that gives text, and a function that has it say something."""
    with openai_serving(level="logprobs") as server:
        model = OpenAIServer(actor(server.url, tokenizer=""))
        await model.profile()

        def say(text: str) -> None:
            ends, part = {"finish_reason": "stop"}, {"index": 0}
            pieces = [{"choices": [part | {"delta": {"content": one}}]} for one in text]
            whole = {"choices": [part | ends | {"message": {"content": text}}]}
            server.replies = [[*pieces, {"choices": [part | ends | {"delta": {}}]}]] if stream else [whole]

        yield model, say
        await model.close()


@asynccontextmanager
async def ollama(_: bool, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Model, Any]]:
    with ollama_serving(MemoryArtifacts()) as server:
        model = Ollama(ActorConfig(provider="ollama", model="qwen2.5:3b"), server.url)

        def say(text: str) -> None:
            line = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
            told = [line | {"message": {"role": "assistant", "content": one}} for one in text]
            end = line | {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
            server.spoils_stream = lambda _: iter([*told, end])

        yield model, say
        await model.close()


@asynccontextmanager
async def anthropic(_: bool, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Model, Any]]:
    monkeypatch.setenv("A_KEY", "sk-ant-test")
    with anthropic_serving() as server:
        model = Anthropic(ActorConfig(provider="anthropic", model="m", base_url=server.url, key_env="A_KEY"))

        def say(text: str) -> None:
            server.blocks = [text]

        yield model, say
        await model.close()


@pytest.mark.parametrize(
    ("opened", "stream"),
    [(openai, True), (openai, False), (ollama, True), (anthropic, True)],
    ids=["openai-stream", "openai", "ollama", "anthropic"],
)
async def test_no_provider_gives_half_a_character(opened: Any, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way it comes, in one piece or a character a part."""
    async with opened(stream, monkeypatch) as (model, say):
        for text, expected in TEXTS:
            heard: list[str] = []
            say(text)
            request = ask()
            object.__setattr__(request, "listen", heard.append)
            assert (await model.generate(request)).text == expected
            assert all(b"\x00" not in one.encode() for one in heard)


DEEP = "[" * 100_000
ODD_JSON = (
    DEEP,
    '{"choices": ' + DEEP,
    '{"choices": [{"delta": {"content": ' + "[" * 100_000 + "]" * 100_000 + "}}]}",
    '{"choices": [{"index": ' + "9" * 5000 + "}]}",
    '{"choices": [{"index": 1e999, "delta": {"content": "x"}}]}',
    '{"choices": [{"index": -7, "delta": {"content": "x"}}]}',
    '{"choices": [{"delta": {"content": 5}}]}',
    '{"choices": [{"delta": {"content": {"a": {"b": [1]}}}}]}',
    '{"choices": 7}',
    '{"choices": {"0": {}}}',
    '{"choices": [null]}',
    '{"choices": [{"delta": {"tool_calls": [{"index": 1e999, "function": {"name": "x"}}]}}]}',
    '{"choices": [{"delta": {"content": "x"}, "logprobs": {"content": [{"token": "x", "logprob": 1e999}]}}]}',
    '{"choices": [{"delta": {"content": "x"}, "logprobs": {"content": [{"token": "x", "logprob": NaN}]}}]}',
    '{"choices": [{"delta": {"content": "x"}, "logprobs": {"content": [{"token": null, "logprob": "x"}]}}]}',
    '{"choices": [{"delta": {"content": "x"}, "token_ids": [1e999]}]}',
    '{"choices": [{"delta": {"content": "x"}, "token_ids": [-1, 99999999999999999999]}]}',
    '{"choices": [], "usage": {"prompt_tokens": 1e999, "completion_tokens": -5, "x": ' + "[" * 500 + "]" * 500 + "}}",
    '{"choices": [], "usage": {"prompt_tokens": NaN, "completion_tokens": "many"}}',
    '{"model": ["a"], "choices": [], "usage": [1]}',
    "5",
    "null",
    '"\\ud835"',
    '{"error": {"message": "\\ud835 \\u0000"}}',
    '{"error": ["\\ud835"]}',
    "\ufeff{}",
)
"""Parts of an answer, each of which is followed by an orderly end."""


@pytest.mark.parametrize("stream", [True, False])
async def test_an_odd_answer_is_a_turn_or_an_error_of_ours(stream: bool) -> None:
    with openai_serving(level="logprobs") as server:
        model = OpenAIServer(actor(server.url, tokenizer=""))
        await model.profile()
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        for odd in ODD_JSON:
            server.replies = [[odd, end]] if stream else [odd.replace('"delta"', '"message"')]
            await recordable(model)
            assert (await model.generate(ask())).text, odd[:200]
        await model.close()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("sent", "read"), [("a\udcff b", "a\ufffd b"), ("\udced\udca0\udcb5", "\ufffd" * 3), ("\u00e4", "\u00e4")]
)
async def test_a_byte_that_is_no_text_ends_no_answer(sent: str, read: str, stream: bool) -> None:
    with openai_serving(level="logprobs") as server:
        model = OpenAIServer(actor(server.url, tokenizer=""))
        await model.profile()
        field = "delta" if stream else "message"
        part = f'{{"choices": [{{"index": 0, "finish_reason": "stop", "{field}": {{"content": "{sent}"}}}}]}}'
        server.replies = [[part]] if stream else [part]
        assert (await model.generate(ask())).text == read
        await model.close()


async def recordable(model: Model) -> None:
    """Whatever comes of a call can be written down."""
    try:
        written = await model.generate(ask())
    except Agent0Error as error:
        assert str(error).encode()
        return
    assert json.dumps({**asdict(written), "usage": written.usage.model_dump()}, ensure_ascii=False).encode()
    assert all(0 <= token_id < 2**31 for token_id in written.token_ids)
    assert all(-1e30 < logprob <= 0 for logprob in written.logprobs)


ODD_LINES = (
    DEEP,
    '{"message": ' + DEEP,
    '{"message": {"role": "assistant", "content": ' + "9" * 5000 + "}}",
    '{"message": {"role": "assistant", "content": null}, "eval_count": 1e999, "done": false}',
    '{"message": {"role": "assistant", "content": "x"}, "eval_count": ' + "9" * 4000 + "}",
    '{"message": null, "done": false}',
    '{"message": {"role": "assistant", "content": "x"}, "logprobs": [{"token": "x", "logprob": NaN}]}',
    '{"message": {"role": "assistant", "content": "x"}, "logprobs": [{"token": "x", "logprob": 1e999}]}',
    '{"message": {"role": "assistant", "content": "x"}, "logprobs": [{"token": "\\ud835", "logprob": -1}]}',
    '{"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "p", "arguments": "x"}}]}}',
    '{"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "\\ud835", "arguments": '
    '{"\\udc00": "\\u0000"}}}]}}',
    '{"error": "\\ud835"}',
    "null",
    "7",
    "",
)


async def test_an_odd_line_of_ollama_is_a_turn_or_an_error_of_ours() -> None:
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    with ollama_serving(MemoryArtifacts()) as server:
        model = Ollama(ActorConfig(provider="ollama", model="qwen2.5:3b"), server.url)
        for odd in ODD_LINES:
            lines: Any = [odd.encode(), json.dumps(end).encode()]
            server.spoils_stream = lambda _, lines=lines: iter(lines)  # type: ignore[misc]
            await recordable(model)
            server.spoils_stream = iter
            assert (await model.generate(ask())).text, odd[:200]
        await model.close()


LLAMA = {"content": "x", "stop": True, "stop_type": "eos", "tokens_evaluated": 1, "tokens_predicted": 1}
STEP = {"id": 5, "logprob": -0.5}
ODD_STEPS: tuple[dict[str, Any], ...] = (
    {"completion_probabilities": [STEP | {"logprob": float("nan")}]},
    {"completion_probabilities": [STEP | {"logprob": float("-inf")}]},
    {"completion_probabilities": [STEP | {"id": float("inf")}]},
    {"completion_probabilities": [STEP | {"id": -1}]},
    {"completion_probabilities": [STEP | {"id": 2**64}]},
    {"completion_probabilities": [STEP | {"top_logprobs": [{"logprob": float("nan")}, {"logprob": -1.0}]}]},
    {"tokens_evaluated": float("inf")},
    {"tokens_predicted": 10**30},
    {"content": None},
    {"content": [HIGH]},
    {"index": 10**30},
)


@pytest.mark.parametrize("odd", ODD_STEPS, ids=range(len(ODD_STEPS)))
def test_an_odd_answer_of_llama_cpp_is_a_reply_or_cannot_be_read(odd: dict[str, Any]) -> None:
    from agent0.infra.models.calls.streams import UNREADABLE

    reading = Reading(Way("llama.cpp", "tokens"))
    try:
        reading.add(LLAMA | odd)
        [reply] = reading.replies()
    except UNREADABLE:
        return
    assert all(0 <= one < 2**31 for one in reply.ids) and all(-1e30 < one <= 0 for one in reply.logprobs)
    assert reply.read < 10**12 and reply.written < 10**12 and reply.text in ("x", "", HIGH)


@pytest.mark.parametrize("after", ["nan", "inf", "1e999", "-5", "9" * 400, "\u0661", "soon", ""])
def test_a_busy_server_names_no_odd_time(after: str) -> None:
    from types import SimpleNamespace

    from agent0.infra.models.calls.refusals import _after_s

    waits = _after_s(SimpleNamespace(response=SimpleNamespace(headers={"retry-after": after})))
    assert 0 <= waits <= 86_400
    assert str(BusyError("x", waits))


def test_an_error_of_a_server_is_told_without_its_half_characters() -> None:
    assert str(TransientError("Failed.", f"It said: {HIGH}")).endswith("It said: \ufffd.")
