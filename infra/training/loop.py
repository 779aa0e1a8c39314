"""One training job, inside the worker process. Nothing of a job stays behind: same job, same adapter."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from agent0.errors import OperationError
from agent0.events.values import TrainingStep
from agent0.infra.engine.adapter import WHOLE, Adapter, lora_settings, pack, unpack
from agent0.infra.engine.chat_template import Chat, tokenizer_of
from agent0.infra.engine.formats.best_format import processor
from agent0.infra.engine.inference import load
from agent0.infra.engine.memory_need import packed, trained_precision
from agent0.infra.engine.qwen2_functional import shape_of
from agent0.infra.training import course_replay
from agent0.infra.training.batches import check_words, samples_of
from agent0.infra.training.checkpointing import HalfDone
from agent0.infra.training.forward import check_stretch
from agent0.infra.training.full_finetune import Whole, check_kind, check_small
from agent0.infra.training.launch.distributed import Team
from agent0.infra.training.launch.memory_estimate import check_room
from agent0.infra.training.launch.recipe import Kind, Recipe, digest_of, schedule
from agent0.infra.training.metrics import MetricTally, enough, learned_tokens
from agent0.infra.training.optimizer_state import pack_state, take_state, tensors_of
from agent0.infra.training.optimizers import Movers
from agent0.infra.training.packed_lora import PackedBase, PackedLora
from agent0.infra.training.progress import Pace, StepProgress
from agent0.infra.training.step import Step
from agent0.infra.training.step_records import of_training, step_record
from agent0.ports.training import GRADIENT_NORM, Sample, TrainJob

BONUS = "Set run.training.<role>.entropy to 0."


class Training:
    """The frozen base model, loaded for the first job; each puts its own adapter on it and takes it off again."""

    report: Callable[[StepProgress], None] = staticmethod(lambda _: None)
    """Whoever calls may put something here that hears how far a job is."""

    def __init__(
        self, path: str, threads: int = 1, device: str = "cpu", quantization: str = "", precision: str = "auto"
    ) -> None:
        self._path, self._quantization, self._setting = path, quantization, precision
        self._packed = packed(Path(path), device, quantization, precision)
        self._precision = "fp32" if self._packed else trained_precision(device, precision)
        self._team = Team(device, self._precision)
        self._loaded: tuple[Any, Any] | None = None
        self._recomputing = False
        self._steps: tuple[TrainingStep, ...] = ()
        self._remembered: dict[str, torch.Tensor] = {}
        self._state, self._state_note = b"", ""
        torch.set_num_threads(threads)

    def environment(self) -> dict[str, str]:
        """What bit-equality depends on."""
        description = {
            "threads": str(torch.get_num_threads()),
            "torch": torch.__version__,
            "cpu": torch.backends.cpu.get_cpu_capability(),
            "processor": processor(),
            "device": self._team.device,
        }
        if self._state_note:
            description["optimizer"] = self._state_note
        if self._loaded and (forward := _kind_of(self._loaded[0])):
            description["forward"] = forward
        return description | ({"processes": str(self._team.size)} if self._team.size > 1 else {})

    def train(
        self, job: TrainJob, parent: bytes, kept: str = "", every_s: float = 10.0, state: bytes = b""
    ) -> tuple[bytes, dict[str, float]]:
        """Train one adapter; return its tar and the training metrics. Unfinished work is saved to the file ``kept``
        every ``every_s`` seconds and resumed from there. ``state`` is what the optimizer remembered of ``parent``.

        Raises:
            OperationError: the parent does not fit, no sample has a token of the policy's own, samples are of another
                model, the GPU has no room, or a model that is not small is to be trained whole.
        """
        recipe = Recipe.of(job)
        start = _start(recipe, parent)
        room = self._room(job, recipe)
        base, tokenizer = self._loaded = self._loaded or self._load()
        check_words(job.samples + job.replay, int(base.config.vocab_size))
        self._checkpointing(base, recipe)
        torch.manual_seed(job.seed % 2**63)
        self._team.begin()
        model = _adapted(base, start)
        try:
            half = HalfDone(Path(kept) if kept else None, digest_of(job, parent), every_s)
            examples, left_out = _examples(job, base, tokenizer)
            examples = (*examples, *self._taught(recipe, base, tokenizer))
            among = _among(recipe, base, tokenizer)
            pad = int(tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id)
            step = Step(model, recipe, self._team, pad, job.seed, among)
            model.train()
            steps = schedule(replace(job, replay=(*job.replay, *examples)), recipe)
            _take_up(start, step, model, recipe, [batch for kind, batch in steps if kind == "policy"])
            own = [] if recipe.optimised.off_policy else [sample for sample in job.samples if not sample.stale]
            tally = MetricTally(step.mismatch(enough(own)) if own else {})
            self._run(step, model, steps, recipe, half, tally, room, (parent, state))
            weights = _weights(model)
        finally:
            self._loaded = (model.unload(), tokenizer)
            memory_metrics = self._team.end()
        metrics = tally.metrics(recipe.optimised.per) | left_out | memory_metrics
        data = pack(Adapter(start.settings, weights, dict(job.metadata)))
        self._state = pack_state(self._remembered, data, recipe.optimizer) if recipe.continues else b""
        return data, metrics

    def train_with_steps(
        self, job: TrainJob, parent: bytes, kept: str = "", every_s: float = 10.0, state: bytes = b""
    ) -> tuple[bytes, dict[str, float], tuple[TrainingStep, ...], bytes]:
        """Train as ``train`` does; return the steps in order, too, and what the optimizer remembers where the next
        training is to go on with that."""
        return *self.train(job, parent, kept, every_s, state), self._steps, self._state

    def _load(self) -> tuple[Any, Any]:
        """Base and tokenizer: packed where its samples are written so, else as transformers loads them."""
        if self._packed:
            return PackedBase(Path(self._path), self._setting), tokenizer_of(self._path)
        return load(self._path, self._team.device, self._quantization, self._precision)

    def _taught(self, recipe: Recipe, base: Any, tokenizer: Any) -> tuple[Sample, ...]:
        """What the base was taught, where the recipe replays it.

        Raises:
            DependencyError: it is not kept beside the base.
            OperationError: positions are to be stretched, and the model is not one that can.
        """
        if recipe.stretch > 1:
            check_stretch(base)
        if not (recipe.steps and recipe.taught):
            return ()
        context = int(base.config.max_position_embeddings)
        return samples_of(course_replay.read(Path(self._path)), Chat(tokenizer), context, "taught")[0]

    def _checkpointing(self, base: Any, recipe: Recipe) -> None:
        setting = recipe.gradient_checkpointing
        enabled = setting == "on" or (setting == "auto" and self._team.device != "cpu")
        name = "activation" if hasattr(base, "activation_checkpointing_enable") else "gradient"  # as transformers says
        if isinstance(base, PackedBase):
            base.gradient_checkpointing = setting
        elif enabled:
            getattr(base, f"{name}_checkpointing_enable")({"use_reentrant": False})
        elif self._recomputing:
            getattr(base, f"{name}_checkpointing_disable")()
        self._recomputing = enabled

    def _room(self, job: TrainJob, recipe: Recipe) -> str:
        """What memory the job is thought to need; said before anything is loaded."""
        if self._team.device == "cpu":
            return ""
        check_small(recipe.rank > 0 or self._precision == "fp32")
        room = check_room(Path(self._path), job, recipe, self._team.device, self._quantization, self._precision)
        self.report(StepProgress(room=room))
        return room

    def _run(
        self,
        step: Step,
        model: Any,
        steps: Sequence[tuple[Kind, list[Sample]]],
        recipe: Recipe,
        half: HalfDone,
        tally: MetricTally,
        room: str,
        before: tuple[bytes, bytes],
    ) -> None:
        """``before``: the parent, and what the optimizer remembered of it."""
        movers = Movers(model, recipe, self._team)
        parent, state = before
        self._state_note = take_state(model, movers.plain, state, parent, recipe.optimizer) if recipe.continues else ""
        done, counts, records = half.restore(model, movers.plain)
        tally.take_up(counts, records)
        pace = Pace(len(steps), done, self.report, room)
        for index, (kind, batch) in enumerate(steps[done:], done):
            share = recipe.pace(index, len(steps))
            movers.begin(share)
            sums = step.gradients(kind, batch, index)
            loss, norm = sums.pop("loss"), float(self._team.clip(movers.own, GRADIENT_NORM))
            record = step_record(kind, batch, sums, loss, norm, share * recipe.lr)
            if not record.skipped or self._team.scaled:  # a scale too large is lowered by the step that is not taken
                movers.step()
            tally.step(record, of_training(sums) | learned_tokens(batch))
            pace.step(tally.steps)
            if self._team.first and half.save_now():
                half.save(model, movers.plain, index + 1, tally.counts(), tally.steps)
        self._steps = tuple(tally.steps)
        self._remembered = tensors_of(model, movers.plain) if recipe.continues else {}


def _kind_of(base: Any) -> str:
    """How a base is computed, where not through transformers."""
    if isinstance(base, PackedBase):
        return f"packed {base.format}"
    return "function" if shape_of(base) else ""


def _examples(job: TrainJob, base: Any, tokenizer: Any) -> Any:
    if not job.examples:
        return (), {}
    return samples_of(job.examples, Chat(tokenizer), int(base.config.max_position_embeddings))


def _among(recipe: Recipe, base: Any, tokenizer: Any) -> torch.Tensor | None:
    """The tokens among which a bonus on entropy is paid; None where none is.

    Raises:
        OperationError: the model is not one whose entropies are computed, or writes a text with several tokens.
    """
    if not recipe.entropy:
        return None
    check_small(
        not isinstance(base, PackedBase) and shape_of(base) is not None,
        "A bonus on entropy cannot be paid here.",
        BONUS,
    )
    chat, texts = Chat(tokenizer), recipe.entropy_among.split()
    tokens = [*map(chat.token_of, texts)] if texts else [*range(int(base.config.vocab_size))]
    return torch.tensor(tokens, device=base.device)


def _start(recipe: Recipe, parent: bytes) -> Adapter:
    if not parent:
        return Adapter(lora_settings(recipe.rank, recipe.alpha) if recipe.rank else WHOLE, {}, {})
    start = unpack(parent)
    if not start.weights:
        raise OperationError("The parent adapter does not fit this model.", "It holds no weights.")
    check_kind(recipe.rank, start)
    return start


def _adapted(base: Any, start: Adapter) -> Any:
    """What is trained: peft's model with an adapter of that kind in it, or a ``Whole`` one."""
    if start.full:
        return Whole(base)
    if isinstance(base, PackedBase):
        return PackedLora(base, start)
    from peft import get_peft_model

    return get_peft_model(base, start.config())


def _take_up(start: Adapter, step: Step, model: Any, recipe: Recipe, batches: Sequence[Sequence[Sample]]) -> None:
    """Let the model go on from its parent; of what the loss compares it with is noted how likely that finds the samples
    of ``batches``."""
    if recipe.from_base:  # which the model is until here
        step.remember_base(batches)
    if start.weights:
        _inherit(model, start)
    if recipe.recomputes:
        step.remember(batches)


def _inherit(model: Any, start: Adapter) -> None:
    if isinstance(model, Whole | PackedLora):
        return model.take(start.weights)
    from peft import set_peft_model_state_dict

    outcome: Any = set_peft_model_state_dict(model, start.weights)
    if outcome.unexpected_keys:
        raise OperationError("The parent adapter does not fit this model.")
    return None


def _weights(model: Any) -> dict[str, torch.Tensor]:
    if isinstance(model, Whole | PackedLora):
        weights = model.weights()
    else:
        from peft import get_peft_model_state_dict

        weights = get_peft_model_state_dict(model)
    return {name: value.detach().cpu().float() for name, value in weights.items()}
