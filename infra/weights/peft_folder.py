"""A folder that peft saved a LoRA to, as the adapter of a run's student: read with bounds, checked against its base."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent0.errors import Agent0Error, ConfigError
from agent0.infra.engine.adapter import (
    BASE,
    CONFIG,
    LARGEST,
    NOTE,
    WEIGHTS,
    Adapter,
    check_base,
    lora_settings,
    pack,
    tar_of,
    unpack,
)
from agent0.infra.weights.merge import Lora, check_fit, read_lora
from agent0.infra.weights.safetensors_io import Weights, digest

PICKLE = "adapter_model.bin"
MOVED = ("pissa", "olora", "corda", "loftq")
"""Ways to begin an adapter that change the weights of its base, too."""


@dataclass(frozen=True)
class PeftAdapter:
    """An adapter as a run keeps it (``data``, a tar), of the weights with sha256 ``base``. ``note``: what its folder
    says of its base, where that has another name."""

    data: bytes
    base: str
    rank: int
    alpha: float
    targets: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        """Its shape in a few words."""
        return f"rank {self.rank}, alpha {self.alpha:g}, on {', '.join(self.targets)}{self.note}"


def read_peft_folder(folder: Path, base: Path) -> PeftAdapter:
    """Read the LoRA in ``folder``, which must be one of the model in the folder ``base``.

    Raises:
        ConfigError: there is none, its weights are a pickle or cut short, it is of another base, or it changes more
            than linear layers by pairs of one rank.
    """
    try:
        return _read(folder, base)
    except Agent0Error as error:
        why = error.why or error.what
        raise _refused(folder, why, error.fix if isinstance(error, ConfigError) else "") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _refused(folder, f"Its {CONFIG} cannot be read: {type(error).__name__}.") from error


def read_fitting(data: bytes, base: Path) -> tuple[str, Lora, Weights]:
    """The LoRA in the tar ``data``, with the weights in the folder ``base`` that it fits, and their sha256.

    Raises:
        OperationError: it is none, or one of other weights.
    """
    actual = digest(base)
    check_base(data, actual)
    lora, weights = read_lora(data), Weights.of_folder(base)
    check_fit(lora, weights)
    return actual, lora, weights


def _refused(folder: Path, why: str, fix: str = "") -> ConfigError:
    wanted = f"Name a folder that peft saved a LoRA of the student's model to ({CONFIG}, {WEIGHTS})."
    return ConfigError(f"A run cannot begin with the adapter in {folder}.", why, fix or wanted)


def _read(folder: Path, base: Path) -> PeftAdapter:
    files = _files(folder)
    data = tar_of(files)
    actual, lora, weights = read_fitting(data, base)
    settings = json.loads(files[CONFIG])
    begun = str(settings.get("init_lora_weights", "")).lower()
    if begun.startswith(MOVED):
        raise ConfigError("", f"It was begun by {begun}, which changes the weights of its base, too.")
    rank, targets = _rank(lora, int(settings["r"])), _targets(lora, weights)
    tensors = {name: tensor.float() for name, tensor in unpack(data).weights.items()}
    if odd := [name for name, tensor in tensors.items() if not tensor.isfinite().all()]:
        raise ConfigError("", f"{odd[0]} holds numbers that are not finite.")
    shape = lora_settings(rank, 0) | {"lora_alpha": lora.alpha, "use_rslora": lora.stabilised}
    shape["target_modules"] = list(targets)
    named = Path(str(settings.get("base_model_name_or_path") or "")).name
    note = f"; its folder names the base {named}" if named and named != base.name and NOTE not in files else ""
    return PeftAdapter(pack(Adapter(shape, tensors, {BASE: actual})), actual, rank, lora.alpha, targets, note)


def _files(folder: Path) -> Mapping[str, bytes]:
    """The files of an adapter that are in ``folder``, by name."""
    if not folder.is_dir():
        raise ConfigError("", "There is no such folder.")
    if not (folder / WEIGHTS).is_file() and (folder / PICKLE).is_file():
        fix = "Save it again: model.save_pretrained(FOLDER, safe_serialization=True)."
        raise ConfigError("", f"Its weights are a pickle ({PICKLE}), which may run code and is not read.", fix)
    if missing := [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]:
        raise ConfigError("", f"It has no {' and no '.join(missing)}.")
    paths = [folder / name for name in (CONFIG, WEIGHTS, NOTE) if (folder / name).is_file()]
    if large := [path.name for path in paths if path.stat().st_size > LARGEST]:
        raise ConfigError("", f"{large[0]} has more than {LARGEST >> 30} GiB.")
    return {path.name: path.read_bytes() for path in paths}


def _rank(lora: Lora, rank: int) -> int:
    ranks = {a.shape[0] for a, _ in lora.pairs.values()}
    if ranks != {rank}:
        raise ConfigError("", f"Its pairs have the ranks {sorted(ranks)}, its {CONFIG} says {rank}.")
    return rank


def _targets(lora: Lora, base: Weights) -> tuple[str, ...]:
    """The layers that it changes, by the last part of their names: in every block."""
    targets = sorted({name.split(".")[-2] for name in lora.pairs})
    suffixes = tuple(f".{target}.weight" for target in targets)
    if left := [name for name in base if name.endswith(suffixes) and name not in lora.pairs]:
        raise ConfigError("", f"It changes {', '.join(targets)} in some blocks only, not in {sorted(left)[0]}.")
    return tuple(targets)
