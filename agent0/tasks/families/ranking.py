"""Ranking: who is oldest, youngest, second oldest or second youngest of several people.

``params``: ``ages`` (name -> age, all different) and ``place``. The name is computed.
"""

import random
import re

from agent0.tasks.families import Family, Params, family

NAMES = ("Ann", "Bob", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida", "Jan", "Kim", "Leo", "Max", "Ned", "Pat", "Sue")
PLACES = {"oldest": -1, "youngest": 0, "2nd oldest": -2, "2nd youngest": 1}
WORDINGS = ("{ages}. Who is {place}?", "Of ({ages}) name the {place}.", "Who is {place} of ({ages})?")
_ages = r"(?P<ages>[A-Z][a-z]{2}=\d{1,2}(?:,[A-Z][a-z]{2}=\d{1,2}){1,6})"
_rank = f"(?P<place>{'|'.join(PLACES)})"
_shapes = [re.compile(re.escape(w).replace(r"\{ages\}", _ages).replace(r"\{place\}", _rank)) for w in WORDINGS]


def sample(level: int, rng: random.Random) -> Params:
    """Draw level + 2 people with different ages, and a place; second places from level 2."""
    names, ages = rng.sample(NAMES, level + 2), rng.sample(range(5, 90), level + 2)
    rank = rng.choice(list(PLACES)[: 2 if level == 1 else 4])
    return {"ages": dict(zip(names, ages, strict=True)), "place": rank}


def _body(params: Params) -> str:
    return ",".join(f"{name}={age}" for name, age in params["ages"].items())


def render(params: Params, rng: random.Random) -> str:
    """Word ages and place as a question, in one of ``WORDINGS``."""
    return rng.choice(WORDINGS).replace("{ages}", _body(params)).replace("{place}", params["place"])


def parse(question: str) -> Params | None:
    """Read 2 to 7 known people with different ages, and a place; None for other text."""
    for shape in _shapes:
        if match := shape.fullmatch(question):
            pairs = [pair.split("=") for pair in match["ages"].split(",")]
            ages = {name: int(age) for name, age in pairs if name in NAMES}
            if len(ages) == len(pairs) == len(set(ages.values())) and not re.search(r"=0", match["ages"]):
                return {"ages": ages, "place": match["place"]}
    return None


def level(params: Params) -> int:
    """The level of a task, by how many people; a second place is at least level 2."""
    return max(2 if "2nd" in params["place"] else 1, min(4, len(params["ages"]) - 2))


def solve(params: Params) -> str:
    """Sort the people by age; the answer is the name at the place."""
    ages: dict[str, int] = params["ages"]
    return sorted(ages, key=lambda name: ages[name])[PLACES[params["place"]]]


def canonical(params: Params) -> str:
    """The identity of the task for deduplication and splits: people sorted by name, and the place."""
    people = ",".join(f"{name}={age}" for name, age in sorted(params["ages"].items()))
    return f"ranking {params['place']} {people}"


def call(params: Params) -> tuple[str, dict[str, str]]:
    """A reference tool call: Python sorts the people and prints the name."""
    return "python", {"code": f"d=dict({_body(params)});print(sorted(d,key=d.get)[{PLACES[params['place']]}])"}


ENTRY = family(Family("ranking", "logic", sample, render, parse, level, solve, canonical, call))
