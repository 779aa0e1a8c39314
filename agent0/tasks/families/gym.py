"""Families of reasoning-gym, where the package is installed: the data set's own scorer is the check.

``params``: ``source`` (the data set), ``level`` and ``seed``. A question ends with a line that names them, and is
parsed only where the data set makes exactly this text of them. So there is no ``retrace``: the task that a wrong answer
would solve need not be the task of any seed.
"""

import functools
import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import util
from typing import Any, TypedDict

from agent0.events.base import sha256
from agent0.tasks.families import Family, Params, family

DOMAIN, PREFIX, PACKAGE = "gym", "gym_", "reasoning_gym"
SEEDS = 1_000_000
LONGEST, LONGEST_ANSWER = 2_000, 600
_last = re.compile(r"\n\((gym_[a-z_]{1,30}), level ([1-4]), seed (0|[1-9][0-9]{0,5})\)")
_square = ("min_rows", "max_rows", "min_cols", "max_cols")


@dataclass(frozen=True)
class GymDataset:
    """A data set of reasoning-gym: its settings by level, and the form of an answer that its scorer may see.

    Scorers evaluate nothing of an answer, and are fast on whatever has this form.
    """

    levels: tuple[Mapping[str, int], ...]
    answer: re.Pattern[str]


class GymEntry(TypedDict):
    """An entry of a data set, as its scorer wants it back."""

    question: str
    answer: str | None


SOURCES: Mapping[str, GymDataset] = {
    "cryptarithm": GymDataset(
        tuple({"min_words": n, "max_words": n} for n in (2, 3, 4, 5)),
        re.compile(r"[A-Z]=[0-9](?:,\s?[A-Z]=[0-9]){1,9}"),
    ),
    "jugs": GymDataset(
        tuple({"difficulty": n} for n in (5, 7, 9, 11)),
        re.compile(r'\[\s*"[a-z]+ [A-C](?:->[A-C])?"(?:,\s*"[a-z]+ [A-C](?:->[A-C])?"){0,24}\s*\]'),
    ),
    "kakurasu": GymDataset(
        tuple(dict.fromkeys(_square, n) for n in (4, 5, 6, 7)),
        re.compile(r"[01](?: [01]){3,6}(?:\n[01](?: [01]){3,6}){3,6}"),
    ),
    "shortest_path": GymDataset(
        tuple(dict.fromkeys(_square, n) for n in (4, 5, 6, 8)),
        re.compile(r"(?:up|down|left|right)(?: (?:up|down|left|right)){0,63}"),
    ),
}
"""Data sets with many right answers, many forms and a scorer that can be trusted with a stranger's text."""


def present() -> bool:
    """Whether the package reasoning-gym is installed on this machine."""
    return util.find_spec(PACKAGE) is not None


@functools.lru_cache(maxsize=512)
def _dataset(name: str, level: int, seed: int) -> tuple[Any, GymEntry]:
    """The data set and its one entry."""
    import reasoning_gym.factory  # a second, and only where such a task is asked for

    dataset = reasoning_gym.factory.create_dataset(name, size=1, seed=seed, **SOURCES[name].levels[level - 1])
    return dataset, dataset[0]


def _of(params: Params) -> tuple[Any, GymEntry]:
    return _dataset(params["source"], params["level"], params["seed"])


def _sample(name: str, level: int, rng: random.Random) -> Params:
    while True:
        params: Params = {"source": name, "level": level, "seed": rng.randrange(SEEDS)}
        if solve(params) and len(_text(params)) <= LONGEST:
            return params


def _text(params: Params) -> str:
    """The data set's own words, and how they were made."""
    question = _of(params)[1]["question"].strip()
    return f"{question}\n({PREFIX}{params['source']}, level {params['level']}, seed {params['seed']})"


def render(params: Params, rng: random.Random) -> str:
    """The question in the data set's only wording; ``rng`` is not used."""
    return _text(params)


def _parse(name: str, question: str) -> Params | None:
    """What the last line says, where all lines before it follow from that."""
    match = _last.search(question[-80:]) if len(question) <= LONGEST else None
    if not match or match[1] != f"{PREFIX}{name}" or not question.endswith(match[0]):
        return None
    params: Params = {"source": name, "level": int(match[2]), "seed": int(match[3])}
    return params if _text(params) == question else None


def level(params: Params) -> int:
    """The level that the task was generated with, from 1."""
    return int(params["level"])


def solve(params: Params) -> str:
    """The answer that the data set brings; empty where its own scorer rejects it."""
    answer = str(_of(params)[1]["answer"])
    return "" if check(params, answer) else answer


def check(params: Params, answer: str) -> str:
    """Check an answer: it must have the required form and get the full score of the data set's scorer.

    Returns why it is wrong, empty where it is right.
    """
    text = answer.strip()
    if len(answer) > LONGEST_ANSWER or not SOURCES[params["source"]].answer.fullmatch(text):
        return "not of the form that is asked for"
    dataset, entry = _of(params)
    try:
        score = float(dataset.score_answer(text, entry))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return "it cannot be read"
    return "" if score >= 1.0 else f"it scores {score:.2g} where 1 is right"


def canonical(params: Params) -> str:
    """The identity of the task: a digest of its question, since several seeds may make the same one."""
    return f"{PREFIX}{params['source']} {sha256(_of(params)[1]['question'])[:32]}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python prints the data set's answer, whose own solver is not in the sandbox."""
    return "python", {"code": f"print({json.dumps(solve(params))})"}


def _entry(name: str) -> Family:
    sample, parse = partial(_sample, name), partial(_parse, name)
    return Family(f"{PREFIX}{name}", DOMAIN, sample, render, parse, level, solve, canonical, call, check=check)


ENTRIES = [family(_entry(name)) for name in SOURCES] if present() else []
