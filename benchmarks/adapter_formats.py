"""The same LoRA training over a base in single precision, bfloat16, int8 and 4 bits (QLoRA, arXiv 2305.14314), on a
CPU: memory, time a step, loss; loss and accuracy on tasks that were held out.

    python -m benchmarks.adapter_formats FOLDER [--formats fp32,bf16,int8,4bit] [--samples 32] [--answers 40]

FOLDER has the model in safetensors. The texts are drawn from the built-in families with seed 0: a task, and the program
that computes its answer, which alone is learned, by likelihood; others are held out. All formats take the same steps in
the same order: rank 16 on every linear layer, AdamW at rate 2e-4, two threads. 4 bits are bitsandbytes' NF4 with
quantised scales; the other ones are packed as the engine packs them. Each runs in a process of its own, of which memory
is the most that it had, weights being read included. Losses are nats a token: of what is learned over the first epoch
and over the last, of what is held out before and after, in the same format. Right is a greedy answer whose program
prints what the task's own does; the sandbox runs both.
"""

import argparse
import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent0.assembly.runtime.plugins import load_plugins
from agent0.events.values import TrainingStep, Turn
from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.engine.formats.best_format import processor
from agent0.infra.models.transformers import Transformers
from agent0.infra.sandbox import open_sandbox
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.infra.training.batches import samples_of
from agent0.infra.training.loop import Training
from agent0.ports.models import GenerateRequest, Sampling
from agent0.ports.sandbox import Sandbox, SandboxCall
from agent0.ports.training import Sample, TrainingExample, TrainJob
from agent0.settings import SandboxSettings
from agent0.tasks.families import families
from agent0.turns.calls.blocks import first_block
from benchmarks.lora_training import RECIPE, THREADS

RATE = 2e-4
CONTEXT, TOKENS = 1024, 160
OPTIONS = {"4bit": {"quantization": "4bit", "precision": "bf16"}}
"""How a format is asked for, where not by a precision of its name."""


def task_texts(count: int, seed: int = 0) -> list[tuple[Turn, ...]]:
    """``count`` different tasks of the two lowest levels whose answers Python prints, with their programs."""
    load_plugins()
    rng, texts = random.Random(seed), dict[str, tuple[Turn, ...]]()
    kinds = [family for _, family in sorted(families().items()) if not family.steps]
    while len(texts) < count:
        family = rng.choice(kinds)
        params = family.sample(rng.randint(1, min(2, family.levels)), rng)
        question, (tool, arguments) = family.render(params, rng), family.call(params)
        if tool == "python":
            program = f"```python\n{arguments['code']}\n```"
            texts[question] = Turn(role="user", content=question), Turn(role="assistant", content=program)
    return [*texts.values()]


def encoded(folder: str, texts: Sequence[tuple[Turn, ...]]) -> tuple[Sample, ...]:
    """``texts`` as a training reads them."""
    samples, _ = samples_of([TrainingExample(turns) for turns in texts], Chat(tokenizer_of(folder)), CONTEXT)
    return tuple(replace(sample, source="own") for sample in samples)


async def accuracy(folder: Path, kind: str, adapter: bytes, texts: Sequence[tuple[Turn, ...]]) -> float:
    """Share of ``texts``, each a question and the right program, that a model with ``adapter`` answers right."""
    with tempfile.TemporaryDirectory() as scratch:
        artifacts = FileArtifacts(Path(scratch))
        stored = artifacts.put(adapter) if adapter else None
        options = {"quantization": "", "precision": kind} | OPTIONS.get(kind, {})
        quantization, precision = options["quantization"], options["precision"]
        model = Transformers(
            folder, artifacts, name=kind, threads=THREADS, quantization=quantization, precision=precision
        )
        requests = (
            GenerateRequest(text[:1], Sampling(temperature=0.0, max_tokens=TOKENS), adapter=stored) for text in texts
        )
        replies = await asyncio.gather(*map(model.generate, requests))
        await model.close()
    sandbox = await open_sandbox(SandboxSettings(queue=4096), workers=THREADS)
    golds = await asyncio.gather(*(printed(text[1].content, sandbox) for text in texts))
    answers = await asyncio.gather(*(printed(reply.text, sandbox) for reply in replies))
    await sandbox.close()
    return sum(gold == answer for gold, answer in zip(golds, answers, strict=True)) / len(texts)


async def printed(reply: str, sandbox: Sandbox) -> str | None:
    """What the first program in ``reply`` prints; None where there is none, or it fails."""
    block = first_block(reply, {"python": "python"})
    result = await sandbox.call(SandboxCall("python", block.body)) if block else None
    return result.stdout.strip() if result and result.rc == 0 else None


def nats(steps: Sequence[TrainingStep]) -> float:
    """Mean negative log-probability a token over ``steps``."""
    return sum((step.loss or 0.0) * step.tokens for step in steps) / sum(step.tokens for step in steps)


def trained(options: argparse.Namespace, kind: str) -> dict[str, float]:
    """Train over a base of format ``kind``, and measure."""
    folder = str(options.folder)
    texts = task_texts(options.samples + max(options.held_out, options.answers))
    learned = encoded(folder, texts[: options.samples])
    held_out = encoded(folder, texts[options.samples :][: options.held_out])
    asked = texts[options.samples :][: options.answers]
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
    epoch, after = len(steps) // options.epochs, loss(adapter)
    right = [asyncio.run(accuracy(options.folder, kind, weights, asked)) for weights in (b"", adapter)]
    return {
        **{
            "right_before": right[0],
            "right": right[1],
            "gib": peak,
            "wall_s": wall / len(steps),
            "cpu_s": work / len(steps),
        },
        **{"loss_before": nats(steps[:epoch]), "loss": nats(steps[-epoch:])},
        **{"held_out_before": before, "held_out": after},
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
    parser.add_argument("--answers", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--alone", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        warnings.simplefilter("ignore")
        print(json.dumps(trained(options, options.alone)))
        return 0
    print(f"{processor()}, {THREADS} threads, {options.samples} texts, minibatches of {options.minibatch}")
    print(
        "| base | GiB | s a step | processor s a step | loss, first and last epoch | held out before, after | right |"
    )
    print("|---|---|---|---|---|---|---|")
    for kind in options.formats.split(","):
        command = [sys.executable, "-m", "benchmarks.adapter_formats", str(options.folder), "--alone", kind]
        for name in ("samples", "held_out", "answers", "minibatch", "epochs"):
            command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
        row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
        losses = (f"{row[name + '_before']:.3f}, {row[name]:.3f}" for name in ("loss", "held_out", "right"))
        costs = f"{row['gib']:.2f} | {row['wall_s']:.1f} | {row['cpu_s']:.1f}"
        print(f"| {kind} | {costs} | {' | '.join(losses)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
