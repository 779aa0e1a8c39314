"""Wordings: several ways to ask one thing, and the way back. ``{}`` stands for the body."""

import random
from collections.abc import Sequence

LONGEST = 200


def ask(wordings: Sequence[str], body: str, rng: random.Random) -> str:
    """``body`` in one of ``wordings``."""
    return rng.choice(wordings).replace("{}", body, 1)


def bodies(wordings: Sequence[str], question: str) -> list[str]:
    """The body under each wording that fits ``question``; empty where none does."""
    found = []
    for wording in wordings:
        before, _, after = wording.partition("{}")
        fits = question.startswith(before) and question.endswith(after) and len(question) > len(before) + len(after)
        if fits and len(question) <= LONGEST:
            found.append(question[len(before) : len(question) - len(after)])
    return found
