"""Part of the rim: how much memory and disk a run of some settings needs, from the files of its models alone."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from agent0.assembly.routing.billing import actors_of
from agent0.assembly.runtime.model_folders import served_here
from agent0.assembly.runtime.providers import provider_of
from agent0.infra.engine.formats import packed_need
from agent0.infra.engine.memory_need import (
    SPARE,
    MemoryNeed,
    Shape,
    as_function,
    is_packed,
    need,
    need_to_generate,
    precision_of,
    shape_of,
    trained_precision,
)
from agent0.infra.weights.gguf_header import is_gguf
from agent0.settings import ActorConfig, RunConfig, Settings, StudentConfig
from agent0.settings.training import RecipeConfig

PROMPT, COMPACT, TOOL = 1_200, 300, 256
"""Tokens of the system turn with nine tools, examples and question; of one of style ``compact``; of what a tool says,
on the average."""
READ_AT_ONCE = 256
"""Tokens of which llama.cpp has logits while it reads a prompt; measured."""
BASE_DISK = 256 << 20
"""Bytes that a run needs beside what its settings say: the log's server, tables, reports, what is written anew."""
ATTEMPT, TOKEN = 8 << 10, 32
"""Bytes on disk, in the log and in its tables: of an attempt or item, and of each of its tokens with what it says."""


@dataclass(frozen=True)
class LocalModel:
    """A model whose weights are loaded on this machine. ``recipe``: where the role is trained; ``generates``: whether
    it is asked here, too, and not at a server."""

    role: str
    actor: ActorConfig
    folder: Path
    generates: bool
    recipe: RecipeConfig | None

    @property
    def base(self) -> tuple[Path, str]:
        """What two roles share one copy of, on one device."""
        return self.folder, self.actor.quantization

    @property
    def stored(self) -> int:
        """Bytes of its files of weights."""
        return sum(file.stat().st_size for file in self.folder.glob("*.safetensors"))

    @cached_property
    def shape(self) -> Shape | None:
        """Its sizes; None where its files do not hold them."""
        try:
            return shape_of(self.folder)
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
            return None

    def to_generate(self, rows: int, kept: int = packed_need.BLOCKS) -> MemoryNeed:
        """Of ``rows`` longest conversations at once, of a server of ours of as many as it has slots, with ``kept``
        bytes of earlier ones; of unknown sizes the least that their weights need."""
        if self.shape is None:
            return MemoryNeed(self.stored / 4 if self.actor.quantization else self.stored, 0.0, 0.0, 0.0, 0.0)
        if self.actor.provider == "llamacpp":
            return serving(self.shape, self.actor)
        return generating(self.shape, self.actor, rows, kept)

    def to_train(self) -> float:
        """Bytes of a training step on the longest conversations; 0 where it is not trained or its sizes are unknown."""
        return training(self.shape, self.actor, self.recipe).total if self.shape and self.recipe else 0.0


def local_models(settings: Settings) -> list[LocalModel]:
    """Those that a run of ``settings`` loads here to generate or to train."""
    return [model for model in _models(settings) if model.generates or model.recipe]


def _models(settings: Settings) -> Iterator[LocalModel]:
    for role, actor in actors_of(settings).items():
        provider = provider_of(actor)
        folder = provider.folder(actor) if provider.folder else Path()
        if folder != Path():
            actor = _on_longest(actor, settings.run)
            yield LocalModel(role, actor, folder, provider.probe is None, _recipe(settings.run, role, actor))


def _recipe(run: RunConfig, role: str, actor: ActorConfig) -> RecipeConfig | None:
    """How ``role`` is trained; None where it is not."""
    provider = provider_of(actor)
    return None if provider.train is None or provider.untrainable(actor) else run.training.learning(role)


def _on_longest(actor: ActorConfig, run: RunConfig) -> ActorConfig:
    """``actor`` with the turns that a task of ``run`` may take: more where long ones are asked for, or a folder of
    them."""
    folder = bool(run.questions.file) and Path(run.questions.file).is_dir()
    if not isinstance(actor, StudentConfig) or not (run.curriculum.long or folder):
        return actor
    return actor.model_copy(update={"max_turns": actor.max_turns * actor.long_factor})


def longest(actor: ActorConfig, context: int = 0) -> tuple[int, int]:
    """(tokens of the longest conversation, of them the model's own): prompt, then turns with what tools say; at most
    ``context``, where that is known."""
    turns = actor.max_turns if isinstance(actor, StudentConfig) else 1
    written, prompt = turns * actor.max_tokens, COMPACT if actor.prompts == "compact" else PROMPT
    tokens = min(prompt + written + (turns - 1) * TOOL, context or sys.maxsize)
    return tokens, min(written, tokens)


def generating(shape: Shape, actor: ActorConfig, rows: int, kept: int = packed_need.BLOCKS) -> MemoryNeed:
    """Estimate the memory of ``rows`` longest conversations of ``actor`` at once, each at its last turn, with ``kept``
    bytes of earlier ones."""
    precision, quantized = precision_of(actor.device, actor.precision), bool(actor.quantization)
    prompt = max(1, longest(actor, shape.context)[0] - actor.max_tokens)
    if is_packed(shape, actor.device, quantized, actor.precision):
        return packed_need.need_to_generate(
            shape, rows=rows, prompt=prompt, tokens=actor.max_tokens, precision=_packing(actor), kept=kept
        )
    return need_to_generate(
        shape, rows=rows, prompt=prompt, tokens=actor.max_tokens, precision=precision, quantized=quantized,
        function=as_function(shape, precision, quantized),
    )  # fmt: skip


def serving(shape: Shape, actor: ActorConfig) -> MemoryNeed:
    """Estimate the memory of the llama.cpp server of ``actor``: its file, or float32 weights of a folder; keys and
    values of every slot at its longest, in half precision for a file; logits while prompts are read."""
    file = served_here(actor)
    size, number = (file.stat().st_size, 2) if is_gguf(file) else (4 * shape.weights, 4)
    window = min(actor.num_ctx, shape.context or actor.num_ctx)
    cache = 2.0 * number * shape.cached * shape.layers * actor.parallel * window
    return MemoryNeed(float(size), 0.0, 0.0, cache, 4.0 * READ_AT_ONCE * shape.vocabulary)


def training(shape: Shape, actor: ActorConfig, recipe: RecipeConfig) -> MemoryNeed:
    """Estimate the memory of a step of ``recipe`` on longest conversations of ``actor``; at least one at a time."""
    actor = actor.as_trained
    precision, quantized = trained_precision(actor.device, actor.precision), bool(actor.quantization)
    tokens, written = longest(actor, shape.context)
    setting = recipe.gradient_checkpointing
    if recipe.rank and is_packed(shape, actor.device, quantized, actor.precision):
        return max(
            (
                _packed_training(shape, actor, recipe, min(tokens, most), written)
                for most in (tokens, packed_need.TOKENS)
            ),
            key=lambda estimate: estimate.total,
        )
    return need(
        shape, rank=recipe.rank, rows=min(recipe.micro_batch or 1, recipe.minibatch), tokens=tokens, learned=written,
        precision=precision, quantized=quantized,
        checkpointing=setting == "on" or (setting == "auto" and actor.device != "cpu"),
        function=as_function(shape, precision, quantized),
    )  # fmt: skip


def _packed_training(shape: Shape, actor: ActorConfig, recipe: RecipeConfig, tokens: int, written: int) -> MemoryNeed:
    """Of trajectories of ``tokens`` tokens: long ones, that are computed twice, may need less than shorter ones."""
    rows = recipe.micro_batch or max(1, packed_need.TOKENS // tokens)
    checkpointing = packed_need.recomputed(recipe.gradient_checkpointing, rows * tokens)
    return packed_need.need_to_train(
        shape, rank=recipe.rank, rows=rows, tokens=tokens, learned=min(written, tokens), precision=_packing(actor),
        checkpointing=checkpointing,
    )  # fmt: skip


def _packing(actor: ActorConfig) -> str:
    """The format that a packed model is kept in; the larger of the usual two where it is chosen on the day."""
    return "bf16" if actor.precision == "auto" else actor.precision


def memory_needs(settings: Settings) -> dict[str, dict[str, float]]:
    """Bytes that a run of ``settings`` needs at most, by device and by what it does there.

    Who generates leaves before a training, and who trained leaves after it. Roles of one base share its weights and
    write in turns; of different bases each holds its own.
    """
    needs: dict[str, dict[str, float]] = {}
    for model in local_models(settings):
        if model.recipe and (size := model.to_train()):
            needs.setdefault(model.actor.device, {})[f"training the {model.role}"] = size
    for device in dict.fromkeys(model.actor.device for model in local_models(settings) if model.generates):
        if size := _generating_on(device, settings):
            needs.setdefault(device, {})["generating"] = size
    return needs


def _generating_on(device: str, settings: Settings) -> float:
    bases: dict[tuple[Path, str], list[MemoryNeed]] = {}
    rows = min(settings.models.max_batch, settings.run.tasks * settings.run.attempts)
    for model in local_models(settings):
        if model.generates and model.actor.device == device:
            bases.setdefault(model.base, []).append(model.to_generate(rows, settings.models.kept_mib << 20))
    return SPARE * sum(
        roles[0].weights + max(need.activations + need.logits for need in roles) for roles in bases.values()
    )


def disk_need(settings: Settings) -> int:
    """Estimate the bytes that a run of ``settings`` writes to its data folder: attempts and items, as long as they may
    get; an adapter for each iteration and trained role, with what its optimizer remembers where the next goes on with
    that, and what half a training keeps; weights for llama.cpp."""
    run, models = settings.run, local_models(settings)
    items = run.evaluation.validation * (run.iterations + 1) + 2 * run.evaluation.test
    attempts = run.iterations * run.most_tasks * run.attempts + items
    adapters = [_adapter(model) for model in models if model.recipe]
    going_on = [_adapter(m) for m in models if m.recipe and m.recipe.optimizer_state == "continued"]
    written = attempts * (ATTEMPT + TOKEN * longest(_on_longest(run.student, run))[0])
    kept = run.iterations * (sum(adapters) + 2 * sum(going_on)) + 3 * max(adapters, default=0)
    exported = [
        model for model in models if model.actor.provider == "llamacpp" and not is_gguf(Path(model.actor.model))
    ]
    served = {model.folder: model.stored for model in exported}
    return BASE_DISK + written + kept + sum(served.values())


def _adapter(model: LocalModel) -> int:
    """Bytes of an adapter, in single precision."""
    if model.shape is None or model.recipe is None:
        return 0
    return 4 * (model.recipe.rank * model.shape.ways or model.shape.weights)


State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing looked at. ``warn``: the tiny profile runs nevertheless."""

    name: str
    state: State
    detail: str
    fix: str = ""
