"""Whether a served model is the one that was trained: compares the tokens and log-probabilities of both after the same
prompts."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from agent0.events.values import Turn
from agent0.tasks.families import families

TOLERANCE = 1e-3
"""Nats by which the log-probability of a token may differ."""
SHARE, FAR = 0.05, 1.0
QUANTISED, SPREAD, NEARER = 0.2, 1.5, 0.75
"""Nats by which a base may differ that a server keeps quantised; how many times as far what is trained beside it may
be, if it is that much nearer to the trained model than to the untrained one."""
PROBES, TOKENS = 8, 16


@dataclass(frozen=True)
class DecodedToken:
    """One greedily decoded token: its id (or text where a server gives no ids), its log-probability, and those of other
    tokens at its place."""

    token: int | str
    logprob: float
    others: Mapping[int | str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Parity:
    """The result of a comparison: ``compared`` tokens, the largest and the mean difference of their log-probabilities.

    ``parted``: prompts after which both decoded different tokens; ``unseen``: tokens whose probability the server did
    not report.
    """

    probes: int
    compared: int
    largest: float
    mean: float
    parted: int
    unseen: int

    @property
    def distance(self) -> float:
        """The largest difference in nats; at least ``FAR`` where an expected token was not even reported."""
        return max(self.largest, FAR) if self.unseen else self.largest

    def nearer(self, other: "Parity") -> bool:
        """Whether this model is so much nearer than ``other``, on the average, that they are not one."""
        return self.compared > 0 and self.mean <= NEARER * other.mean

    def within(self, tolerance: float) -> bool:
        """Whether every expected token was reported, and no difference is larger than ``tolerance``.

        Two tokens that are equally likely within ``tolerance`` may differ.
        """
        return self.compared > 0 and not self.unseen and self.largest <= tolerance


def limit(tolerance: float, untrained: float, rounding: float = 0.0) -> float:
    """Nats by which a served model may differ from the trained one: ``tolerance``, or ``SHARE`` of how far it is from
    the untrained one, or ``SPREAD`` times the ``rounding`` of the server's base, where it keeps that quantised. A
    server with a cache in half precision differs by hundredths, another model by whole nats."""
    return max(tolerance, SHARE * untrained, SPREAD * rounding if rounding <= QUANTISED else 0.0)


def probes(count: int = PROBES) -> list[tuple[Turn, ...]]:
    """The prompts that both models continue: questions of the families but for ladders, always the same."""
    entries = sorted((entry for entry in families().values() if not entry.ladder), key=lambda entry: entry.name)
    rng = random.Random("probes")
    picked = [entries[n % len(entries)] for n in rng.sample(range(max(count, len(entries))), count)]
    return [(Turn(role="user", content=family.render(family.sample(1, rng), rng)),) for family in picked]


def parity(expected: Sequence[Sequence[DecodedToken]], served: Sequence[Sequence[DecodedToken]]) -> Parity:
    """Compare expected with served tokens after each prompt, up to where they differ."""
    deviations: list[float] = []
    parted = unseen = 0
    for ours, theirs in zip(expected, served, strict=True):
        for step, other in zip(ours, theirs, strict=False):
            logprob = other.logprob if other.token == step.token else other.others.get(step.token, -inf)
            if logprob == -inf:
                unseen += 1
            else:
                deviations.append(abs(logprob - step.logprob))
            if other.token != step.token:
                parted += 1
                break
        else:
            parted += not theirs and bool(ours)
            unseen += not theirs and bool(ours)
    mean = sum(deviations) / len(deviations) if deviations else 0.0
    return Parity(len(expected), len(deviations), max(deviations, default=0.0), mean, parted, unseen)
