"""Part of the rim: evaluates a checkpoint on held-out tasks through a strategy, and beside it each of the models alone.
Nothing is trained on any of it. What is written down is never asked again."""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from agent0.assembly.evaluation.benchmark_item import answer_fields
from agent0.assembly.evaluation.benchmark_run import taken_up
from agent0.assembly.evaluation.rollout_ports import open_rollout_ports
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.routing.billing import check_routing, stand_ins, summarizer_of
from agent0.assembly.routing.gate import shortening_of
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import ConfigError
from agent0.evaluation.item_rollout import RolloutPorts
from agent0.evaluation.routed import ATTEMPT, MODEL, WAYS, Paired, Way, WayScore, paired, standing
from agent0.events.base import effect_id, sha256
from agent0.events.benchmarks import BenchmarkStarted, ItemScored
from agent0.events.models import ModelCalled
from agent0.events.values import Artifact, Split, Task
from agent0.infra.gateway.compression import Compressing
from agent0.infra.log.event_log import Log
from agent0.ports.models import Model
from agent0.rollout.student import Conditions, solve, student_prompt
from agent0.rollout.workspace_store import Scratch
from agent0.settings import RoutingConfig, Settings, StudentConfig
from agent0.settings.router import CompressionSettings
from agent0.stats.intervals import wilson
from agent0.tasks.splits import heldout
from agent0.verification.verifiers import verifier_for


@dataclass(frozen=True)
class Plan:
    """What to ask: ``items`` tasks of ``split``, each once and greedily, in each of ``ways``; ``long``: of several
    steps."""

    items: int = 300
    split: Split = "test"
    seed: int = 0
    ways: tuple[Way, ...] = WAYS
    checkpoint: str = "base"
    adapter: Artifact | None = None
    at_once: int = 64
    long: bool = False


@dataclass(frozen=True)
class Evaluated:
    """How each way did, and how ``routed`` compares with the others."""

    run: str
    strategy: str
    standings: tuple[WayScore, ...]
    paired: tuple[Paired, ...]


Report = Callable[[int, int], None]
"""Called with how many answers of how many there are."""


async def evaluate_routed(
    settings: Settings, plan: Plan, run: str, report: Report = lambda done, all_: None
) -> Evaluated:
    """Ask what ``run`` has not asked yet, verify it, and compare the ways.

    Raises:
        ConfigError: no model stands in, ``run`` was begun with another plan, or there are too few held-out tasks.
        BudgetExhaustedError: a budget has not enough left; what was answered is kept.
    """
    tasks, actors = held_tasks(settings, plan), _actors(settings, plan)
    check_routing(settings)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True))
        scored = await taken_up(log, run, began(settings, plan))
        ports = await open_rollout_ports(settings, artifact_store(settings), stack, log)
        ways = [
            WayToAsk(way, ports.models.open(actor), actor, None if way == "cloud" else plan.adapter)
            for way, actor in actors.items()
        ]
        scored += await Asking(settings, plan, run, log, ways, ports).all(tasks, scored, report)
        await log.queue.join()
        costs = await costs_of(log, run)
    return _compared(settings, plan, run, scored, costs)


def held_tasks(settings: Settings, plan: Plan) -> list[Task]:
    """The held-out tasks of ``plan``.

    Raises:
        ConfigError: there are fewer.
    """
    try:
        return heldout(plan.split, plan.items, plan.seed, settings.run.curriculum.domains, long=plan.long)
    except ValueError as error:
        raise ConfigError("The held-out set cannot be drawn.", f"{error}.", "Ask fewer: --items.") from error


def _actors(settings: Settings, plan: Plan) -> dict[Way, StudentConfig]:
    student = settings.run.student
    chain = stand_ins(student.in_rollouts(), settings.router)
    if not chain:
        fix = "Name one: --with provider/model, or the setting run.student.distil_from."
        raise ConfigError("The student has no model that stands in for it.", "", fix)
    alone = {"routing": RoutingConfig(), "fallback": ()}
    cloud = student.in_rollouts().model_copy(
        update={name: getattr(chain[0], name) for name in type(chain[0]).model_fields} | alone
    )
    by_way: dict[Way, StudentConfig] = {"local": student, "routed": student.in_rollouts(), "cloud": cloud}
    return {way: by_way[way] for way in plan.ways}


def began(settings: Settings, plan: Plan, name: str = "routed evaluation") -> BenchmarkStarted:
    """What the numbers of the evaluation ``name`` depend on."""
    actor, domains = settings.run.student, settings.run.curriculum.domains
    return BenchmarkStarted(
        name=name,
        benchmarks=tuple(name_of(plan, way) for way in plan.ways),
        modes=("tools",),
        samples=1,
        limit=plan.items,
        seed=plan.seed,
        actor=actor.model_dump(mode="json"),
        adapter=plan.adapter,
        checkpoint=plan.checkpoint,
        files={},
        versions={domain: student_prompt(actor, domain).version for domain in domains},
    )


def name_of(plan: Plan, way: Way) -> str:
    """What answers of ``way`` stand under in the log."""
    return f"{plan.split}, {way}"


@dataclass(frozen=True)
class WayToAsk:
    """A way to ask: the model behind it, how it attempts tasks, and its weights."""

    way: Way
    model: Model
    actor: StudentConfig
    adapter: Artifact | None


class Asking:
    """Asks each task in each way, some at once."""

    def __init__(
        self,
        settings: Settings,
        plan: Plan,
        run: str,
        log: Log,
        ways: Sequence[WayToAsk],
        ports: RolloutPorts,
    ) -> None:
        self._settings, self._plan, self._run, self._log = settings, plan, run, log
        self._ways, self._ports, self._artifacts = ways, ports, artifact_store(settings)

    async def all(self, tasks: Sequence[Task], scored: Sequence[ItemScored], report: Report) -> list[ItemScored]:
        """Every answer that is missing among ``scored``."""
        done = {(item.benchmark, item.item) for item in scored}
        todo = [(way, task) for way in self._ways for task in tasks]
        todo = [(way, task) for way, task in todo if (name_of(self._plan, way.way), task.canonical) not in done]
        room, whole, out = asyncio.Semaphore(self._plan.at_once), len(self._ways) * len(tasks), list[ItemScored]()
        report(whole - len(todo), whole)

        async def ask_task(way: WayToAsk, task: Task) -> None:
            async with room:
                item = await self._answer(way, task)
                name = effect_id(self._run, f"{item.benchmark}/{item.item}", 0)
                await self._log.append([recorded(self._run, item).model_copy(update={"id": name})])
            out.append(item)
            report(whole - len(todo) + len(out), whole)

        async with asyncio.TaskGroup() as group:
            for way, task in todo:
                group.create_task(ask_task(way, task))
        return out

    async def _answer(self, asking: WayToAsk, task: Task) -> ItemScored:
        plan, actor, ports = self._plan, asking.actor, self._ports
        token = f"{asking.way}-{sha256(task.canonical)[:16]}"
        conditions = Conditions(
            asking.model,
            actor,
            ports.sandbox,
            Scratch(),
            seed=int(sha256(f"{plan.seed} {task.canonical}")[:12], 16),
            adapter=asking.adapter,
            group=self._run,
            temperature=0.0,
            cache=ports.tool_cache,
            policy=self._settings.run.policy,
            web=ports.web,
            attempt=token,
        )
        solved = await solve(task, student_prompt(actor, task.domain), conditions)
        [verdict] = await verifier_for(task).judge(task, [solved.answer], ports.verifier_sandbox)
        about = {"domain": task.domain, "family": task.family, "level": str(task.level), "question": task.question}
        return ItemScored(
            benchmark=name_of(plan, asking.way),
            item=task.canonical,
            mode="tools",
            sample=0,
            **answer_fields(solved, verdict, self._artifacts),
            facts={**about, MODEL: solved.model, ATTEMPT: token},
            signals=solved.signals,
            authors=dict(solved.authors),
        )


async def costs_of(log: Log, run: str) -> dict[str, list[int | None]]:
    """What each call of ``run`` cost, by the token of its attempt."""
    costs: dict[str, list[int | None]] = {}
    async for stored in log.read(run, ("ModelCalled",)):
        if isinstance(stored.event, ModelCalled):
            costs.setdefault(stored.event.attempt, []).append(stored.event.cost)
    return costs


def _compared(
    settings: Settings, plan: Plan, run: str, scored: Sequence[ItemScored], costs: dict[str, list[int | None]]
) -> Evaluated:
    by_way: dict[Way, list[ItemScored]] = {
        way: [item for item in scored if item.benchmark == name_of(plan, way)] for way in plan.ways
    }
    standings = {way: standing(way, items, costs) for way, items in by_way.items()}
    others = [way for way in plan.ways if way != "routed"] if "routed" in by_way else []
    pairs = (
        paired(by_way["routed"], by_way[way], (standings["routed"].cost, standings[way].cost), way) for way in others
    )
    return Evaluated(run, settings.run.student.distil_routing.strategy, tuple(standings.values()), tuple(pairs))


REPORT = Callable[[int, int], None]
PATIENCE_S = 3600.0
"""How long a summary may take here, where it is measured what its words cost and not how long they take."""
FEWEST = 0.9
"""Share of long outputs that must have had a summary, or else the figures are not those of summaries."""


@dataclass(frozen=True)
class Loss:
    """What compression costs: both ways, and the compressed one less the plain one. ``shorter``: the share of all
    characters of prompts that was left out. ``summaries``: prompts' outputs for which one stood; ``without``: that were
    as long, and had none."""

    run: str
    standings: tuple[WayScore, WayScore]
    paired: Paired
    shorter: float
    summaries: int = 0
    without: int = 0

    @property
    def shows_summaries(self) -> bool:
        """Whether nearly all long outputs had a summary, so that the loss is theirs."""
        return self.summaries > 0 and self.summaries >= FEWEST * (self.summaries + self.without)

    @property
    def loss95(self) -> float:
        """The most that it may lose, by the shares of tasks lost and gained with their Wilson intervals (MOVER, Zou and
        Donner 2008): not 0 where no task differs, since few tasks show little."""
        difference = self.paired.difference
        lost, gained = difference.lost / difference.items, difference.gained / difference.items
        most_lost, least_gained = (
            wilson(difference.lost, difference.items)[1],
            wilson(difference.gained, difference.items)[0],
        )
        return lost - gained + math.hypot(most_lost - lost, gained - least_gained)


async def measure_loss(
    settings: Settings, plan: Plan, how: CompressionSettings, run: str, report: REPORT = lambda done, all_: None
) -> Loss:
    """Ask what ``run`` has not asked yet in both ways, verify it, and compare.

    Raises:
        ConfigError: nothing is compressed, by a summary that costs money, or ``run`` was begun with another plan.
    """
    writer, plan = summarizer_of(how, settings.router), replace(plan, ways=("plain", "compressed"))
    if not how.stages:
        raise ConfigError("Nothing is compressed.", "", "--stage structural, or --stage extractive")
    tasks, student = held_tasks(settings, plan), settings.run.student
    stages = ", ".join(how.stages) + (f" by {how.summarizer}" if writer else "")
    about = f"compression by {stages} to {how.longest}{', long tasks' if plan.long else ''}"
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True))
        scored = await taken_up(log, run, began(settings, plan, about))
        ports = await open_rollout_ports(settings, artifact_store(settings), stack, log)
        model = ports.models.open(student)
        shorten = shortening_of(how, writer, ports.models.open, within_s=PATIENCE_S)
        shorter = Compressing(model, shorten)
        ways = [WayToAsk("plain", model, student, plan.adapter), WayToAsk("compressed", shorter, student, plan.adapter)]
        scored += await Asking(settings, plan, run, log, ways, ports).all(tasks, scored, report)
        await log.queue.join()
        costs = await costs_of(log, run)
    plain, small = ([item for item in scored if item.benchmark == name_of(plan, way)] for way in plan.ways)
    both = standing("plain", plain, costs), standing("compressed", small, costs)
    comparison = paired(small, plain, (both[1].cost, both[0].cost), "plain")
    share = shorter.left / shorter.read if shorter.read else 0.0
    return Loss(run, both, comparison, share, shorter.summaries, shorter.without)
