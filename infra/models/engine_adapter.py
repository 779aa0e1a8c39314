"""A LoRA adapter as one deterministic tar of two small files and a note. Read with bounds, from memory, never unpacked
to disk; tensors are safetensors, so nothing in it can run."""

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent0.errors import OperationError

if TYPE_CHECKING:
    import torch
    from peft import LoraConfig

CONFIG, WEIGHTS, NOTE = "adapter_config.json", "adapter_model.safetensors", "metadata.json"
MEDIA = "application/x-tar"
LARGEST = 1 << 31
SETTINGS = ("r", "lora_alpha", "lora_dropout", "target_modules", "bias", "use_rslora")


@dataclass(frozen=True)
class Adapter:
    """Weights by peft's names, the settings that shape them, and who made them."""

    settings: dict[str, Any]
    weights: "dict[str, torch.Tensor]"
    metadata: dict[str, str]

    def config(self) -> "LoraConfig":
        """peft's own settings object."""
        from peft import LoraConfig

        return LoraConfig(task_type="CAUSAL_LM", **self.settings)


def lora_settings(rank: int, alpha: int) -> dict[str, Any]:
    """LoRA on every linear layer but the head."""
    return {
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
        "bias": "none",
        "use_rslora": False,
    }


def pack(adapter: Adapter) -> bytes:
    """Same adapter, same bytes."""
    from safetensors.torch import save

    settings = {"peft_type": "LORA", "task_type": "CAUSAL_LM", **adapter.settings}
    files = {
        CONFIG: json.dumps(settings, sort_keys=True, indent=1).encode(),
        WEIGHTS: save({name: tensor.contiguous() for name, tensor in sorted(adapter.weights.items())}),
        NOTE: json.dumps(adapter.metadata, sort_keys=True, indent=1).encode(),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def unpack(data: bytes) -> Adapter:
    """Read it back.

    Raises:
        OperationError: not a LoRA adapter of this form.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        found = files(data)
        return Adapter(_settings(json.loads(found[CONFIG])), load(found[WEIGHTS]), json.loads(found.get(NOTE, b"{}")))
    except (KeyError, ValueError, TypeError, SafetensorError) as error:
        raise OperationError("This artifact is no LoRA adapter.", f"{type(error).__name__}: {error}"[:200]) from error


def files(data: bytes) -> dict[str, bytes]:
    """What is in the tar, by name.

    Raises:
        OperationError: it is no tar of these files.
    """
    try:
        return _entries(data)
    except (tarfile.TarError, ValueError) as error:
        raise OperationError("This artifact is no LoRA adapter.", f"{type(error).__name__}: {error}"[:200]) from error


def _entries(data: bytes) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for entry in archive:
            if not entry.isreg() or entry.name not in (CONFIG, WEIGHTS, NOTE) or entry.size > LARGEST:
                raise ValueError(f"unexpected entry {entry.name[:80]!r}")
            content = archive.extractfile(entry)
            found[entry.name] = content.read() if content else b""
    return found


def _settings(found: Mapping[str, Any]) -> dict[str, Any]:
    if found.get("peft_type") != "LORA":
        raise ValueError(f"peft_type is {found.get('peft_type')!r}, not LORA")
    return {key: found[key] for key in SETTINGS if key in found}
