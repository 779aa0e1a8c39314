"""How alike the questions of one batch are: BLEU between each two, and clusters of what is near."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

ORDER = 4
EPSILON = 0.1
"""Stands for no n-gram in common (Chen and Cherry 2014, smoothing 1)."""
CUT = 0.5
"""Clusters whose mean distance is less become one."""


def bleu(reference: Sequence[str], hypothesis: Sequence[str]) -> float:
    """BLEU-4 of one sentence against one reference (Papineni et al. 2002), smoothed by ``EPSILON``; words in, 0 to 1
    out. 0 where no word is shared."""
    logs = 0.0
    for size in range(1, ORDER + 1):
        held, wanted = _grams(hypothesis, size), _grams(reference, size)
        shared = sum(min(count, wanted[gram]) for gram, count in held.items())
        if size == 1 and not shared:
            return 0.0
        logs += math.log((shared or EPSILON) / max(1, held.total())) / ORDER
    long, short = len(reference), len(hypothesis)
    return math.exp(logs + (0.0 if short > long else 1 - long / short))


def _grams(words: Sequence[str], size: int) -> "Counter[tuple[str, ...]]":
    return Counter(tuple(words[place : place + size]) for place in range(len(words) - size + 1))


@lru_cache(maxsize=8)
def shares(questions: tuple[str, ...], cut: float = CUT) -> tuple[float, ...]:
    """Of each question of a batch: the share of the batch that is in its cluster."""
    labels = clusters(distances([question.split() for question in questions]), cut)
    sizes = Counter(labels)
    return tuple(sizes[label] / len(labels) for label in labels)


def distances(questions: Sequence[Sequence[str]]) -> list[list[float]]:
    """``1 - BLEU`` of each two; the later one is the reference, and nothing is apart from itself."""
    out = [[0.0] * len(questions) for _ in questions]
    for first, hypothesis in enumerate(questions):
        for second in range(first + 1, len(questions)):
            out[first][second] = out[second][first] = 1 - bleu(questions[second], hypothesis)
    return out


def clusters(apart: Sequence[Sequence[float]], cut: float) -> list[int]:
    """Labels by average linkage: what is nearest is joined while it is less than ``cut`` apart (nearest-neighbour
    chains, Murtagh 1983: quadratic in the number of questions)."""
    held = {place: [place] for place in range(len(apart))}
    far = {a: {b: apart[a][b] for b in held if b != a} for a in held}
    chain: list[int] = []
    open_ones = set(held)
    while open_ones:
        last = chain[-1] if chain else min(open_ones)
        chain = chain or [last]
        near = _nearest(far[last], chain[-2] if len(chain) > 1 else None)
        if near is None or far[last][near] >= cut:
            open_ones -= set(chain)  # each of a chain is nearer to its neighbour than to anything else
            open_ones = {place for place in open_ones if place in held}
            chain = []
        elif len(chain) > 1 and near == chain[-2]:
            chain = chain[:-2]
            open_ones.discard(max(last, near))
            _join(held, far, *sorted((last, near)))
        else:
            chain.append(near)
    return _labels(held, len(apart))


def _nearest(row: dict[int, float], before: int | None) -> int | None:
    """The nearest, of several the one before in the chain."""
    return min(row, key=lambda place: (row[place], place != before, place), default=None)


def _join(held: dict[int, list[int]], far: dict[int, dict[int, float]], kept: int, gone: int) -> None:
    left, right = len(held[kept]), len(held[gone])
    row = far.pop(gone)
    for other in row:
        if other != kept:
            mean = (left * far[kept][other] + right * row[other]) / (left + right)
            far[kept][other] = far[other][kept] = mean
        del far[other][gone]
    held[kept] += held.pop(gone)


def _labels(held: dict[int, list[int]], count: int) -> list[int]:
    labels = [0] * count
    for label, members in enumerate(held.values()):
        for member in members:
            labels[member] = label
    return labels
