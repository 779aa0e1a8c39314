"""Is the gain of a student from a short training on some of an iteration's tasks above the noise of measuring it?

``python -m studies.student_gain --seeds 0,1`` climbs a few iterations without log and handlers (as
``studies.climb_ways``), then splits the accepted answers of one iteration into subsets, trains on each of them
several times from the same student, with another order of minibatches each time, and scores each training on one set of
tasks that the student does not solve. It prints, for each way to split and number of steps: the mean gain of each
subset, the deviation of a single measurement (over repeats of the same subset), the deviation of subsets beyond that
noise, and the share of a single measurement's variance that is the subsets' own.
"""

import argparse
import random
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, variance

from agent0.events.values import Turn
from agent0.infra.models.transformers import packaged
from agent0.ports.training import Sample, TrainJob
from studies.climb_ways import SOLVED, WAYS, Climb, sample_of

Asked = tuple[int, tuple[Turn, ...], str]
AROUND, AHEAD = range(-4, 5), range(1, 5)
"""Levels of the tasks, and of the probe, from the student's frontier."""
REPEATS = 5


class Fork(Climb):
    """A student from which short trainings branch off, each on some answers; none of them changes it."""

    def frontier(self) -> int:
        """The highest level of which half was solved."""
        return max((level for level, rate in self.rates.items() if rate >= SOLVED), default=1)

    def accepted(self, tasks: int, attempts: int) -> list[tuple[int, list[Sample]]]:
        """(level, right answers) of each of ``tasks`` around the frontier that was solved at least once."""
        at, rng = self.frontier(), random.Random("levels")
        drawn = [self.draw(max(1, at + rng.choice(AROUND)), "train") for _ in range(tasks)]
        written = self.write([one for one in drawn for _ in range(attempts)], 1.0, 999)
        found = []
        for place, (level, _, answer) in enumerate(drawn):
            own = written[place * attempts : (place + 1) * attempts]
            right = [sample_of(one) for one in own if one.text == answer]
            found += [(level, right)] if right else []
        return found

    def probe(self, size: int) -> list[Asked]:
        """At most ``size`` training tasks just beyond the frontier that the student does not solve, greedy."""
        at = self.frontier()
        drawn = [self.draw(at + AHEAD[place % len(AHEAD)], "train") for place in range(3 * size)]
        written = self.write(drawn, 0.0, 0)
        return [one for one, own in zip(drawn, written, strict=True) if own.text != one[2]][:size]

    def gain(self, fresh: Sequence[Sample], probe: Sequence[Asked], steps: int, seed: int) -> float:
        """Share of ``probe`` solved after ``steps`` on ``fresh``."""
        job = TrainJob(tuple(fresh), tuple(self.pool), None, seed, self.settings | {"steps": steps})
        adapter, _ = self.training.train(job, self.adapter)
        name, self.name = self.name, f"fork {seed}"
        self.engine.load_adapter(self.name, adapter)
        written = self.write(probe, 0.0, 0)
        self.name = name
        self.engine.load_adapter(name, self.adapter)  # it was used longest ago
        return fmean(own.text == one[2] for one, own in zip(probe, written, strict=True))


def split(found: Sequence[tuple[int, list[Sample]]], subsets: int, how: str) -> list[list[Sample]]:
    """``found`` in ``subsets`` parts of like size: by ``chance``, or neighbours in ``level``."""
    dealt = random.Random("subsets").sample(list(found), len(found))
    ranked = sorted(dealt, key=lambda one: one[0]) if how == "level" else dealt
    bounds = [len(ranked) * place // subsets for place in range(subsets + 1)]
    return [[one for _, own in ranked[begin:end] for one in own] for begin, end in pairwise(bounds)]


def row(gains: Sequence[Sequence[float]]) -> str:
    """What the repeats of each subset came to."""
    means = [fmean(one) for one in gains]
    noise = fmean(variance(one) for one in gains)
    own = max(0.0, variance(means) - noise / len(gains[0]))
    shown = " ".join(f"{mean:.3f}" for mean in means)
    return f"{shown} | {noise**0.5:.3f} | {own**0.5:.3f} | {own / (own + noise):.2f}" if own + noise else shown


def main() -> None:
    """Read the command line, climb, and measure after each of the iterations named."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seeds", default="0")
    asked.add_argument("--after", default="2,6", help="iterations of the climb")
    asked.add_argument("--subsets", type=int, default=4)
    asked.add_argument("--steps", default="8")
    asked.add_argument("--probe", type=int, default=128)
    given = asked.parse_args()
    print(
        "| seed | after | frontier | split | steps | gain by subset | noise | subsets | share | CPU s a measurement |"
    )
    for seed in map(int, given.seeds.split(",")):
        fork, done = Fork(WAYS["shipped"], str(packaged("climb")), seed, "reversal"), 0
        for after in map(int, given.after.split(",")):
            while done < after:
                fork.iterate(done)
                done += 1
            found, probe = fork.accepted(64, 2), fork.probe(given.probe)
            for how in ("chance", "level"):
                parts = split(found, given.subsets, how)
                for steps in map(int, given.steps.split(",")):
                    begin = time.process_time()
                    gains = [[fork.gain(part, probe, steps, n) for n in range(REPEATS)] for part in parts]
                    cost = (time.process_time() - begin) / REPEATS / given.subsets
                    where = f"{seed} | {after} | {fork.frontier()} | {how} | {steps}"
                    print(f"| {where} | {row(gains)} | {cost:.2f} |", flush=True)


if __name__ == "__main__":
    main()
