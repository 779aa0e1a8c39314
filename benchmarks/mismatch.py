"""How far the program that samples and the one that trains differ on a token of a language model, by format.

    python -m benchmarks.mismatch FOLDER [--gguf FILE] [--questions FILE.jsonl] [--replies 200] [--json]

So many questions (``question`` of each row; GSM8K's, say) are answered at temperature 1 with at most 60 tokens by our
engine in each of its formats and, where a GGUF file of the same weights is named, by llama.cpp. The trainer then
computes the log-probability of each sampled token, and the mean and 99th percentile of |log p - log p| in nats stand in
the table, with the share of tokens whose ratio is beyond 2 either way. The first line of each sampler is what a run
does by itself: it trains in the format it samples in, or in the best one here what a server sampled.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from agent0.events.values import Trajectory, Turn
from agent0.infra.engine.adapter import Adapter, lora_settings
from agent0.infra.engine.formats.best_format import best_format
from agent0.infra.engine.formats.products import FORMATS
from agent0.infra.models.llama_cpp import LlamaCpp
from agent0.infra.models.transformers import Transformers
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.training.batches import padded
from agent0.infra.training.forward import forward_of
from agent0.infra.training.launch.distributed import Team
from agent0.infra.training.launch.recipe import Recipe
from agent0.infra.training.metrics import differences, mismatch
from agent0.infra.training.packed_lora import PackedBase, PackedLora
from agent0.ports.models import GenerateRequest, Model, Sampling
from agent0.ports.training import Sample
from agent0.settings import StudentConfig

THREADS, TOKENS, PART = 2, 60, 8


async def replies(model: Model, questions: Sequence[str], count: int) -> list[Sample]:
    """Answers as trajectories of one turn."""
    requests = [
        GenerateRequest(
            (Turn(role="user", content=questions[n % len(questions)]),), Sampling(max_tokens=TOKENS, seed=n)
        )
        for n in range(count)
    ]
    samples = []
    for turn in await asyncio.gather(*map(model.generate, requests)):
        before, after = len(turn.prompt_ids), len(turn.token_ids)
        path = Trajectory(
            token_ids=turn.prompt_ids + turn.token_ids,
            mask=(0,) * before + (1,) * after,
            logprobs=(0.0,) * before + turn.logprobs,
        )
        samples.append(Sample(path))
    await model.close()
    return samples


def trainer_logprobs(folder: Path, precision: str, samples: Sequence[Sample]) -> list[list[float]]:
    """What a training in ``precision`` takes the tokens of ``samples`` to be, before its first step."""
    lora = PackedLora(PackedBase(folder, precision), Adapter(lora_settings(1, 1), {}, {}))
    forward, rows = forward_of(lora, Team("cpu", "fp32").casting), []
    with torch.no_grad():
        for at in range(0, len(samples), PART):
            paths = [sample.trajectory for sample in samples[at : at + PART]]
            logprobs, _ = forward(padded(paths, 0, "cpu"), 1.0)
            rows += [row[: len(path.token_ids)] for row, path in zip(logprobs.tolist(), paths, strict=True)]
    return rows


def samplers(folder: Path, gguf: Path | None, scratch: Path) -> Iterator[tuple[str, Model]]:
    """Models by the name of who computes them."""
    artifacts = FileArtifacts(scratch / "artifacts")
    for name in FORMATS:
        yield f"ours, {name}", Transformers(folder, artifacts, name=name, threads=THREADS, precision=name)
    if gguf:
        actor = StudentConfig(provider="llamacpp", model=str(gguf), num_ctx=1024, parallel=4)
        yield f"llama.cpp, {gguf.name}", LlamaCpp(gguf, artifacts, actor, cache=scratch, threads=THREADS)


def main() -> int:
    """Print the table; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mismatch")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--replies", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    questions = [json.loads(line)["question"] for line in options.questions.read_text().splitlines()]
    table = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, model in samplers(options.folder, options.gguf, Path(scratch)):
            samples = asyncio.run(replies(model, questions, options.replies))
            own = name.removeprefix("ours, ") if name.startswith("ours") else best_format()
            for precision in dict.fromkeys([own, "fp32"]):
                rows = trainer_logprobs(options.folder, precision, samples)
                metrics = mismatch([*differences(rows, samples)], Recipe())
                table.append({"sampler": name, "trainer": precision, **metrics})
                print(_line(table[-1]) if not options.json else json.dumps(table[-1]), flush=True)
    return 0


def _line(row: dict[str, object]) -> str:
    numbers = "  ".join(f"{name.removeprefix('mismatch_')} {row[name]:.4g}" for name in row if "mismatch" in name)
    return f"{row['sampler']:44} trained in {row['trainer']:5} {numbers}"


if __name__ == "__main__":
    sys.exit(main())
