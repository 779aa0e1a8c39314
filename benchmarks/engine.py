"""How fast a small model writes and is trained on one thread: as a function of its weights, through transformers, and
at most, by what this processor multiplies and reads.

``python -m benchmarks.engine --write`` puts the tables into docs/results/engine.md. All ways take turns, and processor
time is counted, so ratios hold on a busy machine; speeds do not.
"""

import argparse
import random
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import torch
from peft import get_peft_model

from agent0.evaluation.serving_parity import probes
from agent0.events.values import Trajectory, Turn
from agent0.infra.engine.adapter import Adapter, lora_settings
from agent0.infra.engine.inference import Engine, load
from agent0.infra.engine.requests import TurnRequest
from agent0.infra.models.transformers import BASE
from agent0.infra.training.forward import ADAPTER, transformers_logprobs
from agent0.infra.training.launch.distributed import Team
from agent0.infra.training.launch.recipe import Recipe
from agent0.infra.training.optimizers import OPTIMIZERS
from agent0.infra.training.step import Step
from agent0.ports.models import Sampling
from agent0.ports.training import Sample
from benchmarks.measured_page import write
from tests.adapters import adapter

TRAINED, TOKENS = "trained", 48
BATCHES = (1, 32, 256)
RANKS = (16, 64)
Seconds = Mapping[str, list[float]]


def taken(ways: Mapping[str, Callable[[], object]], rounds: int) -> Seconds:
    """Processor seconds of each of ``ways``, round by round, after one that does not count."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            start = time.process_time()
            way()
            if number:
                found[name].append(time.process_time() - start)
    return found


def machine() -> tuple[float, float]:
    """(floating-point operations, bytes read) a second, at best: a large product, a sum over what no cache holds."""
    square, long = torch.randn(1024, 1024), torch.randn(1 << 25)
    found = taken({"multiply": lambda: square @ square, "read": long.sum}, 7)
    return 2 * 1024**3 / min(found["multiply"]), 4 * len(long) / min(found["read"])


def sizes(model: Any) -> tuple[int, int]:
    """(weights that are multiplied with for every token, bytes of them)."""
    linear = sum(one.numel() for name, one in model.named_parameters() if one.ndim == 2 and "lora_" not in name)
    return linear, 4 * linear


def asked(at_once: int) -> list[TurnRequest]:
    """Short questions, as long as a run's."""
    rng = random.Random("asked")
    texts = [
        f"What is {rng.randrange(10**n)}+{rng.randrange(100)}?" for n in range(1, 9) for _ in range(at_once // 8 + 1)
    ]
    turns = [(Turn(role="user", content=text),) for text in rng.sample(texts, at_once)]
    return [TurnRequest(one, Sampling(1.0, 1.0, TOKENS, seed=n)) for n, one in enumerate(turns)]


def writing(rounds: int, operations: float, reads: float) -> list[str]:
    """The table of generation."""
    engines = {"function": Engine(str(BASE)), "transformers": Engine(str(BASE), through=True)}
    weights, size = sizes(engines["transformers"]._model)
    for engine in engines.values():
        engine.load_adapter(TRAINED, adapter(BASE))
        engine._chat.stops = frozenset()  # all write to the end
    rows = [
        "| model | at once | tokens of a prompt | as a function | through transformers | ratio | of what is possible |",
        "|---|---|---|---|---|---|---|",
    ]
    mixed = [TurnRequest(one, Sampling(1.0, 1.0, TOKENS, seed=n)) for n, one in enumerate(probes(BATCHES[-1]))]
    batches = [("", asked(count)) for count in BATCHES] + [(TRAINED, asked(count)) for count in BATCHES]
    for name, batch in [*batches, (TRAINED, mixed)]:
        found = taken({way: partial(one.generate, batch, name) for way, one in engines.items()}, rounds)
        prompts = [len(one.prompt) for one in engines["function"].generate(batch, name)]
        count = len(batch) * TOKENS
        least = max(2 * weights * (count + sum(prompts)) / operations, TOKENS * size / reads)
        head = f"| base{' + adapter' if name else ''} | {len(batch)} | {min(prompts)} to {max(prompts)}"
        rows.append(told(head, found, count, count / least))
    return rows


def told(head: str, found: Seconds, tokens: int, most: float) -> str:
    """A row: tokens a second both ways, their ratio, and the share of ``most``."""
    fast, slow = (tokens / median(found[way]) for way in ("function", "transformers"))
    ratio = median(b / a for a, b in zip(found["function"], found["transformers"], strict=True))
    return f"{head} | {fast:,.0f} | {slow:,.0f} | {ratio:.1f} | {fast / most:.0%} |"


def samples(count: int) -> list[Sample]:
    """Trajectories as long as those of a run of the profile tiny, a third of them the policy's own tokens."""
    rng = random.Random("samples")
    lengths = [min(111, 14 + int(rng.expovariate(1 / 14))) for _ in range(count)]
    paths = [
        (tuple(rng.randrange(600) for _ in range(n)), tuple(int(t > 2 * n // 3) for t in range(n))) for n in lengths
    ]
    return [
        Sample(Trajectory(token_ids=ids, mask=mask, logprobs=tuple(-2.0 * own for own in mask)), 1.0, 0.2)
        for ids, mask in paths
    ]


def training(rounds: int, operations: float) -> list[str]:
    """The table of one training step's gradients, and of what an optimizer adds."""
    base, tokenizer = load(str(BASE), "cpu", "")
    weights, _ = sizes(base)
    batch, team = samples(32), Team("cpu", "fp32")
    tokens = sum(len(sample.trajectory.token_ids) for sample in batch)
    rows = [
        "| LoRA rank | as a function | through transformers | ratio | of what is possible | AdamW adds | Muon adds |",
        "|---|---|---|---|---|---|---|",
    ]
    for rank in RANKS:
        model: Any = get_peft_model(base, Adapter(lora_settings(rank, 2 * rank), {}, {}).config(), ADAPTER).train()
        own = [one for one in model.parameters() if one.requires_grad]
        step = Step(model, Recipe(), team, int(tokenizer.pad_token_id))
        slow = Step(model, Recipe(), team, int(tokenizer.pad_token_id))
        slow._forward = lambda seen, heat, at=model: (transformers_logprobs(at, team.casting, seen, heat), None)
        ways: dict[str, Callable[[], object]] = {
            "function": lambda step=step: step.gradients("policy", batch),
            "transformers": lambda slow=slow: slow.gradients("policy", batch),
        }
        ways |= {name: made(own, lr=1e-6).step for name, made in OPTIMIZERS.items()}
        found = taken(ways, rounds)
        row = told(f"| {rank}", found, tokens, operations / (6 * weights))
        added = (median(found[name]) / median(found["function"]) for name in OPTIMIZERS)
        rows.append(" ".join([row, *(f"{share:.0%} |" for share in added)]))
        base = model.unload()
    return rows


def measured(rounds: int) -> str:
    """Both tables, and the machine."""
    torch.set_num_threads(1)
    operations, reads = machine()
    found = f"{operations / 1e9:.0f} GFLOP/s and {reads / 1e9:.0f} GB/s at best"
    lines = [
        f"The built-in base on one thread, torch {torch.__version__}, {found}. Tokens a second of processor",
        f"time, medians of {rounds} rounds in turn. Writing {TOKENS} tokens a request, LoRA of rank 8:",
        "",
        *writing(rounds, operations, reads),
        "",
        "Gradients of 32 trajectories (28 tokens on average, a third of them the policy's own):",
        "",
        *training(rounds, operations),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page where asked to."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--rounds", type=int, default=5)
    flags.add_argument("--write", action="store_true", help="into docs/results/engine.md")
    asked = flags.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)  # peft against the newest transformers
    found = measured(asked.rounds)
    print(found)
    if asked.write:
        write("engine.md", found)


if __name__ == "__main__":
    main()
