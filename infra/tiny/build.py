"""How the built-in model is made: a small Qwen2, taught from nothing on one core in minutes. Same seed and mix on the
same machine kind, same weights; everything that made it is in ``provenance.json`` beside them."""

import hashlib
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file
from transformers import Qwen2Config, Qwen2ForCausalLM

from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.engine.qwen2_functional import logprobs, shape_of, weights_of
from agent0.infra.models.transformers import packaged
from agent0.infra.tiny.courses import COURSES, DEFAULT_MIX, Course, Mix
from agent0.infra.tiny.examples import LADDERS, NOT_TAUGHT, Phase, TrainingExample, training_examples
from agent0.infra.tiny.tokenizer import make_tokenizer
from agent0.infra.training import course_replay
from agent0.infra.training.launch.devices import check_device
from agent0.infra.training.optimizers import BETAS, paired

Batch = tuple[Any, Any, Any]
"""Token ids, labels (-100 where nothing is taught) and attention mask, each [rows, T]."""
LossOf = Callable[[Batch], Any]
"""The mean loss of what a batch teaches, as a tensor."""
WARMUP = 40
DECAY = 0.01
SHOWN = 20
"""Examples looked at for each that is kept of a level."""
SAID = 200
"""Examples whose texts a tokenizer is made from, where it is made from such."""
THETA = "rope_theta"
POOL = 8
"""Batches are cut from this many batches' examples sorted by length, so that little is padded."""


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


def make_model(sizes: Mapping[str, float], vocabulary: int, stop: int, pad: int) -> Any:
    """A Qwen2ForCausalLM of the shape ``sizes``, weights drawn from torch's present seed."""
    shape: dict[str, object] = {
        **{name: value for name, value in sizes.items() if name != THETA},
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
        "attn_implementation": "eager",
    }
    if THETA in sizes:
        shape["rope_parameters"] = {"rope_type": "default", THETA: sizes[THETA]}
    special = {"eos_token_id": stop, "pad_token_id": pad, "bos_token_id": None}
    return Qwen2ForCausalLM(Qwen2Config(vocab_size=vocabulary, **shape, **special))


def build(
    out: Path, *, seed: int, mix: Mix = DEFAULT_MIX, progress: Progress = lambda *_: None, device: str = "cpu"
) -> ModelCard:
    """Make tokenizer and model and save them in folder ``out`` (fp16 safetensors) with a card and their provenance.

    Raises:
        DependencyError: torch sees no such ``device``.
    """
    course = COURSES[mix.course]
    check_device(device)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    start = time.monotonic()
    texts = _texts(mix, seed) if course.start else []
    taught = () if course.start else course.families
    tokenizer = make_tokenizer(seed, taught, course.markup, course.pieces, course.levels, texts)
    chat = Chat(tokenizer)
    model = make_model(mix.shaped(), len(tokenizer), chat.stop, chat.pad)
    if course.start:
        go_on_from(packaged(course.start), model, tokenizer)
    loss = _teach(model.to(device), chat, mix, seed, progress)
    return _save(out, model, tokenizer, seed, mix, loss, time.monotonic() - start)


def _texts(mix: Mix, seed: int) -> list[str]:
    """All that is said in some examples."""
    source = random.Random(f"tokenizer {seed}")
    shown = training_examples(mix.phases[0], source, COURSES[mix.course].example)
    return [turn.content for example in islice(shown, SAID) for turn in example]


def _teach(model: Any, chat: Chat, mix: Mix, seed: int, progress: Progress) -> float:
    """Phase by phase, each with optimisers of its own, so that a phase depends on nothing but the weights before it."""
    model.train()
    most = COURSES[mix.course].stretch
    loss_of = _stretched(model, most) if most > 1 else partial(_plain, model)
    total, done, loss = sum(phase.steps for phase in mix.phases), 0, 0.0
    for number, phase in enumerate(mix.phases):
        batches = _batches(phase, mix, chat, _source(seed, number))
        smooth = 0.0
        optimizers = _optimizers(model, COURSES[mix.course])
        for step, step_loss in enumerate(_steps(model, phase, optimizers, batches, loss_of), 1):
            smooth = step_loss if step == 1 else 0.98 * smooth + 0.02 * step_loss
            progress(done + step, total, smooth)
        done, loss = done + phase.steps, smooth
    return loss


def _source(seed: int, number: int) -> random.Random:
    """What the examples of phase ``number`` are drawn from."""
    return random.Random(f"lessons {seed} {number}")


def _plain(model: Any, batch: Batch) -> Any:
    """The mean loss of what is taught in ``batch``, through transformers."""
    ids, labels, attention = batch
    logits = model(input_ids=ids, attention_mask=attention, use_cache=False).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def _stretched(model: Any, most: float) -> LossOf:
    """The same with the positions of each row times a factor from 1 to ``most``, drawn from torch's present seed."""
    shape, parameters = shape_of(model), dict(model.named_parameters())
    assert shape  # noqa: S101 - it was just made so

    def loss_of(batch: Batch) -> Any:
        ids, labels, attention = batch
        taught = labels != -100
        stretch = 1 + (most - 1) * torch.rand(len(ids)).to(ids.device)
        chosen = logprobs(weights_of(shape, parameters, {}), ids, attention, taught, stretch=stretch)
        return -chosen.sum() / taught.sum()

    return loss_of


def _optimizers(model: Any, course: Course) -> list[tuple[Any, float]]:
    """Who moves the weights, each with its share of the learning rate."""
    if course.matrices == "muon":
        return [(optimizer, optimizer.param_groups[0]["lr"]) for optimizer in paired(model, 1.0, DECAY)]
    return [(torch.optim.AdamW(model.parameters(), lr=1.0, betas=BETAS, weight_decay=DECAY), 1.0)]


def _steps(
    model: Any, phase: Phase, optimizers: Sequence[tuple[Any, float]], batches: Iterator[Batch], loss_of: LossOf
) -> Iterator[float]:
    """Take a step for each of ``batches``; yields each step's loss."""
    for step, tensors in enumerate(batches):
        batch = tuple(tensor.to(model.device) for tensor in tensors)
        rate = (phase.lr + (phase.lr_end - phase.lr) * step / phase.steps) * min(1.0, (step + 1) / WARMUP)
        loss = loss_of(batch)
        model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, share in optimizers:
            optimizer.param_groups[0]["lr"] = rate * share
            optimizer.step()
        yield loss.item()


def _batches(phase: Phase, mix: Mix, chat: Chat, rng: random.Random) -> Iterator[Batch]:
    source, size = training_examples(phase, rng, COURSES[mix.course].example), mix.batch
    left = phase.steps
    while left > 0:
        pool = [_encoded(chat, turns) for turns in islice(source, size * POOL)]
        pool.sort(key=lambda tool_example: len(tool_example[0]))
        batches = [pool[at : at + size] for at in range(0, len(pool), size)]
        rng.shuffle(batches)
        for batch in batches[:left]:
            yield _tensors(batch, chat.pad)
        left -= len(batches)


def _encoded(chat: Chat, turns: TrainingExample) -> tuple[list[int], list[int]]:
    """Token ids and their loss mask; nothing is learned up to the last turn that is not taught."""
    ids, mask = chat.training_example(turns)
    shown = max((index for index, turn in enumerate(turns, 1) if turn.name == NOT_TAUGHT), default=0)
    before = len(chat.training_example(turns[:shown])[0]) if shown else 0
    return ids, [0] * before + mask[before:]


def _tensors(batch: Sequence[tuple[list[int], list[int]]], pad: int) -> Batch:
    longest = max(len(ids) for ids, _ in batch)
    ids = torch.full((len(batch), longest), pad)
    labels = torch.full((len(batch), longest), -100)
    attention = torch.zeros((len(batch), longest), dtype=torch.long)
    for row, (tokens, mask) in enumerate(batch):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, : len(tokens)] = torch.tensor([t if m else -100 for t, m in zip(tokens, mask, strict=True)])
        attention[row, : len(tokens)] = 1
    return ids, labels, attention


def _save(out: Path, model: Any, tokenizer: Any, seed: int, mix: Mix, loss: float, seconds: float) -> ModelCard:
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
    record: dict[str, object] = {"seed": seed, "mix": mix.plain(), "torch": torch.__version__}
    course = COURSES[mix.course]
    record |= {"stretch": course.stretch} if course.stretch > 1 else {}
    record |= {"start": course.start} if course.start else {}
    record |= {"kept": course_replay.write(out, _kept(mix, seed, course))} if course.kept else {}
    provenance = asdict(card) | record
    del provenance["path"]
    template = (Path(__file__).parent / f"{course.card or mix.course}_card.txt").read_text(encoding="utf-8")
    (out / "README.md").write_text(template.format(**provenance, **_card_fields(mix)), encoding="utf-8")
    (out / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")
    return card


def _card_fields(mix: Mix) -> dict[str, object]:
    """What a card says beside its provenance."""
    shape, ladder = mix.shaped(), LADDERS.get(COURSES[mix.course].families[0], "")
    return {"course": mix.course, "layers": shape["num_hidden_layers"], "width": shape["hidden_size"], "ladder": ladder}


def _kept(mix: Mix, seed: int, course: Course) -> list[TrainingExample]:
    """The first different examples that the model was shown, ``course.kept`` at most of each length of answer, which
    is a level."""
    phase, by_length = mix.phases[0], dict[int, dict[TrainingExample, None]]()
    shown = training_examples(phase, _source(seed, 0), course.example)
    for example in islice(shown, min(SHOWN * course.kept, phase.steps * mix.batch)):
        examples = by_length.setdefault(len(example[-1].content), {})
        if len(examples) < course.kept:
            examples[example] = None
    return [example for _, examples in sorted(by_length.items()) for example in examples]


def go_on_from(folder: Path, model: Any, tokenizer: Any) -> None:
    """Give ``model``, whose shape is that of the one in ``folder``, its weights. Tokens of ``tokenizer`` that it has
    none for keep what was drawn for them, scaled to the spread of its embeddings."""
    weights = {name: weight.float() for name, weight in load_file(folder / "model.safetensors").items()}
    vocabulary = tokenizer_of(str(folder)).get_vocab()
    before = weights.pop("model.embed_tokens.weight")
    model.load_state_dict(weights, strict=False)
    embeddings = model.get_input_embeddings().weight
    with torch.no_grad():
        embeddings.mul_(before.std() / embeddings.std())
        for text, token_id in tokenizer.get_vocab().items():
            if text in vocabulary:
                embeddings[token_id] = before[vocabulary[text]]
