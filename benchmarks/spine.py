"""What the event spine costs: one `tiny` iteration with log, bus and tables, against the same work called directly.

Both arms use the same model process, sandboxes, embedder and trainer, the same seeds and a tool cache each; the direct
arm calls the same functions with ``asyncio.gather`` and keeps nothing. Arms alternate; a ratio is the median over the
pairs (aim: wall and CPU per attempt <= 1.10). CPU is that of this process and all its children.
"""

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import psutil

from agent0 import curriculum
from agent0.assembly import World, open_world, run_handlers, started
from agent0.assembly_tables import run_projector
from agent0.configuration import load
from agent0.heldout import heldout
from agent0.novelty import Archive, Proposed, decide_batch
from agent0.ports import TrainJob
from agent0.prompts import prompt
from agent0.rewards import receipt
from agent0.run import RunState
from agent0.settings import RunConfig, Settings
from agent0.student import Solved, solve
from agent0.teacher import Draft, propose
from agent0.tools import ToolCache
from agent0.training import Deed, learning_rate, select
from agent0.verifiers import verifier_for
from events.values import Role, Task


@dataclass(frozen=True)
class Cost:
    """Of one iteration."""

    attempts: int
    wall_s: float
    cpu_s: float


def cpu_seconds() -> float:
    """User and system time of this process, its living children and those they waited for."""
    total = 0.0
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Direct:
    """The work of an iteration without events."""

    def __init__(self, world: World) -> None:
        self._ports, self._cache = world.ports, ToolCache()

    async def iteration(self, config: RunConfig) -> int:
        """Propose, screen, attempt, verify, reward, train both roles, validate; the number of attempts."""
        state = RunState("direct", 0, config, "", iteration=0)
        slots = list(enumerate(curriculum.allocate(state)))
        await self._validate(config, None)
        drafts = await asyncio.gather(*(self._propose(config, slot, *cell) for slot, cell in slots))
        accepted = await self._screen(config, [(slot, cell[0]) for slot, cell in slots], drafts)
        tries = [(task, slot, n) for slot, task in accepted.items() for n in range(config.attempts)]
        deeds = await asyncio.gather(*(self._attempt(config, *one) for one in tries))
        rates = {slot: _rate([d for d in deeds if d.group == str(slot)]) for slot in accepted}
        deeds = [replace(d, solve_rate=rates[int(d.group)]) for d in deeds]
        taught = [_teachers(slot, draft, rates.get(slot)) for slot, draft in enumerate(drafts)]
        adapter = await self._train(config, "student", deeds)
        await self._train(config, "teacher", taught)
        await self._validate(config, adapter)
        return len(tries)

    async def _propose(self, config: RunConfig, slot: int, domain: str, family: str, level: int) -> Draft:
        return await propose(
            self._ports["models"].open(config.teacher),
            prompt(config.teacher.prompts, domain, "teacher"),
            domain=domain,
            family=family,
            level=level,
            config=config.teacher,
            seed=curriculum.stream(config.seed, "task", 0, slot),
        )

    async def _screen(self, config: RunConfig, slots: list[tuple[int, str]], drafts: list[Draft]) -> dict[int, Task]:
        batch = [Proposed(str(slot), slot, domain, drafts[slot].proposal) for slot, domain in slots]
        texts = {p.task: p.proposal.question for p in batch if p.proposal}
        vectors = await self._ports["embedders"].open(config.curriculum.embedder).embed(list(texts.values()))
        named = dict(zip(texts, vectors, strict=True))
        decisions = decide_batch(batch, Archive(), named, config.curriculum.similarity_limit)
        found = {d.slot: drafts[d.slot].proposal for d in decisions if d.reason is None}
        return {slot: task for slot, task in found.items() if task}

    async def _solve(self, config: RunConfig, task: Task, seed: int, **options: object) -> tuple[Solved, bool | None]:
        solved = await solve(
            self._ports["models"].open(config.student),
            task,
            config=config.student,
            sandbox=self._ports["sandbox"],
            prompt=prompt(config.student.prompts, task.domain, "student"),
            seed=seed,
            cache=self._cache,
            **options,  # type: ignore[arg-type]
        )
        verdict = await verifier_for(task).judge(task, [solved.answer], self._ports["verifier_sandbox"])
        return solved, verdict[0].correct

    async def _attempt(self, config: RunConfig, task: Task, slot: int, number: int) -> Deed:
        seed = curriculum.stream(config.seed, "attempt", f"t0-{slot:03d}", number)
        solved, correct = await self._solve(config, task, seed)
        facts = {"correct": correct, "grounded": solved.grounded}
        _, total = receipt("student", facts, config.rewards.weights)
        return Deed(f"{slot}-{number}", str(slot), "base", solved.trajectory, total, None, bool(correct))

    async def _train(self, config: RunConfig, role: Role, deeds: list[Deed]) -> object:
        chosen = select(role, deeds, deeds if role == "student" else [], author="base", config=config, seed=1)
        if not chosen.samples:
            return None
        recipe = config.training.student if role == "student" else config.training.teacher
        settings = recipe.model_dump() | {"lr": learning_rate(recipe, 0, 1), "temperature": 1.0}
        job = TrainJob(chosen.samples, chosen.replay, None, 1, settings)
        return (await self._ports["trainers"].open(config.student).train(job)).adapter

    async def _validate(self, config: RunConfig, adapter: object) -> None:
        held = heldout("validation", config.evaluation.validation, config.evaluation.seed)
        await asyncio.gather(*(self._solve(config, t, n, adapter=adapter, temperature=0.0) for n, t in enumerate(held)))


def _rate(deeds: list[Deed]) -> float:
    return sum(d.success for d in deeds) / len(deeds)


def _teachers(slot: int, draft: Draft, rate: float | None) -> Deed:
    facts = {"solve_rate": rate, "self_consistency": None, "accepted": rate is not None, "reason": "", "novelty": None}
    _, total = receipt("teacher", {**facts, "mean_tool_ok": None}, {})
    return Deed(str(slot), "", "base", draft.trajectory, total, rate)


async def spine(world: World, settings: Settings) -> int:
    """One run of one iteration through the log; the number of attempts."""
    begin = started(settings)
    await world.log.append([begin])
    attempts = 0
    async for recorded in world.log.tail(0, begin.run):
        attempts += recorded.type == "TaskAttempted"
        if recorded.type == "RunFinished":
            break
    return attempts


async def measure(work: object) -> Cost:
    """Seconds of one arm."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    attempts = await work  # type: ignore[misc]
    return Cost(attempts, time.perf_counter() - wall, cpu_seconds() - cpu)


async def bench(pairs: int, tasks: int, home: Path) -> list[dict[str, Cost]]:
    """``pairs`` alternating pairs after one untimed one, which loads models, trainer and embedder."""
    base = load("tiny", {"run.iterations": "1", "run.tasks": str(tasks), "run.evaluation.test": "0"}, {})
    base = base.model_copy(update={"home": home})
    found = []
    async with open_world(base) as world, asyncio.TaskGroup() as group:
        background = [group.create_task(run_handlers(world)), group.create_task(run_projector(base, world.log))]
        direct = Direct(world)
        for number in range(pairs + 1):
            settings = base.model_copy(update={"run": base.run.model_copy(update={"seed": number})})
            arms = {"spine": lambda s=settings: spine(world, s), "direct": lambda s=settings: direct.iteration(s.run)}
            order = list(arms) if number % 2 else list(reversed(arms))
            found.append({name: await measure(arms[name]()) for name in order})
            print(json.dumps({"pair": number, **{name: asdict(cost) for name, cost in found[-1].items()}}), flush=True)
        for task in background:
            task.cancel()
    return found[1:]


def main() -> None:
    """Print one JSON line a pair, then the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=64)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        found = asyncio.run(bench(options.pairs, options.tasks, Path(home)))
    ratios = {
        kind: [getattr(p["spine"], kind) / p["spine"].attempts / (getattr(p["direct"], kind) / p["direct"].attempts)
               for p in found]
        for kind in ("wall_s", "cpu_s")
    }  # fmt: skip
    print(json.dumps({f"{kind}_ratio": {"median": median(v), "all": v} for kind, v in ratios.items()}))


if __name__ == "__main__":
    main()
