"""Is what is served what was trained, and how fast is it? The built-in base and an adapter with large random weights,
exported, loaded by a real llama.cpp server, and compared with transformers: log-probabilities of every next token, by
token ids; then tokens a second of both, in turn, one request at a time and one thread each.

``python -m benchmarks.serving --write`` puts the tables into docs/results/serving.md. Ratios hold on a busy machine,
speeds do not.
"""

import argparse
import asyncio
import json
import platform
import random
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from agent0.evaluation.serving_parity import probes
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.requests import TurnRequest
from agent0.infra.models.llama_server import LlamaServer, spelt
from agent0.infra.models.transformers import BASE
from agent0.infra.weights.gguf import split_name, write_adapter, write_base
from agent0.infra.weights.merge import merged, read_lora, save_merged
from agent0.infra.weights.safetensors_io import Weights
from agent0.ports.models import Sampling
from benchmarks.measured_page import write
from tests.adapters import adapter
from tests.llama_server import MISSING, serving

FORCED, ADAPTER = 40, "trained"
Spread = NDArray[np.float64]


def contexts(count: int) -> list[list[int]]:
    """Token ids to go on from: probes as they are asked, and arbitrary ids of up to 600 tokens."""
    rng = random.Random("contexts")
    engine = Engine(str(BASE))
    asked = [engine._chat.prompt(turns) for turns in probes(count // 2)]
    return asked + [[rng.randrange(611) for _ in range(rng.choice((8, 80, 600)))] for _ in range(count - len(asked))]


def expected(engine: Engine, ids: list[int], name: str) -> Spread:
    """As transformers computes it, in float32."""
    with torch.inference_mode(), engine._using(name):
        found: Spread = torch.log_softmax(engine._model(torch.tensor([ids])).logits[0, -1].double(), -1).numpy()
    return found


async def told(url: str, asked: Sequence[list[int]], scale: float | None, size: int) -> list[Spread]:
    """As llama.cpp computes it."""
    server, out = LlamaServer(url), []
    for ids in asked:
        said = await server.go_on(ids, 1, {} if scale is None else {0: scale}, size, forced=FORCED)
        one = np.full(size, np.nan)
        for token, logprob in said.steps[0].others.items():
            one[int(token)] = logprob
        out.append(one)
    await server.close()
    return out


def row(name: str, found: Sequence[Spread], wanted: Sequence[Spread]) -> str:
    """Largest and mean difference over everything, and over tokens that are at least one in a thousand."""
    apart = np.abs(np.array(found) - np.array(wanted))
    likely = np.array(wanted) > np.log(1e-3)
    numbers = (apart.max(), apart.mean(), apart[likely].max())
    return f"| {name} | {len(found)} | " + " | ".join(f"{number:.1e}" for number in numbers) + " |"


def compare(folder: Path, data: bytes, count: int) -> list[str]:
    """The table of differences."""
    asked, engine = contexts(count), Engine(str(BASE))
    size = engine._model.config.vocab_size
    engine.load_adapter(ADAPTER, data)
    plain, trained = ([expected(engine, ids, name) for ids in asked] for name in ("", ADAPTER))
    rows = ["| served | contexts | largest | mean | largest, likely tokens |", "|---|---|---|---|---|"]
    for cache, half in (("float32 cache", False), ("half precision cache", True)):
        with serving(folder / "base.gguf", folder / "adapter.gguf", half_cache=half) as url:
            rows.append(row(f"base.gguf, {cache}", asyncio.run(told(url, asked, 0.0, size)), plain))
            rows.append(row(f"base.gguf + adapter.gguf, {cache}", asyncio.run(told(url, asked, 1.0, size)), trained))
        with serving(folder / "model.gguf", half_cache=half) as url:
            rows.append(row(f"model.gguf (merged), {cache}", asyncio.run(told(url, asked, None, size)), trained))
    whole = Engine(str(folder / "merged"))
    rows.append(row("merged folder, transformers", [expected(whole, ids, "") for ids in asked], trained))
    rows.append(row("for scale: base against base + adapter", plain, trained))
    return rows


async def cut_alike(url: str) -> tuple[int, int]:
    """Of how many questions, as prompts, the server cuts the text into the ids that the model was taught."""
    engine, server = Engine(str(BASE)), LlamaServer(url)
    asked = [engine._chat.prompt(turns) for turns in probes(200)]
    same = [await server.tokenized(spelt(BASE, ids)) == ids for ids in asked]
    await server.close()
    return sum(same), len(same)


async def speeds(url: str, data: bytes, rounds: int) -> list[str]:
    """Tokens a second: llama.cpp through HTTP, ours one request at a time and all at once."""
    engine, server = Engine(str(BASE)), LlamaServer(url)
    engine.load_adapter(ADAPTER, data)
    asked = [TurnRequest(turns, Sampling(0.0, 1.0, 32)) for turns in probes(32)]
    prompts = [engine._chat.prompt(one.turns) for one in asked]
    names = ("llama.cpp, one at a time", "ours, one at a time", "ours, 32 at once")
    taken: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        spent, counts = [0.0] * 3, [0] * 3
        for one, ids in zip(asked, prompts, strict=True):  # in turn, so that both feel the same load
            start = time.perf_counter()
            counts[0] += len((await server.go_on(ids, 32, {0: 1.0}, alternatives=1)).steps)
            middle = time.perf_counter()
            counts[1] += len(engine.generate([one], ADAPTER)[0].ids)
            spent = [spent[0] + middle - start, spent[1] + time.perf_counter() - middle, 0.0]
        start = time.perf_counter()
        counts[2] = sum(len(one.ids) for one in engine.generate(asked, ADAPTER))
        spent[2] = time.perf_counter() - start
        for name, count, seconds in zip(names, counts, spent, strict=True):
            taken[name].append(count / seconds)
    await server.close()
    ours = taken["ours, one at a time"]
    ratios = {name: median(a / b for a, b in zip(found, ours, strict=True)) for name, found in taken.items()}
    head = ["| engine, base + adapter | tokens/s here | ratio to ours, one at a time |", "|---|---|---|"]
    return head + [f"| {name} | {median(found):,.0f} | {ratios[name]:.1f} |" for name, found in taken.items()]


def measured(count: int, rounds: int) -> str:
    """Both tables, and the machine."""
    torch.set_num_threads(1)
    data = adapter(BASE)
    lora = read_lora(data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        write_base(BASE, folder / "base.gguf")
        write_adapter(lora, BASE, folder / "adapter.gguf")
        seconds = time.perf_counter() - start
        write_base(BASE, folder / "model.gguf", merged(lora, Weights.of_folder(BASE)))
        (folder / "merged").mkdir()
        save_merged(BASE, lora, folder / "merged")
        differences = compare(folder, data, count)
        with serving(folder / "base.gguf", folder / "adapter.gguf") as url:
            same, of = asyncio.run(cut_alike(url))
            fast = asyncio.run(speeds(url, data, rounds))
        sizes = ", ".join(
            f"{file} {(folder / file).stat().st_size >> 10} KiB" for file in ("base.gguf", "adapter.gguf")
        )
    built = json.loads((BASE / "provenance.json").read_text(encoding="utf-8"))
    tokenizer = json.loads((BASE / "tokenizer.json").read_text(encoding="utf-8"))
    made = f"xllamacpp {version('xllamacpp')}, gguf {version('gguf')}, torch {torch.__version__}, {platform.machine()}"
    lines = [
        f"Built-in base ({built['parameters']:,} parameters, sha256 {built['sha256'][:12]}…), LoRA of rank 8 on every",
        f"linear layer with weights drawn from N(0, 0.1²). {made}.",
        f"Exported in {seconds:.2f} s: {sizes}.",
        "",
        "Differences of log-probabilities (nats) of all next tokens:",
        "",
        *differences,
        "",
        f"Given text instead of token ids, llama.cpp cuts {same} of {of} prompts into the ids that the built-in model",
        f"was taught (its name for how to cut: {split_name(tokenizer)[0]}).",
        "",
        *fast,
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page where asked to."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--contexts", type=int, default=48)
    flags.add_argument("--rounds", type=int, default=5)
    flags.add_argument("--write", action="store_true", help="into docs/results/serving.md")
    asked = flags.parse_args()
    if MISSING:
        print(f"Not measured: {MISSING}.")
        return
    found = measured(asked.contexts, asked.rounds)
    print(found)
    if asked.write:
        write("serving.md", found)


if __name__ == "__main__":
    main()
