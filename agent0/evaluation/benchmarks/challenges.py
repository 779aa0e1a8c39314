"""Small functions to write, generated from a seed: each is a rule with numbers of its own, so that its solution is in
no book. Hidden tests are the reference's results for drawn inputs, compared outside both programs."""

import inspect
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.evaluation.benchmarks.plus import judge
from agent0.evaluation.benchmarks.seeded import seeded
from agent0.verification.programs import Problem
from agent0.verification.programs.judged import values

TESTS, LONGEST_SHOWN = 24, 120
ENTRY = "solve"


def _runs(text: str, least: int, mark: str) -> str:
    """Write every run of at least {least} equal characters as the character, then {mark!r}, then the length of the run;
    leave shorter runs as they are."""
    out, start = [], 0
    for place in range(1, len(text) + 1):
        if place == len(text) or text[place] != text[start]:
            length = place - start
            out.append(f"{text[start]}{mark}{length}" if length >= least else text[start:place])
            start = place
    return "".join(out)


def _windows(numbers: list[int], width: int, step: int) -> int:
    """Look at the {width} numbers that begin at positions 0, {step}, 2 * {step} and so on, as far as there are {width}
    of them. Return the largest sum of such a group; 0 where there is no whole group."""
    sums = [sum(numbers[at : at + width]) for at in range(0, len(numbers) - width + 1, step)]
    return max(sums, default=0)


def _intervals(pairs: list[list[int]], gap: int, least: int) -> list[list[int]]:
    """The argument is a list of pairs [begin, end], in any order, with begin <= end. Join pairs that overlap or between
    which there are at most {gap}: the next begin minus the last end is not more than {gap}. Then return those joined
    pairs with end - begin of at least {least}, in ascending order of begin."""
    out: list[list[int]] = []
    for begin, end in sorted(pairs):
        if out and begin - out[-1][1] <= gap:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return [pair for pair in out if pair[1] - pair[0] >= least]


def _shifted(text: str, vowels: int, others: int) -> str:
    """Move each small letter forward in the alphabet, starting again at a after z: the vowels a, e, i, o and u by
    {vowels}, the other small letters by {others}. Leave every other character as it is."""
    out = []
    for one in text:
        if "a" <= one <= "z":
            one = chr((ord(one) - 97 + (vowels if one in "aeiou" else others)) % 26 + 97)
        out.append(one)
    return "".join(out)


def _ordered(words: list[str], modulus: int) -> list[str]:
    """Sort the words by the remainder of their length divided by {modulus}, the largest remainder first; words with
    the same remainder by their letters read backwards, in ascending order."""
    return sorted(words, key=lambda word: (-(len(word) % modulus), word[::-1]))


def _digits(number: int, base: int, power: int) -> int:
    """Write the number, which is not negative, in base {base}. Return the sum of its digits, each raised to the power
    {power}."""
    total = 0
    while number:
        number, digit = divmod(number, base)
        total += digit**power
    return total


def _ledger(lines: list[str], fee: int, limit: int) -> list[int]:
    """Each line is "in N" or "out N", in cents, on an account that begins at 0. A line "out N" costs {fee} more, and is
    left out as if it were not there where the account would fall below -{limit}. Return the balance after every line
    that was not left out."""
    balance, out = 0, []
    for line in lines:
        word, amount = line.split()
        change = int(amount) if word == "in" else -int(amount) - fee
        if word == "out" and balance + change < -limit:
            continue
        balance += change
        out.append(balance)
    return out


def _paths(grid: list[str], jump: int) -> int:
    """The grid has rows of '.' and '#'. Count the ways from the upper left to the lower right cell on '.' alone; a move
    goes one cell to the right, one cell down, or {jump} cells to the right, over anything. 0 where an end is '#'."""
    high, wide = len(grid), len(grid[0])
    ways = [[0] * wide for _ in range(high)]
    ways[0][0] = int(grid[0][0] == ".")
    for row in range(high):
        for column in range(wide):
            if grid[row][column] == "." and (row or column):
                above = ways[row - 1][column] if row else 0
                beside = ways[row][column - 1] if column else 0
                far = ways[row][column - jump] if column >= jump else 0
                ways[row][column] = above + beside + far
    return ways[-1][-1]


def _common(words: list[str], most: int, least: int) -> list[str]:
    """Return the words that occur at least {least} times, the most frequent first and those of one frequency in
    alphabetical order, {most} of them at most."""
    counts = Counter(words)
    kept = [word for word in sorted(counts, key=lambda one: (-counts[one], one)) if counts[word] >= least]
    return kept[:most]


def _depths(text: str, weight: int) -> int:
    """The text has brackets ( ) and [ ] and other characters. Return -1 where the brackets do not match. Otherwise
    return the sum over all other characters of the number of brackets that are open there, where an open [ counts
    {weight}."""
    held: list[str] = []
    total = 0
    for one in text:
        if one in "([":
            held.append(one)
        elif one in ")]":
            if not held or held.pop() + one not in ("()", "[]"):
                return -1
        else:
            total += sum(weight if kind == "[" else 1 for kind in held)
    return -1 if held else total


def _strings(rng: random.Random, letters: str, most: int, longest: int = 9) -> list[str]:
    return ["".join(rng.choices(letters, k=rng.randint(1, longest))) for _ in range(rng.randint(0, most))]


def _numbers(rng: random.Random) -> list[int]:
    return [rng.randint(-50, 50) for _ in range(rng.randint(0, 25))]


def _pairs(rng: random.Random) -> list[list[int]]:
    begins = [rng.randint(-60, 60) for _ in range(rng.randint(0, 12))]
    return [[begin, begin + rng.randint(0, 15)] for begin in begins]


def _runny(rng: random.Random) -> str:
    return "".join(rng.choice("abc1 ") * rng.randint(1, 6) for _ in range(rng.randint(0, 8)))


def _lines(rng: random.Random) -> list[str]:
    return [f"{rng.choice(('in', 'out', 'out'))} {rng.randint(1, 400)}" for _ in range(rng.randint(0, 15))]


def _grid(rng: random.Random) -> list[str]:
    wide = rng.randint(1, 8)
    return ["".join(rng.choice("....#") for _ in range(wide)) for _ in range(rng.randint(1, 6))]


def _bracketed(rng: random.Random) -> str:
    text = "x"
    for _ in range(rng.randint(0, 6)):
        shape = rng.choice(("({})", "[{}]", "y{}", "{}z", "{}()", "[]{}"))
        text = shape.format(text)
    return text if rng.random() < 0.8 else text + rng.choice("([)]")


@dataclass(frozen=True)
class Rule:
    """A kind of function to write: ``reference`` states its rule in its docstring, which is the prompt.

    ``drawn`` are its numbers by name, lowest and highest; ``argument`` draws an argument.
    """

    reference: Callable[..., Any]
    drawn: Mapping[str, str | tuple[int, int]]
    argument: Callable[[random.Random], Any]


RULES = {
    "runs": Rule(_runs, {"least": (2, 5), "mark": "*#~^=:"}, _runny),
    "windows": Rule(_windows, {"width": (2, 7), "step": (2, 5)}, _numbers),
    "intervals": Rule(_intervals, {"gap": (1, 6), "least": (2, 12)}, _pairs),
    "shifted": Rule(
        _shifted, {"vowels": (2, 25), "others": (2, 25)}, lambda rng: " ".join(_strings(rng, "aeiouxyzbK-", 6))
    ),
    "ordered": Rule(_ordered, {"modulus": (2, 7)}, lambda rng: _strings(rng, "abc", 14)),
    "digits": Rule(_digits, {"base": (3, 36), "power": (2, 5)}, lambda rng: rng.choice((0, 1, rng.randint(2, 10**9)))),
    "ledger": Rule(_ledger, {"fee": (1, 30), "limit": (10, 500)}, _lines),
    "paths": Rule(_paths, {"jump": (2, 4)}, _grid),
    "common": Rule(_common, {"most": (2, 6), "least": (2, 3)}, lambda rng: _strings(rng, "ab", 30, 2)),
    "depths": Rule(_depths, {"weight": (2, 40)}, _bracketed),
}


def _item(rule: Rule, rng: random.Random) -> Item:
    drawn = {name: rng.choice(of) if isinstance(of, str) else rng.randint(*of) for name, of in rule.drawn.items()}
    instruction = " ".join((rule.reference.__doc__ or "").split()).format(**drawn)
    arguments = [rule.argument(rng) for _ in range(TESTS)]
    shown = max(arguments, key=lambda argument: len(repr(argument)) if len(repr(argument)) <= LONGEST_SHOWN else 0)
    question = (
        f"Write a Python function {ENTRY} with one argument. {instruction}\n"
        f"For example, {ENTRY}({shown!r}) returns {rule.reference(shown, **drawn)!r}. Reply with the whole function."
    )
    numbers = "".join(f", {name}={value!r}" for name, value in drawn.items())
    source = f"{_source(rule.reference)}\n\ndef {ENTRY}(given):\n    return {rule.reference.__name__}(given{numbers})"
    calls = list(dict.fromkeys(values.pack([ENTRY, [argument], {}]) for argument in arguments))
    data = json.dumps({"calls": calls, "rule": "equal", "atol": 0.0})
    problem = Problem("", "", ENTRY, wall_s=10.0)
    return Item("", question, ENTRY, f"```python\n{source}\n```", problem=problem, data=data)


def _source(reference: Callable[..., Any]) -> str:
    needs = "from collections import Counter\n\n" if reference is _common else ""
    return f"{needs}{inspect.getsource(reference)}"


def _kind(rule: Rule) -> Callable[[random.Random], Item]:
    return lambda rng: _item(rule, rng)


KINDS = {name: _kind(rule) for name, rule in RULES.items()}


def make(n: int, seed: int) -> Sequence[Item]:
    """Generate the first ``n`` items of the suite from ``seed``."""
    return seeded("coding", KINDS, n, seed)


CODING = benchmark(
    Benchmark(
        name="coding",
        title="Small functions with hidden tests, made from a seed",
        domain="code",
        make=make,
        size=120,
        judge=judge,
        licence="MIT (Agent0)",
        source="made here",
    )
)
