"""Ledger (long): coins that change hands among three people; the holdings are kept in a file.

``params``: ``held`` (name -> coins) and ``moves`` (kind and what fills its sentence). Each step's answer is computed.
"""

import random
import re
from typing import Any

from agent0.tasks.families import Family, Params, Subgoal, family
from agent0.tasks.families.stages import FEWEST, StepActions, question_of, read, script

PEOPLE = ("Ann", "Bob", "Cid", "Dee", "Eve", "Fay")
FILE = "coins.py"
START = "Start with coins: {} {}, {} {}, {} {}; count all"
MOVES = {
    "give": "Give {} of {}'s to {}; count {}'s",
    "half": "Give half of {}'s to {}, rounded down; count {}'s",
    "swap": "Swap {}'s and {}'s; count {}'s",
    "most": "Name who has most",
}
CODE = {
    "give": "h['{1}']-={0};h['{2}']+={0}",
    "half": "n=h['{0}']//2;h['{0}']-=n;h['{1}']+=n",
    "swap": "h['{0}'],h['{1}']=h['{1}'],h['{0}']",
    "most": "",
}
_BODY = r"([1-9]\d{0,2}|[A-Z][a-z]{2})"
_shapes = {kind: re.compile(_BODY.join(map(re.escape, text.split("{}")))) for kind, text in MOVES.items()}
_start = re.compile(_BODY.join(map(re.escape, START.split("{}"))))
Move = list[Any]
"""Kind and what fills its sentence: ``["give", "5", "Ann", "Bob", "Bob"]``."""


def sample(level: int, rng: random.Random) -> Params:
    """Draw three people with coins and level + 1 moves, at most two of them halvings.

    Who has most is asked at the end or not at all.
    """
    while True:
        holdings = {name: rng.randint(5, 99) for name in rng.sample(PEOPLE, 3)}
        kinds = rng.choices(list(MOVES)[:3], k=level + 1)
        if rng.random() < 0.4:
            kinds[-1] = "most"
        if kinds.count("half") > 2:
            continue
        params = {"held": holdings, "moves": [_drawn(kind, list(holdings), rng) for kind in kinds]}
        if _followed(params) is not None:
            return params


def _drawn(kind: str, people: list[str], rng: random.Random) -> Move:
    giver, other = rng.sample(people, 2)
    reported = rng.choice((giver, other))
    amount = [str(rng.randint(1, 40))] if kind == "give" else []
    return [kind] if kind == "most" else [kind, *amount, giver, other, reported]


def _followed(params: Params) -> list[tuple[str, dict[str, int]]] | None:
    """Answer and holdings after each step; None where a move is impossible or nobody has most."""
    holdings: dict[str, int] = dict(params["held"])
    answers_and_holdings = [(str(sum(holdings.values())), dict(holdings))]
    for kind, *parameters in params["moves"]:
        if kind == "most":
            best = [name for name, coins in holdings.items() if coins == max(holdings.values())]
            answers_and_holdings.append((best[0] if len(best) == 1 else "", dict(holdings)))
            continue
        giver, other, reported = parameters[-3:]
        if giver == other or reported not in (giver, other) or not {giver, other} <= set(holdings):
            return None
        moved = {
            "give": int(parameters[0]) if kind == "give" else 0,
            "half": holdings[giver] // 2,
            "swap": holdings[giver] - holdings[other],
        }
        holdings[giver], holdings[other] = holdings[giver] - moved[kind], holdings[other] + moved[kind]
        answers_and_holdings.append((str(holdings[reported]), dict(holdings)))
    sound = all(answer and min(after.values()) >= 0 for answer, after in answers_and_holdings)
    return answers_and_holdings if sound else None


def _texts(params: Params) -> list[str]:
    start = START.format(*(part for pair in params["held"].items() for part in pair))
    return [start, *(MOVES[kind].format(*parameters) for kind, *parameters in params["moves"])]


def render(params: Params, rng: random.Random) -> str:
    """Word the moves as a question, in one of the wordings that all long families share."""
    return question_of(_texts(params), rng)


def parse(question: str) -> Params | None:
    """Read holdings and moves from a question, where every move is possible; None for other text."""
    first, *rest = read(question) or ("",)
    start, moves = _start.fullmatch(first), [_move(text) for text in rest]
    if start is None or None in moves:
        return None
    names, coins = start.groups()[::2], start.groups()[1::2]
    if len(set(names)) < 3 or not all(map(str.isalpha, names)) or not all(map(str.isdigit, coins)):
        return None
    params = {"held": {name: int(number) for name, number in zip(names, coins, strict=True)}, "moves": moves}
    return params if _followed(params) is not None else None


def _move(text: str) -> Move | None:
    for kind, shape in _shapes.items():
        if match := shape.fullmatch(text):
            return [kind, *match.groups()] if kind != "give" or match[1].isdigit() else None
    return None


def level(params: Params) -> int:
    """The level of a task, by how many moves it has."""
    return len(params["moves"]) + 2 - FEWEST


def solve(params: Params) -> str:
    """The answer of the last step: a name or a number of coins."""
    return steps(params)[-1].answer


def steps(params: Params) -> tuple[Subgoal, ...]:
    """The subgoals: one move each, with its answer."""
    answers_and_holdings = _followed(params) or []
    return tuple(Subgoal(text, answer) for text, (answer, _) in zip(_texts(params), answers_and_holdings, strict=True))


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: holdings sorted by name, moves in order."""
    return f"ledger {sorted(params['held'].items())} {params['moves']}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python makes every move and prints the last answer."""
    moves = [CODE[kind].format(*parameters) for kind, *parameters in params["moves"]]
    return "python", {
        "code": "\n".join([f"h={params['held']}", *moves, f"print({_reported_expression(params['moves'][-1])})"])
    }


def _reported_expression(move: Move) -> str:
    return "max(h,key=h.get)" if move[0] == "most" else f"h[{move[-1]!r}]"


def play(params: Params) -> tuple[str, ...]:
    """The turns of a scripted student: one line of the file for each move."""
    holdings, moves = params["held"], params["moves"]
    look = f"exec(open({FILE!r}).read());print({{}})"
    first = StepActions(look.format("sum(h.values())"))
    done = [_actions(look.format(_reported_expression(move)), CODE[move[0]].format(*move[1:])) for move in moves]
    giver = next(iter(holdings))
    slip = _actions(look.format(f"h[{giver!r}]"), f"h[{giver!r}]-=1")
    answers = [step.answer for step in steps(params)]
    return script(FILE, f"h={holdings}\n#", (first, *done), answers, slip)


def _actions(look: str, line: str) -> StepActions:
    return StepActions(look, "#", f"{line}\n#") if line else StepActions(look)


ENTRY = family(
    Family("ledger", "logic", sample, render, parse, level, solve, canonical, call, steps=steps, script=play)
)
