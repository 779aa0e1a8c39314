"""Tokens a second of a language model's rollouts on a CPU: ours beside llama.cpp and transformers, in one run.

    python -m benchmarks.rollouts FOLDER [--gguf FILE …] [--slots 1,4,16] [--prompts 8] [--attempts 8] [--json]

Each of the prompts (drawn token ids, 150 by default) is answered so many times with 100 tokens; whoever would stop
goes on. llama.cpp, which has at most 16 slots, answers two of the prompts. What counts is the wall time of the
whole, prompts included, after one answer to warm up. FOLDER has the model in safetensors; the GGUF files are the same
model in formats of llama.cpp. Ours is computed in the format that is best here; ``--formats`` names others. Exit 3
where ours is not at least 3 times llama.cpp's best with the Q8_0 file, 2 times its best with any, and 4 times
transformers in float32.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import torch

from agent0.infra.engine.decoding import write
from agent0.infra.engine.formats.best_format import best_format
from agent0.infra.engine.formats.folder_weights import FolderWeights, embedding_of, shape_in
from agent0.infra.engine.formats.products import FORMATS
from agent0.infra.engine.llama_process import LlamaOptions, start
from agent0.infra.engine.qwen2_functional import weights_of
from agent0.infra.engine.requests import Written
from agent0.infra.engine.sampling import Row
from agent0.ports.models import Sampling

AIMS = {"llama.cpp Q8_0": 3.0, "llama.cpp": 2.0, "transformers fp32": 4.0}
FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


@dataclass(frozen=True)
class Work:
    """What everybody is asked: ``prompts`` of token ids, ``attempts`` at each, ``tokens`` an attempt."""

    prompts: tuple[tuple[int, ...], ...]
    attempts: int
    tokens: int
    threads: int

    @property
    def written(self) -> int:
        """Tokens of all answers."""
        return len(self.prompts) * self.attempts * self.tokens

    def one(self) -> "Work":
        """To warm up: one attempt of a few tokens."""
        return replace(self, prompts=self.prompts[:1], attempts=1, tokens=4)


def drawn(count: int, length: int, vocabulary: int) -> tuple[tuple[int, ...], ...]:
    """Prompts of ``length`` ids below ``vocabulary``, always the same."""
    rng = random.Random(0)
    return tuple(tuple(rng.randrange(vocabulary) for _ in range(length)) for _ in range(count))


def ours(folder: Path, kind: str, work: Work) -> float:
    """Seconds of this project's engine with matrices of format ``kind``."""
    files, shape = FolderWeights(folder), shape_in(folder)
    assert shape is not None
    with torch.inference_mode():
        weights = replace(weights_of(shape, files, {}, FORMATS[kind]), embed=embedding_of(files))
        write(weights, _rows(work.one()), ())
        began = time.perf_counter()
        write(weights, _rows(work), ())
        return time.perf_counter() - began


def _rows(work: Work) -> list[Row]:
    return [
        Row(Written(list(prompt)), Sampling(1.0, 1.0, work.tokens, number * work.attempts + attempt), work.tokens)
        for number, prompt in enumerate(work.prompts)
        for attempt in range(work.attempts)
    ]


def through_transformers(folder: Path, work: Work) -> float:
    """Seconds of ``generate`` in float32, all attempts in one batch."""
    import transformers

    library: Any = transformers
    model = library.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()

    def generate(part: Work) -> None:
        ids = torch.tensor([prompt for prompt in part.prompts for _ in range(part.attempts)])
        limits = {"max_new_tokens": part.tokens, "min_new_tokens": part.tokens}
        model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, pad_token_id=0, **limits)

    with torch.inference_mode():
        generate(work.one())
        began = time.perf_counter()
        generate(work)
        return time.perf_counter() - began


async def llama(file: Path, slots: int, work: Work) -> float:
    """Seconds of a llama.cpp server with ``slots`` slots, its cache as it is by default."""
    window = len(work.prompts[0]) + work.tokens + 8
    options = LlamaOptions(str(file), window=window, slots=slots, threads=work.threads, half_cache=True)
    with tempfile.TemporaryDirectory() as folder:
        server = await start(options, Path(folder) / "server.log")
        try:
            async with httpx.AsyncClient(base_url=server.url, timeout=3600) as client:
                await _complete(client, work.one(), slots)
                began = time.perf_counter()
                await _complete(client, work, slots)
                return time.perf_counter() - began
        finally:
            await server.stop()


async def _complete(client: httpx.AsyncClient, work: Work, slots: int) -> None:
    room = asyncio.Semaphore(slots)

    async def answer(prompt: tuple[int, ...], seed: int) -> None:
        body = {"prompt": list(prompt), "n_predict": work.tokens, "ignore_eos": True, "seed": seed, "temperature": 1.0}
        async with room:
            response = await client.post("/completion", json={**body, "top_k": 0, "top_p": 1.0, "cache_prompt": True})
        count = response.json()["tokens_predicted"]
        assert count == work.tokens, f"{count} tokens of {work.tokens}"

    await asyncio.gather(*(answer(prompt, seed) for prompt in work.prompts for seed in range(work.attempts)))


def rows(
    folder: Path, files: Sequence[Path], slots: Sequence[int], kinds: Sequence[str], work: Work, peers: Work
) -> Iterator[tuple[str, float]]:
    """(who, tokens a second) of each, as they are measured."""
    for kind in kinds:
        yield f"ours {kind}", work.written / ours(folder, kind, work)
    for file in files:
        for count in slots:
            seconds = asyncio.run(llama(file, count, peers))
            yield f"llama.cpp {_format(file)}, {count} slots", peers.written / seconds
    yield "transformers fp32", work.written / through_transformers(folder, work)


def _format(file: Path) -> str:
    known = [name for name in ("Q8_0", "Q4_K_M", "Q4_0", "F16", "BF16", "F32") if name.lower() in file.name.lower()]
    return known[0] if known else file.stem


def ratios(table: dict[str, float]) -> dict[str, float]:
    """Ours over the best of each whose name begins so."""
    best = max(rate for name, rate in table.items() if name.startswith("ours"))
    found = {peer: [rate for name, rate in table.items() if name.startswith(peer)] for peer in AIMS}
    return {peer: round(best / max(rates), 2) for peer, rates in found.items() if rates}


def processor() -> str:
    """The processor's name, and those of its features that matter here."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf8")
    name = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "?")
    flags = set(next((line for line in text.splitlines() if line.startswith("flags")), "").split())
    return f"{name}: {', '.join(feature for feature in FEATURES if feature in flags)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gguf", type=Path, nargs="*", default=[])
    parser.add_argument("--slots", default="1,4,16")
    parser.add_argument("--formats", default="")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--peer-prompts", type=int, default=2, help="llama.cpp answers only so many of the prompts")
    parser.add_argument("--attempts", type=int, default=8)
    parser.add_argument("--length", type=int, default=150)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    vocabulary = json.loads((options.folder / "config.json").read_bytes())["vocab_size"]
    work = Work(drawn(options.prompts, options.length, vocabulary), options.attempts, options.tokens, options.threads)
    kinds = options.formats.split(",") if options.formats else [best_format()]
    table: dict[str, float] = {}
    peers = replace(work, prompts=work.prompts[: options.peer_prompts])
    for who, rate in rows(options.folder, options.gguf, [int(n) for n in options.slots.split(",")], kinds, work, peers):
        table[who] = round(rate, 1)
        print(f"{who:28} {rate:8.1f} tokens/s", file=sys.stderr, flush=True)
    told = {"processor": processor(), "threads": options.threads, "tokens_a_second": table, "ratios": ratios(table)}
    print(json.dumps(told) if options.json else f"{told['processor']}, {options.threads} threads\n{told['ratios']}")
    missed = [f"{peer}: {ratio}, aim {AIMS[peer]}" for peer, ratio in ratios(table).items() if ratio < AIMS[peer]]
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
