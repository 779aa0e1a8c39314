"""What one step of training costs on a GPU, beside TRL's GRPO on the same model and the same batch, in one run.

The model has the architecture and sizes of Qwen2.5-0.5B (494 million weights) and random weights: speed and memory do
not depend on what it knows. Each side runs in a process of its own, twice over the same work, of which the first turn
warms up. A turn is: ``rows`` completions of ``tokens`` tokens each are sampled in one batch (groups of eight), then one
optimizer step of a LoRA adapter is taken on them, with gradient checkpointing, in bfloat16 or over 4-bit weights.

Told are tokens a second (of completions, for both parts) and the most GPU memory that tensors held during each part.
TRL generates with transformers too, not with vLLM, so that both sides use the same kernels.

    make bench-gpu                               # needs a GPU, the extras trl and (for 4 bits) qlora
    python -m benchmarks.gpu --rehearse          # a tiny model on the CPU: that the script works, no more
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.gpu_trl import measure_trl
from benchmarks.gpu_work import GROUP, Cost, Meter, Work, question
from benchmarks.measured_page import write

LARGE = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14}
SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}


def build(folder: Path, sizes: dict[str, int], vocabulary: int) -> None:
    """Save the model with random weights and the packaged tokenizer."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from agent0.infra.tiny.tokenizer import make_tokenizer

    tokenizer = make_tokenizer(0)
    torch.manual_seed(0)
    config = Qwen2Config(
        **sizes, vocab_size=max(vocabulary, len(tokenizer)), num_key_value_heads=2, max_position_embeddings=4096,
        tie_word_embeddings=True, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )  # fmt: skip
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def measure_ours(work: Work) -> Cost:
    """Through the engine and the trainer that runs use, in this process."""
    from agent0.events.values import Trajectory, Turn
    from agent0.infra.engine.inference import Engine
    from agent0.infra.engine.requests import TurnRequest
    from agent0.infra.training.loop import Training
    from agent0.ports.models import Sampling
    from agent0.ports.training import Sample, TrainJob

    meter, engine = Meter(work.device), Engine(work.folder, os.cpu_count() or 1, work.device, work.quantization)
    batches = []
    for turn in range(work.turns):
        asked = [
            TurnRequest(
                (Turn(role="user", content=question(row // GROUP)),),
                Sampling(max_tokens=work.tokens, seed=row + 999 * turn),
            )
            for row in range(work.rows)
        ]
        batches.append(meter.time(lambda asked=asked: engine.generate(asked)))  # type: ignore[misc]
    (written, rollout_s, rollout_gib), engine = batches[-1], None  # type: ignore[assignment]
    meter.clear()
    samples = tuple(
        Sample(
            Trajectory(
                token_ids=(*one.prompt, *one.ids),
                mask=(*[0] * len(one.prompt), *[1] * len(one.ids)),
                logprobs=(*[0.0] * len(one.prompt), *one.logprobs),
            ),
            (-1.0) ** place,
        )
        for place, one in enumerate(written)
    )
    settings = {"rank": work.rank, "alpha": 2 * work.rank, "minibatch": work.rows, "micro_batch": work.rows, "lr": 1e-5}
    settings |= {"replay_steps": 0, "objective": "grpo", "gradient_checkpointing": "on"}
    training = Training(work.folder, os.cpu_count() or 1, work.device, work.quantization)
    job = TrainJob(samples, (), None, 0, settings)
    for turn in range(work.turns):
        (_, metrics), _, train_gib = meter.time(lambda turn=turn: training.train(replace(job, seed=turn), b""))  # type: ignore[misc]
    tokens = sum(len(one.ids) for one in written)
    return Cost(tokens, rollout_s, rollout_gib, metrics["seconds"], train_gib)


SIDES: dict[str, Callable[[Work], Any]] = {"agent0": measure_ours, "TRL": measure_trl}


def aside(side: str, work: Work) -> Cost:
    """One side, in a process of its own."""
    call = [sys.executable, "-m", "benchmarks.gpu", "--side", side, "--work", json.dumps(asdict(work))]
    said = subprocess.run(call, capture_output=True, text=True, check=False)
    if said.returncode:
        raise SystemExit(f"{side} failed:\n{said.stderr[-3000:]}")
    return Cost(**json.loads(said.stdout.strip().splitlines()[-1]))


def table(costs: dict[str, Cost]) -> str:
    """Markdown: a row a side and part."""
    rows = ["| side | part | tokens/s | seconds | GPU memory, GiB |", "|---|---|---|---|---|"]
    for side, cost in costs.items():
        for part, seconds, gib in (
            ("rollouts", cost.rollout_s, cost.rollout_gib),
            ("training step", cost.train_s, cost.train_gib),
        ):
            rows.append(f"| {side} | {part} | {cost.tokens / seconds:,.0f} | {seconds:.2f} | {gib:.2f} |")
    return "\n".join(rows)


def device_name(device: str) -> str:
    """What it ran on."""
    import torch

    return torch.cuda.get_device_name() if device != "cpu" else "a CPU"


def main() -> None:
    """Measure, print, and with --write change the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rehearse", action="store_true", help="a tiny model on the CPU")
    parser.add_argument("--quantization", default="", choices=["", "4bit"])
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--write", action="store_true", help="put the numbers into docs/results/gpu.md")
    parser.add_argument("--side", choices=sorted(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(asdict(SIDES[given.side](Work(**json.loads(given.work))))))
        return
    import torch

    if not given.rehearse and not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU. To see that the script works: python -m benchmarks.gpu --rehearse")
    if given.rehearse and given.write:
        raise SystemExit("A rehearsal is no measurement: the page keeps what it says.")
    rows, tokens = (GROUP, 12) if given.rehearse else (given.rows, given.tokens)
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), *((SMALL, 0) if given.rehearse else (LARGE, 151_936)))
        device = "cpu" if given.rehearse else "cuda"
        work = Work(folder, device, given.quantization, rows, tokens)
        sides = ["agent0", "TRL"] if find_spec("trl") else ["agent0"]
        found = {side: aside(side, work) for side in sides}
    weights = "4-bit weights" if given.quantization else "weights in single precision" if given.rehearse else "bfloat16"
    told = f"{device_name(device)}, {weights}, {rows} completions of {tokens} tokens:\n\n{table(found)}"
    print(told if "TRL" in found else told + "\n\nTRL is not installed: make setup EXTRAS=trl")
    if given.write:
        write("gpu.md", f"{told}\n")


if __name__ == "__main__":
    main()
