"""A server of one's own plays both roles by its address alone: a start asks what it has, says that, and trains where
the server takes adapters of weights that are here."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.runtime.app import started
from agent0.assembly.runtime.execution import prepared
from agent0.assembly.validate import requirements
from agent0.assembly.validate.room import Check
from agent0.assembly.validate.served_models import undecided, untrained, with_servers
from agent0.config.loading import load
from agent0.errors import ConfigError, RequirementsError
from agent0.events.runs import RunStarted
from agent0.infra.models.transformers import BASE
from agent0.settings import RunConfig, Settings
from tests.loopback import pages
from tests.openai_server import OpenAIStandIn, serving
from tests.terminal import agent0 as call

HOME = {"AGENT0_NATS_URL": ""}
VLLM = {"owned_by": "vllm", "root": str(BASE), "max_model_len": 4096}
PROPS = {"default_generation_settings": {}, "model_path": "/no/such.gguf", "chat_template": "{{ messages }}"}
STARTED = "llama.cpp takes adapters only when it starts"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_sandbox(_: Settings) -> list[Check]:
        return [Check("sandbox", "ok", "has tests of its own")]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setitem(requirements.REQUIREMENTS, "sandbox", no_sandbox)


def settings(url: str, **pairs: object) -> Settings:
    """Those of `run start --base-url URL` with further ``pairs``."""
    both = {f"run.{role}.base_url": f"{url}/v1" for role in ("student", "teacher")}
    more = {key.replace("__", "."): str(value) for key, value in pairs.items()}
    return load("openai", {**both, "home": str(Path.cwd() / "home"), **more}, {})


def asked(url: str, **pairs: object) -> tuple[RunConfig, str]:
    """The run that a start makes of ``settings``, and what it says."""
    chosen = settings(url, **pairs)
    roles = undecided(chosen)
    chosen = chosen.model_copy(update={"run": untrained(chosen.run, roles)})
    run, lines = asyncio.run(with_servers(chosen, roles))
    return run, "\n".join(lines)


def changed(server: OpenAIStandIn, **values: Any) -> OpenAIStandIn:
    """The server with other attributes."""
    for name, value in values.items():
        setattr(server, name, value)
    return server


@pytest.mark.parametrize(
    ("level", "changes", "says"),
    [
        ("tokens", {"card": VLLM}, ("vLLM", "token ids and log", "context 4,096", "not trained.", "--enable-lora")),
        ("tokens", {"card": {**VLLM, "root": "/gone"}}, ("not trained. The weights", "tokenizer=FOLDER")),
        ("sglang", {"card": {**VLLM, "owned_by": "sglang"}}, ("SGLang", "not trained. Adapters of the server")),
        ("logprobs", {"shown": {"/props": PROPS}}, ("llama.cpp", "without token ids", "writes no calls", STARTED)),
        (
            "text",
            {
                "card": {"owned_by": "library"},
                "shown": {"/api/ps": {"models": [{"name": "student", "context_length": 4096}]}},
            },
            ("Ollama", "text alone", "context 4,096", "not trained. The weights"),
        ),
        (
            "logprobs",
            {
                "card": {"owned_by": "organization_owner"},
                "shown": {"/api/v0/models": {"data": [{"id": "student", "loaded_context_length": 8192}]}},
            },
            ("LM Studio", "context 8,192"),
        ),
        ("text", {"card": {"owned_by": ""}}, ("it does not say its context",)),
    ],
    ids=["vllm", "vllm-elsewhere", "sglang", "llama.cpp", "ollama", "lm-studio", "strict"],
)
def test_what_a_server_has_is_said_and_why_it_is_not_trained(
    level: str, changes: dict[str, Any], says: tuple[str, ...]
) -> None:
    with serving(level=level) as server:
        run, said = asked(changed(server, **changes).url)
    assert all(words in said for words in says), said
    assert said.startswith(f"Student and teacher: student at {server.url}/v1 (") and len(said.splitlines()) == 2
    assert (run.student.model, run.student.tokenizer, run.training.student.enabled) == ("student", "", False)


def test_a_server_that_takes_adapters_of_weights_that_are_here_is_trained() -> None:
    with serving() as server:
        run, said = asked(changed(server, card=VLLM, updating=True).url)
        assert server.ranks == [run.training.student.rank] and not server.adapters, "one was tried, and taken away"
    assert f"The student is trained on {BASE}" in said
    assert run.training.student.enabled and run.student.tokenizer == str(BASE) and not run.training.teacher.enabled


def test_what_a_person_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        changed(server, card=VLLM, updating=True)
        run, said = asked(server.url, run__training__student__enabled="false")
        assert not run.training.student.enabled and "trained" not in said
        with pytest.raises(ConfigError, match="no token ids come back"):
            asyncio.run(prepared(settings(server.url, run__training__student__enabled="true")))
        Path("agent0.toml").write_text("[run.training.student]\nenabled = false\n")
        assert undecided(settings(server.url)) == ("teacher",)


@pytest.mark.parametrize(("context", "tokens"), [(0, 400), (4096, 400), (2400, 229)])
def test_turns_are_as_long_as_the_context_allows(context: int, tokens: int) -> None:
    with serving(level="text") as server:
        changed(server, card={"max_model_len": context})
        run, said = asked(server.url)
        assert run.student.max_tokens == tokens and ("max_tokens is" in said) == (tokens != 400)
        run, said = asked(server.url, run__student__max_tokens=400)
        assert run.student.max_tokens == 400 and ("may get longer" in said) == (tokens != 400)


def test_a_context_without_room_is_refused() -> None:
    with serving(level="text") as server, pytest.raises(RequirementsError, match="too small") as refused:
        asked(changed(server, card={"max_model_len": 1024}).url)
    assert "1,024 tokens" in refused.value.why and "--max-model-len" in refused.value.fix


def test_a_run_names_the_one_model_and_is_not_trained_without_a_look_at_it(tmp_path: Path) -> None:
    with serving(level="text", models=("a", "qwen2.5-coder-0.5b-instruct")) as server:
        said = call("run", "start", "--base-url", f"{server.url}/v1", home=tmp_path / "home")
        assert said.code == 5 and "It has: a, qwen2.5-coder-0.5b-instruct. Set run.student.model" in said.err
        named = call(
            "doctor", "--base-url", server.url, "--model", "qwen2.5-coder-0.5b-instruct", home=tmp_path / "home"
        )
        assert "qwen2.5-coder-0.5b-instruct at " in named.out and "one of 2)" in named.out, "no model of the catalogue"
    run = asyncio.run(prepared(settings(server.url), here=False)).run
    assert not run.training.student.enabled and run.student.model == "", "other machines ask it"


def test_a_bad_server_is_one_line_a_role(tmp_path: Path) -> None:
    with serving(key="another") as locked, serving() as other, pages() as url:
        changed(other, card={"meta": {"n_embd": 7}})
        wrong = (
            "--set",
            f"run.student.tokenizer={BASE}",
            "--set",
            "run.teacher.provider=scripted",
            "--set",
            "run.teacher.model=",
        )
        for address, words, more in (
            (locked.url, "refused the key", ()),
            ("http://127.0.0.1:9", "Nothing answers at http://127.0.0.1:9", ()),
            (url, "a server of another kind: a page", ()),
            (other.url, "serves another model. Its hidden states have 7 numbers", wrong),
        ):
            said = call("run", "start", "--base-url", f"{address}/v1", *more, home=tmp_path / "home")
            lines = said.err.splitlines()
            assert said.code == 5 and words in said.err, said.err
            assert len([line for line in lines if line.startswith("- ")]) == 2 - bool(more) == len(lines) - 1, said.err
    assert not (tmp_path / "home" / "nats").exists()


def test_another_name_in_its_answers_is_said() -> None:
    with serving(level="text") as server:
        server.replies = [{"model": "gpt-2", "choices": [{"message": {"content": "1"}, "finish_reason": "stop"}]}] * 9
        _, said = asked(server.url)
    assert "its answers name another model: gpt-2" in said


def test_what_was_found_out_is_what_is_recorded() -> None:
    said: list[str] = []
    with serving(level="logprobs") as server:
        chosen = asyncio.run(prepared(settings(server.url), tell=said.append))
    event = started(chosen).event
    assert isinstance(event, RunStarted) and "without token ids" in said[0]
    run = RunConfig.recorded(event.config)
    assert (run.student.model, run.teacher.model, run.training.student.enabled) == ("student", "student", False)
