"""The training recipe in a job's settings, and the order in which its samples are taken."""

import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from agent0.errors import OperationError
from agent0.events.base import sha256
from agent0.ports.training import Sample, TrainJob
from agent0.training.objectives import Objective, objectives

Kind = Literal["policy", "replay"]
"""``policy``: what the objective is about; ``replay``: likelihood, whatever the objective."""


@dataclass(frozen=True)
class Recipe:
    """The settings that training reads, with their defaults."""

    objective: str = "adpo"
    optimizer: str = "adamw"
    optimizer_state: str = "anew"
    lr: float = 2.5e-3
    rank: int = 16
    alpha: int = 32
    epochs: int = 1
    minibatch: int = 32
    micro_batch: int = 0
    replay_steps: int = 8
    weight_decay: float = 0.0
    clip_low: float = 0.2
    kl: float = 0.0
    kl_to: str = "parent"
    beta: float = 0.1
    temperature: float = 1.0
    max_tokens: int = 1024
    gradient_checkpointing: str = "auto"
    steps: int = 0
    fresh: float = 0.5
    taught: float = 0.0
    stretch: float = 1.0
    entropy: float = 0.0
    entropy_among: str = ""
    lr_end: float = 1.0
    warmup: int = 0
    correction: str = "none"
    correction_cap: float = 2.0
    mismatch_limit: float = math.inf

    @classmethod
    def of(cls, job: TrainJob) -> "Recipe":
        """Unknown keys are ignored. Greedy samples count as drawn at temperature 1, as their log-probabilities are."""
        values = {name: job.settings[name] for name in cls.__dataclass_fields__ if name in job.settings}
        return cls(**values | {"temperature": values.get("temperature") or 1.0})

    @property
    def optimised(self) -> Objective:
        """The objective itself.

        Raises:
            OperationError: there is none of that name.
        """
        objective = objectives().get(self.objective)
        if objective is None:
            raise OperationError(f"There is no objective {self.objective!r}.", f"Known: {', '.join(objectives())}.")
        return objective

    @property
    def continues(self) -> bool:
        """Whether the optimizer goes on from training to training."""
        return self.optimizer_state == "continued"

    @property
    def heat(self) -> float:
        """The temperature at which the objective wants log-probabilities."""
        return self.temperature if self.optimised.tempered else 1.0

    @property
    def recomputes(self) -> bool:
        """Whether the parent's log-probabilities are needed and are not those that came with the samples."""
        objective = self.optimised
        tempered = objective.reference and self.temperature != self.heat
        return self.corrects or tempered or (self.penalised and not self.from_base)

    @property
    def penalised(self) -> bool:
        """Whether the distance from another model adds to the loss."""
        return self.optimised.penalty and self.kl > 0

    @property
    def from_base(self) -> bool:
        """Whether that is the base's, and not the parent's."""
        return self.penalised and self.kl_to == "base"

    @property
    def corrects(self) -> bool:
        """Whether ratios are to what the trainer computed before its first step, and not to what the sampler did."""
        return self.correction != "none" and self.optimised.ratio

    def pace(self, step: int, steps: int) -> float:
        """The share of the learning rate at step ``step``, from 0, of ``steps``."""
        done = step / max(1, steps - 1)
        return (1 - (1 - self.lr_end) * done) * min(1.0, (step + 1) / max(1, self.warmup))


def schedule(job: TrainJob, recipe: Recipe) -> list[tuple[Kind, list[Sample]]]:
    """Minibatches in the order they are taken: replay steps are spread evenly among the policy's, or with
    ``recipe.steps`` every minibatch holds both.

    Raises:
        OperationError: no sample has a token of the policy's own.
    """
    rng = random.Random(f"schedule {job.seed}")
    samples = [sample for sample in job.samples if any(sample.trajectory.mask)]
    replay = [sample for sample in job.replay if any(sample.trajectory.mask)]
    if recipe.steps and samples:
        return [("policy", batch) for batch in _blended(samples, replay, recipe, rng)]
    steps: list[tuple[float, Kind, list[Sample]]] = []
    for epoch in range(recipe.epochs if samples else 0):
        shuffled = rng.sample(samples, len(samples))
        for at in range(0, len(shuffled), recipe.minibatch):
            steps.append((epoch + at / len(shuffled), "policy", shuffled[at : at + recipe.minibatch]))
    for step, batch in enumerate(_alike(replay, recipe, rng), 1):
        steps.append((step * recipe.epochs / (recipe.replay_steps + 1), "replay", batch))
    if not steps:
        raise OperationError("There is nothing to train on.", "No trajectory holds a token that the policy sampled.")
    return [(kind, batch) for _, kind, batch in sorted(steps, key=lambda step: step[0])]


def _blended(samples: list[Sample], replay: list[Sample], recipe: Recipe, rng: random.Random) -> Iterator[list[Sample]]:
    """Minibatches of fixed shares, each drawn with repetition: new samples, what the base was taught, earlier ones.

    A sample is drawn in proportion to its weight, and counts as much as the others then: where few have most of the
    weight, minibatches of them are smoother than weighed ones.
    """
    taught = [sample for sample in replay if sample.source == "taught"]
    earlier = [sample for sample in replay if sample.source != "taught"] or samples
    new, base = (round(share * recipe.minibatch) for share in (recipe.fresh, recipe.taught if taught else 0.0))
    weights = [[sample.weight for sample in group] for group in (samples, earlier, taught)]
    alike = [[replace(sample, weight=1.0) for sample in group] for group in (samples, earlier, taught)]
    sizes = (new, max(0, recipe.minibatch - new - base), base)
    for _ in range(recipe.steps):
        drawn = zip(alike, weights, sizes, strict=True)
        yield [sample for group, by, k in drawn if k for sample in rng.choices(group, by, k=k)]


def _alike(replay: list[Sample], recipe: Recipe, rng: random.Random) -> list[list[Sample]]:
    """Minibatches of what is replayed, each drawn without repetition. Where there is enough for all of them, samples
    are then exchanged so that those of about the same length are together: little is padded, and a step takes half the
    time. Of fewer, each is in many minibatches, and so its copies would come together in one."""
    if not replay:
        return []
    size = min(recipe.minibatch, len(replay))
    drawn = [sample for _ in range(recipe.replay_steps) for sample in rng.sample(replay, size)]
    enough = len(replay) >= len(drawn)
    if enough:
        drawn.sort(key=lambda sample: len(sample.trajectory.token_ids))
    batches = [drawn[at : at + size] for at in range(0, len(drawn), size)]
    return rng.sample(batches, len(batches)) if enough else batches


def digest_of(job: TrainJob, parent: bytes) -> str:
    """Names a job by all that its outcome depends on."""
    parts = [
        [sample.trajectory.model_dump_json(), sample.advantage, sample.clip_high, sample.weight]
        + ([sample.over.model_dump_json()] if sample.over else [])
        for sample in (*job.samples, *job.replay)
    ]
    examples = [[[turn.model_dump_json() for turn in example.turns], example.weight] for example in job.examples]
    parts_of_digest = [
        parts,
        examples,
        len(job.samples),
        job.seed,
        dict(job.settings),
        dict(job.metadata),
        sha256(parent),
        *([job.optimizer.sha256] if job.optimizer else []),
    ]
    return sha256(json.dumps(parts_of_digest, sort_keys=True, default=str))
