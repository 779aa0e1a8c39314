"""A seed means the same from one change to the next: tasks, suites, controls and whole runs are drawn as they were, and
figures of the same outcomes are the same: a run can be repeated, an old one extended, and pages compared.

``python -m tests.test_same_seed`` writes what is recorded anew, where a draw is meant to change.
"""

import asyncio
import hashlib
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import asdict, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest

from agent0.evaluation.benchmarks import benchmarks
from agent0.evaluation.protocol import EvaluationProtocol
from agent0.evaluation.protocol_runner import as_json_lines, run_protocol
from agent0.evaluation.serving_parity import probes
from agent0.events.values import Usage
from agent0.experiments.compare_runs import side_by_side, side_of
from agent0.ports.models import GenerateRequest, Generation
from agent0.rewards.batch_similarity import clusters, distances
from agent0.rewards.red_team.play import Size, play_policies
from agent0.rewards.red_team.undone import undone
from agent0.rollout.student import Conditions
from agent0.run.forking import redone
from agent0.run.lifecycle import evolve
from agent0.settings import RewardConfig, RunConfig, StudentConfig
from agent0.state.run_state import arm_key
from agent0.stats import calibrators
from agent0.stats.paired_tests import bootstrap
from agent0.tasks.curriculum.sampler import allocate, learn, slots
from agent0.tasks.decontamination import own_words
from agent0.tasks.families import Family, Params
from agent0.tasks.splits import heldout
from agent0.training.objectives import objectives
from agent0.training.selection import draw_diverse, select
from tests.figures import FIGURES
from tests.memory import MemoryArtifacts
from tests.play import play
from tests.test_training import scored
from tests.world import KnowingSandbox, levels_of, own, ports, small, started

RECORDED = Path(__file__).parent / "golden" / "same_seed.json"
DRAWS = 6
MEASURED: dict[str, Any] = dict.fromkeys(
    {"state_sha", "wall_s", "seconds", "latency_p50_s", "latency_p95_s", "items", "usage", "progress"}, True
) | {"critique": {"usage"}}
"""Fields that hold a time, or the digest of what holds one."""
WRONG = ("", "0", "1;2", "x", "7,3", "3+4=7", "(1", "no")


def drawn(entry: Family) -> Iterable[Any]:
    """Everything that a family makes of a few seeds, at each level."""
    for level in levels_of(entry):
        for n in range(DRAWS):
            rng = random.Random(f"{entry.name} {level} {n}")
            yield [*of_task(entry, entry.sample(level, rng), rng)]


def of_task(entry: Family, params: Params, rng: random.Random) -> Iterable[Any]:
    """The task in words and numbers, its answer, and what the family says of other answers."""
    right = entry.solve(params)
    yield [params, entry.render(params, rng), entry.level(params), right, entry.canonical(params), entry.call(params)]
    yield [entry.operands and entry.operands(params), entry.trivial and entry.trivial(params)]
    yield [entry.chance and entry.chance(params), entry.steps and entry.steps(params)]
    yield entry.script and entry.script(params)
    tried = [right, f" {right} ", right[:-1], right[1:], right.replace(",", ";"), f"{right}1", *WRONG]
    tried += [entry.derive(params, rng) for _ in range(3)] if entry.derive else []
    yield [entry.check(params, one) for one in tried] if entry.check else None


def suite(name: str) -> Iterable[Any]:
    """Items without the reference program, which is this project's own code."""
    make = benchmarks()[name].make
    assert make
    for item in make(24, 5):
        yield [item.id, item.question, item.gold, item.labels, item.choices, item.facts, item.data, item.restatements]
        yield {name: name.endswith(".db") or data.decode() for name, data in item.files.items()}


def selections() -> Iterable[Any]:
    """What is replayed and trained on, of two dozen trajectories."""
    ways = [
        scored(
            n,
            family="linear",
            level=1 + n % 3,
            tools=("python",) * (n % 4),
            signature="s" * (n % 2),
            solve_rate=(0.5, 0.25, 0.75)[n // 10],
        )
        for n in range(24)
    ]
    yield [one.event_id for one in draw_diverse(ways, 9, 4)]
    for name, objective in objectives().items():
        recipe = {role: {"objective": name, "clip_high": 0.31} for role in objective.roles}
        plan = RunConfig.model_validate({"tasks": 4, "training": recipe})
        for role in objective.roles:
            made = select(role, ways, ways, author="me", config=plan, seed=3)
            yield [
                name,
                role,
                made.used,
                made.over,
                made.skipped,
                [(sample.advantage, sample.clip_high, sample.weight, sample.over) for sample in made.samples],
            ]
            yield [sample.over for sample in made.samples]
    for by in ("chance", "pattern"):
        for gate in ("verified", "permuted"):
            recipe = {"student": {"replay_by": by, "replay_steps": 2, "minibatch": 3, "gate": gate}}
            plan = RunConfig.model_validate({"tasks": 4, "training": recipe})
            found = select("student", ways, ways, author="me", config=plan, seed=3)
            yield [found.used, found.skipped, [sample.weight for sample in found.samples]]


def chosen() -> Iterable[Any]:
    """Slots of a run with some history, under each constraint."""
    rules = [{}, {"kind": "uniform"}, {"long": 0.3}, {"max_share": 0.2}, {"entropy": 0.95}, {"patience": 2}]
    for rule in rules:
        plan = RunConfig.model_validate(
            small().model_dump() | {"tasks": 15, "curriculum": {"embedder": "ngram"} | rule}
        )
        state = evolve(None, started(plan).model_copy(update={"seq": 1}))
        assert state
        arms = {}
        for n, slot in enumerate(slots(state)):
            arms[arm_key(*slot)] = replace(learn(learn(None, n % 5 / 4), 0.5), last_requested=n % 4)
        yield allocate(replace(state, iteration=3, arms=arms))


def numbers() -> Iterable[Any]:
    """Resampled intervals, calibrators and folds of seeded figures."""
    rng = random.Random(2)
    said = [round(rng.random(), 2) for _ in range(40)]
    came = [rng.random() < one for one in said]
    yield [calibrators.ece_interval(said, came, seed=3), calibrators.ece_floor(said, seed=3)]
    yield calibrators.folds(came, 4, 3)
    yield [
        calibrators.fit(method, said, came).apply(one)
        for method in get_args(calibrators.Method)
        for one in (0.1, 0.5, 0.8)
    ]
    yield bootstrap([float(a) - b for a, b in zip(came, said, strict=True)], rounds=200, seed=3)


def alike() -> Iterable[Any]:
    """Clusters of questions, of which several are equally far apart."""
    rng = random.Random(6)
    for count in range(12):
        texts = [rng.choices("abcd", k=rng.randint(1, 6)) for _ in range(count)]
        apart = distances(texts)
        yield [apart, [clusters(apart, cut) for cut in (0.2, 0.5, 0.8, 1.0)]]


def ran(**changes: Any) -> Iterable[Any]:
    """Every event of a small run, but for what names the code and the machine."""
    first = started(RunConfig.model_validate(small(tasks=3, attempts=2).model_dump() | changes))
    for one in asyncio.run(play(first, ports()))[1:]:
        yield [one.type, one.event.model_dump(mode="json", exclude=MEASURED, exclude_defaults=True)]


RUNS: dict[str, dict[str, Any]] = {
    "of pairs": {"training": {"student": {"objective": "dpo", "minibatch": 4}}},
    "on a ladder": {
        "curriculum": {"embedder": "ngram", "kind": "frontier", "families": ["reversal"], "mastered": 3},
        "training": {"student": {"objective": "sft", "steps": 2, "minibatch": 4, "gate": "permuted"}},
    },
    "with checked attempts": {"evaluation": {"validation": 4, "test": 3, "checked": 3}},
    "with a benchmark": {"evaluation": {"validation": 2, "test": 0, "benchmarks": ["tool_scenarios"]}},
    "with critique": {"student": {"self_critique": True}, "rewards": {"weights": {"self_critique": 0.2}}},
}
"""Settings by what a run is like with them."""


def forked() -> Iterable[Any]:
    """Every event of a fork that asks for tasks of an iteration again, under other settings."""
    parent = asyncio.run(play(started(small(iterations=1, tasks=3, attempts=2)), ports()))
    seq = next(one.seq for one in parent if one.type == "ResultVerified")
    state = None
    for one in parent[:seq]:
        state = evolve(state, one)
    assert state
    for many in (2, 3):
        changed = small(iterations=1, tasks=3, attempts=many)
        first = started(changed, "f1")
        told = {"parent": "r1", "parent_seq": seq, "redone": redone(state, changed), "changes": {}}
        first = first.model_copy(update={"event": first.event.model_copy(update=told)})
        for one in asyncio.run(play(first, ports(), past=parent))[len(parent) + 1 :]:
            yield [one.type, one.event.model_dump(mode="json", exclude=MEASURED, exclude_defaults=True)]


def sat() -> Iterable[Any]:
    """Seeds that a protocol hands to attempts, and what it makes of their answers."""
    seeds: list[int] = []

    class Numbered:
        async def generate(self, request: GenerateRequest) -> Generation:
            seeds.append(request.sampling.seed)
            text = f"\\boxed{{{request.sampling.seed % 3}}}"
            return Generation(text, (1, 2), (-0.5, -0.25), usage=Usage(completion_tokens=2), model="m")

    for split in ("test", "validation"):
        plan = EvaluationProtocol(3, 7, attempts=3, temperature=1.0, split=split)
        given = Conditions(Numbered(), StudentConfig(), KnowingSandbox(), MemoryArtifacts(), 0)
        found = asyncio.run(run_protocol(heldout("test", 3, 4, ("math",)), plan, given, KnowingSandbox()))
        yield [found, found.right, found.majority, as_json_lines(found.answers).decode()]
    yield sorted(seeds)


def compared() -> Iterable[Any]:
    """Two runs, their rewards, curves and costs, side by side."""
    runs = [asyncio.run(play(started(small(tasks=3, attempts=n)), ports())) for n in (2, 3)]
    untimed = [[one for one in run if one.type != "CheckpointTrained"] for run in runs]
    sides = [side_of(f"run {n}", run) for n, run in enumerate(untimed)]
    for side in sides:
        side.cost["model_s"] = 0.0
    yield [asdict(side)["curve"] and [one.outcomes for one in side.curve] for side in sides]
    yield side_by_side(sides)


FAMILIES: dict[str, Callable[[], Any]] = {f"family {name}": partial(drawn, entry) for name, entry in own().items()}
SUITES: dict[str, Callable[[], Any]] = {
    f"suite {name}": partial(suite, name) for name in ("adversarial", "coding", "tool_scenarios")
}
REWARDS: dict[str, Callable[[], Any]] = {
    f"red team {name}": partial(play_policies, RewardConfig(set=name), 5, Size(2, 3, 3))
    for name in ("agent0", "paper", "released")
}
OTHERS: dict[str, Callable[[], Any]] = {
    "slots": chosen,
    "selections": selections,
    "numbers": numbers,
    "clusters": alike,
    "held-out tasks": lambda: [heldout("test", 20, 4), heldout("validation", 12, 4, ("math",), levels=(1, 2))],
    "probes": probes,
    "words": lambda: [sorted(own_words(name)) for name in own()],
    "undone work": lambda: undone(seed=3, draws=1),
    "a run": ran,
    "a run with long tasks": partial(ran, curriculum={"embedder": "ngram", "long": 0.5}),
    **{f"a run {how}": partial(ran, **changes) for how, changes in RUNS.items()},
    "a fork": forked,
    "a protocol": sat,
    "runs side by side": compared,
    **{
        f"a run paid by {name}": partial(ran, rewards={"set": name, "normalize": True, "clip": 1.5})
        for name in ("agent0", "paper", "released")
    },
}
DRAWN = FAMILIES | SUITES | REWARDS | OTHERS | FIGURES


def plain(value: Any) -> Any:
    """``value`` as JSON has it, floats to nine digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"))
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    return value if isinstance(value, str | int | None) else [plain(one) for one in value]


def digest(name: str) -> tuple[str, str]:
    """The digest of what ``name`` draws, and the beginning of it."""
    text = json.dumps(plain(DRAWN[name]()))
    return hashlib.sha256(text.encode()).hexdigest()[:16], text[:1000]


@pytest.mark.parametrize("name", DRAWN)
def test_a_seed_draws_what_it_drew_before(name: str) -> None:
    found, begins = digest(name)
    assert found == json.loads(RECORDED.read_text())[name], begins


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: digest(name)[0] for name in DRAWN}, indent=1) + "\n")
