"""Near-copies: questions that repeat another one but for a few words, by the runs of three words in both."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent0.tasks.decontamination import tokens_of

SIZE = 3
"""Words and signs in a row that are compared at once."""
SAME_NUMBERS, OTHER_NUMBERS = 0.5, 0.8
"""Share of such runs that two questions have in common from which one is a near-copy: with the same numbers in the same
order, and with others, as two questions made from one template have."""
COMMON = 200
"""References with a run of words from which it is a common one, by which no copy is looked for."""
Runs = frozenset[tuple[str, ...]]


@dataclass(frozen=True)
class NearCopy:
    """The reference (its index) that a question is most like; ``similarity`` is the Jaccard index of their runs of
    words, 1 where both have the same words and signs in whatever case and punctuation."""

    reference: int
    similarity: float


@dataclass(frozen=True)
class _WordRuns:
    tokens: str
    runs: Runs
    numbers: tuple[str, ...]


def near_copies(questions: Sequence[str], references: Sequence[str]) -> list[NearCopy | None]:
    """For each question, the reference that it nearly copies, in their order; None where there is none."""
    texts = [_read(reference) for reference in references]
    same = {text.tokens: index for index, text in reversed([*enumerate(texts)])}
    by_run: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, text in enumerate(texts):
        for run in text.runs:
            by_run[run].append(index)
    return [_nearest(_read(question), texts, same, by_run) for question in questions]


def _nearest(
    text: _WordRuns, references: Sequence[_WordRuns], same: dict[str, int], by_run: dict[tuple[str, ...], list[int]]
) -> NearCopy | None:
    if text.tokens in same:
        return NearCopy(same[text.tokens], 1.0)
    best: NearCopy | None = None
    for index in sorted({*_candidates(text, by_run)}):
        reference = references[index]
        similarity = len(text.runs & reference.runs) / len(text.runs | reference.runs)
        enough = SAME_NUMBERS if text.numbers == reference.numbers else OTHER_NUMBERS
        if similarity >= enough and (best is None or similarity > best.similarity):
            best = NearCopy(index, similarity)
    return best


def _candidates(text: _WordRuns, by_run: dict[tuple[str, ...], list[int]]) -> Iterator[int]:
    """References with one of the rarest runs of ``text``: whoever has half of all has one of that half."""
    rarest = sorted(text.runs, key=lambda run: (len(by_run.get(run, ())), run))
    for run in rarest[: len(rarest) // 2 + 1]:
        if len(by_run.get(run, ())) <= COMMON:
            yield from by_run.get(run, ())


def _read(question: str) -> _WordRuns:
    tokens = tokens_of(question).split()
    size = min(SIZE, len(tokens))
    runs = frozenset(tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1))
    return _WordRuns(" ".join(tokens), runs, tuple(token for token in tokens if token[0].isdigit()))
