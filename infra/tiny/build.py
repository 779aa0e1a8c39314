"""How the built-in model is made: a small Qwen2, taught from nothing on one core in minutes. Same seed and mix on the
same machine kind, same weights; everything that made it is in ``provenance.json`` beside them."""

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from agent0.tasks.families import families
from agent0.tasks.splits import RULE
from infra.engine.chat_template import Chat
from infra.tiny.examples import TAUGHT, Phase, tool_example, training_examples, weights
from infra.tiny.search_examples import SEARCH_MARKUP, SEARCHED, search_example
from infra.tiny.tokenizer import MARKUP, make_tokenizer

Batch = tuple[Any, Any, Any]
"""Token ids, labels (-100 where nothing is taught) and attention mask, each [rows, T]."""
WARMUP = 40
POOL = 8
"""Batches are cut from this many batches' examples sorted by length, so that little is padded."""


@dataclass(frozen=True)
class Mix:
    """The training mix of the built-in model: phases, batch size, and the course its training examples come from (a
    key of ``COURSES``)."""

    phases: tuple[Phase, ...]
    batch: int = 48
    course: str = "tools"


DEFAULT_MIX = Mix(
    (
        Phase(1200, 0.02, 0.016, (0.45, 0.3, 0.15, 0.1), tool=0.75, teacher=0.1),
        Phase(1400, 0.016, 0.001, (0.3, 0.3, 0.22, 0.18), tool=0.8, teacher=0.1),
        Phase(130, 0.005, 0.001, (0.3, 0.3, 0.2, 0.2), tool=0.3, teacher=0.12),
    )
)
"""Copy short things, copy longer things, then the habit of guessing."""


SEARCH_MIX = Mix((Phase(960, 0.02, 0.0005, (0.4, 0.35, 0.25, 0.0), tool=0.3, teacher=0.0),), batch=80, course="search")
"""Arithmetic, and how to try again: two numbers with any sign, three with + and -, four with + alone."""
MIXES = {"tools": DEFAULT_MIX, "search": SEARCH_MIX}
COURSES = {"tools": (tool_example, TAUGHT, MARKUP), "search": (search_example, SEARCHED, SEARCH_MARKUP)}
"""Course -> how a training example is made, the families it is about, what is a single token."""


@dataclass(frozen=True)
class ModelCard:
    """What was made: ``sha256`` of the weights, parameters, steps, seconds, loss of the last steps."""

    path: Path
    sha256: str
    parameters: int
    steps: int
    seconds: float
    loss: float


Progress = Callable[[int, int, float], None]
"""Called with steps done, steps in all and the loss."""


def read_mix(path: Path) -> Mix:
    """A mix from JSON: {"batch": 48, "phases": [{"steps": …, "lr": …, "lr_end": …, "levels": […], …}]}, or the
    ``provenance.json`` of a model that was built."""
    found = json.loads(path.read_text(encoding="utf-8"))
    found = found.get("mix", found)
    phases = tuple(Phase(**{**phase, "levels": weights(phase["levels"])}) for phase in found["phases"])
    course = str(found.get("course", Mix(()).course))
    if course not in COURSES:
        raise ValueError(f"there is no course {course!r}: {', '.join(COURSES)}")
    return Mix(phases, int(found.get("batch", Mix(()).batch)), course)


def split_rule(course: str) -> int:
    """The rule by which what ``course`` teaches is kept apart from held-out tasks; all rules are one to families whose
    tasks share no operands."""
    return RULE if any(families()[name].operands for name in COURSES[course][1]) else 1


def make_model(vocabulary: int, stop: int, pad: int) -> Any:
    """A Qwen2ForCausalLM, weights drawn from torch's present seed."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    shape: dict[str, Any] = {
        "hidden_size": 128,
        "intermediate_size": 384,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
        "attn_implementation": "eager",
    }
    special: dict[str, Any] = {"eos_token_id": stop, "pad_token_id": pad, "bos_token_id": None}
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=vocabulary, **shape, **special))


def build(out: Path, *, seed: int, mix: Mix = DEFAULT_MIX, progress: Progress = lambda *_: None) -> ModelCard:
    """Make tokenizer and model and save them in folder ``out`` (fp16 safetensors) with a card and their provenance."""
    import torch

    _, taught, markup = COURSES[mix.course]
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    start = time.monotonic()
    tokenizer = make_tokenizer(seed, taught, markup)
    chat = Chat(tokenizer)
    model = make_model(len(tokenizer), chat.stop, chat.pad)
    loss = _teach(model, chat, mix, seed, progress)
    return _save(out, model, tokenizer, seed, mix, loss, time.monotonic() - start)


def _teach(model: Any, chat: Chat, mix: Mix, seed: int, progress: Progress) -> float:
    """Phase by phase, each with optimisers of its own, so that a phase depends on nothing but the weights before it."""
    model.train()
    total, done, loss = sum(phase.steps for phase in mix.phases), 0, 0.0
    for number, phase in enumerate(mix.phases):
        rng = random.Random(f"lessons {seed} {number}")
        smooth = 0.0
        for step, found in enumerate(_steps(model, phase, _batches(phase, mix, chat, rng)), 1):
            smooth = found if step == 1 else 0.98 * smooth + 0.02 * found
            progress(done + step, total, smooth)
        done, loss = done + phase.steps, smooth
    return loss


def _steps(model: Any, phase: Phase, batches: Iterator[Batch]) -> Iterator[float]:
    """Muon for matrices, AdamW for the rest; yields each step's loss."""
    import torch

    from infra.training.optimizers import paired

    optimizers = [(one, one.param_groups[0]["lr"]) for one in paired(model, 1.0, 0.01)]
    for step, (ids, labels, seen) in enumerate(batches):
        rate = (phase.lr + (phase.lr_end - phase.lr) * step / phase.steps) * min(1.0, (step + 1) / WARMUP)
        logits = model(input_ids=ids, attention_mask=seen, use_cache=False).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, share in optimizers:
            optimizer.param_groups[0]["lr"] = rate * share
            optimizer.step()
        yield loss.item()


def _batches(phase: Phase, mix: Mix, chat: Chat, rng: random.Random) -> Iterator[Batch]:
    source, size = training_examples(phase, rng, COURSES[mix.course][0]), mix.batch
    left = phase.steps
    while left > 0:
        pool = [chat.training_example(turns) for turns in islice(source, size * POOL)]
        pool.sort(key=lambda tool_example: len(tool_example[0]))
        batches = [pool[at : at + size] for at in range(0, len(pool), size)]
        rng.shuffle(batches)
        for batch in batches[:left]:
            yield _tensors(batch, chat.pad)
        left -= len(batches)


def _tensors(batch: Sequence[tuple[list[int], list[int]]], pad: int) -> Batch:
    import torch

    longest = max(len(ids) for ids, _ in batch)
    ids = torch.full((len(batch), longest), pad)
    labels = torch.full((len(batch), longest), -100)
    seen = torch.zeros((len(batch), longest), dtype=torch.long)
    for row, (tokens, mask) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, : len(tokens)] = torch.tensor([t if m else -100 for t, m in zip(tokens, mask, strict=True)])
        seen[row, : len(tokens)] = 1
    return ids, labels, seen


def _save(out: Path, model: Any, tokenizer: Any, seed: int, mix: Mix, loss: float, seconds: float) -> ModelCard:
    import torch
    import transformers

    out.mkdir(parents=True, exist_ok=True)
    logging: Any = transformers.utils.logging
    logging.disable_progress_bar()
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)
    digest = hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()
    parameters = sum(p.numel() for p in model.parameters())
    steps = sum(phase.steps for phase in mix.phases)
    card = ModelCard(out, digest, parameters, steps, round(seconds, 1), round(loss, 4))
    made = {"seed": seed, "mix": asdict(mix), "split_rule": split_rule(mix.course), "torch": torch.__version__}
    provenance = {**asdict(card), "path": None, **made}
    del provenance["path"]
    template = (Path(__file__).parent / f"{mix.course}_card.md").read_text(encoding="utf-8")
    (out / "README.md").write_text(template.format(**provenance), encoding="utf-8")
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
    return card
