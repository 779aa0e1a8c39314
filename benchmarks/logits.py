"""How near the logits of a language model in single precision are, by who computes them: ours, transformers, llama.cpp.

    python -m benchmarks.logits FOLDER --questions FILE.jsonl [--prompts 50] [--json]

So many questions (``question`` of each row; GSM8K's, say) are prompts in the model's template, and each program
computes the logits of the token that follows. Of ours and transformers all are compared; of llama.cpp, which serves a
file that is written in single precision from FOLDER, the log-probabilities of the likeliest 50 tokens. The largest
difference in each column is to be within ``TOLERANCE``, or the exit status is 3.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from agent0.events.values import Turn
from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.engine.inference import load
from agent0.infra.engine.llama_process import LlamaOptions, start
from agent0.infra.engine.qwen2_functional import hidden, packed
from agent0.infra.models.llama_server import LlamaServer
from agent0.infra.training.packed_lora import PackedBase
from agent0.infra.weights.gguf import write_base

THREADS, TOLERANCE = 2, 1e-2


def ours(folder: Path, prompts: Sequence[Sequence[int]]) -> list[Tensor]:
    """[vocabulary] after each of ``prompts``, by our engine."""
    weights = PackedBase(folder, "fp32").weights
    rows = (torch.tensor([prompt]) for prompt in prompts)
    return [weights.head(hidden(weights, packed(ids, torch.ones_like(ids)))[-1:])[0] for ids in rows]


def by_transformers(folder: Path, prompts: Sequence[Sequence[int]]) -> list[Tensor]:
    """The same, by transformers."""
    model, _ = load(str(folder), "cpu", "", "fp32")
    return [model(torch.tensor([prompt]), logits_to_keep=1).logits[0, -1] for prompt in prompts]


async def by_llama(folder: Path, prompts: Sequence[Sequence[int]]) -> list[dict[int, float]]:
    """Log-probabilities of the likeliest tokens after each of ``prompts``, by llama.cpp."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "single.gguf"
        write_base(folder, file)
        process = await start(LlamaOptions(str(file), threads=THREADS), Path(scratch) / "server.log")
        server = LlamaServer(process.url)
        try:
            steps = [(await server.go_on(prompt, 1, {})).steps[0] for prompt in prompts]
            return [{int(token): value for token, value in step.others.items()} for step in steps]
        finally:
            await server.close()
            await process.stop()


def differences(logits: Sequence[Tensor], likeliest: Sequence[dict[int, float]]) -> Tensor:
    """|log p - log p| of the likeliest tokens of each prompt."""
    each = [
        torch.log_softmax(row.double(), -1)[list(tokens)] - torch.tensor(list(tokens.values()), dtype=torch.float64)
        for row, tokens in zip(logits, likeliest, strict=True)
    ]
    return torch.cat(each).abs()


def main() -> int:
    """Print the table; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.logits")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--prompts", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    lines, chat = options.questions.read_text().splitlines()[: options.prompts], Chat(tokenizer_of(str(options.folder)))
    prompts = [chat.prompt((Turn(role="user", content=json.loads(line)["question"]),)) for line in lines]
    with torch.inference_mode():
        own, reference = ours(options.folder, prompts), by_transformers(options.folder, prompts)
    served = asyncio.run(by_llama(options.folder, prompts))
    columns = {
        "ours, transformers: logits": (torch.stack(own) - torch.stack(reference)).abs(),
        "ours, llama.cpp: log-probabilities": differences(own, served),
        "transformers, llama.cpp: log-probabilities": differences(reference, served),
    }
    table = {name: {"mean": float(gaps.mean()), "largest": float(gaps.max())} for name, gaps in columns.items()}
    for name, row in table.items():
        print(json.dumps({"between": name, **row}) if options.json else f"{name:44} {row}", flush=True)
    return 0 if all(row["largest"] <= TOLERANCE for row in table.values()) else 3


if __name__ == "__main__":
    sys.exit(main())
