"""A data folder whose log tells of checkpoints, good ones and others, and servers of models beside it."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.events.base import Event, record
from agent0.events.checkpoints import CheckpointPruned, CheckpointTrained
from agent0.events.experiments import ExperimentStarted
from agent0.events.runs import RunStarted
from agent0.events.values import Artifact, Turn
from agent0.infra.engine.adapter import WHOLE, Adapter, pack
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.requests import TurnRequest, Written
from agent0.infra.log.nats_server import open_server
from agent0.infra.models import transformers as provider
from agent0.infra.models.llama_server import spelt
from agent0.infra.models.transformers import BASE
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.weights.merge import merged, read_lora
from agent0.infra.weights.safetensors_io import Weights, digest
from agent0.ports.models import Sampling
from tests.adapters import adapter
from tests.memory import MemoryArtifacts
from tests.ollama_server import OllamaServer
from tests.ollama_wire import serving
from tests.terminal import agent0

GONE = Artifact(sha256="c" * 64, size=9)
NOON = datetime(2026, 1, 1, tzinfo=UTC)
RUN, OTHER, STEP, RETRAIN = "tiny-1", "scripted-1", "s001", "agent0 experiment retrain"


def begun(profile: str) -> RunStarted:
    config, sha = load(profile, {}, {}).run.to_record()
    return RunStarted(name="x", profile=profile, seed=0, config=config, config_sha=sha)


def trained(checkpoint: str, found: Artifact | None, **more: Any) -> CheckpointTrained:
    fields = {"role": "student", "iteration": 1, "parent": "base", "samples": 3, "adapter": found, **more}
    return CheckpointTrained(checkpoint=checkpoint, **fields)


@pytest.fixture(scope="package")
def data() -> bytes:
    return adapter(BASE)


def replaced(data: bytes) -> bytes:
    """The full adapter that computes what the base with the pairs of ``data`` does."""
    base = Weights.of_folder(BASE)
    read = merged(read_lora(data), base)
    return pack(Adapter(WHOLE, {name: torch.from_numpy(read(name).copy()) for name in base}, {}))


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> Iterator[Path]:
    """A data folder whose log tells of checkpoints, good ones and others; its server stays, so that calls are quick."""
    folder = tmp_path_factory.mktemp("serving")
    store = FileArtifacts(folder)
    good, scripted = store.put(data), store.put(b'{"skill": 1}')
    lost = store.put(adapter(BASE, seed=9))
    store.path(lost).write_bytes(b"spoilt")
    told: list[tuple[str, Event]] = [
        (RUN, begun("tiny")),
        (RUN, trained(STEP, good, environment={"base": digest(BASE)})),
        (RUN, trained("s002", None)),
        (RUN, trained("s003", lost)),
        (RUN, trained("s004", good, environment={"base": "ab" * 32})),
        (RUN, trained("s006", store.put(replaced(data)), environment={"base": digest(BASE)})),
        (RUN, trained("s007", GONE)),
        (RUN, CheckpointPruned(checkpoint="s007", adapter=GONE.sha256, size=9, reason="To save room")),
        (OTHER, begun("scripted")),
        (OTHER, trained(STEP, scripted)),
        (OTHER, trained("s002", store.put(adapter(BASE, seed=3)))),
        ("exp-again", ExperimentStarted(name="again", kind="retrain", source=RUN, run=RUN, until=9, policy_sha="")),
        ("exp-again", trained("s009", store.put(adapter(BASE, seed=5)))),
        ("exp-again", trained("s010", store.put(adapter(BASE, seed=7, size=1e-4)))),
    ]

    async def tell() -> None:
        async with open_log(load("scripted", {"home": str(folder)}, {}), make=True) as log:
            await log.append([record(event, run=run, time=NOON) for run, event in told])

    with asyncio.Runner() as runner:
        kept = runner.run(open_server(folder, load("scripted", {}, {}).nats))
        runner.run(tell())
        yield folder
        runner.run(kept.stop())


@pytest.fixture(scope="package")
def engine(data: bytes) -> Engine:
    found = Engine(str(BASE))
    found.load_adapter("trained", data)
    return found


@pytest.fixture
def here(engine: Engine, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference's worker answers in this process, and the same question once."""

    class Worker:
        def __init__(self, *_: Any, **__: Any) -> None: ...

        async def call(self, method: str, *arguments: Any) -> Any:
            asked = repr((method, arguments))
            if method != "generate" or asked not in told:
                told[asked] = getattr(engine, method)(*arguments)
            return told[asked]

        async def close(self) -> None: ...

    monkeypatch.setattr(provider, "Worker", Worker)


@pytest.fixture(scope="package")
def told() -> dict[str, Any]:
    """What was written, by what was asked."""
    return {}


def gone_on(engine: Engine, prompt: str, most: int, name: str) -> Written:
    """What the model writes greedily after the text ``prompt``."""
    ids = engine._chat._ids(engine._chat._trusted, prompt)
    turns = [TurnRequest((Turn(role="user", content="x"),), Sampling(0.0, 1.0, most))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._chat, "prompt", lambda *_: ids)
        return engine.generate(turns, name)[0]


@pytest.fixture
def server(engine: Engine, told: dict[str, Any]) -> Iterator[OllamaServer]:
    """An Ollama whose models are the base and, where it was given the adapter, the trained one."""

    def writes(name: str, prompt: str, most: int) -> tuple[str, list[tuple[str, float]]]:
        adapted = ollama.adapted(name)
        asked = f"{prompt} {most} {adapted}"
        found = told[asked] = told.get(asked) or gone_on(engine, prompt, most, "trained" if adapted else "")
        starts = [0, *found.ends[:-1]]
        pieces = [found.text[start:end] for start, end in zip(starts, found.ends, strict=True)]
        return found.text, [(p, value) for p, value in zip(pieces, found.logprobs, strict=True) if p]

    def renders(messages: list[dict[str, Any]]) -> str:
        turns = [Turn(role=m["role"], content=m["content"]) for m in messages]
        return spelt(BASE, engine._chat.prompt(turns))

    with serving(MemoryArtifacts(), version="0.33.0", writes=writes, renders=renders) as ollama:
        yield ollama


def call(home: Path, *words: str) -> Any:
    return agent0("model", *words, "--json", home=home)
