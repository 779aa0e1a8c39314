"""A mixed workload as it is really run: a small student, and a stronger scripted model behind a vendor's API.

    agent0 run start --profile tiny --seed 0 --set run.iterations=3 --set run.evaluation.forced_tool=false
    agent0 router calibrate --profile tiny --checkpoint RUN/student-2 --seeds 3
    python -m benchmarks.mixed_workload RUN/student-2 [--items 300] [--thresholds 0.8,0.9,0.95]

Held-out tasks of each seed are asked of the student alone, of the other model alone, and through the strategy
``threshold``, by ``agent0 router evaluate``'s own code: gateway, budgets, events, each turn routed by itself. The other
model is a server of ours that speaks Anthropic's API and answers a share of tasks right, drawn by task; each of its
calls counts as many tokens. The student's confidence is by the newest calibrator of each seed, which saw none of these.
"""

import argparse
import asyncio
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from agent0.assembly.evaluation.benchmark_run import adapter_of
from agent0.assembly.evaluation.routed import Plan, evaluate_routed
from agent0.assembly.log.access import open_log
from agent0.config.loading import load
from agent0.evaluation.routed import Way
from agent0.events.benchmarks import CalibratorFitted, ItemScored
from agent0.events.models import ModelCalled
from agent0.settings import CalibratorConfig, RoutingConfig, Settings
from agent0.tasks.families import families
from agent0.tasks.splits import heldout
from tests.anthropic_server import AnthropicStandIn, Part, serving

MODEL, RIGHT, ROUNDS = "claude-sonnet-4-5", 0.95, 2000
Rows = dict[tuple[int, str], tuple[bool, int]]
"""(seed, task) -> whether it was answered right, and how often the other model was asked."""


def answering(server: AnthropicStandIn, items: int, seed: int) -> None:
    """Have the other model answer the tasks of ``seed``, a share of them right."""
    known = {one.question: families()[one.family].solve(one.params) for one in heldout("test", items, seed)}

    def parts(fault: str) -> Iterator[Part]:
        said = str(server.asked[-1]["messages"])
        question = max((one for one in known if one in said), key=len)
        right = random.Random(f"{seed} {question}").random() < RIGHT
        server.blocks = [f"\\boxed{{{known[question] if right else 'none'}}}"]
        return AnthropicStandIn.parts(server, fault)

    server.parts = parts  # type: ignore[method-assign]


async def calibrators(settings: Settings) -> dict[int, CalibratorFitted]:
    """The newest calibrator that ``router calibrate`` fitted, by its seed."""
    runs, found = dict[str, CalibratorFitted](), dict[int, CalibratorFitted]()
    async with open_log(settings, "reader") as log:
        async for one in log.read(types=("CalibratorFitted",)):
            if isinstance(one.event, CalibratorFitted) and one.run.startswith("router-calibration"):
                runs.setdefault(one.run, one.event)  # the first of each is the one that was chosen
    for run, event in runs.items():
        found[int(run.rpartition("-")[2])] = event
    return found


def routed(settings: Settings, fitted: CalibratorFitted, threshold: float) -> Settings:
    """The settings of a student with that confidence and threshold."""
    plan = CalibratorConfig(signal=fitted.signal, method=fitted.method, parameters=fitted.parameters)
    routing = RoutingConfig(
        strategy="threshold", threshold=threshold, calibrators={"tiny": plan}, self_critique="critique" in fitted.signal
    )
    student = settings.run.student.model_copy(update={"distil_routing": routing})
    return settings.model_copy(update={"run": settings.run.model_copy(update={"student": student})})


async def asked(settings: Settings, run: str, seed: int) -> dict[str, Rows]:
    """What ``run`` has of each way."""
    calls: dict[str, int] = {}
    items = list[ItemScored]()
    async with open_log(settings, "reader") as log:
        async for one in log.read(run, ("ItemScored", "ModelCalled")):
            if isinstance(one.event, ModelCalled):
                calls[one.event.attempt] = calls.get(one.event.attempt, 0) + 1
            elif isinstance(one.event, ItemScored):
                items.append(one.event)
    ways: dict[str, Rows] = {}
    for item in items:
        told = (item.correct is True, calls.get(str(item.facts["attempt"]), 0))
        ways.setdefault(item.benchmark.rpartition(", ")[2], {})[seed, item.item] = told
    return ways


async def measured(home: Path, checkpoint: str, items: int, thresholds: Sequence[float]) -> dict[str, Rows]:
    """Ask everything, one seed after the other."""
    run, _, name = checkpoint.rpartition("/")
    found: dict[str, Rows] = {}
    with serving() as server:
        server.limits = {}
        place = {
            "home": str(home),
            "run.student.distil_from": f"anthropic/{MODEL}",
            "router.servers.anthropic.base_url": server.url,
            f"router.prices.anthropic/{MODEL}.input": "3",
            f"router.prices.anthropic/{MODEL}.output": "15",
        }
        held = load("tiny", place, {})
        adapter = await adapter_of(held, run, name)
        for seed, fitted in sorted((await calibrators(held)).items()):
            answering(server, items, seed)
            passes: list[tuple[str, float, tuple[Way, ...]]] = [("alone", 1.0, ("local", "cloud"))]
            passes += [(f"threshold {at:.2f}", at, ("routed",)) for at in thresholds]
            for title, at, ways in passes:
                plan = Plan(items, seed=seed, ways=ways, checkpoint=checkpoint, adapter=adapter)
                mark = f"workload-{items}-{seed}-{title.replace(' ', '-').replace('.', '')}"
                await evaluate_routed(routed(held, fitted, at), plan, mark)
                for way, rows in (await asked(held, mark, seed)).items():
                    found.setdefault(title if way == "routed" else way, {}).update(rows)
    return found


def table(found: dict[str, Rows]) -> Iterator[str]:
    """A row a way, with 95 % intervals by a bootstrap over tasks."""
    keys, cloud = sorted(found["cloud"]), found["cloud"]
    drawn = np.random.default_rng(0).multinomial(len(keys), [1 / len(keys)] * len(keys), ROUNDS)
    yield "| way | right, % | points lost against the cloud alone | calls of the cloud, % of the cloud alone |"
    yield "|---|---|---|---|"
    whole = np.array([cloud[key][1] for key in keys], float)
    right = np.array([cloud[key][0] for key in keys], float)
    for way, rows in found.items():
        own = np.array([rows[key][0] for key in keys], float)
        sent = np.array([rows[key][1] for key in keys], float)
        lost = np.quantile(drawn @ (right - own) / len(keys), (0.025, 0.975)) * 100
        share = np.quantile((drawn @ sent) / (drawn @ whole), (0.025, 0.975)) * 100
        yield (
            f"| {way} | {100 * own.mean():.1f} | {100 * (right - own).mean():.1f} ({lost[0]:.1f} to {lost[1]:.1f}) | "
            f"{100 * sent.sum() / whole.sum():.1f} ({share[0]:.1f} to {share[1]:.1f}) |"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="RUN/CHECKPOINT, with the run's id")
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("AGENT0_HOME", "data")))
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--thresholds", default="0.8,0.9,0.95")
    given = parser.parse_args()
    os.environ["ANTHROPIC_API_KEY"] = "sk-ant-test"
    thresholds = [float(one) for one in given.thresholds.split(",")]
    found = asyncio.run(measured(given.home, given.checkpoint, given.items, thresholds))
    print(*table(found), sep="\n")


if __name__ == "__main__":
    main()
