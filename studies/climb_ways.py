"""Ways to climb a ladder faster or higher: the recipe of profile `climb` without log and handlers, changed one by one.

``python -m studies.climb_ways --seeds 0,1 --ways shipped,steps-200`` prints a row for each way and seed: T (highest
level of which half is solved, greedy) and S (accuracies of levels 4 to 30 added up) after each fifth iteration, and the
mean accuracy of the levels 4 to 6, which the base was taught, before and after. Model,
sampling, training and tasks are those of a run; the answer is compared as text. ``--base FOLDER`` names another base
for each seed (``{seed}`` stands for it), ``--ladder`` another family, ``--device`` another than the CPU (in single
precision, too), ``--recipe`` settings of training over those of every way, as JSON. Processor time is that of the whole
way.

``--ladder digit_sums`` (or ``column_addition``, ``word_reversal``) is how other ladders are compared with their
controls: ways ``uniform``, ``frozen`` and ``permuted``. A base of another size is made from a mix with a ``shape`` of
its own (``agent0 tiny build --mix``).
"""

import argparse
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agent0.config.loading import load
from agent0.events.values import Split, Trajectory, Turn
from agent0.infra.engine.inference import Engine
from agent0.infra.engine.requests import TurnRequest, Written
from agent0.infra.models.transformers import packaged
from agent0.infra.training.loop import Training
from agent0.ports.models import Sampling
from agent0.ports.training import Sample, TrainJob
from agent0.rollout.prompts import prompt, render
from agent0.tasks.families import Family, Params, families
from agent0.tasks.splits import split_key, split_of

TESTED = range(4, 31)
TAUGHT = range(4, 7)
EACH = 32
"""Test tasks a level."""
KEPT = 128
"""Test tasks of each taught level: what is forgotten is a few points."""
OUTSIDE = range(2, 5)
"""Levels of the other ladders, none of which its base was taught."""
SOLVED = 0.5
TOKENS = {"reversal": 64, "digit_sums": 80, "column_addition": 160, "word_reversal": 64}
"""Of an answer, at most."""
BATCH = 512
SETTLE = {"taught": 0.5, "fresh": 0.25}


@dataclass(frozen=True)
class Way:
    """What is done otherwise than in profile `climb`: ``recipe`` are settings of training; the rest is the loop's.

    ``schedule``: levels around the frontier, all tested ones, or only the taught ones. ``verdicts``: those of the
    verifier, or these permuted over an iteration's attempts. ``settle``: iterations after ``iterations`` in which half
    of each minibatch is what the base was taught, unless ``settling`` says otherwise; they draw levels around the
    frontier as before, or each up to it where they go ``down``.
    """

    recipe: Mapping[str, Any] = field(default_factory=dict)
    tasks: int = 512
    attempts: int = 1
    ahead: int = 3
    behind: int = 1
    iterations: int = 10
    temperature: float = 1.0
    schedule: Literal["frontier", "uniform", "frozen"] = "frontier"
    verdicts: Literal["verified", "permuted"] = "verified"
    settle: int = 0
    down: bool = False
    settling: Mapping[str, Any] = field(default_factory=lambda: SETTLE)


MORE = {"steps": 100, "taught": 0.25}
WAYS = {
    "shipped": Way(),
    "half-tasks": Way(tasks=256),
    "four-attempts": Way(tasks=128, attempts=4),
    "ahead-1": Way(ahead=1),
    "ahead-6": Way(ahead=6),
    "behind-4": Way(behind=4),
    "taught-0": Way({"taught": 0.0}),
    "fresh-25": Way({"fresh": 0.25}),
    "stretch-3": Way({"stretch": 3.0}),
    "stretch-1": Way({"stretch": 1.0}),
    "rate-2": Way({"lr": 0.002}),
    "rate-half": Way({"lr": 0.0005}),
    "no-warmup": Way({"warmup": 0}),
    "cold": Way(temperature=0.7),
    "steps-100-taught-25": Way(MORE),
    "uniform": Way(MORE, schedule="uniform"),
    "frozen": Way(MORE, schedule="frozen"),
    "permuted": Way(MORE, verdicts="permuted"),
    "steps-100-taught-50": Way({"steps": 100, "taught": 0.5}),
    "steps-200": Way({"steps": 200}),
    "twenty": Way(iterations=20),
    "settled-down": Way(MORE, settle=2, down=True),
    "settled": Way(MORE, settle=2),
    "settled-slowly": Way(MORE, settle=2, settling={"taught": 0.75, "fresh": 0.125, "lr": 0.0003}),
    "settled-slowly-50": Way(MORE, settle=2, settling=SETTLE | {"lr": 0.0003}),
    "settled-slowly-25": Way(MORE, settle=2, settling={"taught": 0.25, "fresh": 0.25, "lr": 0.0003}),
    "settled-down-slowly": Way(MORE, settle=2, down=True, settling=SETTLE | {"lr": 0.0003}),
}


class Climb:
    """One student on the ladder: what it solved at each level, and its accepted answers so far."""

    def __init__(self, way: Way, base: str, seed: int, ladder: str, device: str = "cpu") -> None:
        self.way, self.seed = way, seed
        self.family = families()[ladder]
        self.engine = Engine(base, device=device, precision="fp32")
        self.training = Training(base, device=device, precision="fp32")
        self.settings = load("climb").run.training.student.as_recorded() | {"temperature": 1.0} | dict(way.recipe)
        self.rng = random.Random(f"climb {seed}")
        self.rates = dict.fromkeys(range(1, 7), 1.0)
        self.pool: list[Sample] = []
        self.adapter = b""
        self.name = ""

    def iterate(self, number: int) -> int:
        """One iteration: attempts around the frontier, then a training on what was right; returns how many were."""
        settling = number >= self.way.iterations
        levels = self.levels(settling and self.way.down)
        drawn = [self.draw(levels[place % len(levels)], "train") for place in range(self.way.tasks)]
        asked = [one for one in drawn for _ in range(self.way.attempts)]
        found = self.write(asked, self.way.temperature, number)
        good = [written.text == answer for (_, _, answer), written in zip(asked, found, strict=True)]
        right: dict[int, list[bool]] = {}
        for (level, _, _), one in zip(asked, good, strict=True):
            right.setdefault(level, []).append(one)
        self.rates |= {level: sum(found) / len(found) for level, found in right.items()}
        if self.way.verdicts == "permuted":
            random.Random(f"verdicts {self.seed} {number}").shuffle(good)
        fresh = [sample_of(written) for written, one in zip(found, good, strict=True) if one]
        if fresh:
            settings = self.settings | dict(self.way.settling if settling else {})
            job = TrainJob(tuple(fresh), tuple(self.pool), None, self.seed * 1000 + number, settings)
            self.adapter, _ = self.training.train(job, self.adapter)
            self.name = f"student {number}"
            self.engine.load_adapter(self.name, self.adapter)
            self.pool += [replace(one) for one in fresh]
        return len(fresh)

    def outside(self) -> float:
        """Accuracy on the lowest levels of the other ladders, greedy."""
        own, rng, self.rng = self.family, self.rng, random.Random(f"outside {self.seed}")
        found = []
        for self.family in (families()[name] for name in TOKENS if name != own.name):
            asked = [self.draw(level, "test") for level in OUTSIDE for _ in range(EACH)]
            written = self.write(asked, 0.0, 0)
            found += [one.text == answer for (_, _, answer), one in zip(asked, written, strict=True)]
        self.family, self.rng = own, rng
        return sum(found) / len(found)

    def levels(self, down: bool) -> range:
        """The levels that an iteration asks for, each as often."""
        at = max((level for level, rate in self.rates.items() if rate >= SOLVED), default=1)
        around = range(1 if down else max(1, at - self.way.behind), at + (0 if down else self.way.ahead) + 1)
        return {"frontier": around, "uniform": TESTED, "frozen": TAUGHT}[self.way.schedule]

    def examine(self) -> tuple[int, float, float]:
        """(T, S, mean accuracy of the taught levels) on fresh test tasks, greedy."""
        rng, self.rng = self.rng, random.Random(f"exam {self.seed}")
        asked = [self.draw(level, "test") for level in TESTED for _ in range(KEPT if level in TAUGHT else EACH)]
        self.rng = rng
        found: dict[int, list[bool]] = {}
        for (level, _, answer), written in zip(asked, self.write(asked, 0.0, 0), strict=True):
            found.setdefault(level, []).append(written.text == answer)
        rates = {level: sum(right) / len(right) for level, right in found.items()}
        top = max((level for level, rate in rates.items() if rate >= SOLVED), default=0)
        return top, sum(rates.values()), sum(rates[level] for level in TAUGHT) / len(TAUGHT)

    def draw(self, level: int, split: Split) -> tuple[int, tuple[Turn, ...], str]:
        params = _params(self.family, level, split, self.rng)
        question = self.family.render(params, self.rng)
        asked = render(prompt("compact", self.family.domain, "student"), {"question": question})
        return level, tuple(asked), f"\\boxed{{{self.family.solve(params)}}}"

    def write(self, asked: Sequence[tuple[int, tuple[Turn, ...], str]], heat: float, number: int) -> list[Written]:
        found: list[Written] = []
        for begin in range(0, len(asked), BATCH):
            part = asked[begin : begin + BATCH]
            seeds = range((self.seed * 1000 + number) * 10**6 + begin, 10**12)
            batch = [
                TurnRequest(turns, Sampling(heat, 1.0, TOKENS[self.family.name], seed))
                for (_, turns, _), seed in zip(part, seeds, strict=False)
            ]
            found += self.engine.generate(batch, self.name)
        return found


def _params(family: Family, level: int, split: Split, rng: random.Random) -> Params:
    params = family.sample(level, rng)
    while split_of(split_key(family, params)) != split:
        params = family.sample(level, rng)
    return params


def sample_of(written: Written) -> Sample:
    prompt_ids, own = tuple(written.prompt), tuple(written.ids)
    mask = (*(0 for _ in prompt_ids), *(1 for _ in own))
    return Sample(
        Trajectory(token_ids=(*prompt_ids, *own), mask=mask, logprobs=(*(0.0 for _ in prompt_ids), *written.logprobs))
    )


def climb(name: str, base: str, seed: int, ladder: str, device: str, recipe: Mapping[str, Any]) -> None:
    """Follow one way from one base, and print its rows."""
    way, begin = WAYS[name], time.process_time()
    student = Climb(replace(way, recipe={**way.recipe, **recipe}), base, seed, ladder, device)
    rows, elsewhere = [student.examine()], student.outside()
    accepted = 0
    for number in range(way.iterations + way.settle):
        accepted += student.iterate(number)
        if number % 5 == 4 or number == way.iterations - 1 or number == way.iterations + way.settle - 1:
            rows.append(student.examine())
    heights = " -> ".join(f"{height}/{added:.2f}" for height, added, _ in rows)
    taught = " -> ".join(f"{mean:.3f}" for _, _, mean in rows)
    outside = f"{elsewhere:.2f} -> {student.outside():.2f}"
    cost = f"{accepted} accepted, {time.process_time() - begin:.0f} CPU s"
    print(f"| {name} | {seed} | {heights} | taught {taught} | outside {outside} | {cost} |", flush=True)


def main() -> None:
    """Read the command line and follow every way."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seeds", default="0")
    asked.add_argument("--ways", default=",".join(WAYS))
    asked.add_argument("--base", default=str(packaged("climb")))
    asked.add_argument("--ladder", default="reversal", help="the family; --base must know its lowest levels")
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--recipe", default="{}", type=json.loads)
    given = asked.parse_args()
    for seed in map(int, given.seeds.split(",")):
        for name in given.ways.split(","):
            climb(name, given.base.replace("{seed}", str(seed)), seed, given.ladder, given.device, given.recipe)


if __name__ == "__main__":
    main()
