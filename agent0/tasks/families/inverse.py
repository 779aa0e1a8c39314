"""Inverse: find two numbers that some steps of arithmetic modulo m turn into two given ones.

``params``: ``steps`` (as in "x=x+3*y"), ``modulus`` (11 to 99) and ``end`` [x, y]. Many starts may be right; the check
runs the steps.
"""

import random
import re
from functools import lru_cache
from typing import Any

from agent0.tasks.families import Family, Params, family
from agent0.tasks.families.wording import ask, bodies

WORDINGS = ("Find x,y: {}.", "Which x,y: {}?", "Start where: {}?")
LEAST, TOP = 11, 99
"""Of the modulus."""
LONGEST = 60
FORMS = ("{v}+{a}*{w}", "{v}*{w}+{a}", "{a}*{v}+{w}", "{v}*{v}+{a}*{w}")
"""What becomes of one variable v, the other being w."""
_forms = [re.escape(form).replace(r"\{a\}", "([2-9])") for form in FORMS]
_pair = re.compile(r"\(?\s*(?:x\s*=\s*)?([0-9]{1,3})\s*[,;]\s*(?:y\s*=\s*)?([0-9]{1,3})\s*\)?")
_step = "[xy]=[+*xy2-9]{5,7}"
_shape = re.compile(rf"({_step}(?:;{_step}){{0,3}}) mod ([1-9][0-9]) gives (0|[1-9][0-9]?),(0|[1-9][0-9]?)")

Step = tuple[str, int, int]
"""Which variable changes, by which of ``FORMS``, with which factor."""


def sample(level: int, rng: random.Random) -> Params:
    """Draw ``level`` steps, a modulus and the end of a hidden start; draws with a trivial answer are repeated."""
    while True:
        modulus, x, y = rng.randint(LEAST, TOP), rng.randrange(100), rng.randrange(100)
        steps = [(rng.choice("xy"), rng.randrange(len(FORMS)), rng.randint(2, 9)) for _ in range(level)]
        end = _end(steps, modulus, x % modulus, y % modulus)
        params: Params = {"steps": [_text(step) for step in steps], "modulus": modulus, "end": list(end)}
        if not trivial(params):
            return params


def _text(step: Step) -> str:
    name, form, factor = step
    other = "y" if name == "x" else "x"
    return f"{name}={FORMS[form].format(v=name, w=other, a=factor)}"


def _steps(params: Params) -> tuple[Step, ...]:
    """As written."""
    return tuple(_read(text) for text in params["steps"])


@lru_cache(maxsize=4096)
def _read(text: str) -> Step:
    """Raises ValueError where it is no step."""
    name, other = ("x", "y") if text[0] == "x" else ("y", "x")
    for form, shape in enumerate(_forms):
        if match := re.fullmatch(shape.replace(r"\{v\}", name).replace(r"\{w\}", other), text[2:]):
            return name, form, int(match[1])
    raise ValueError(f"no step: {text[:20]}")


def _end(steps: Any, modulus: int, x: int, y: int) -> tuple[int, int]:
    for name, form, a in steps:
        v, w = (x, y) if name == "x" else (y, x)
        v = (v + a * w, v * w + a, a * v + w, v * v + a * w)[form] % modulus
        x, y = (v, w) if name == "x" else (w, v)
    return x, y


def _body(params: Params) -> str:
    return f"{';'.join(params['steps'])} mod {params['modulus']} gives {params['end'][0]},{params['end'][1]}"


def render(params: Params, rng: random.Random) -> str:
    """Word steps, modulus and end as a question, in one of ``WORDINGS``."""
    return ask(WORDINGS, _body(params), rng)


def parse(question: str) -> Params | None:
    """Read 1 to 4 steps, a modulus of 11 to 99 and an end below it from a question; None for other text."""
    for body in bodies(WORDINGS, question):
        if match := _shape.fullmatch(body):
            params: Params = {
                "steps": match[1].split(";"),
                "modulus": int(match[2]),
                "end": [int(match[3]), int(match[4])],
            }
            return params if _sound(params) else None
    return None


def _sound(params: Params) -> bool:
    try:
        _steps(params)
    except ValueError:
        return False
    return bool(params["modulus"] >= LEAST and max(params["end"]) < params["modulus"])


def level(params: Params) -> int:
    """The level of a task: its count of steps."""
    return len(params["steps"])


def solve(params: Params) -> str:
    """Search for the first start that leads to the end, among at most 9,801; empty where there is none."""
    return _start(_steps(params), params["modulus"], tuple(params["end"]))


@lru_cache(maxsize=256)
def _start(steps: tuple[Step, ...], modulus: int, end: tuple[int, ...]) -> str:
    starts = ((x, y) for x in range(modulus) for y in range(modulus))
    return next((f"{x},{y}" for x, y in starts if _end(steps, modulus, x, y) == end), "")


def check(params: Params, answer: str) -> str:
    """Check an answer x,y by running the steps from it; returns why it is wrong, empty where it is right."""
    match = _pair.fullmatch(answer.strip()) if len(answer) <= LONGEST else None
    if not match:
        return "not two numbers x,y"
    x, y = int(match[1]), int(match[2])
    if max(x, y) >= params["modulus"]:
        return f"{max(x, y)} is not below {params['modulus']}"
    end = _end(_steps(params), params["modulus"], x, y)
    return "" if end == tuple(params["end"]) else f"{x},{y} gives {end[0]},{end[1]}"


def trivial(params: Params) -> str:
    """Why the task is trivial: the end itself, 0,0 or 1,1 is an answer. Empty where it is not."""
    guesses = (params["end"], (0, 0), (1, 1))
    solution = next((guess for guess in guesses if not check(params, f"{guess[0]},{guess[1]}")), None)
    return f"{solution[0]},{solution[1]} needs no search" if solution else ""


def canonical(params: Params) -> str:
    """The identity of the task, which does not change when x and y are swapped."""
    swapped = {**params, "steps": [step.translate(_SWAP) for step in params["steps"]], "end": params["end"][::-1]}
    return f"inverse {min(_body(params), _body(swapped))}"


def operands(params: Params) -> str:
    """What tasks with other ends share: steps and modulus, whichever variable is called x."""
    ways = (";".join(params["steps"]), ";".join(params["steps"]).translate(_SWAP))
    return f"inverse {min(ways)} mod {params['modulus']}"


_SWAP = str.maketrans("xy", "yx")


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python tries every start and prints the first that fits."""
    m, (a, b) = params["modulus"], params["end"]
    updates = ";".join(f"{step[:2]}({step[2:]})%m" for step in params["steps"])
    lines = [f"m={m}", "for n in range(m*m):", " x,y=n//m,n%m", f" {updates}", f" if(x,y)==({a},{b}):"]
    return "python", {"code": "\n".join([*lines, "  print(f'{n//m},{n%m}')", "  break"])}


ENTRY = family(
    Family("inverse", "math", sample, render, parse, level, solve, canonical, call,
           check=check, trivial=trivial, operands=operands)
)  # fmt: skip
