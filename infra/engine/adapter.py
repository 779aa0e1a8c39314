"""An adapter as one deterministic tar of two files and a note: LoRA's pairs, or all weights of a small model. Read with
bounds, from memory, never unpacked to disk; tensors are safetensors, so nothing in it can run."""

import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from agent0.errors import OperationError
from agent0.events.base import sha256

if TYPE_CHECKING:
    import torch
    from peft import LoraConfig

CONFIG, WEIGHTS, NOTE = "adapter_config.json", "adapter_model.safetensors", "metadata.json"
DIGEST = "weights"
"""In the note: sha256 of the file of weights."""
BASE = "base"
"""In the note: digest of the base that it was trained on (``agent0.infra.weights.safetensors_io.digest``)."""
OTHER_BASE = "Name the model that it was trained on."
"""What to do about an adapter of other weights."""
MEDIA = "application/x-tar"
LARGEST = 1 << 31
Setting = Literal["r", "lora_alpha", "lora_dropout", "target_modules", "bias", "use_rslora"]
SETTINGS: tuple[Setting, ...] = get_args(Setting)
LORA, FULL = "LORA", "FULL"
"""peft's name of a kind of adapter, and ours of one that peft does not know."""


class LoraSettings(TypedDict, total=False):
    """peft's settings of an adapter, as many of them as its file has."""

    r: int
    lora_alpha: float
    lora_dropout: float
    target_modules: list[str]
    bias: str
    use_rslora: bool


WHOLE: LoraSettings = {"r": 0}
"""The settings of a full adapter: no pairs, but the weights themselves."""


@dataclass(frozen=True)
class Adapter:
    """Weights, the settings that shape them, and who made them. LoRA's are named as peft does; a full adapter's are the
    values that replace the base's, float32, by the base's own names."""

    settings: LoraSettings
    weights: "dict[str, torch.Tensor]"
    metadata: dict[str, str]

    @property
    def full(self) -> bool:
        """Whether it holds whole weights rather than pairs to add."""
        return self.settings == WHOLE

    def config(self) -> "LoraConfig":
        """peft's own settings object; of LoRA only."""
        from peft import LoraConfig

        return LoraConfig(task_type="CAUSAL_LM", **self.settings)


def lora_settings(rank: int, alpha: int) -> LoraSettings:
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
    """Same adapter, same bytes. Its note says which weights it is of."""
    from safetensors.torch import save

    weights = save({name: tensor.contiguous() for name, tensor in sorted(adapter.weights.items())})
    settings = {"peft_type": FULL if adapter.full else LORA, "task_type": "CAUSAL_LM", **adapter.settings}
    files = {
        CONFIG: json.dumps(settings, sort_keys=True, indent=1).encode(),
        WEIGHTS: weights,
        NOTE: json.dumps({**adapter.metadata, DIGEST: sha256(weights)}, sort_keys=True, indent=1).encode(),
    }
    return tar_of(files)


def tar_of(files: Mapping[str, bytes]) -> bytes:
    """Put ``files`` (name to content) into a tar, the same for the same files; ``files`` of it gives them back."""
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
        OperationError: not an adapter of this form.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        members = files(data)
        note = {key: value for key, value in json.loads(members.get(NOTE, b"{}")).items() if key != DIGEST}
        return _checked(Adapter(_settings(json.loads(members[CONFIG])), load(members[WEIGHTS]), note))
    except (KeyError, ValueError, TypeError, AttributeError, SafetensorError) as error:
        raise OperationError("This artifact is no adapter.", f"{type(error).__name__}: {error}"[:200]) from error


def same_weights(data: bytes) -> bool | None:
    """Whether the weights of an adapter are those that its note names; None where it names none.

    Raises:
        OperationError: it is no tar of these files.
    """
    members = files(data)
    recorded = json.loads(members.get(NOTE, b"{}")).get(DIGEST)
    return sha256(members[WEIGHTS]) == recorded if recorded else None


def check_base(data: bytes, digest: str) -> None:
    """Raises OperationError where an adapter notes another base than the one with this ``digest``: shapes alone do not
    tell bases apart."""
    recorded = json.loads(files(data).get(NOTE, b"{}")).get(BASE, digest)
    if recorded != digest:
        why = f"It was trained on weights with sha256 {str(recorded)[:12]}…, these have {digest[:12]}…."
        raise OperationError("The adapter is of another base.", why, OTHER_BASE)


def files(data: bytes) -> dict[str, bytes]:
    """What is in the tar, by name.

    Raises:
        OperationError: it is no tar of these files.
    """
    try:
        return _entries(data)
    except (tarfile.TarError, ValueError) as error:
        raise OperationError("This artifact is no adapter.", f"{type(error).__name__}: {error}"[:200]) from error


def _entries(data: bytes) -> dict[str, bytes]:
    members = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for entry in archive:
            if not entry.isreg() or entry.name not in (CONFIG, WEIGHTS, NOTE) or entry.size > LARGEST:
                raise ValueError(f"unexpected entry {entry.name[:80]!r}")
            content = archive.extractfile(entry)
            members[entry.name] = content.read() if content else b""
    return members


def _settings(config: Mapping[str, Any]) -> LoraSettings:
    kind = config.get("peft_type")
    if kind not in (LORA, FULL):
        raise ValueError(f"peft_type is {kind!r}, not {LORA} or {FULL}")
    settings: LoraSettings = {}
    for key in SETTINGS:
        if key in config:
            settings[key] = config[key]
    if (settings == WHOLE) != (kind == FULL):
        raise ValueError(f"r is {settings.get('r')!r} and peft_type {kind}")
    return settings


def _checked(adapter: Adapter) -> Adapter:
    odd = {str(tensor.dtype) for tensor in adapter.weights.values()} - {"torch.float32"} if adapter.full else ()
    if odd:
        raise ValueError(f"whole weights are {sorted(odd)[0]}, not torch.float32")
    return adapter
