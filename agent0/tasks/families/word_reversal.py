"""Word reversal, a ladder in words: write a list of words from the last one to the first. A task's level is the number
of its words.

``params``: ``words``, a text with blanks between them. All have four letters, so that an answer's length tells its
level.
"""

import random
import re

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.reversal import LAST
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("Turn around: {}.", "Last to first: {}.")
WORDS = (
    "ball", "bird", "boat", "bone", "book", "boot", "bowl", "cake", "card", "cave", "clay", "coal", "coat", "coin",
    "cook", "corn", "crab", "dish", "door", "drum", "duck", "farm", "fish", "flag", "foot", "fork", "frog", "gate",
    "gift", "goat", "gold", "hand", "hill", "hook", "horn", "iron", "king", "kite", "lake", "lamp", "leaf", "lion",
    "milk", "moon", "nest", "oven", "pear", "pipe", "rain", "ring", "road", "rock", "rope", "salt", "sand", "seed",
    "ship", "shoe", "silk", "snow", "star", "tent", "tree", "wolf",
)  # fmt: skip
_vocabulary = frozenset(WORDS)
_shape = re.compile(rf"[a-z]{{4}}(?: [a-z]{{4}}){{0,{LAST - 1}}}")


def sample(level: int, rng: random.Random) -> Params:
    """Draw ``level`` words, each of them uniformly and independently."""
    return {"words": " ".join(rng.choices(WORDS, k=level))}


def render(params: Params, rng: random.Random) -> str:
    """Word the list as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, params["words"], rng)


def parse(question: str) -> Params | None:
    """Read 1 to ``LAST`` known words; None for other text."""
    for body in bodies(WORDINGS, question, longest=6 * LAST):
        if _shape.fullmatch(body) and _vocabulary.issuperset(body.split(" ")):
            return {"words": body}
    return None


def level(params: Params) -> int:
    """The level of a task: how many words it has."""
    return str(params["words"]).count(" ") + 1


def solve(params: Params) -> str:
    """Write the words in reverse order; the only right answer."""
    return " ".join(reversed(params["words"].split(" ")))


def check(params: Params, answer: str) -> str:
    """Check an answer word by word; returns why it is wrong, empty where it is right."""
    expected, answered = params["words"].split(" "), answer.strip().split(" ")
    if len(answered) != len(expected):
        return f"it has {len(answered)} words, not {len(expected)}"
    wrong = next((n for n, token in enumerate(answered, 1) if token != expected[-n]), 0)
    return f"word {wrong} is wrong" if wrong else ""


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: its words."""
    return f"word reversal {params['words']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python turns the list around and prints it."""
    return "python", {"code": f"print(*'{params['words']}'.split()[::-1])"}


def derive(params: Params, rng: random.Random) -> str:
    """Write as many uniformly random words as the answer has."""
    return str(sample(level(params), rng)["words"])


def chance(params: Params) -> float:
    """The exact probability that what ``derive`` writes is right."""
    return float(len(WORDS) ** -level(params))


ENTRY = family(Family(
    "word_reversal", "math", sample, render, parse, level, solve, canonical, call,
    levels=LAST, check=check, derive=derive, chance=chance, ladder=True,
))  # fmt: skip
