"""Wordings: several ways to ask one thing, and parsing them back. ``{}`` stands for the body."""

import random
from collections.abc import Sequence

LONGEST = 200


def ask(wordings: Sequence[str], body: str, rng: random.Random) -> str:
    """Put ``body`` into one of ``wordings``, drawn at random by ``rng``."""
    return rng.choice(wordings).replace("{}", body, 1)


def bodies(wordings: Sequence[str], question: str, longest: int = LONGEST) -> list[str]:
    """The bodies under each wording that fits ``question``; empty where none does or it is longer than ``longest``."""
    texts = []
    for wording in wordings:
        before, _, after = wording.partition("{}")
        fits = question.startswith(before) and question.endswith(after) and len(question) > len(before) + len(after)
        if fits and len(question) <= longest:
            texts.append(question[len(before) : len(question) - len(after)])
    return texts
