"""How near tasks come to a benchmark's items: what the limits of ``decontamination`` let through, in numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from agent0.tasks.decontamination import Reference, words_of


@dataclass(frozen=True)
class NearestItem:
    """The item of a benchmark that is most like a question.

    ``similarity`` is the cosine of their embeddings; ``words`` the longest run of words that the question shares with
    this item.
    """

    question: str
    item: str
    text: str
    similarity: float
    words: int


def nearest_items(
    questions: Sequence[str],
    vectors: Sequence[Sequence[float]],
    references: Sequence[Reference],
    reference_vectors: Sequence[Sequence[float]],
) -> list[NearestItem]:
    """Return the nearest item of each question, in their order.

    Args:
        vectors: unit vectors of the questions (questions x dimensions).
        reference_vectors: unit vectors of the items, at least one (references x dimensions).
    """
    similarities = np.asarray(vectors, dtype=np.float32) @ np.asarray(reference_vectors, dtype=np.float32).T
    nearest = similarities.argmax(axis=1)
    return [
        NearestItem(
            question,
            references[at].item,
            references[at].text,
            round(float(similarities[row, at]), 4),
            shared_words(question, references[at].text),
        )
        for row, (question, at) in enumerate(zip(questions, nearest, strict=True))
    ]


def shared_words(first: str, second: str) -> int:
    """How many words in a row two texts have in common at most, in normalised spelling."""
    words, others = words_of(first), words_of(second)
    return SequenceMatcher(None, words, others, autojunk=False).find_longest_match().size
