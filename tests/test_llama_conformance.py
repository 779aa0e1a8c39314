"""The conformance suite over a llama.cpp server that the provider starts and owns, once for all of it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from agent0.assembly.runtime.providers import provider_of
from agent0.assembly.validate.model_checks import models
from agent0.config.loading import load
from agent0.errors import DependencyError, RefusedError
from agent0.infra.engine.chat_template import chat_of
from agent0.infra.models.llama_cpp import LlamaCpp
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.gguf import write_base
from agent0.ports.models import Model
from agent0.settings import StudentConfig
from tests.adapters import adapter
from tests.conformance_model import ModelConformance, ask, essence
from tests.llama_server import MISSING
from tests.memory import MemoryArtifacts
from tests.test_gguf_header import file as gguf_file


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


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
async def test_a_gguf_file_is_served_as_it_is(tmp_path: Path) -> None:
    """Of a kind that cannot be dequantised: its own chat template and tokenizer are used, and it takes no adapter."""
    artifacts, file = MemoryArtifacts(), tmp_path / "model.gguf"
    write_base(BASE, file)
    actor = StudentConfig(provider="llamacpp", model=str(file), num_ctx=1024, parallel=2)
    check = provider_of(actor).check
    assert check
    check(actor)
    served = LlamaCpp(file, artifacts, actor, cache=tmp_path / "cache", threads=1)
    folder = LlamaCpp(BASE, artifacts, actor, cache=tmp_path / "cache", threads=1)
    request = replace(ask(), tools=(), sampling=replace(ask().sampling, temperature=0.0))
    try:
        written, expected = await served.generate(request), await folder.generate(request)
        assert written.text == expected.text and written.model == "llama.cpp/model.gguf"
        assert written.capture == "logprobs" and written.untrainable
        with pytest.raises(RefusedError, match="takes no adapter"):
            await served.generate(replace(request, adapter=artifacts.put(adapter(BASE))))
    finally:
        await served.close()
        await folder.close()
    assert not list((tmp_path / "cache").glob("*.gguf"))


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
async def test_a_gguf_file_of_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    """By the server, which alone knows what it serves; in one line."""
    gguf, file = pytest.importorskip("gguf"), tmp_path / "odd.gguf"
    writer = gguf.GGUFWriter(file, "mystery")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    model = LlamaCpp(file, MemoryArtifacts(), StudentConfig(provider="llamacpp"), cache=tmp_path / "cache", threads=1)
    with pytest.raises(DependencyError, match="Its architecture is mystery; qwen2, qwen3, llama are known") as caught:
        await model.generate(ask())
    assert len(str(caught.value).splitlines()) == 1
    await model.close()


def test_a_gguf_file_that_is_cut_or_has_no_chat_template_is_named_by_role(tmp_path: Path) -> None:
    file, bare = tmp_path / "cut.gguf", gguf_file(tmp_path / "bare.gguf", "")
    write_base(BASE, file)
    file.write_bytes(file.read_bytes()[:-1])
    for path, why in ((file, "It ends within"), (bare, "This model has no chat template.")):
        settings = load("tiny", {"home": str(tmp_path), "run.student.provider": f"llamacpp/{path}"}, {})
        [check] = [check for check in asyncio.run(models(settings)) if check.state == "fail"]
        assert check.name == "student model" and why in check.detail and check.fix


@pytest.mark.parametrize(("content", "why"), [(None, "There is no file"), (b"{}", "not those of a GGUF file")])
def test_a_gguf_file_that_is_missing_or_none_is_refused_before_a_run(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    file = tmp_path / "model.gguf"
    if content:
        file.write_bytes(content)
    actor = StudentConfig(provider="llamacpp", model=str(file))
    provider = provider_of(actor)
    assert provider.check and provider.untrainable(actor) and "can be served" not in provider.untrainable(actor)
    with pytest.raises(DependencyError, match=why):
        provider.check(actor)
