"""Does a run learn through a llama.cpp server what it learns in its process? Profile ``llamacpp`` beside profile
``tiny`` with as many iterations, over the same seeds; and which adapter answered, by log-probabilities.

    python -m benchmarks.served_loop [--seeds 0,1] [--folder FOLDER] [--write]

One run after the other, each in a data folder of its own under FOLDER. What is finished stays: the same command goes on
with the rest. ``--write`` makes docs/results/serving-loop.md but for its last part (``benchmarks.served_clock``).
"""

import argparse
import asyncio
import json
import math
import os
import platform
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from agent0.assembly.log.access import open_log
from agent0.assembly.models.export import open_source
from agent0.assembly.models.parity import verify
from agent0.assembly.runtime.stamping import code_rev
from agent0.config.loading import load
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.tasks import TaskAttempted
from agent0.events.values import Artifact, Trajectory
from agent0.infra.engine.inference import Engine
from agent0.infra.models.transformers import BASE
from agent0.infra.storage.artifacts import FileArtifacts
from agent0.report.markdown.rendering import render
from agent0.rollout.claim_check import redeem
from agent0.settings import Settings
from agent0.stats.across_seeds import Mean, mean_of, tested
from agent0.training.objectives.policy_gradient import token_logprobs
from benchmarks.served_clock import HEADING, PAGE
from tests.llama_server import MISSING, serving

SERVED, HERE = "llamacpp", "tiny"
NEAR = 1e-9
"""Percentage points that the arithmetic of a mean may lose."""
LOOKED = 64
"""Attempts of an iteration whose log-probabilities are computed again."""
Line = dict[str, Any]
Scores = dict[int, tuple[int, int]]
"""Iteration -> right answers, tasks."""


@dataclass(frozen=True)
class Place:
    """The run of a profile and a seed, in a data folder of its own."""

    profile: str
    seed: int
    home: Path

    def settings(self) -> Settings:
        """Settings of whoever reads its data."""
        return load(self.profile, {"home": str(self.home), "nats.url": ""}, {})

    def call(self, *words: str) -> Any:
        """What ``agent0 words --json`` prints for this folder; its messages go to stderr."""
        env = {**os.environ, "AGENT0_HOME": str(self.home)}
        command = [sys.executable, "-m", "agent0", *words, "--json"]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)

    def finished(self, iterations: int) -> Line:
        """What its run came to; it is begun, or resumed, where it is not finished."""
        there = self.call("run", "list") if self.home.exists() else []
        if not there:
            seed, rounds = ("--seed", str(self.seed)), ("--iterations", str(iterations))
            self.call("run", "start", "--profile", self.profile, *seed, *rounds)
        elif there[0]["status"] != "finished":
            self.call("run", "resume", there[0]["run"])
        found: Line = self.call("run", "show", "LAST")
        return found


async def proven(place: Place, run: str) -> tuple[list[Line], Line]:
    """Which weights answered: for each iteration the recorded log-probabilities less those that training computes with
    the adapter of the named checkpoint, and for scale with the base alone; then the last checkpoint's files as the
    server had them, by `agent0 model verify`'s comparison."""
    settings = place.settings()
    store = FileArtifacts(settings.home)
    attempts, adapters, last = defaultdict[tuple[int, str], list[Trajectory]](list), dict[str, Artifact](), ""
    async with open_log(settings, "reader") as log:
        async for stored in log.read(run, ["TaskAttempted", "CheckpointTrained"]):
            match stored.event:
                case CheckpointTrained(role="student", adapter=Artifact() as adapter, checkpoint=name):
                    adapters[name], last = adapter, name
                case TaskAttempted() as event:
                    found = redeem(event.trajectory, event.trajectory_artifact, store)
                    if found and len(attempts[event.iteration, event.student]) < LOOKED:
                        attempts[event.iteration, event.student].append(found)
        rows = [_compared(key, taken, adapters, store) for key, taken in sorted(attempts.items())]
        source = await open_source(log, store, f"{run}/{last}")
        base = next(place.home.glob("cache/gguf/*/base.gguf"))
        with serving(base, base.with_name(f"{source.adapter.sha256}.gguf")) as url:
            return rows, await verify(source, store, url, "", 1e-3)


def _compared(
    key: tuple[int, str], taken: list[Trajectory], adapters: dict[str, Artifact], store: FileArtifacts
) -> Line:
    iteration, student = key
    engine = Engine(str(BASE))
    if student in adapters:
        engine.load_adapter(student, store.get(adapters[student]))
    own = [gap for one in taken for gap in _gaps(engine, one, student if student in adapters else "")]
    base = [gap for one in taken for gap in _gaps(engine, one, "")]
    row = {"iteration": iteration, "student": student, "attempts": len(taken), "tokens": len(own)}
    return row | {"largest": max(own), "mean": math.fsum(own) / len(own), "base": math.fsum(base) / len(base)}


def _gaps(engine: Engine, one: Trajectory, adapter: str) -> Iterator[float]:
    """Differences of the log-probabilities (nats) of sampled tokens."""
    ids = torch.tensor([one.token_ids])
    with torch.inference_mode(), engine._using(adapter):
        computed = token_logprobs(engine._model(ids).logits, ids)[0].tolist()
    for own, recorded, now in zip(one.mask, one.logprobs, [0.0, *computed][-len(one.token_ids) :], strict=True):
        if own:
            yield abs(recorded - now)


def curve(found: Line) -> Scores:
    """Right answers and tasks of the validation set, by iteration (-1: untrained)."""
    of = int(found["config"]["evaluation"]["validation"])
    scored = {int(e["iteration"]): e["validation"] for e in found["validation"] if e["validation"] is not None}
    return {n: (round(share * of), of) for n, share in scored.items()}


def test_scores(found: Line) -> Scores:
    """Right answers and tasks of the test set, of the first and the last student."""
    scored = [e for e in found["test"] if not e["forced_tool"]]
    return {n: (round(e["accuracy"] * e["n"]), int(e["n"])) for n, e in ((-1, scored[0]), (0, scored[-1]))}


def beside(served: Sequence[Scores], here: Sequence[Scores], what: str) -> list[Line]:
    """Rows by iteration: both means over seeds with Student's t intervals, the paired test of their difference, and
    whether the served mean lies in the other's interval."""
    rows = []
    for n in sorted(set(served[0]) & set(here[0])):
        pairs = [(100 * a[n][0] / a[n][1], 100 * b[n][0] / b[n][1]) for a, b in zip(served, here, strict=True)]
        gaps = [ours - theirs for ours, theirs in pairs]
        a, b = mean_of([ours for ours, _ in pairs]), mean_of([theirs for _, theirs in pairs])
        row = {"what": what, "iteration": n, "served": _told(a), "here": _told(b), "gap": _told(mean_of(gaps), "+")}
        rows.append(row | {"inside": _inside(a, b), "p": tested(gaps).p})
    return rows


def _inside(ours: Mean, theirs: Mean) -> bool:
    low, high = (theirs.value if bound is None else bound for bound in (theirs.low, theirs.high))
    return low - NEAR <= ours.value <= high + NEAR


def _told(mean: Mean, sign: str = "") -> str:
    value = f"{mean.value:{sign}.1f}"
    return value if mean.low is None else f"{value} ({mean.low:{sign}.1f} to {mean.high:{sign}.1f})"


def page(found: dict[tuple[str, int], Line], proofs: dict[int, tuple[list[Line], Line]], seeds: list[int]) -> str:
    """The whole page."""
    tests = [[test_scores(found[profile, seed]) for seed in seeds] for profile in (SERVED, HERE)]
    curves = [[curve(found[profile, seed]) for seed in seeds] for profile in (SERVED, HERE)]
    rows = beside(curves[0], curves[1], "validation") + beside(tests[0], tests[1], "test")
    compared = [{"seed": s, **row} for s, (lines, _) in sorted(proofs.items()) for row in lines]
    return render(
        "served_loop.md.jinja",
        Path(__file__).parent,
        rows=rows,
        seeds=seeds,
        inside=sum(row["inside"] for row in rows),
        final=rows[-1],
        iterations=found[SERVED, seeds[0]]["iterations"],
        proofs=compared,
        largest=max(row["largest"] for row in compared),
        scale=max(row["base"] for row in compared),
        verified=[{"seed": s, **one} for s, (_, one) in sorted(proofs.items())],
        made=f"xllamacpp {version('xllamacpp')}, torch {torch.__version__}, {platform.machine()}, code {code_rev()}",
    )


def main() -> None:
    """Execute what is not finished, then print or write the page."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--seeds", default="0,1,2,3,4")
    flags.add_argument("--folder", type=Path, default=Path("served-loop"))
    flags.add_argument("--write", action="store_true", help="into docs/results/serving-loop.md")
    asked = flags.parse_args()
    if MISSING:
        print(f"Not measured: {MISSING}.")
        return
    seeds = [int(one) for one in asked.seeds.split(",")]
    iterations = load(SERVED, {}, {}).run.iterations
    found, proofs = {}, {}
    for seed in seeds:
        for profile in (HERE, SERVED):
            place = Place(profile, seed, asked.folder.absolute() / f"{profile}-{seed}")
            found[profile, seed] = place.finished(iterations)
            print(f"{profile} {seed}: {found[profile, seed]['status']}", file=sys.stderr)
        proofs[seed] = asyncio.run(proven(place, str(found[SERVED, seed]["run"])))
    made = page(found, proofs, seeds)
    print(made)
    if asked.write:
        clock = "".join(PAGE.read_text(encoding="utf-8").partition(HEADING)[1:])
        PAGE.write_text(f"{made.rstrip()}\n\n{clock}", encoding="utf-8")


if __name__ == "__main__":
    main()
