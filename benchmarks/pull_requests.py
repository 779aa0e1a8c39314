"""Error rates of ``agent0 bench regression`` on simulated pull requests, beside a plain threshold.

    python -m benchmarks.pull_requests [--requests N] [--write]

Half of the requests change nothing for the worse, the other half lose five points. Their paired outcomes are drawn
either by shares (how many items change), or from real ones: item outcomes of checkpoints of one run of the profile
``tiny`` on the same held-out items (``pull_requests.json``). A request without a loss then gives each item that differs
between two of them a direction by chance; one with a loss turns right items wrong besides, as many as it takes.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from agent0.stats.paired_tests import compare
from agent0.stats.regression_rule import RegressionRule, blocking_chance
from benchmarks.measured_page import write

RULE = RegressionRule()
THRESHOLD = 0.02
"""The plain rule blocks where accuracy falls by more than this."""
REAL = Path(__file__).with_suffix(".json")
Pairs = tuple[list[float], list[float]]
Draw = Callable[[Random, int, float], Pairs]
"""(random, items, loss) to outcomes of base and change."""


@dataclass(frozen=True)
class Blocked:
    """How many of ``requests`` each rule blocked."""

    rule: int
    threshold: int
    requests: int

    @property
    def rates(self) -> tuple[float, float]:
        """Both in percent."""
        return 100 * self.rule / self.requests, 100 * self.threshold / self.requests


def by_shares(discordance: float) -> Draw:
    """Draw outcomes of which the share ``discordance`` changes."""

    def draw(random: Random, items: int, loss: float) -> Pairs:
        pairs = []
        for _ in range(items):
            at = random.random()
            lost, gained = at < (discordance + loss) / 2, (discordance + loss) / 2 <= at < discordance
            before = lost or (not gained and random.random() < 0.5)
            pairs.append((float(before), float((before and not lost) or gained)))
        before, after = zip(*pairs, strict=True)
        return list(before), list(after)

    return draw


def by_outcomes(runs: Sequence[str]) -> Draw:
    """Draw items of neighbouring checkpoints' real outcomes."""
    neighbours = list(pairwise(runs))

    def draw(random: Random, items: int, loss: float) -> Pairs:
        old, new = random.choice(neighbours)
        right = sum(a == b == "1" for a, b in zip(old, new, strict=True)) / len(old)
        before, after = [], []
        for _ in range(items):
            index = random.randrange(len(old))
            pair = [float(old[index]), float(new[index])]
            random.shuffle(pair)
            if pair == [1.0, 1.0] and random.random() < loss / right:
                pair[1] = 0.0
            before.append(pair[0])
            after.append(pair[1])
        return before, after

    return draw


def blocked(draw: Draw, items: int, loss: float, requests: int, seed: str) -> Blocked:
    """Decide ``requests`` drawn requests by both rules."""
    random, rule, threshold = Random(seed), 0, 0
    for _ in range(requests):
        difference = compare(*draw(random, items, loss), rounds=0)
        rule += RULE.blocks(difference)
        threshold += difference.mean < -THRESHOLD
    return Blocked(rule, threshold, requests)


def discordance_of(runs: Sequence[str]) -> float:
    """The mean share of items that differ between neighbours."""
    shares = [sum(a != b for a, b in zip(*pair, strict=True)) / len(pair[0]) for pair in pairwise(runs)]
    return sum(shares) / len(shares)


def table(requests: int, runs: Sequence[str]) -> str:
    """The table of the page: of ``requests``, half of them with a loss, what both rules blocked."""
    needed = RULE.items()
    shares = [(0.2, needed), (0.3, needed), (0.4, needed), (0.4, RULE.items(0.4))]
    rows = [(f"{share:.0%}", items, by_shares(share), exact(items, share)) for share, items in shares]
    for real in (runs[1:], runs[:2]):  # small steps of a training, and its first one
        rows.append((f"{discordance_of(real):.0%}, real", needed, by_outcomes(real), "-"))
    lines = ["| change|pairs|test, exactly|test|threshold|", "|---|---|---|---|---|"]
    for name, items, draw, computed in rows:
        none, loss = (blocked(draw, items, lost, requests // 2, f"{name} {items} {lost}") for lost in (0.0, RULE.loss))
        cells = (f"{false:.1f}, {caught:.1f}" for false, caught in zip(none.rates, loss.rates, strict=True))
        lines.append(f"| {name}|{items}|{computed}|{'|'.join(cells)}|")
    return "\n".join(lines) + "\n"


def exact(items: int, discordance: float) -> str:
    """What the test's rates are by computation, in percent."""
    rates = (100 * blocking_chance(items, discordance, lost, RULE.false_blocks) for lost in (0.0, RULE.loss))
    return ", ".join(f"{rate:.1f}" for rate in rates)


def main() -> None:
    """Print the table, or write it into its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--write", action="store_true", help="into docs/results/pull-requests.md")
    arguments = parser.parse_args()
    rows = table(arguments.requests, list(json.loads(REAL.read_text(encoding="utf-8")).values()))
    if arguments.write:
        write("pull-requests.md", rows)
    else:
        print(rows)


if __name__ == "__main__":
    main()
