"""What generating and training need in memory: the formula beside what was measured, and the formula for each profile.

Measured is the most that tensors held at once, by the records of torch's allocator from when the model was loaded, and
its weights: what a GPU's allocator counts. On a CPU, with Qwen2 models of random weights, each in a process forked for
it. What loading takes is left out: transformers loads in threads whose records are not complete. On a GPU
``make bench-gpu`` measures.

    python -m benchmarks.memory                                     # print the tables (minutes)
    python -m benchmarks.memory --write docs/results/memory.md      # and write them to the page
"""

import argparse
import importlib
import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent0.assembly.validate.room import PROMPT, TOOL, generating, training
from agent0.config.loading import load
from agent0.infra.engine.memory_need import MemoryNeed, Shape, need, need_to_generate, shape_of

MIB = 2.0**20
SURROUNDINGS = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
BEFORE = (
    *("bitsandbytes", "peft", "transformers.models.qwen2.modeling_qwen2", "agent0.infra.engine.inference"),
    "agent0.infra.training.loop",
)
"""Imported before a fork, so that they count as nobody's."""
QWEN = {
    "Qwen2.5-1.5B-Instruct": (1536, 8960, 28, 256, 151_936, True),
    "Qwen2.5-3B-Instruct": (2048, 11_008, 36, 256, 151_936, True),
    "Qwen2.5-7B-Instruct": (3584, 18_944, 28, 512, 152_064, False),
}
"""From each config.json: hidden, intermediate, layers, numbers of a token's keys in a layer, vocabulary, and whether
the head is the embedding."""
CARDS = {"3070ti": 8.0, "24gb": 24.0, "80gb": 80.0}
PAGE = """# Memory

Does a profile fit its card, and is the formula right?

- It is within a tenth at every size here, of training and of generating, and by it all profiles fit their cards.
  Models of the profiles' sizes are not measured on a card; a small model held more than foreseen there
  ([GPU](gpu.md)).
- The formula (`infra/engine/memory_need.py`), by which a run is weighed before it starts and a training before it loads
  a model, is compared with the most that tensors held at once, on a CPU. Sizes marked * were measured after it was
  fixed.
- Models computed without transformers, as the built-in one, hold their weights twice and read prompts 2,048 tokens at a
  time.

Sizes are models of 3 to 16 layers, 128 to 768 wide, with vocabularies of 700 to 32,768; a forward pass has up to 256
rows and 768 tokens. The estimate adds a tenth to the formula for what a GPU's allocator loses between blocks.

| part | weights | sizes | measured, MiB | formula is off by |
|---|---|---|---|---|
{measured}

## Profiles by the formula

GiB. `total` has the tenth in it. A conversation is {prompt:,} tokens of prompt, every turn at its limit, {tool} tokens
of tool output between two turns; generating reads all of it for `models.max_batch` conversations at once. Generating
and training are never in memory together. `24gb` holds the weights of both roles while it generates;
`80gb` has one base for both.

| profile | part | weights | adapter, optimizer | activations, logits | total | card | on the card |
|---|---|---|---|---|---|---|---|
{profiles}

`python -m benchmarks.memory --write docs/results/memory.md` writes this page (minutes, no GPU).
"""


@dataclass(frozen=True)
class Work:
    """One measurement: ``part`` is generate or train; ``tokens`` are those of a whole trajectory."""

    part: str
    hidden: int
    intermediate: int
    layers: int
    vocabulary: int
    rows: int
    tokens: int
    precision: str = "fp32"
    quantization: str = ""
    checkpointing: str = "off"
    rank: int = 16
    through: bool = True
    """Through transformers; else as small models are computed."""
    held_out: bool = False
    """Measured after the formula was fixed."""

    @property
    def prompt(self) -> int:
        """Tokens before the first that is sampled."""
        return self.tokens - self.new

    @property
    def new(self) -> int:
        """Tokens that are sampled."""
        return self.tokens // 8


WIDE = Work("train", 512, 1408, 8, 32_768, 2, 384)
DEEP = Work("train", 512, 1024, 12, 16_384, 1, 512)
NARROW = Work("train", 384, 1024, 16, 16_384, 1, 640)
SHALLOW = Work("train", 768, 2048, 6, 8192, 2, 320)
LOW = Work("train", 640, 1792, 7, 12_288, 3, 256)
OTHER = Work("train", 448, 2048, 6, 10_240, 2, 352, held_out=True)
SMALL = Work("generate", 128, 384, 3, 700, 64, 160, through=False)
"""The built-in model's sizes."""
WORKS = (
    DEEP,
    NARROW,
    WIDE,
    replace(WIDE, checkpointing="on"),
    replace(WIDE, quantization="4bit"),
    replace(WIDE, precision="bf16"),
    replace(WIDE, precision="bf16", quantization="4bit", checkpointing="on"),
    replace(SHALLOW, checkpointing="on"),
    replace(SHALLOW, precision="bf16", checkpointing="on"),
    LOW,
    replace(LOW, checkpointing="on"),
    replace(LOW, precision="bf16", quantization="4bit"),
    replace(LOW, precision="bf16", quantization="4bit", checkpointing="on"),
    OTHER,
    replace(OTHER, checkpointing="on"),
    replace(OTHER, precision="bf16", checkpointing="on"),
    replace(OTHER, precision="bf16", quantization="4bit", checkpointing="on"),
    replace(NARROW, through=False),
    replace(OTHER, through=False),
    replace(OTHER, through=False, checkpointing="on"),
    replace(SMALL, part="train", rows=32),
    replace(WIDE, part="generate", rows=8),
    replace(WIDE, part="generate", rows=8, quantization="4bit"),
    replace(WIDE, part="generate", rows=8, tokens=768),
    replace(NARROW, part="generate", rows=4),
    replace(NARROW, part="generate", rows=4, through=False),
    replace(OTHER, part="generate", rows=16, through=False),
    SMALL,
    replace(SMALL, rows=256),
    replace(SMALL, rows=16, tokens=640),
)


def build(folder: Path, work: Work) -> None:
    """Save a model of these sizes with random weights."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from agent0.infra.tiny.tokenizer import make_tokenizer

    tokenizer = make_tokenizer(0)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=work.vocabulary, hidden_size=work.hidden, intermediate_size=work.intermediate,
        num_hidden_layers=work.layers, num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=4096,
        tie_word_embeddings=True, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )  # fmt: skip
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def forked(work: Callable[[], int]) -> int:
    """What ``work`` gives in a forked process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            os.write(writer, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        found = said.read()
    os.waitpid(child, 0)
    if not found:
        raise SystemExit("A measurement failed.")
    return int(found)


def measure(work: Work, folder: Path) -> int:
    """Bytes that ``work`` needs at most."""
    return (_train if work.part == "train" else _generate)(work, str(folder))


def _train(work: Work, folder: str) -> int:
    from torch.profiler import ProfilerActivity, profile

    from agent0.events.values import Trajectory
    from agent0.infra.engine import qwen2_functional
    from agent0.infra.engine.inference import load
    from agent0.infra.training.loop import Training
    from agent0.ports.training import Sample, TrainJob

    own = work.tokens - work.prompt
    path = Trajectory(
        token_ids=tuple(5 + n % 400 for n in range(work.tokens)),
        mask=(0,) * work.prompt + (1,) * own,
        logprobs=(0.0,) * work.prompt + (-1.0,) * own,
    )
    settings = {"rank": work.rank, "alpha": 32, "minibatch": work.rows, "micro_batch": work.rows, "lr": 1e-5}
    settings |= {"replay_steps": 0, "objective": "grpo", "gradient_checkpointing": work.checkpointing, "epochs": 2}
    job = TrainJob(tuple(Sample(path, (-1.0) ** n) for n in range(work.rows)), (), None, 0, settings)
    if work.through:
        qwen2_functional.LARGEST = 0
    trainer = Training(folder, 1, "cpu", work.quantization, work.precision)
    model, _ = trainer._loaded = load(folder, "cpu", work.quantization, work.precision)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        trainer.train(job, b"")
    return most_alive(seen) + weights_of(model)


def _generate(work: Work, folder: str) -> int:
    from torch.profiler import ProfilerActivity, profile

    from agent0.events.values import Turn
    from agent0.infra.engine.inference import Engine
    from agent0.infra.engine.requests import TurnRequest
    from agent0.ports.models import Sampling

    engine = Engine(folder, 1, "cpu", work.quantization, work.precision, work.through)
    asked = [
        TurnRequest((Turn(role="user", content=f"{n:04}" + "~" * work.prompt),), Sampling(max_tokens=work.new, seed=n))
        for n in range(work.rows)
    ]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        found = engine.generate(asked)
    assert all(abs(len(one.prompt) - work.prompt) < 0.1 * work.prompt for one in found)
    return most_alive(seen) + weights_of(engine._model)


def most_alive(seen: Any) -> int:
    """The most bytes that were allocated and not yet freed, of those allocated under the profiler ``seen``."""
    changes = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    changes.sort(key=lambda one: one.start_ns())
    return max(itertools.accumulate(change.nbytes() for change in changes), default=0)


def weights_of(model: Any) -> int:
    """Bytes of the weights of ``model``, with the scales of those in 4 bits."""
    states = [parameter.quant_state for parameter in model.parameters() if hasattr(parameter, "quant_state")]
    scales = sum(state.absmax.nbytes + (state.state2.absmax.nbytes if state.nested else 0) for state in states)
    return sum(parameter.nbytes for parameter in model.parameters()) + scales


def estimate(work: Work, shape: Shape) -> MemoryNeed:
    """What the formula says of ``work``."""
    rows, precision, quantized = work.rows, work.precision, bool(work.quantization)
    if work.part == "generate":
        return need_to_generate(
            shape, rows=rows, prompt=work.prompt, tokens=work.new, precision=precision, quantized=quantized,
            function=not work.through,
        )  # fmt: skip
    return need(
        shape, rank=work.rank, rows=rows, tokens=work.tokens, learned=work.new, precision=precision,
        quantized=quantized, checkpointing=work.checkpointing == "on", function=not work.through,
    )  # fmt: skip


def compared(work: Work) -> tuple[int, MemoryNeed]:
    """(bytes measured, what the formula says)."""
    with tempfile.TemporaryDirectory() as folder:
        forked(lambda: build(Path(folder), work) or 0)
        return forked(partial(measure, work, Path(folder))), estimate(work, shape_of(Path(folder)))


Comparison = tuple[Work, int, MemoryNeed]
"""What was measured (bytes), and what the formula says."""


def kind_of(work: Work) -> tuple[str, str]:
    """The part and the kind of weights, as the page names them."""
    kind = f"{work.quantization} {work.precision}".strip() + ", checkpointing" * (work.checkpointing == "on")
    return work.part + " *" * work.held_out, kind + ("" if work.through else ", without transformers")


def off_by(measured: int, formula: MemoryNeed) -> float:
    """By what share the formula is above what was measured."""
    return float(sum(vars(formula).values()) / measured - 1)


def rows(comparisons: Sequence[Comparison]) -> list[str]:
    """Lines of the table: a line a part and kind of weights, over their sizes."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault(kind_of(comparison[0]), []).append(comparison)
    return [
        f"| {part} | {kind} | {len(group)} | {span([b / MIB for _, b, _ in group], ',.0f')} | "
        f"{span([off_by(b, formula) for _, b, formula in group], '+.0%')} |"
        for (part, kind), group in groups.items()
    ]


def span(values: Sequence[float], form: str) -> str:
    """The least and the largest of ``values``; one where both read alike."""
    return " to ".join(dict.fromkeys(format(value, form) for value in (min(values), max(values))))


def qwen(name: str) -> Shape:
    """The sizes of a published Qwen2.5 model."""
    hidden, intermediate, layers, cached, vocabulary, tied = QWEN[name]
    pairs = [(hidden, hidden), (hidden, cached), (hidden, cached), (hidden, hidden), *[(hidden, intermediate)] * 3]
    linear = layers * sum(a * b for a, b in pairs)
    rest = hidden * vocabulary * (1 if tied else 2) + layers * (3 * hidden + 2 * cached) + hidden
    return Shape(
        weights=linear + rest, linear=linear, ways=layers * sum(map(sum, pairs)), layers=layers, hidden=hidden,
        intermediate=intermediate, cached=cached, vocabulary=vocabulary,
    )  # fmt: skip


def profile_rows(name: str, card: float) -> list[str]:
    """Lines on the profile ``name``, for a card of ``card`` GiB: both models and the larger rollout, then trainings."""
    settings = load(name, {}, {})
    run, rows = settings.run, []
    roles = {"teacher": (run.teacher, run.training.teacher), "student": (run.student, run.training.student)}
    for role, (actor, recipe) in roles.items():
        shape = qwen(actor.model)
        writing, trained = generating(shape, actor, settings.models.max_batch), training(shape, actor, recipe)
        for part, found in ((f"{role} generates", writing), (f"{role} trains", trained)):
            parts = (found.weights, found.adapter + found.optimizer, found.activations + found.logits, found.total)
            cells = " | ".join(f"{value / 2**30:.1f}" for value in parts)
            rows.append(f"| `{name}` | {part}, {actor.model} | {cells} | {card:g} | not measured |")
    return rows


def page(measured: Sequence[str]) -> str:
    """The whole page."""
    fits = [line for name, card in CARDS.items() for line in profile_rows(name, card)]
    return PAGE.format(measured="\n".join(measured), profiles="\n".join(fits), prompt=PROMPT, tool=TOOL)


def main() -> None:
    """Measure, print, and with --write change the page."""
    if any(os.environ.get(name) != value for name, value in SURROUNDINGS.items()):
        call = [sys.executable, "-W", "ignore", "-m", "benchmarks.memory", *sys.argv[1:]]
        os.execve(sys.executable, call, {**os.environ, **SURROUNDINGS})
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", type=Path, help="the page to write the tables to")
    given = parser.parse_args()
    for module in BEFORE:
        importlib.import_module(module)
    comparisons: list[Comparison] = []
    for work in WORKS:
        comparisons.append((work, *compared(work)))
        print(work, f"{off_by(*comparisons[-1][1:]):+.0%}", flush=True)
    if given.write:
        given.write.write_text(page(rows(comparisons)), encoding="utf-8")


if __name__ == "__main__":
    main()
