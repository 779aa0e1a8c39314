"""The same LoRA training over a base in single precision, bfloat16, int8 and 4 bits (QLoRA, arXiv 2305.14314), on a
CPU: memory, time a step, loss, and loss on texts that were held out.

    python -m benchmarks.adapter_formats FOLDER [--formats fp32,bf16,int8,4bit] [--samples 32] [--epochs 2]

FOLDER has the model in safetensors. The texts are drawn from the built-in families with seed 0: a task, and the program
that computes its answer, which alone is learned, by likelihood; others are held out. All formats take the same steps in
the same order: rank 16 on every linear layer, AdamW at rate 2e-4, two threads. 4 bits are bitsandbytes' NF4 with
quantised scales; the other ones are packed as the engine packs them. Each runs in a process of its own, of which memory
is the most that it had, weights being read included. Losses are nats a token: of what is learned over the first epoch
and over the last, of what is held out before and after, in the same format.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent0.assembly.runtime.plugins import load_plugins
from agent0.events.values import TrainingStep, Turn
from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.engine.formats.best_format import processor
from agent0.infra.training.batches import samples_of
from agent0.infra.training.loop import Training
from agent0.ports.training import Sample, TrainingExample, TrainJob
from agent0.tasks.families import families
from benchmarks.lora_training import RECIPE, THREADS

RATE = 2e-4
CONTEXT = 1024
OPTIONS = {"4bit": {"quantization": "4bit", "precision": "bf16"}}
"""How a format is asked for, where not by a precision of its name."""


def task_samples(folder: str, count: int, seed: int = 0) -> tuple[Sample, ...]:
    """``count`` different tasks of the two lowest levels whose answers Python prints, with their programs."""
    load_plugins()
    rng, examples = random.Random(seed), dict[str, TrainingExample]()
    kinds = [family for _, family in sorted(families().items()) if not family.steps]
    while len(examples) < count:
        family = rng.choice(kinds)
        params = family.sample(rng.randint(1, min(2, family.levels)), rng)
        question, (tool, arguments) = family.render(params, rng), family.call(params)
        if tool == "python":
            program = f"```python\n{arguments['code']}\n```"
            turns = Turn(role="user", content=question), Turn(role="assistant", content=program)
            examples[question] = TrainingExample(turns)
    samples, _ = samples_of([*examples.values()], Chat(tokenizer_of(folder)), CONTEXT)
    return tuple(replace(sample, source="own") for sample in samples)


def nats(steps: Sequence[TrainingStep]) -> float:
    """Mean negative log-probability a token over ``steps``."""
    return sum((step.loss or 0.0) * step.tokens for step in steps) / sum(step.tokens for step in steps)


def trained(options: argparse.Namespace, kind: str) -> dict[str, float]:
    """Train over a base of format ``kind``, and measure."""
    folder = str(options.folder)
    samples = task_samples(folder, options.samples + options.held_out)
    learned, held_out = samples[: options.samples], samples[options.samples :]
    training = Training(folder, THREADS, **OPTIONS.get(kind, {"precision": kind}))
    recipe = {**RECIPE, "minibatch": options.minibatch, "epochs": options.epochs, "lr": RATE}

    def loss(adapter: bytes) -> float:
        """A training at rate 0, which moves nothing, tells the loss of each step."""
        return nats(training.train_with_steps(_job(held_out, {**recipe, "epochs": 1, "lr": 0.0}), adapter)[2])

    before = loss(b"")
    wall, work = time.monotonic(), time.process_time()
    adapter, _, steps, _ = training.train_with_steps(_job(learned, recipe), b"")
    wall, work = time.monotonic() - wall, time.process_time() - work
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    epoch = len(steps) // options.epochs
    return {
        **{"gib": peak, "wall_s": wall / len(steps), "cpu_s": work / len(steps)},
        **{"loss_before": nats(steps[:epoch]), "loss": nats(steps[-epoch:])},
        **{"held_out_before": before, "held_out": loss(adapter)},
    }


def _job(samples: Sequence[Sample], recipe: Mapping[str, object]) -> TrainJob:
    return TrainJob(tuple(samples), (), None, 0, recipe)


def main() -> int:
    """Print the table; see the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adapter_formats")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--formats", default="fp32,bf16,int8,4bit")
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--minibatch", type=int, default=8)
    parser.add_argument("--held-out", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--alone", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        warnings.simplefilter("ignore")
        print(json.dumps(trained(options, options.alone)))
        return 0
    print(f"{processor()}, {THREADS} threads, {options.samples} texts, minibatches of {options.minibatch}")
    print("| base | GiB | s a step | processor s a step | loss, first and last epoch | held out before, after |")
    print("|---|---|---|---|---|---|")
    for kind in options.formats.split(","):
        command = [sys.executable, "-m", "benchmarks.adapter_formats", str(options.folder), "--alone", kind]
        for name in ("samples", "held_out", "minibatch", "epochs"):
            command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
        row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
        losses = (f"{row[name + '_before']:.3f}, {row[name]:.3f}" for name in ("loss", "held_out"))
        costs = f"{row['gib']:.2f} | {row['wall_s']:.1f} | {row['cpu_s']:.1f}"
        print(f"| {kind} | {costs} | {' | '.join(losses)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
