"""Training examples for the built-in model that searches: arithmetic, and how to try again.

Only the easy parts of a family: of countdown two numbers with any sign, three with + and -, four with + alone. Neither
a * among three or four numbers nor a - among four is ever shown in a right answer; a run has to find these itself.
"""

import random

from agent0.rollout.prompts import prompt, render
from agent0.tasks.families import Params, families
from agent0.tasks.splits import split_key, split_of
from agent0.training.search_traces import AGAIN, CLOSE, OPEN
from events.values import Turn
from infra.tiny.examples import STYLE, Phase, TrainingExample

SEARCHED = ("countdown",)
SEARCH_MARKUP = (OPEN, AGAIN)
MISSES = 5
"""Wrong tries before the right one, at most."""
SIGNS = {1: "+-*", 2: "+-", 3: "+"}
"""What a right answer may use, by level."""
TRIED = {1: "+-*", 2: "+-", 3: "+-"}
"""What a wrong try may use."""
_HARDEST = 0.4
"""Of examples with two numbers, the share that multiplies."""


def search_example(level: int, phase: Phase, rng: random.Random) -> TrainingExample:
    """Make one conversation on a fresh training task. ``phase.tool`` is the share of examples with wrong tries
    first."""
    entry = families()[rng.choice(SEARCHED)]
    while True:
        given = entry.sample(level, rng)["numbers"]
        way = _way(given, SIGNS[level], rng)
        if way is None:
            continue
        params: Params = {"numbers": given, "target": way[1]}
        if level == 1 or split_of(split_key(entry, params)) == "train":
            break
    wrong = _misses(params, level, rng) if level > 1 and rng.random() < phase.tool else []
    text = OPEN + AGAIN.join([*wrong, way[0]]) + CLOSE
    asked = render(prompt(STYLE, entry.domain, "student"), {"question": entry.render(params, rng)})
    return (*asked, Turn(role="assistant", content=text))


def _misses(params: Params, level: int, rng: random.Random) -> list[str]:
    """Ways of easy signs that come to something else, each to something of its own: other targets of the same numbers,
    of which none is in a held-out set."""
    found: dict[int, str] = {}
    for _ in range(rng.randint(0, MISSES)):
        way = _way(params["numbers"], TRIED[level], rng)
        if way and way[1] != params["target"]:
            found.setdefault(way[1], way[0])
    return list(found.values())


def _way(given: list[int], signs: str, rng: random.Random) -> tuple[str, int] | None:
    """Random steps with true pools, and what they come to; None where a value leaves 1 to 99."""
    pool, text = list(given), ""
    while len(pool) > 1:
        one, other = rng.sample(pool, 2) if len(set(pool)) > 1 else pool[:2]
        high, low = max(one, other), min(one, other)
        sign = "*" if signs == "+-*" and rng.random() < _HARDEST else rng.choice(signs.replace("*", ""))
        made = {"+": high + low, "-": high - low, "*": high * low}[sign]
        if not 1 <= made <= 99:
            return None
        pool.remove(one)
        pool.remove(other)
        pool.insert(0, made)
        text += f"{';' if text else ''}{high}{sign}{low}={','.join(map(str, pool))}"
    return text, pool[0]
