"""The format of numbers that a model on this processor is best computed in: measured once, and remembered, so that
sampling and training choose the same."""

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

from agent0.infra.engine.formats.products import FORMATS, Product

FRACTIONS = ("fp32", "bf16")
"""Formats whose products have gradients of their own."""
WORTH = 1.6
"""In whole numbers a token's log-probability is ten times as far from that in single precision as in bfloat16
(``python -m benchmarks.mismatch``): how much quicker they must be for that."""


@cache
def best_format(among: Sequence[str] = tuple(FORMATS)) -> str:
    """Of ``among``, the format that this processor multiplies in soonest with as many threads as torch has; whole
    numbers only where they are ``WORTH`` times as quick as the next. One that is emulated is a hundred times slower, so
    none is always right."""
    key = f"{processor()}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    file = Path.home() / ".cache" / "agent0" / "formats.json"
    recorded = _recorded(file)
    seconds = recorded.get(key)
    if not seconds or not seconds.keys() >= FORMATS.keys():
        seconds = measured()
        _record(file, {**recorded, key: seconds})
    return min(among, key=lambda name: seconds[name] * (WORTH if name == "int8" else 1.0))


def measured(width: int = 896, wider: int = 4864, rows: int = 64, tries: int = 5) -> dict[str, float]:
    """Seconds by format that a product of ``rows`` states of ``width`` numbers with a matrix to ``wider`` takes."""
    states, matrix = torch.randn(rows, width), torch.randn(width, wider)
    return {name: _shortest(packing(matrix, None), states, tries) for name, packing in FORMATS.items()}


def _shortest(product: Product, states: torch.Tensor, tries: int) -> float:
    product(states)
    shortest = math.inf
    for _ in range(tries):
        start = time.perf_counter()
        product(states)
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def _recorded(file: Path) -> dict[str, dict[str, float]]:
    try:
        content = json.loads(file.read_bytes())
        return {str(key): {str(n): float(s) for n, s in seconds.items()} for key, seconds in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _record(file: Path, content: Mapping[str, Mapping[str, float]]) -> None:
    """Where it cannot be written, it is measured again next time."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(content, indent=1, sort_keys=True))
        partial.replace(file)


def processor() -> str:
    """Vendor, family and model; empty where Linux does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return ""
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return " ".join(fields[name] for name in ("vendor_id", "cpu family", "model") if name in fields)
