"""What an adapter says of itself, checked from its file alone."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch

from agent0.errors import OperationError
from agent0.infra.engine.adapter import DIGEST, NOTE, WEIGHTS, WHOLE, Adapter, files, lora_settings, pack
from agent0.infra.engine.requests import Written
from agent0.infra.models.transformers import BASE, packaged, tiny
from agent0.infra.training.lora_trainer import LoraTrainer
from agent0.infra.weights.safetensors_io import digest
from agent0.ports.models import GenerateRequest, Sampling
from agent0.ports.training import TrainJob
from agent0.training.manifest import lineage_of
from tests.engine.asking import user
from tests.memory import MemoryArtifacts
from tests.terminal import agent0 as call

MADE_BY = {"run": "r1", "checkpoint": "student-0"}
NOTED = MADE_BY | {"lineage": lineage_of(MADE_BY)}


def packed(found: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in found.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("settings", [lora_settings(4, 8), WHOLE], ids=["pairs", "full"])
def test_weights_that_were_altered_are_noticed(tmp_path: Path, settings: dict[str, object]) -> None:
    path = tmp_path / "adapter.tar"
    data = pack(Adapter(settings, {"w": torch.ones(3)}, NOTED))
    found = files(data)
    path.write_bytes(data)
    fine = call("model", "check", str(path), "--json", home=tmp_path)
    assert (fine.code, fine.json["agrees"], fine.json["weights_agree"]) == (0, True, True)
    path.write_bytes(packed(found | {WEIGHTS: found[WEIGHTS][:-1] + b"\x41"}))
    altered = call("model", "check", str(path), home=tmp_path)
    assert altered.code == 1 and "The weights are not those that the note names." in altered.err
    older = {key: value for key, value in json.loads(found[NOTE]).items() if key != DIGEST}
    path.write_bytes(packed(found | {NOTE: json.dumps(older).encode()}))
    unknown = call("model", "check", str(path), home=tmp_path)
    assert unknown.code == 0 and "no digest of its weights" in unknown.err


class Worker:
    """Says that it did what it was asked, and what a training was told to note."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    async def call(self, method: str, *arguments: Any) -> Any:
        match method:
            case "train_with_steps":
                return (
                    pack(Adapter(lora_settings(4, 8), {"w": torch.ones(3)}, dict(arguments[0].metadata))),
                    {},
                    (),
                    b"",
                )
            case "environment":
                return {"threads": "1"}
            case "advance":
                return {number: Written([1], [2], text="fine") for number in arguments[0]}
        return None

    async def close(self) -> None: ...


async def test_an_adapter_serves_on_the_weights_that_it_was_trained_on_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("agent0.infra.training.lora_trainer", "agent0.infra.models.transformers"):
        monkeypatch.setattr(f"{module}.Worker", Worker)
    artifacts, other = MemoryArtifacts(), packaged("climb")
    models = [tiny(artifacts), tiny(artifacts, path=other)]
    trainers = [LoraTrainer(BASE, artifacts), LoraTrainer(other, artifacts)]
    made = await trainers[0].train(TrainJob((), (), None, 0, {}))
    assert made.environment == {"threads": "1", "base": digest(BASE)}
    asked = GenerateRequest((user("?"),), Sampling(), adapter=made.adapter)
    assert (await models[0].generate(asked)).text == "fine"
    assert await trainers[0].train(TrainJob((), (), made.adapter, 0, {}))
    with pytest.raises(OperationError, match="another base"):
        await models[1].generate(asked)
    with pytest.raises(OperationError, match="another base"):
        await trainers[1].train(TrainJob((), (), made.adapter, 0, {}))
    for one in (*models, *trainers):
        await one.close()
