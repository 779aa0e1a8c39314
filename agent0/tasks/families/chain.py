"""Chain (long): a sequence of whole numbers, each computed from earlier ones and kept in a file.

``params``: ``formulas`` in order, as in ["12*34", "a+5", "b%7"]. Each step's answer is computed.
"""

import random
import re

from agent0.tasks.families import Family, Params, Subgoal, family
from agent0.tasks.families.stages import FEWEST, StepActions, question_of, read, script

NAMES = "abcdef"
FILE = "values.py"
KINDS = ("add", "times", "rest", "pair")
_step = re.compile(r"Let ([a-f]) be (\S{3,7})")
_formula = re.compile(r"[1-9]\d\*[1-9]\d|[a-f][-+][1-9]\d{0,2}|[2-9]\*[a-f]|[a-f]%[1-9]\d|[a-f][-+][a-f]")


def sample(level: int, rng: random.Random) -> Params:
    """Draw level + 2 formulas; a product first, then no two formulas of one kind in a row."""
    formulas = [f"{rng.randint(11, 99)}*{rng.randint(11, 99)}"]
    kind = ""
    for index in range(1, level + 2):
        kind = rng.choice([other for other in KINDS[: 3 if index == 1 else 4] if other != kind])
        formulas.append(_drawn(kind, index, rng))
    return {"formulas": formulas}


def _drawn(kind: str, index: int, rng: random.Random) -> str:
    last, sign = NAMES[index - 1], rng.choice("+-")
    if kind == "pair":
        return f"{last}{sign}{NAMES[rng.randrange(index - 1)]}"
    drawn = {"add": f"{last}{sign}{rng.randint(2, 999)}", "times": f"{rng.randint(2, 9)}*{last}"}
    return drawn.get(kind, f"{last}%{rng.randint(11, 97)}")


def _texts(params: Params) -> list[str]:
    return [f"Let {name} be {formula}" for name, formula in zip(NAMES, params["formulas"], strict=False)]


def render(params: Params, rng: random.Random) -> str:
    """Word the steps as a question, in one of the wordings that all long families share."""
    return question_of(_texts(params), rng)


def parse(question: str) -> Params | None:
    """Read the formulas from a question, where each uses earlier values only; None for other text."""
    matches = [_step.fullmatch(text) for text in read(question) or ()]
    formulas = [match[2] for index, match in enumerate(matches) if match and _sound(match[1], match[2], index)]
    return {"formulas": formulas} if formulas and len(formulas) == len(matches) else None


def _sound(name: str, formula: str, index: int) -> bool:
    used = set(formula) & set(NAMES)
    return bool(
        _formula.fullmatch(formula)
        and name == NAMES[index]
        and bool(used) == (index > 0)
        and used <= set(NAMES[:index])
    )


def level(params: Params) -> int:
    """The level of a chain, by how many values it has."""
    return len(params["formulas"]) - FEWEST + 1


def _values(params: Params) -> list[int]:
    """In order. A remainder is never negative."""
    values: dict[str, int] = {}
    for name, formula in zip(NAMES, params["formulas"], strict=False):
        left, sign, right = re.split(r"([-+*%])", formula)
        first, second = (values[part] if part in values else int(part) for part in (left, right))
        if sign == "%":
            values[name] = first % second
        else:
            values[name] = {"+": first + second, "-": first - second, "*": first * second}[sign]
    return list(values.values())


def solve(params: Params) -> str:
    """Compute the last value of the chain; a whole number as text."""
    return str(_values(params)[-1])


def steps(params: Params) -> tuple[Subgoal, ...]:
    """The subgoals: one value each, with its answer."""
    return tuple(Subgoal(text, str(value)) for text, value in zip(_texts(params), _values(params), strict=True))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: the formulas in order."""
    return f"chain {' '.join(params['formulas'])}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python computes all values and prints the last."""
    lines = [f"{name}={formula}" for name, formula in zip(NAMES, params["formulas"], strict=False)]
    return "python", {"code": "\n".join([*lines, f"print({NAMES[len(lines) - 1]})"])}


def play(params: Params) -> tuple[str, ...]:
    """The turns of a scripted student: one line of the file for each value."""
    formulas = params["formulas"]
    done = [_actions(name, formula) for name, formula in zip(NAMES, formulas, strict=False)]
    first = StepActions(done[0].code)
    answers = [step.answer for step in steps(params)]
    return script(FILE, f"a={formulas[0]}\n#", (first, *done[1:]), answers, slip=_actions("b", "a+1"))


def _actions(name: str, formula: str) -> StepActions:
    return StepActions(f"exec(open({FILE!r}).read());print({name})", "#", f"{name}={formula}\n#")


ENTRY = family(Family("chain", "math", sample, render, parse, level, solve, canonical, call, steps=steps, script=play))
