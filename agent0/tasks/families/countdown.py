"""Countdown: reach a target with + - * from given numbers, each used once. Many answers are right; the check replays
the steps.

``params``: ``numbers`` (2 to 5 of 1 to 99) and ``target`` (1 to 99).
"""

import random
import re
from collections import Counter
from functools import lru_cache
from typing import Any

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.expression import LONGEST as LONGEST_FORMULA
from agent0.tasks.families.expression import numbers, value
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("Make {}.", "Make {} with + - * and each number once.", "How do you make {}?")
FEWEST, MOST = 2, 5
"""Numbers of a task: level + 1."""
TOP = 99
"""The largest number that is asked for or given."""
DRAWN = {1: 99, 2: 12, 3: 9, 4: 9}
"""The largest number that ``sample`` gives, by level."""
LONGEST = 300
_BOUNDS = (TOP, 9_999)
"""The largest value on the way: the search stays within the first where it can."""
_number = "[1-9][0-9]?"
_shape = re.compile(rf"({_number}) from ({_number}(?:,{_number}){{{FEWEST - 1},{MOST - 1}}})")
_value = "(?:0|[1-9][0-9]{0,3})"
_step = re.compile(rf"({_value})([-+*])({_value})=({_value}(?:,{_value})*)(?: ({_value}(?:,{_value})*))?")
_formula = re.compile(r"[-+*()0-9\s]+(?:=\s*[0-9]{1,4}\s*)?")
_spaces = re.compile(r"\s*([-+*=,;()])\s*")


def sample(level: int, rng: random.Random) -> Params:
    """Draw level + 1 numbers, and as target what a random derivation with values from 1 to ``TOP`` makes of them."""
    while True:
        numbers_drawn = [rng.randint(1, DRAWN[level]) for _ in range(level + 1)]
        derivation = _derivation(tuple(numbers_drawn), rng)
        if derivation:
            return {"numbers": numbers_drawn, "target": derivation[-1][1][0]}


def _derivation(pool: tuple[int, ...], rng: random.Random) -> list[tuple[str, tuple[int, ...]]]:
    """A random derivation: steps, each with the pool after it. Each step is drawn uniformly from all pairs and signs
    whose value is within 1 to ``TOP``, until one number is left. Empty where no step is left before that."""
    steps = []
    while len(pool) > 1:
        ways = _legal(pool)
        if not ways:
            return []
        steps.append(rng.choice(ways))
        pool = steps[-1][1]
    return steps


def _legal(pool: tuple[int, ...]) -> list[tuple[str, tuple[int, ...]]]:
    return [move for move in _moves(pool, TOP) if move[1][0]]


def derive(params: Params, rng: random.Random) -> str:
    """Write a uniformly random derivation (``_derivation``) from the numbers of ``params``, with the pools
    it leaves."""
    return ";".join(f"{step}={_listed(after)}" for step, after in _derivation(tuple(params["numbers"]), rng))


def chance(params: Params) -> float:
    """The exact probability that ``derive`` reaches the target, by enumeration of all derivations."""
    shares: dict[tuple[int, ...], float] = {}

    def share(pool: tuple[int, ...]) -> float:
        if len(pool) == 1:
            return float(pool[0] == params["target"])
        if pool not in shares:
            ways = _legal(pool)
            shares[pool] = sum(share(tuple(sorted(after))) for _, after in ways) / len(ways) if ways else 0.0
        return shares[pool]

    return share(tuple(params["numbers"]))


def render(params: Params, rng: random.Random) -> str:
    """Word numbers and target as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, f"{params['target']} from {_listed(params['numbers'])}", rng)


def parse(question: str) -> Params | None:
    """Read the target and 2 to 5 numbers, all of 1 to 99, from a question; None for other text."""
    for body in bodies(WORDINGS, question):
        if match := _shape.fullmatch(body):
            return {"numbers": [int(number) for number in match[2].split(",")], "target": int(match[1])}
    return None


def level(params: Params) -> int:
    """The level of a task: its count of numbers less one."""
    return len(params["numbers"]) - 1


def solve(params: Params) -> str:
    """Search for one answer: steps with the pool that each leaves, as in ``7+3=10,2;10*2=20`` for 20 from 3,7,2.

    Depth first, with values up to 99, then up to 9,999; empty where there is none.
    """
    pool = tuple(params["numbers"])
    for bound in _BOUNDS:
        if steps := _derivation_to(pool, params["target"], bound):
            return ";".join(steps)
    return ""


@lru_cache(maxsize=256)
def _derivation_to(pool: tuple[int, ...], target: int, bound: int) -> tuple[str, ...]:
    """Steps from ``pool`` to ``target``; none where there are none. A pool is looked at once, in whatever order."""
    dead: set[tuple[int, ...]] = set()

    def search(remaining: tuple[int, ...]) -> list[str] | None:
        if len(remaining) == 1:
            return [] if remaining[0] == target else None
        key = tuple(sorted(remaining))
        if key in dead:
            return None
        dead.add(key)
        for step, after in _moves(remaining, bound):
            rest = search(after)
            if rest is not None:
                return [f"{step}={_listed(after)}", *rest]
        return None

    return tuple(search(pool) or ())


def _moves(pool: tuple[int, ...], bound: int) -> list[tuple[str, tuple[int, ...]]]:
    """Every step that can be taken, the larger number before the smaller, and the pool after it."""
    moves = []
    for i, number in enumerate(pool):
        for j in range(i + 1, len(pool)):
            rest = (*pool[:i], *pool[i + 1 : j], *pool[j + 1 :])
            high, low = max(number, pool[j]), min(number, pool[j])
            for sign, outcome in (("+", high + low), ("-", high - low), ("*", high * low)):
                if outcome <= bound:
                    moves.append((f"{high}{sign}{low}", (outcome, *rest)))
    return moves


def check(params: Params, answer: str) -> str:
    """Check an answer; returns why it is wrong, empty where it is right.

    It is read as steps with or without the pools they leave (``7+3=10;10*2=20``), or as one formula, with or without
    its value.
    """
    if len(answer) > LONGEST:
        return f"longer than {LONGEST} characters"
    text = answer.strip()
    if not re.search(r"[0-9]\s+[0-9]", text) and _formula.fullmatch(text) and text.count("=") < 2:
        return _worth(params, "".join(text.split()))
    return _replayed(params, _spaces.sub(r"\1", text))


def _worth(params: Params, text: str) -> str:
    formula, equals, stated = text.partition("=")
    used, available = Counter(numbers(formula)), Counter[int](params["numbers"])
    if len(formula) > LONGEST_FORMULA or "**" in formula or formula.count("(") > 2 * MOST:
        return "cannot be read"
    try:
        total = value(formula)
    except ValueError:
        return "cannot be read"
    if equals and total != int(stated):
        return f"{formula} is {total}, not {int(stated)}"
    if used != available:
        return f"it uses {_listed(sorted(used.elements()))}, not {_listed(sorted(available.elements()))}"
    return "" if total == params["target"] else f"it makes {total}, not {params['target']}"


def _replayed(params: Params, text: str) -> str:
    pool = Counter[int](params["numbers"])
    for number, step in enumerate(text.split(";"), 1):
        if pool.total() == 1:
            return f"step {number}: only one number is left"
        if why := _taken(pool, step):
            return f"step {number}: {why}"
    if pool.total() > 1:
        return f"{_listed(sorted(pool.elements()))} are left: all numbers must be used"
    (last,) = pool
    return "" if last == params["target"] else f"it makes {last}, not {params['target']}"


def _taken(pool: Counter[int], step: str) -> str:
    """Take ``step`` in ``pool``, or say what is wrong with it."""
    read = _step.fullmatch(step)
    if not read:
        return "cannot be read"
    left, right = int(read[1]), int(read[3])
    missing = Counter((left, right)) - pool
    if missing:
        return f"there is no {min(missing)} to take from {_listed(sorted(pool.elements()))}"
    outcome = {"+": left + right, "-": left - right, "*": left * right}[read[2]]
    stated = [int(number) for number in read[4].split(",")]
    if outcome < 0:
        return f"{left}-{right} is below 0"
    if outcome not in stated:
        return f"{left}{read[2]}{right} is {outcome}"
    pool.subtract((left, right))
    pool[outcome] += 1
    for zero in [number for number, count in pool.items() if not count]:
        del pool[zero]
    written = [stated] if len(stated) > 1 else []
    written += [[int(number) for number in read[5].split(",")]] if read[5] else []
    if any(Counter(stated_pool) != pool for stated_pool in written):
        return f"{_listed(sorted(pool.elements()))} is left, not {_listed(written[-1])}"
    return ""


def _listed(values: Any) -> str:
    return ",".join(map(str, values))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: target, and numbers sorted."""
    return f"countdown {params['target']} from {_listed(sorted(params['numbers']))}"


def operands(params: Params) -> str:
    """What tasks with other targets share: the numbers, sorted."""
    return f"countdown from {_listed(sorted(params['numbers']))}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python tries every pair with every sign, recursively."""
    code = (
        "def f(p):\n"
        f" if len(p)<2:return [] if p=={[params['target']]} else None\n"
        " for i in range(len(p)):\n"
        "  for j in range(i):\n"
        "   a,b=max(p[i],p[j]),min(p[i],p[j])\n"
        "   r=p[:j]+p[j+1:i]+p[i+1:]\n"
        "   for s,v in('+',a+b),('-',a-b),('*',a*b):\n"
        "    t=f([v]+r)\n"
        "    if t is not None:return [f'{a}{s}{b}='+','.join(map(str,[v]+r))]+t\n"
        f"print(';'.join(f({params['numbers']})))"
    )
    return "python", {"code": code}


ENTRY = family(Family(
    "countdown", "math", sample, render, parse, level, solve, canonical, call,
    check=check, derive=derive, chance=chance, operands=operands,
))  # fmt: skip
