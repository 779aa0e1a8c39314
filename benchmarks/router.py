"""What strategies save on a mixed workload.

    agent0 calibrate --checkpoint RUN/CHECKPOINT --items 600 --samples 0 --seeds 3      # a student answers here
    python -m benchmarks.router        # its answers and a stronger scripted model's, under each strategy

The local model's answers, signals and verdicts are those that calibrations recorded. Its confidence is fitted on one
half of the tasks, and everything is scored on the other. The cloud is scripted: it is right on a share of tasks that is
drawn by task, gives no log-probabilities, and reads and writes as many tokens as the student did. A threshold is chosen
on the fitting half: the lowest that loses no accuracy there against asking the cloud alone.
"""

import argparse
import asyncio
import os
import random
from pathlib import Path
from statistics import fmean

from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.rollout.confidence.calibration import Candidate, Item, fitted
from agent0.routing.confidence import FEATURES
from agent0.routing.strategies import Answer, Option, Rules, strategies
from agent0.routing.walk import Recorded, walk_all
from agent0.stats.calibrators import ece
from events.base import sha256
from events.benchmarks import ItemScored

RIGHT, READ, WRITTEN = 0.95, 2_500, 10_000
"""How often the cloud is right, and what its tokens cost in nano-dollars."""
HOME, CLOUD = "tiny", "cloud"
CALLS = 60


def cloud_is_right(item: ItemScored, seed: int) -> bool:
    """Whether the scripted model answers this task right."""
    return random.Random(f"{seed} {item.item}").random() < RIGHT


def questions(items: list[ItemScored], candidate: Candidate, seed: int) -> list[Recorded]:
    """The tasks as recorded questions: keys say whether an answer is right."""
    out = []
    for one in items:
        cost = one.usage.prompt_tokens * READ + one.usage.completion_tokens * WRITTEN
        sure = candidate.apply(one.signals) if one.answer is not None and candidate.fits(one.signals) else None
        here = Answer(HOME, str(bool(one.correct)), sure, 0)
        away = Answer(CLOUD, str(cloud_is_right(one, seed)), None, cost)
        draw = int(sha256(one.item)[:8], 16) / 2**32
        out.append(Recorded((Option(HOME, 0), Option(CLOUD, cost, RIGHT)), {HOME: here, CLOUD: away}, draw))
    return out


def scored(name: str, tasks: list[Recorded], rules: Rules) -> tuple[float, float]:
    """Accuracy of a strategy, and the share of the cloud's cost that it saves."""
    routed = walk_all(strategies()[name].decide, tasks, rules)
    whole = sum(one.answers[CLOUD].cost or 0 for one in tasks)
    return fmean(one.key == "True" for one in routed), 1 - sum(one.cost for one in routed) / whole


def cloud_alone(tasks: list[Recorded]) -> float:
    """Accuracy of the cloud on all tasks."""
    return fmean(one.answers[CLOUD].key == "True" for one in tasks)


def best_threshold(tasks: list[Recorded]) -> float:
    """The lowest threshold that loses no accuracy against the cloud alone on ``tasks``; 1.01 asks the cloud always."""
    grid = [n / 100 for n in range(101)] + [1.01]
    return next(at for at in grid if scored("threshold", tasks, Rules(at))[0] >= cloud_alone(tasks))


def losses(tasks: list[Recorded], rules: Rules) -> list[int]:
    """Of each task: 1 where only the cloud alone is right, -1 where only the threshold's answer is, else 0."""
    routed = walk_all(strategies()["threshold"].decide, tasks, rules)
    pairs = zip(tasks, routed, strict=True)
    return [(t.answers[CLOUD].key == "True") - (one.key == "True") for t, one in pairs]


def lost95(lost: list[list[int]], rounds: int = 1000) -> str:
    """Points of accuracy lost against the cloud alone, with the 95 % bootstrap interval over tasks; ``lost`` has a list
    for each task, of all seeds that drew it."""
    rng = random.Random(0)
    drawn = sorted(
        sum(map(sum, found)) / sum(map(len, found)) for found in (rng.choices(lost, k=len(lost)) for _ in range(rounds))
    )
    mean = sum(map(sum, lost)) / sum(map(len, lost))
    low, high = drawn[int(0.025 * rounds)], drawn[int(0.975 * rounds) - 1]
    return f"{100 * mean:.1f} points lost (95 %: {100 * low:.1f} to {100 * high:.1f})"


def curve(tasks: list[Recorded], threshold: float) -> list[str]:
    """A line a strategy: accuracy and savings, with random routing of the same cost and the oracle beside them."""
    whole = sum(one.answers[CLOUD].cost or 0 for one in tasks)
    allowance = whole // 4
    plans = {
        "local_only": Rules(),
        "threshold": Rules(threshold),
        "cascade": Rules(threshold),
        "cost_aware": Rules(worth=50 * whole // len(tasks)),
        "budgeted": Rules(threshold, allowance=allowance),
        "ensemble": Rules(),
        "ab": Rules(share=0.5),
        "shadow": Rules(),
    }
    here, away = scored("local_only", tasks, Rules())[0], cloud_alone(tasks)
    lines = []
    for name, rules in plans.items():
        right, saved = scored(name, tasks, rules)
        chance = here + (away - here) * min(1.0, 1 - saved)
        lines.append(f"| {name} | {right:.3f} | {saved:.2f} | {chance:.3f} |")
    wrong = [one for one in tasks if one.answers[HOME].key != "True"]
    gained = [one for one in wrong if one.answers[CLOUD].key == "True"]
    spent = sum(one.answers[CLOUD].cost or 0 for one in gained)
    return [*lines, f"| oracle | {here + len(gained) / len(tasks):.3f} | {1 - spent / whole:.2f} | |"]


async def workload(home: Path, live: bool) -> None:
    """Print a table a seed: each calibration of ``home`` is one. ``live``: by the features that a gateway has."""
    held = load("tiny", {"home": str(home)}, {})
    runs: dict[str, list[ItemScored]] = {}
    async with open_log(held) as log:
        async for one in log.read(types=("ItemScored",)):
            if isinstance(one.event, ItemScored) and one.event.sample == 0 and one.event.correct is not None:
                runs.setdefault(one.run, []).append(one.event)
    pooled: dict[str, list[int]] = {}
    for seed, (run, items) in enumerate(runs.items()):
        fitting, test = ([one for one in items if one.benchmark == split] for split in ("validation", "test"))
        known = [Item(one.signals, bool(one.correct)) for one in fitting if one.answer is not None]
        candidate = next(one for one in fitted(known) if not live or set(one.names) <= set(FEATURES))
        threshold = best_threshold(questions(fitting, candidate, seed))
        tasks = questions(test, candidate, seed)
        lost = losses(tasks, Rules(threshold))
        for one, value in zip(test, lost, strict=True):
            pooled.setdefault(one.item, []).append(value)
        said = [(candidate.apply(one.signals), bool(one.correct)) for one in test if candidate.fits(one.signals)]
        off, saved = ece([c for c, _ in said], [r for _, r in said]), scored("threshold", tasks, Rules(threshold))[1]
        print(f"\n{run}: {len(tasks)} tasks, {candidate.signal} by {candidate.method}, ECE {off:.3f} (n = {len(said)})")
        print(f"threshold {threshold:.2f}: {saved:.0%} saved, {lost95([[one] for one in lost])}")
        print(f"cloud alone {cloud_alone(tasks):.3f}\n")
        print("| strategy | accuracy | saved | random routing at this cost |\n|---|---|---|---|")
        print("\n".join(curve(tasks, threshold)))
    print(f"\nall seeds, {len(pooled)} different tasks: {lost95(list(pooled.values()))}")


def main() -> None:
    """Print a table a seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", action="store_true", help="by the features of a turn, as gateways have them")
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("AGENT0_HOME", "data")))
    given = parser.parse_args()
    asyncio.run(workload(given.home, given.live))


if __name__ == "__main__":
    main()
