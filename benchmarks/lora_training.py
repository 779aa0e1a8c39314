"""Tokens a second of LoRA training on a CPU: ours beside PEFT with transformers' ``Trainer``, in one run.

    python -m benchmarks.lora_training FOLDER [--samples 32] [--minibatch 16] [--instructions 0] [--formats int8,bf16]

FOLDER has the model in safetensors. The samples are drawn token ids: so many common ``instructions``, questions of 100
to 200 tokens, answers of 40 to 160, which alone are learned, by likelihood. Both train rank 16 on every linear layer,
AdamW, the same minibatches, two threads; ``Trainer`` pads its batches of four samples and computes in single precision,
its default. Wall time of all steps, without the time to load; memory is the most that a process of its own held.
``--json``: as one line. Exit 3 where ours, in the format that is best here, is not 1.5 times ``Trainer``'s rate (3
times on a processor with AMX).
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from agent0.events.values import Trajectory
from agent0.infra.engine.formats.best_format import best_format, processor
from agent0.infra.training.loop import Training
from agent0.ports.training import Sample, TrainJob
from benchmarks.rollouts import FEATURES

RECIPE = {"objective": "sft", "rank": 16, "alpha": 32, "lr": 1e-4, "epochs": 1, "replay_steps": 0}
THREADS = 2


def drawn_samples(count: int, vocabulary: int, instructions: int, seed: int = 0) -> tuple[Sample, ...]:
    """Prompts and answers of drawn tokens, all behind the same ``instructions``, so many tokens."""
    rng = random.Random(seed)
    common, samples = [rng.randrange(vocabulary) for _ in range(instructions)], []
    for _ in range(count):
        question, answer = rng.randint(100, 200), rng.randint(40, 160)
        ids = (*common, *(rng.randrange(vocabulary) for _ in range(question + answer)))
        prompt = instructions + question
        path = Trajectory(token_ids=ids, mask=(0,) * prompt + (1,) * answer, logprobs=(0.0,) * len(ids))
        samples.append(Sample(path, 1.0))
    return tuple(samples)


def ours(folder: str, samples: Sequence[Sample], minibatch: int, precision: str) -> float:
    """Seconds of all steps."""
    training = Training(folder, THREADS, precision=precision)
    job = TrainJob(tuple(samples), (), None, 0, {**RECIPE, "minibatch": minibatch})
    training.train(TrainJob(job.samples[:1], (), None, 0, job.settings), b"")
    start = time.monotonic()
    training.train(job, b"")
    return time.monotonic() - start


def trainers(folder: str, samples: Sequence[Sample], minibatch: int, precision: str = "") -> float:
    """Seconds of all steps of transformers' ``Trainer`` on a model that peft holds an adapter in."""
    import transformers
    from peft import LoraConfig, get_peft_model

    library: Any = transformers
    library.utils.logging.set_verbosity_error()
    torch.set_num_threads(THREADS)
    model = library.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    linear = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=16, lora_alpha=32, target_modules=linear))

    def collated(rows: Sequence[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        longest = max(len(row["input_ids"]) for row in rows)

        def padded(name: str, filler: int) -> torch.Tensor:
            return torch.tensor([row[name] + [filler] * (longest - len(row[name])) for row in rows])

        ids, labels = padded("input_ids", 0), padded("labels", -100)
        return {"input_ids": ids, "labels": labels, "attention_mask": padded("attention", 0)}

    rows = [
        {
            "input_ids": [*sample.trajectory.token_ids],
            "attention": [1] * len(sample.trajectory.token_ids),
            "labels": [
                token if own else -100
                for token, own in zip(sample.trajectory.token_ids, sample.trajectory.mask, strict=True)
            ],
        }
        for sample in samples
    ]
    with tempfile.TemporaryDirectory() as output:
        options = library.TrainingArguments(
            output, per_device_train_batch_size=4, gradient_accumulation_steps=minibatch // 4, num_train_epochs=1,
            learning_rate=1e-4, report_to=[], save_strategy="no", logging_strategy="no", use_cpu=True,
            remove_unused_columns=False, disable_tqdm=True, dataloader_pin_memory=False,
        )  # fmt: skip
        trainer = library.Trainer(model=model, args=options, train_dataset=rows, data_collator=collated)
        start = time.monotonic()
        trainer.train()
        return time.monotonic() - start


KINDS: dict[str, Callable[[str, Sequence[Sample], int, str], float]] = {"ours": ours, "trainer": trainers}


def main() -> int:
    """Print the table; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lora_training")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--minibatch", type=int, default=16)
    parser.add_argument("--instructions", type=int, default=0)
    parser.add_argument("--formats", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--alone", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        return alone(options)
    torch.set_num_threads(THREADS)
    kinds = [f"ours {kind}" for kind in (options.formats.split(",") if options.formats else [best_format()])]
    rows = {kind: measured(options, kind) for kind in [*kinds, "trainer fp32"]}
    rate = {kind: row["tokens_per_s"] for kind, row in rows.items()}
    ratio = max(rate[kind] for kind in kinds) / rate["trainer fp32"]
    flags = Path("/proc/cpuinfo").read_text()
    features = [name for name in FEATURES if f" {name}" in flags]
    if options.json:
        print(json.dumps({"rows": rows, "ratio": ratio, "processor": processor(), "features": features}))
    else:
        print(f"{processor()}: {', '.join(features)}")
        for kind, row in rows.items():
            print(f"{kind:14} {row['tokens_per_s']:7.0f} tokens/s  {row['gib']:5.2f} GiB")
        print(f"ours is {ratio:.2f} times Trainer")
    return 0 if ratio >= (3.0 if "amx_bf16" in features else 1.5) else 3


def measured(options: argparse.Namespace, kind: str) -> dict[str, float]:
    """Tokens a second, prompts counted, and GiB, of a process of its own."""
    command = [sys.executable, "-m", "benchmarks.lora_training", str(options.folder), "--alone", kind]
    for name in ("samples", "minibatch", "instructions"):
        command += [f"--{name}", str(getattr(options, name))]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row: dict[str, float] = json.loads(output.splitlines()[-1])
    return row


def alone(options: argparse.Namespace) -> int:
    """Train in this process, and print how fast."""
    warnings.simplefilter("ignore")
    kind, precision = options.alone.split()
    vocabulary = int(json.loads((options.folder / "config.json").read_bytes())["vocab_size"])
    samples = drawn_samples(options.samples, vocabulary, options.instructions)
    seconds = KINDS[kind](str(options.folder), samples, options.minibatch, precision)
    tokens = sum(len(sample.trajectory.token_ids) for sample in samples)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"tokens_per_s": tokens / seconds, "gib": peak}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
