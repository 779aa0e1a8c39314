"""Whether a server still has the weights that it had at the start, by what it greedily writes to a fixed question: its
tokens and their log-probabilities, against several readings at the start, whose differences are its own noise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from agent0.events.values import Turn
from agent0.ports.models import GenerateRequest, Sampling

PROBE = GenerateRequest((Turn(role="user", content="Say: 1, zwei, 三."),), Sampling(max_tokens=8))
"""The short request that shows which way of asking a server takes."""
GREEDY = replace(PROBE, sampling=Sampling(temperature=0.0, max_tokens=32), margins=True)
"""The fixed question."""
TOGETHER = 8
"""Readings that are asked for at once: what else is in a batch changes how a card rounds."""
PROBED_TURNS = 32
"""Turns after which the weights are read again: about one token in two hundred is written for that."""
ROUNDING_NATS = 0.02
"""Mean difference a token that rounding may make, where a server's readings do not differ more. The built-in model in
bfloat16 is 0.013 from itself in float32; noise of 5 % in its weights makes 0.03 to 0.4."""
NOISE = 4.0
"""Times the largest difference of readings at the start: a full batch rounds otherwise than theirs."""
COPY_NATS = 0.3
"""The most by which the same weights differ, on other cards too."""
TIE = 0.2
"""Probability by which the first token is likelier than the second, below which rounding may swap them."""


@dataclass(frozen=True)
class GreedyText:
    """Token ids, the log-probability (nats) of each, and where a server reports it by how much (a probability) each
    was likelier than the second."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    margins: tuple[float, ...] = ()

    def distance(self, other: "GreedyText") -> float:
        """Mean difference, nats a token, up to the first that differs; infinite where that was not a tie."""
        pairs = zip(self.ids, other.ids, strict=False)
        same = next((n for n, (one, two) in enumerate(pairs) if one != two), None)
        if same is not None and max([*self.margins[same : same + 1], *other.margins[same : same + 1], 0.0]) > TIE:
            return inf
        end = None if same is None else same + 1
        gaps = [abs(one - two) for one, two in zip(self.logprobs[:end], other.logprobs[:end], strict=False)]
        return sum(gaps) / max(1, len(gaps))


@dataclass(frozen=True)
class WeightsReading:
    """What one server wrote at the start, several times."""

    texts: Sequence[GreedyText]

    @property
    def limit(self) -> float:
        """The distance (nats a token) up to which a text is of the same weights."""
        noise = max(one.distance(two) for one in self.texts for two in self.texts)
        return min(max(ROUNDING_NATS, NOISE * noise), COPY_NATS)

    def differs(self, texts: Sequence[GreedyText], limit: float | None = None) -> bool:
        """Whether each of ``texts`` is further than ``limit`` (its own where None) from each text here."""
        most = self.limit if limit is None else limit
        return all(one.distance(text) > most for one in self.texts for text in texts)
