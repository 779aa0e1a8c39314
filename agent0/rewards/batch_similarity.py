"""Similarity of the questions in one batch: pairwise BLEU, and clusters by average linkage."""

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
    """BLEU-4 of one sentence against one reference (Papineni et al. 2002), smoothed by ``EPSILON``.

    Takes lists of words, returns a value in [0, 1]; 0 where no word is shared.
    """
    candidate, other = _marked([hypothesis, reference])
    return _score(_shared(candidate, other), len(hypothesis), len(reference))


def _marked(texts: Sequence[Sequence[str]]) -> list[tuple[int, ...]]:
    """Each text as a set of bits for each length of n-gram: one for the first, second, ... time that one stands in it.
    The bits that two texts have in common are then the n-grams that they share, each as often as both have it."""
    places: list[dict[tuple[object, ...], int]] = [{} for _ in range(ORDER)]
    return [
        tuple(_bits(tokens, size, bits_of_grams) for size, bits_of_grams in enumerate(places, 1)) for tokens in texts
    ]


def _bits(tokens: Sequence[str], size: int, bits_of_grams: dict[tuple[object, ...], int]) -> int:
    times: Counter[tuple[str, ...]] = Counter()
    bits = 0
    for start in range(len(tokens) - size + 1):
        gram = tuple(tokens[start : start + size])
        times[gram] += 1
        bits |= 1 << bits_of_grams.setdefault((times[gram], *gram), len(bits_of_grams))
    return bits


def _shared(grams: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple((left & right).bit_count() for left, right in zip(grams, other, strict=True))


@lru_cache(maxsize=65_536)
def _score(shared: tuple[int, ...], hypothesis: int, reference: int) -> float:
    """BLEU from the n-grams shared, by length, and the lengths of both texts in words."""
    if not shared[0]:
        return 0.0
    logs = 0.0
    for size, common in enumerate(shared, 1):
        logs += math.log((common or EPSILON) / max(1, hypothesis - size + 1)) / ORDER
    return math.exp(logs + (0.0 if hypothesis > reference else 1 - reference / hypothesis))


@lru_cache(maxsize=64)
def shares(questions: tuple[str, ...], cut: float = CUT) -> tuple[float, ...]:
    """For each question of a batch, the share of the batch that is in its cluster."""
    labels = clusters(distances([question.split() for question in questions]), cut)
    sizes = Counter(labels)
    return tuple(sizes[label] / len(labels) for label in labels)


def distances(questions: Sequence[Sequence[str]]) -> list[list[float]]:
    """Pairwise distances ``1 - BLEU``, the later question as the reference; a symmetric matrix with a zero diagonal."""
    out = [[0.0] * len(questions) for _ in questions]
    marked, lengths = _marked(questions), [len(question) for question in questions]
    for first, grams in enumerate(marked):
        for second in range(first + 1, len(marked)):
            score = _score(_shared(grams, marked[second]), lengths[first], lengths[second])
            out[first][second] = out[second][first] = 1 - score
    return out


def clusters(apart: Sequence[Sequence[float]], cut: float) -> list[int]:
    """Cluster labels by average linkage: the nearest two clusters are joined while they are less than ``cut`` apart.

    ``apart`` is the distance matrix. Nearest-neighbour chains (Murtagh 1983), quadratic in the number of questions.
    """
    members = {index: [index] for index in range(len(apart))}
    far = {a: {b: apart[a][b] for b in members if b != a} for a in members}
    chain: list[int] = []
    open_ones = set(members)
    while open_ones:
        last = chain[-1] if chain else min(open_ones)
        chain = chain or [last]
        near = _nearest(far[last], chain[-2] if len(chain) > 1 else None)
        if near is None or far[last][near] >= cut:
            open_ones -= set(chain)  # each of a chain is nearer to its neighbour than to anything else
            open_ones = {cluster for cluster in open_ones if cluster in members}
            chain = []
        elif len(chain) > 1 and near == chain[-2]:
            chain = chain[:-2]
            open_ones.discard(max(last, near))
            _join(members, far, *sorted((last, near)))
        else:
            chain.append(near)
    return _labels(members, len(apart))


def _nearest(row: dict[int, float], before: int | None) -> int | None:
    """The nearest, of several the one before in the chain."""
    return min(row, key=lambda column: (row[column], column != before, column), default=None)


def _join(members: dict[int, list[int]], far: dict[int, dict[int, float]], kept: int, gone: int) -> None:
    left, right = len(members[kept]), len(members[gone])
    row = far.pop(gone)
    for other in row:
        if other != kept:
            mean = (left * far[kept][other] + right * row[other]) / (left + right)
            far[kept][other] = far[other][kept] = mean
        del far[other][gone]
    members[kept] += members.pop(gone)


def _labels(members_of: dict[int, list[int]], count: int) -> list[int]:
    labels = [0] * count
    for label, members in enumerate(members_of.values()):
        for member in members:
            labels[member] = label
    return labels
