"""Passages of documents: whole paragraphs of some 250 tokens. A document is held out as a whole, so that no passage of
it is ever trained on."""

import random
import re
from collections.abc import Iterator
from functools import lru_cache

from agent0.events.base import sha256
from agent0.events.values import Passage, Split
from agent0.ports.storage import Document, DocumentFolder
from agent0.tasks.splits import percentile_of, split_of

LONGEST = 1_000
"""Characters of a passage."""
SHORTEST = 120
"""Characters below which there is too little to ask about."""
_paragraph = re.compile(r"\S(?:.*?)(?=\n[ \t]*\n|\Z)", re.DOTALL)
_sentence_end = re.compile(r"(?<=[.!?])\s+")


@lru_cache(maxsize=4)  # every request asks for it
def by_split(folder: DocumentFolder) -> dict[Split, tuple[Document, ...]]:
    """The documents for training, validation and test: a document's text decides, not its name. Where that leaves none
    for training, the one that the rule comes to last is for it."""
    splits: dict[Split, tuple[Document, ...]] = {
        split: tuple(each for each in folder.documents if split_of(_key(each)) == split)
        for split in ("train", "validation", "test")
    }
    if splits["train"]:
        return splits
    last = max(folder.documents, key=lambda document: percentile_of(_key(document)))
    others = {split: tuple(each for each in splits[split] if each is not last) for split in splits}
    return {**others, "train": (last,)}


def draw_passage(folder: DocumentFolder, split: Split, seed: int) -> tuple[Passage, str]:
    """Draw a passage of a document of ``split`` with ``seed``, each as likely as any; returns it and its text.

    Raises:
        ValueError: there is none.
    """
    passages = passages_of(folder, split)
    if not passages:
        raise ValueError(f"no document for {split} has {SHORTEST} characters")
    document, start, end = random.Random(f"passage {seed}").choice(passages)
    text = document.text[start:end]
    return Passage(document=document.name, sha256=sha256(text), start=start, end=end), text


@lru_cache(maxsize=4)
def passages_of(folder: DocumentFolder, split: Split) -> tuple[tuple[Document, int, int], ...]:
    """Every passage of the documents of ``split``: document, start, end."""
    return tuple((document, *window) for document in by_split(folder)[split] for window in windows(document.text))


def windows(text: str) -> Iterator[tuple[int, int]]:
    """Cut ``text`` into passages (start, end) of at most ``LONGEST`` characters: paragraphs as far as they fit, a
    longer one at its sentences or words. What is shorter than ``SHORTEST`` is none."""
    start = end = 0
    for first, last in _pieces(text):
        if end and last - start > LONGEST:
            if end - start >= SHORTEST:
                yield start, end
            end = 0
        start, end = (start if end else first), last
    if end - start >= SHORTEST:
        yield start, end


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Paragraphs, and the sentences or words of those that are longer than a passage."""
    for paragraph in _paragraph.finditer(text):
        start, end = paragraph.span()
        while end - start > LONGEST:
            breaks = [mark.end() for mark in _sentence_end.finditer(text, start, start + LONGEST)]
            space = max(text.rfind(" ", start, start + LONGEST), text.rfind("\n", start, start + LONGEST)) + 1
            cut = breaks[-1] if breaks else space if space > start else start + LONGEST
            yield start, cut
            start = cut
        yield start, end


def _key(document: Document) -> str:
    return f"document {sha256(' '.join(document.text.split()))}"
