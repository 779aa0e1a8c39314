"""Decontamination: which generated tasks repeat a benchmark item, so that none of it is ever trained on.

A task is contaminated where it shares ``n`` words in a row with an item, unless the phrase is common: fewer than
``distinctive_words_needed(n)`` different words of it are more than everyday words, single letters, digits or words that
the task's own family always uses; or five items and more have the phrase. A task that is a whole question of an item is
always contaminated, symbols included; one that only contains it, where the question has no distinctive phrase but is
``n`` words and symbols long or has enough distinctive words as a whole. Besides, a question whose embedding is nearer
to an item's than a limit repeats it in other words.
"""

import functools
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from agent0.events.values import Task
from agent0.tasks.families import families

COMMON = 5
"""Items that share a phrase before it is a common one: instructions, templates, turns of speech."""
_SAMPLES = 16
"""Tasks drawn at each level to learn which words a family always uses."""
_FACTOR = 0x9E3779B97F4A7C15
_word_pattern = re.compile(r"\w+")
_token = re.compile(r"\w+|[^\w\s$\\.,:;?]")
_EVERYDAY = """
a about above after again all also altogether among an and another any are as ask at away be because been before below
between both but by came can come could day days did do does done down during each either else end ever every few find
first following for from gave get gets give given gives go goes going got had has have having he her here hers him his
how however if in into is it its itself just keep know last least left less let like long made make makes many may mean
means might more most much must my name need needs new next no none nor not now number numbers of off often on once one
only or other others our out over own part per place please put rest s said same say says second see seen shall she
should show shows so some still such t take takes taken tell than that the their them then there these they thing third
this those through time times to together too took total two under until up us use used uses using value values was way
we well went were what when where whether which while who whole whom whose why will with within without would year
years yes yet you your answer answers calculate compute determine difference divided equal equals equation evaluate
express expression function python program return returns integer integers list lists minus multiplied plus positive
negative product question result results simplify string strings sum write word words zero three four five six ten
"""
EVERYDAY = frozenset(_EVERYDAY.split())
_UNSEEN = ("Cf", "Mn", "Me")
"""Categories of characters that take no room of their own: zero width, soft hyphens, accents, variation selectors."""
_ALIKE = {
    "a": "АаΑαɑ", "b": "ВвΒβ", "c": "Сс", "d": "ԁ", "e": "ЕеΕε", "g": "ɡ", "h": "НнΗһ", "i": "ІіΙιı",  # noqa: RUF001
    "j": "Јј", "k": "КкΚκ", "l": "ӏ", "m": "МмΜ", "n": "Νη", "o": "ОоΟο", "p": "РрΡρ", "q": "Ԛԛ", "s": "Ѕѕ",  # noqa: RUF001
    "t": "ТтΤτ", "u": "υ", "v": "ν", "w": "Ԝԝω", "x": "ХхΧχ", "y": "УуҮүΥγ", "z": "Ζ", "'": "‘’‚‛ʼ", '"': "“”„",  # noqa: RUF001
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "": "\u115f\u1160\u3164\u2800",
}  # fmt: skip
"""Cyrillic, Greek and other letters by the Latin one they look like, quotes and dashes by the plain one; what looks
like nothing at all."""
_LATIN = str.maketrans({letter: plain for plain, others in _ALIKE.items() for letter in others})


@dataclass(frozen=True)
class Reference:
    """A benchmark item that no task may repeat.

    ``text`` is all of it, ``stems`` its question without choices in each way that it could be repeated, the barest
    last.
    """

    benchmark: str
    item: str
    text: str
    stems: tuple[str, ...]


def spelled(text: str) -> str:
    """Normalise the spelling of ``text``: compatible forms, letters that look Latin, case and accents; invisible
    characters go."""
    if text.isascii():
        return text.casefold()
    return _latin(_latin(text).casefold())


def _latin(text: str) -> str:
    visible = (c for c in unicodedata.normalize("NFKD", text) if unicodedata.category(c) not in _UNSEEN)
    return "".join(visible).translate(_LATIN)


def words_of(text: str) -> list[str]:
    """Split ``text`` into words and numbers, in normalised spelling."""
    return _word_pattern.findall(spelled(text))


def tokens_of(text: str) -> str:
    """Split ``text`` into words and symbols, joined by single spaces; punctuation and the marks of formulas
    are left out."""
    return f" {' '.join(_token.findall(spelled(text)))} "


def distinctive_words_needed(n: int) -> int:
    """How many different distinctive words a phrase of ``n`` words must have."""
    return 1 + n // 4


def _distinctive(phrase: Sequence[str], family_words: AbstractSet[str], n: int) -> bool:
    return len(
        {token for token in phrase if len(token) > 1 and token not in EVERYDAY and token not in family_words}
    ) >= distinctive_words_needed(n)


@functools.cache
def own_words(name: str) -> frozenset[str]:
    """Words, not numbers, that sampled tasks of the family ``name`` have in common; none for an unknown family."""
    family = families(long=None).get(name)
    if family is None:
        return frozenset()
    rng, counts = random.Random(f"words of {name}"), Counter[str]()
    for level in range(1, family.levels + 1):
        for _ in range(_SAMPLES):
            counts.update(set(words_of(family.render(family.sample(level, rng), rng))))
    return frozenset(token for token, count in counts.items() if count > 1 and not token.isdecimal())


class Phrases:
    """An index of every phrase of ``n`` words that fewer than ``COMMON`` of the texts have, about 12 bytes each."""

    def __init__(self, texts: Sequence[str], n: int) -> None:
        self._n = n
        self._ids: dict[str, int] = {}
        spelled = [[self._ids.setdefault(token, len(self._ids) + 1) for token in words_of(text)] for text in texts]
        self._text = np.repeat(np.arange(len(texts)), [len(ids) + 1 for ids in spelled])
        self._row = np.fromiter((i for ids in spelled for i in (*ids, 0)), dtype=np.uint64)
        hashes, places = self._hashed()
        order = np.lexsort((self._text[places], hashes))
        hashes, places = hashes[order], places[order]
        again = (hashes[1:] == hashes[:-1]) & (self._text[places[1:]] == self._text[places[:-1]])
        kept = np.concatenate([[True], ~again]) if len(hashes) else np.zeros(0, dtype=bool)
        unique, first, counts = np.unique(hashes[kept], return_index=True, return_counts=True)
        rare = counts < COMMON
        self._hashes, self._places = unique[rare], places[kept][first[rare]]

    def _hashed(self) -> "tuple[np.ndarray, np.ndarray]":
        """Hash and place of each phrase that lies within one text."""
        size = max(0, len(self._row) - self._n + 1)
        hashes, whole = np.zeros(size, dtype=np.uint64), np.ones(size, dtype=bool)
        for offset in range(self._n):
            part = self._row[offset : offset + size]
            hashes, whole = hashes * np.uint64(_FACTOR) + part, whole & (part != 0)
        return hashes[whole], np.flatnonzero(whole)

    def shared(
        self, tokens: Sequence[str], family_words: AbstractSet[str] = frozenset()
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield (number of a text, words in a row) for each distinctive phrase that ``tokens`` share with it."""
        for start in range(len(tokens) - self._n + 1):
            phrase = list(tokens[start : start + self._n])
            ids = [self._ids.get(token, 0) for token in phrase]
            if not all(ids) or not _distinctive(phrase, family_words, self._n):
                continue
            code = functools.reduce(lambda code, i: (code * _FACTOR + i) % 2**64, ids, 0)
            at = int(np.searchsorted(self._hashes, np.uint64(code)))
            if at < len(self._hashes) and self._hashes[at] == code:
                position = int(self._places[at])
                if list(self._row[position : position + self._n]) == ids:
                    yield int(self._text[position]), phrase


class ReferenceIndex:
    """An index of references with the unit vectors of their stems (references x dimensions)."""

    def __init__(self, references: Sequence[Reference], vectors: "np.ndarray", n: int) -> None:
        alike = {" ".join(words_of(reference.text)): reference for reference in reversed(references)}
        self._all, self._vectors, self._n = list(references), vectors, n
        self._references = list(reversed(alike.values()))
        self._phrases = Phrases([reference.text for reference in self._references], n)
        stems = [(stem, reference) for reference in reversed(references) for stem in reference.stems]
        self._stems: Mapping[str, Reference] = {tokens_of(stem): reference for stem, reference in stems}
        self._vague = {tokens_of(stem): stem for stem, _ in stems if self._indistinct(stem)}

    def _indistinct(self, stem: str) -> bool:
        return next(self._phrases.shared(words_of(stem)), None) is None

    def overlap(self, task: Task, vector: Sequence[float], limit: float) -> str:
        """Name benchmark, item and what ``task`` shares with it; empty where it shares nothing.

        ``vector`` is the embedding of the task's question, ``limit`` the cosine similarity above which it repeats an
        item.
        """
        text = "\n".join((task.question, *task.subgoals))
        family_words = own_words(task.family)
        for number, phrase in self._phrases.shared(words_of(text), family_words):
            return _described(self._references[number], f"{self._n} words in a row: {' '.join(phrase)!r}")
        if reference := self._repeated(tokens_of(text), family_words):
            return _described(reference, "the whole of it")
        nearness = self._vectors @ np.asarray(vector, dtype=self._vectors.dtype) if len(self._vectors) else np.zeros(1)
        if nearness.max() > limit:
            return _described(self._all[int(nearness.argmax())], f"similarity {nearness.max():.4f} > {limit}")
        return ""

    def _repeated(self, tokens: str, family_words: AbstractSet[str]) -> Reference | None:
        """The item whose question is all of a task, or part of it."""
        if tokens in self._stems:
            return self._stems[tokens]
        parts = (
            stem_tokens
            for stem_tokens, stem in self._vague.items()
            if stem_tokens in tokens and self._enough(stem_tokens, stem, family_words)
        )
        return next((self._stems[stem_tokens] for stem_tokens in parts), None)

    def _enough(self, stem_tokens: str, stem: str, family_words: AbstractSet[str]) -> bool:
        return stem_tokens.count(" ") > self._n or _distinctive(words_of(stem), family_words, self._n)


def _described(reference: Reference, what: str) -> str:
    return f"{reference.benchmark} {reference.item}: {what}"
