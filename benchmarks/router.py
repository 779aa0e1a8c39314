"""What strategies cost and how often they are right, on a mixed workload.

    agent0 run start --profile tiny --seed 0 --set run.iterations=3 --set run.evaluation.forced_tool=false
    agent0 calibrate --profile tiny --checkpoint RUN/student-2 --items 600 --samples 0 --seeds 3
    python -m benchmarks.router [--write]      # that student's answers and a stronger scripted model's, no call

The local model's answers, signals and verdicts are those that calibrations recorded. Its confidence is fitted on one
half of the tasks, and everything is scored on the other. The cloud is scripted: it is right on a share of tasks that is
drawn by task, gives no log-probabilities, and reads and writes as many tokens as the student did. A threshold is chosen
on the fitting half: the lowest that loses no accuracy there against asking the cloud alone.
"""

import argparse
import asyncio
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from agent0.assembly.log.access import open_log
from agent0.assembly.runtime.stamping import code_rev
from agent0.config.loading import load
from agent0.events.base import sha256
from agent0.events.benchmarks import ItemScored
from agent0.report.charts.plots import as_file
from agent0.rollout.confidence.calibration import CalibrationItem, Candidate, fitted
from agent0.routing.confidence import TOKENS
from agent0.routing.strategies import Answer, Option, Rules, strategies
from agent0.routing.walk import RecordedQuestion, walk_all
from agent0.stats.calibrators import ece
from benchmarks.cost_accuracy import (
    CLOUD,
    HOME,
    ROUNDS,
    Curve,
    Estimate,
    Seed,
    Standing,
    Workload,
    alone,
    best_at_each_cost,
    is_right,
    oracle,
    outcomes,
    picture,
)
from benchmarks.measured_page import RESULTS, write

RIGHT, READ, WRITTEN = 0.95, 2_500, 10_000
"""How often the cloud is right, and what its tokens cost in nano-dollars."""
RIGHT_BEHIND = 0.8
"""How often a cloud that errs only where the student does is right there."""
LEVELS = tuple(n / 50 for n in range(51))
LIVE = "threshold, by a turn's features"
PAGE, PICTURE = "router.md", "router-cost.svg"


@dataclass(frozen=True)
class Plan:
    """The rules of a strategy at a value of its setting; the value of its row, None: the threshold that was fitted; and
    the values of its curve, from the cheapest on."""

    rules: Callable[[Seed, float], Rules]
    at: float | None = 0.0
    sweep: Sequence[float] = ()


def _worth(seed: Seed, at: float) -> Rules:
    return Rules(worth=round(at * seed.whole / len(seed.tasks)))


PLANS = {
    "threshold": Plan(lambda seed, at: Rules(at), None, (*LEVELS, 1.01)),
    "cascade": Plan(lambda seed, at: Rules(at), None, (*LEVELS, 1.01)),
    "cost_aware": Plan(_worth, 50, tuple(1.15**n for n in range(60))),
    "budgeted": Plan(lambda seed, at: Rules(seed.threshold, allowance=round(at * seed.whole)), 0.25, LEVELS),
    "ab": Plan(lambda seed, at: Rules(share=at), 0.5, LEVELS),
    "ensemble": Plan(lambda seed, at: Rules()),
    "shadow": Plan(lambda seed, at: Rules()),
    "local_only": Plan(lambda seed, at: Rules()),
}
"""``cost_aware`` is swept over the worth of a right answer in mean calls of the cloud, ``budgeted`` over the allowance
as a share of what the cloud alone costs."""


@dataclass(frozen=True)
class Calibrated:
    """A seed with the name of its calibration, the signals that its confidence is of, their ECE on its tasks, and the
    tokens that the cloud reads and writes for each."""

    run: str
    signals: str
    ece: float
    seed: Seed
    tokens: Sequence[int]


def cloud_is_right(item: ItemScored, seed: int) -> bool:
    """Whether the scripted model answers this task right: on a share of tasks that has nothing to do with them."""
    return random.Random(f"{seed} {item.item}").random() < RIGHT


def follower_is_right(item: ItemScored, seed: int) -> bool:
    """The same for a model that errs only where the student does, and there so often that it is right on about as many
    tasks: what it is asked for after the student was right is lost money."""
    return bool(item.correct) or random.Random(f"{seed} {item.item}").random() < RIGHT_BEHIND


Cloud = Callable[[ItemScored, int], bool]


def questions(items: list[ItemScored], candidate: Candidate, seed: int, cloud: Cloud) -> list[RecordedQuestion]:
    """The tasks as recorded questions: keys say whether an answer is right."""
    out = []
    for one in items:
        cost = one.usage.prompt_tokens * READ + one.usage.completion_tokens * WRITTEN
        sure = candidate.apply(one.signals) if one.answer is not None and candidate.fits(one.signals) else None
        here = Answer(HOME, str(bool(one.correct)), sure, 0)
        away = Answer(CLOUD, str(cloud(one, seed)), None, cost)
        draw = int(sha256(one.item)[:8], 16) / 2**32
        out.append(RecordedQuestion((Option(HOME, 0), Option(CLOUD, cost, RIGHT)), {HOME: here, CLOUD: away}, draw))
    return out


def best_threshold(tasks: list[RecordedQuestion]) -> float:
    """The lowest threshold that loses no accuracy against the cloud alone on ``tasks``; 1.01 asks the cloud always."""
    wanted = sum(is_right(task, CLOUD) for task in tasks)
    decide, grid = strategies()["threshold"].decide, [*(n / 100 for n in range(101)), 1.01]
    return next(at for at in grid if sum(one.key == "True" for one in walk_all(decide, tasks, Rules(at))) >= wanted)


def calibrated(
    run: str, items: list[ItemScored], seed: int, live: bool = False, cloud: Cloud = cloud_is_right
) -> Calibrated:
    """Fit confidence and threshold on one half of ``items``; ``live``: by the features that its tokens give alone."""
    fitting, test = ([one for one in items if one.benchmark == split] for split in ("validation", "test"))
    known = [CalibrationItem(one.signals, bool(one.correct)) for one in fitting if one.answer is not None]
    candidate = next(one for one in fitted(known) if not live or set(one.names) <= set(TOKENS))
    threshold = best_threshold(questions(fitting, candidate, seed, cloud))
    said = [(candidate.apply(one.signals), bool(one.correct)) for one in test if candidate.fits(one.signals)]
    tasks = questions(test, candidate, seed, cloud)
    off = ece([sure for sure, _ in said], [right for _, right in said])
    tokens = [one.usage.prompt_tokens + one.usage.completion_tokens for one in test]
    return Calibrated(run, candidate.signal, off, Seed([one.item for one in test], tasks, threshold), tokens)


def token_share(held: Sequence[Calibrated]) -> float:
    """The share of the cloud's tokens that the fitted threshold needs."""
    needed, decide = 0, strategies()["threshold"].decide
    for one in held:
        routed = walk_all(decide, one.seed.tasks, Rules(one.seed.threshold))
        asked = [any(answer.model == CLOUD for answer in each.answers) for each in routed]
        needed += sum(count for count, sent in zip(one.tokens, asked, strict=True) if sent)
    return needed / sum(sum(one.tokens) for one in held)


async def recorded(home: Path) -> dict[str, list[ItemScored]]:
    """The first sample of every verified item, by calibration."""
    runs: dict[str, list[ItemScored]] = {}
    async with open_log(load("tiny", {"home": str(home)}, {})) as log:
        async for one in log.read(types=("ItemScored",)):
            if isinstance(one.event, ItemScored) and one.event.sample == 0 and one.event.correct is not None:
                runs.setdefault(one.run, []).append(one.event)
    return runs


def stands(name: str, workload: Workload, at: float | None) -> Standing:
    """Replay the strategy ``name`` at a value of its setting, None: at the threshold of each seed."""
    rules = PLANS[name].rules
    return workload.standing(
        outcomes(name, workload.seeds, lambda seed: rules(seed, seed.threshold if at is None else at))
    )


def curve(name: str, workload: Workload) -> Curve:
    """Replay the strategy ``name`` over all values of its setting."""
    plan = PLANS[name]
    return Curve([stands(name, workload, at) for at in plan.sweep], stands(name, workload, plan.at))


def row(name: str, one: Standing) -> str:
    """A strategy's row of the table."""
    return f"| {name} | {_shown(one.cost)} | {_shown(one.accuracy)} | {_shown(one.gained)} | {_shown(one.lost)} |"


def _shown(found: Estimate) -> str:
    return f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def fit_of(calibrated: Calibrated) -> str:
    """The ECE of its confidence and the threshold fitted on one seed."""
    return f"{calibrated.run} {calibrated.ece:.3f}, {calibrated.seed.threshold:.2f}"


def follower(held: Sequence[Calibrated]) -> Sequence[str]:
    """The table of a cloud that errs only where the student does."""
    workload = Workload([one.seed for one in held])
    fixed = {f"threshold {at:.2f}": stands("threshold", workload, at) for at in (0.7, 0.8, 0.9, 0.95)}
    rows = {"threshold": stands("threshold", workload, None), **fixed}
    ends = {"cloud alone": alone(workload.seeds), "oracle": oracle(workload.seeds)}
    return (
        "\n| the cloud errs only where the student does | cost, % | accuracy, % | points over random | points lost |",
        "|---|---|---|---|---|",
        *(row(name, one) for name, one in rows.items()),
        *(row(name, workload.standing(found)) for name, found in ends.items()),
    )


def report(held: Sequence[Calibrated], live: Sequence[Calibrated], behind: Sequence[Calibrated]) -> tuple[str, Markup]:
    """The tables of what was measured, and the picture; ``live`` are the same seeds by the features of a turn."""
    workload, turns = (Workload([one.seed for one in each]) for each in (held, live))
    curves = {name: curve(name, workload) for name in PLANS}
    curves[LIVE] = curve("threshold", turns)
    cloud, best = workload.standing(alone(workload.seeds)), workload.standing(oracle(workload.seeds))
    standings = {name: one.chosen for name, one in curves.items()} | {"cloud alone": cloud, "oracle": best}
    swept = [(at, stands("threshold", workload, at)) for at in (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)]
    parts = (
        f"![Accuracy over cost: every strategy beside random routing and the oracle]({PICTURE})\n",
        "| strategy | cost, % of the cloud's | accuracy, % | points over random routing | points lost |",
        "|---|---|---|---|---|",
        *(row(name, one) for name, one in standings.items()),
        "\n| threshold | cost, % of the cloud's | accuracy, % | points over random routing | points lost |",
        "|---|---|---|---|---|",
        *(row(f"{at:.2f}", one) for at, one in swept),
        *follower(behind),
        f"\nECE and threshold by calibration: {'; '.join(map(fit_of, held))}. By a turn's features: "
        f"{'; '.join(map(fit_of, live))}.\n",
        f"Of the cloud's tokens the fitted threshold needs {100 * token_share(held):.1f} %, by a turn's features "
        f"{100 * token_share(live):.1f} %.\n",
        f"{workload.different} different tasks in {len(held)} seeds; {ROUNDS} bootstrap samples; {code_rev()}.\n",
    )
    return "\n".join(parts) + "\n", picture(curves, cloud, best_at_each_cost(workload.seeds))


def main() -> None:
    """Print the tables, or write page and picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("AGENT0_HOME", "data")))
    parser.add_argument("--only", default="", help="calibrations whose names begin so; all without it")
    parser.add_argument("--write", action="store_true", help=f"into docs/results/{PAGE} and its picture")
    given = parser.parse_args()
    runs = {run: items for run, items in asyncio.run(recorded(given.home)).items() if run.startswith(given.only)}
    if not runs:
        parser.error(f"no calibration in {given.home}; make one with: agent0 calibrate --samples 0 --seeds 3")
    ways: tuple[Mapping[str, Any], ...] = ({}, {"live": True}, {"cloud": follower_is_right})
    of = [[calibrated(run, items, seed, **way) for seed, (run, items) in enumerate(runs.items())] for way in ways]
    found, drawn = report(*of)
    print(found)
    if given.write:
        write(PAGE, found)
        (RESULTS / PICTURE).write_text(as_file(drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
