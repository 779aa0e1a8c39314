"""Placement: put letters into an order under clues (before, beside, apart). Many orders may be right; the check tests
each clue.

``params``: ``items`` (4 to 8 letters) and ``clues`` (as in "A before B").
"""

import itertools
import random
import re
from collections.abc import Sequence
from functools import lru_cache

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("Order {}.", "Find an order of {}.", "In which order are {}?")
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"
FEWEST, MOST = 4, 8
"""Letters of a task; level + 4 from ``sample``."""
CLUES = {"before": 4, "beside": 4, "apart": 1}
"""How often each is drawn. Apart is not beside."""
MOST_CLUES = 10
LONGEST = 60
_clue = rf"[A-Z] (?:{'|'.join(CLUES)}) [A-Z]"
_shape = re.compile(rf"([A-Z](?:,[A-Z]){{{FEWEST - 1},{MOST - 1}}}): ({_clue}(?:, {_clue}){{0,{MOST_CLUES - 1}}})")
_answer = re.compile(r"[A-Z](?:[\s,<;-]{0,3}[A-Z]){0,20}")


def sample(level: int, rng: random.Random) -> Params:
    """Draw level + 4 letters and level + 3 clues that hold in a hidden order; draws with a trivial answer
    are repeated."""
    while True:
        items = rng.sample(LETTERS, level + 4)
        order = rng.sample(items, len(items))
        params: Params = {"items": items, "clues": _drawn(order, level + 3, rng)}
        if not trivial(params):
            return params


def _drawn(order: Sequence[str], n: int, rng: random.Random) -> list[str]:
    """``n`` different clues that hold in ``order``."""
    clues: dict[frozenset[str], str] = {}
    while len(clues) < n:
        (i, letter), (j, other) = rng.sample(list(enumerate(order)), 2)
        relation = rng.choices(list(CLUES), list(CLUES.values()))[0]
        if relation == "before" and i > j:
            letter, other = other, letter
        if relation == "before" or (abs(i - j) == 1) == (relation == "beside"):
            clues.setdefault(frozenset((letter, other)), f"{letter} {relation} {other}")
    return list(clues.values())


def render(params: Params, rng: random.Random) -> str:
    """Word letters and clues as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, f"{','.join(params['items'])}: {', '.join(params['clues'])}", rng)


def parse(question: str) -> Params | None:
    """Read 4 to 8 different letters and clues about pairs of them from a question; None for other text."""
    for body in bodies(WORDINGS, question):
        if match := _shape.fullmatch(body):
            items, clues = match[1].split(","), match[2].split(", ")
            named = [clue.split(" ")[::2] for clue in clues]
            different = len(set(items)) == len(items) and all(letter != other for letter, other in named)
            if different and set(itertools.chain(*named)) <= set(items):
                return {"items": items, "clues": clues}
    return None


def level(params: Params) -> int:
    """The level of a task: its count of letters less four, at least 1."""
    return max(1, len(params["items"]) - 4)


def solve(params: Params) -> str:
    """Search for the first order that fits all clues, letter by letter; empty where there is none."""
    return _fitting(tuple(sorted(params["items"])), tuple(sorted(params["clues"])))


@lru_cache(maxsize=256)
def _fitting(items: tuple[str, ...], clues: tuple[str, ...]) -> str:
    def search(order: tuple[str, ...]) -> tuple[str, ...] | None:
        if _broken(order, clues, partial=True):
            return None
        if len(order) == len(items):
            return order
        tried = (search((*order, item)) for item in items if item not in order)
        return next((solution for solution in tried if solution), None)

    return ",".join(search(()) or ())


def _broken(order: Sequence[str], clues: Sequence[str], partial: bool = False) -> str:
    """The first clue that does not hold in ``order``; of a ``partial`` order, the first that can no longer hold."""
    places = {item: index for index, item in enumerate(order)}
    for clue in clues:
        letter, relation, other = clue.split(" ")
        i, j = places.get(letter), places.get(other)
        if i is None or j is None:
            if partial and _doomed(relation, i, j, len(order)):
                return clue
        elif not {"before": i < j, "beside": abs(i - j) == 1, "apart": abs(i - j) > 1}[relation]:
            return clue
    return ""


def _doomed(relation: str, i: int | None, j: int | None, placed: int) -> bool:
    """Whether a clue can no longer hold, with at most one of its letters placed: the other came first, or it is too
    late to be beside."""
    if relation == "before":
        return i is None and j is not None
    here = i if i is not None else j
    return relation == "beside" and here is not None and here < placed - 1


def check(params: Params, answer: str) -> str:
    """Check an order of letters, with or without commas; returns why it is wrong, empty where it is right."""
    text = answer.strip()
    if len(answer) > LONGEST or not _answer.fullmatch(text):
        return "not an order of letters"
    order = re.findall("[A-Z]", text)
    if sorted(order) != sorted(params["items"]):
        return f"not each of {','.join(params['items'])} once"
    broken = _broken(order, params["clues"])
    return f"it does not hold that {broken}" if broken else ""


def trivial(params: Params) -> str:
    """Why the task is trivial: the letters as listed or sorted fit, forwards or backwards. Empty where they do not."""
    for order in (params["items"], sorted(params["items"])):
        for guess in (order, order[::-1]):
            if not _broken(guess, params["clues"]):
                return f"{','.join(guess)} needs no search"
    return ""


def canonical(params: Params) -> str:
    """The identity of the task: letters and clues, sorted; beside and apart read the same both ways."""
    clues = []
    for clue in params["clues"]:
        letter, relation, other = clue.split(" ")
        if relation != "before":
            letter, other = sorted((letter, other))
        clues.append(f"{letter} {relation} {other}")
    return f"placement {','.join(sorted(params['items']))}: {', '.join(sorted(set(clues)))}"


def operands(params: Params) -> str:
    """What tasks with other clues share: the letters, and which pairs the clues are about."""
    pairs = sorted({"".join(sorted(clue.split(" ")[::2])) for clue in params["clues"]})
    return f"placement {','.join(sorted(params['items']))}: {', '.join(pairs)}"


CODE = {"before": "i({0!r})<i({1!r})", "beside": "abs(i({0!r})-i({1!r}))==1", "apart": "abs(i({0!r})-i({1!r}))>1"}


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python tries every order and prints the first that fits."""
    parts = [clue.split(" ") for clue in params["clues"]]
    holds = " and ".join(CODE[relation].format(letter, other) for letter, relation, other in parts)
    letters = "".join(params["items"])
    lines = [
        "from itertools import permutations",
        f"for p in permutations({letters!r}):",
        " i=p.index",
        f" if {holds}:",
        "  print(','.join(p))",
        "  break",
    ]
    return "python", {"code": "\n".join(lines)}


ENTRY = family(
    Family("placement", "logic", sample, render, parse, level, solve, canonical, call,
           check=check, trivial=trivial, operands=operands)
)  # fmt: skip
