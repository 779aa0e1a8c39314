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
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.measured_page import write

GROUP = 8
LARGE = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14}
SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}


@dataclass(frozen=True)
class Work:
    """What both sides do."""

    folder: str
    device: str
    quantization: str
    rows: int
    tokens: int
    rank: int = 16
    turns: int = 2


@dataclass(frozen=True)
class Cost:
    """Of the last turn: seconds and GiB for each part; ``tokens`` of completions."""

    tokens: int
    rollout_s: float
    rollout_gib: float
    train_s: float
    train_gib: float


def question(number: int) -> str:
    """A prompt of about a hundred tokens, another for each group."""
    return f"Task {number}. " + "Add the numbers, then say what you did. " * 2


class Meter:
    """Seconds and peak memory of a part."""

    def __init__(self, device: str) -> None:
        import torch

        self._cuda, self._start = torch.cuda if device != "cpu" else None, 0.0

    def begin(self) -> None:
        """From here on."""
        if self._cuda:
            self._cuda.synchronize()
            self._cuda.reset_peak_memory_stats()
        self._start = time.perf_counter()

    def end(self) -> tuple[float, float]:
        """(seconds, GiB that tensors held at most) since then."""
        if self._cuda:
            self._cuda.synchronize()
        seconds = time.perf_counter() - self._start
        return seconds, self._cuda.max_memory_allocated() / 2**30 if self._cuda else 0.0

    def time(self, work: Callable[[], Any]) -> tuple[Any, float, float]:
        """(what it gave, seconds, GiB)."""
        self.begin()
        found = work()
        return found, *self.end()

    def clear(self) -> None:
        """Give back what nobody holds."""
        if self._cuda:
            self._cuda.empty_cache()


def measure_trl(work: Work) -> Cost:
    """Rollouts are what happens until completions are scored, the training step is the rest of the step."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PreTrainedTokenizerFast

    from agent0.infra.engine.adapter import lora_settings

    asked = [{"prompt": [{"role": "user", "content": question(number)}]} for number in range(work.rows // GROUP)]
    with tempfile.TemporaryDirectory() as folder:
        trainer = _timed()(
            model=work.folder,
            reward_funcs=_reward,
            args=_arguments(work, folder, GROUP),
            train_dataset=Dataset.from_list(asked * work.turns),
            processing_class=PreTrainedTokenizerFast.from_pretrained(work.folder, padding_side="left"),
            peft_config=LoraConfig(task_type="CAUSAL_LM", **lora_settings(work.rank, 2 * work.rank)),
            quantization_config=_quantized(work),
        )
        trainer.add_callback(_clock(trainer))
        trainer.train()
    found: Cost = trainer.cost
    return found


def _arguments(work: Work, folder: str, group: int) -> Any:
    from trl import GRPOConfig

    gpu = work.device != "cpu"
    return GRPOConfig(
        output_dir=folder, per_device_train_batch_size=work.rows, num_generations=group, max_steps=work.turns,
        max_completion_length=work.tokens, temperature=1.0, beta=0.0, learning_rate=1e-5, bf16=gpu, use_cpu=not gpu,
        gradient_checkpointing=True, report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True,
        model_init_kwargs={"dtype": "bfloat16" if gpu else "float32"}, optim="adamw_torch",
    )  # fmt: skip


def _quantized(work: Work) -> Any:
    if not work.quantization:
        return None
    import torch
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


def _reward(completions: list[Any], **_: Any) -> list[float]:
    """Anything that differs inside a group."""
    return [float(place % 2) for place in range(len(completions))]


def _timed() -> Any:
    """GRPOTrainer that times its own rollouts."""
    from trl import GRPOTrainer

    class Timed(GRPOTrainer):  # type: ignore[misc]
        cost = Cost(0, 0.0, 0.0, 0.0, 0.0)

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            self.meter = Meter("cpu" if self.args.use_cpu else "cuda")
            made = super()._generate_and_score_completions
            found, self.rollout_s, self.rollout_gib = self.meter.time(lambda: made(inputs))
            self.tokens = int(found["completion_mask"].sum())
            self.meter.begin()
            return found

    return Timed


def _clock(trainer: Any) -> Any:
    """Ends each step's training part."""
    from transformers import TrainerCallback

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            seconds, gib = trainer.meter.end()
            trainer.cost = Cost(trainer.tokens, trainer.rollout_s, trainer.rollout_gib, seconds, gib)

    return Clock()


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
