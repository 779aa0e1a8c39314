"""What a training has come to so far: counts that a killed one goes on with, the metrics made of them, and how
differently the program that sampled and the one that trains compute the same tokens of the same weights."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agent0.errors import OperationError
from agent0.events.values import TrainingStep
from agent0.infra.training.launch.recipe import Recipe
from agent0.ports.training import Sample

OF = "of."
"""Prefix of the metrics that an objective reports."""
LEARNED = "_tokens"
"""Ending of the metrics that count what was learned, by whose tokens they were (``Sample.source``)."""


def learned_tokens(batch: Sequence[Sample]) -> dict[str, float]:
    """Count the tokens that a minibatch teaches, by source: ``own_tokens``, ``taught_tokens``, ``made_tokens``."""
    counts: Counter[str] = Counter()
    for sample in batch:
        counts[f"{sample.source}{LEARNED}"] += sum(sum(path.mask) for path in (sample.trajectory, sample.over) if path)
    return {name: float(count) for name, count in counts.items()}


class MetricTally:
    """Counts and sums of training metrics by name, the record of each step, the time since the start, and how
    differently sampler and trainer compute the samples (``mismatch``)."""

    def __init__(self, mismatch: Mapping[str, float]) -> None:
        self._held: dict[str, float] = {}
        self.steps: list[TrainingStep] = []
        self._mismatch = mismatch
        self._start = time.monotonic()

    def step(self, step: TrainingStep, sums: Mapping[str, float]) -> None:
        """Count a step with its ``sums``; of one that was skipped, that it was."""
        self.steps.append(step)
        if step.skipped or step.loss is None:
            self.add({"skipped": 1.0})
            return
        before = "" if step.kind == "policy" else "replay_"
        self.add({**sums, f"{before}loss": step.loss, f"{before}steps": 1.0})

    def add(self, metrics: Mapping[str, float]) -> None:
        """Add these to what is held."""
        for name, value in metrics.items():
            self._held[name] = self._held.get(name, 0.0) + value

    def counts(self) -> dict[str, float]:
        """Everything but when it began."""
        return dict(self._held)

    def take_up(self, counts: Mapping[str, float], steps: Sequence[TrainingStep]) -> None:
        """Go on from these."""
        self._held, self.steps = dict(counts), [*steps]

    def metrics(self, per: str) -> dict[str, float]:
        """Means over steps (losses) and over the policy's tokens or rows, whichever its objective counts."""

        def mean(name: str, by: str) -> float:
            return self._held.get(name, 0.0) / max(1.0, self._held.get(by, 0.0))

        by = "rows" if per == "row" else "tokens"
        return {
            "loss": mean("loss", "steps"),
            "replay_loss": mean("replay_loss", "replay_steps"),
            "steps": self._held.get("steps", 0.0) + self._held.get("replay_steps", 0.0),
            "skipped": self._held.get("skipped", 0.0),
            "tokens": self._held.get("tokens", 0.0),
            **{name: value for name, value in self._held.items() if name.endswith(LEARNED)},
            **{name.removeprefix(OF): mean(name, by) for name in self._held if name.startswith(OF)},
            **self._mismatch,
            "seconds": time.monotonic() - self._start,
        }


ENOUGH_TOKENS = 1_000
"""Sampled tokens that are enough to measure by."""


def enough(samples: Sequence[Sample]) -> list[Sample]:
    """The first of ``samples``, as many as have ``ENOUGH_TOKENS`` sampled tokens together."""
    chosen, tokens = [], 0
    for sample in samples:
        if tokens >= ENOUGH_TOKENS:
            break
        chosen.append(sample)
        tokens += sum(sample.trajectory.mask)
    return chosen


def differences(logprobs: Sequence[Sequence[float]], samples: Sequence[Sample]) -> Iterator[float]:
    """|log p - log p| in nats of every token of ``samples`` that was sampled; ``logprobs`` are the trainer's."""
    for row, sample in zip(logprobs, samples, strict=True):
        path = sample.trajectory
        yield from (abs(a - b) for a, b, own in zip(row, path.logprobs, path.mask, strict=True) if own)


def mismatch(gaps: Sequence[float], recipe: Recipe) -> dict[str, float]:
    """``mismatch_mean`` and ``mismatch_p99`` of ``gaps`` in nats, ``mismatch_share``: of tokens whose ratio is beyond
    the recipe's ``correction_cap``, or below 1 divided by it, and of how many tokens; nothing where there are none."""
    if not gaps:
        return {}
    ordered = sorted(gaps)
    beyond = sum(gap > math.log(recipe.correction_cap) for gap in ordered)
    return {
        "mismatch_mean": math.fsum(ordered) / len(ordered),
        "mismatch_p99": ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)],
        "mismatch_share": beyond / len(ordered),
        "mismatch_tokens": float(len(ordered)),
    }


def check_mismatch(metrics: Mapping[str, float], recipe: Recipe) -> None:
    """Raises OperationError where a policy gradient would learn from samples that are not its own."""
    mean = metrics.get("mismatch_mean", 0.0)
    if recipe.optimised.ratio and mean > recipe.mismatch_limit:
        raise OperationError(
            "These samples cannot be trained on by a policy gradient.",
            f"Sampler and trainer differ by {mean:.2g} nats a token; run.training.<role>.mismatch_limit is "
            f"{recipe.mismatch_limit:g}.",
            "Sample and train in one format (run.<role>.precision, train_precision), or set "
            "run.training.<role>.objective to sft.",
        )
