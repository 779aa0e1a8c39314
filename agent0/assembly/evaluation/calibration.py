"""Part of the rim: asks a student held-out tasks, fits what its confidence is worth on one split and scores it on the
other. Each task is written down with all its samples when it is done: a run that was killed goes on where it was."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from agent0.assembly.evaluation.benchmark_item import answer_fields
from agent0.assembly.evaluation.benchmark_run import taken_up
from agent0.assembly.evaluation.rollout_ports import open_rollout_ports
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.routing.strategies import measure_of
from agent0.assembly.runtime.stamping import recorded
from agent0.errors import ConfigError, OperationError
from agent0.evaluation.calibration_report import FITTING, SCORING, CalibrationReport, judged, to_event
from agent0.evaluation.item_rollout import RolloutPorts
from agent0.events.base import Recorded, effect_id, sha256
from agent0.events.benchmarks import ROUTED, SAMPLED, BenchmarkStarted, CalibratorFitted, ItemScored
from agent0.events.values import Artifact, Split, Task
from agent0.infra.log.event_log import Log
from agent0.ports.models import Model
from agent0.ports.storage import Artifacts
from agent0.rollout.attempt import AttemptResult
from agent0.rollout.confidence.signals import beside
from agent0.rollout.confidence.turn_signals import LastTurn
from agent0.rollout.student import Conditions, solve, student_prompt
from agent0.rollout.workspace_store import Scratch
from agent0.settings import RoutingConfig, Settings
from agent0.tasks.splits import heldout
from agent0.verification.verifiers import Verdict, verifier_for


@dataclass(frozen=True)
class Plan:
    """What to ask: ``items`` tasks, half of them to fit on, each once greedily and ``samples`` times besides.

    With ``routing`` each is answered once, and what counts are the signals that a router measures of the turn that
    gives the answer; ``drawn``: at the student's temperature, as attempts of a run are.
    """

    items: int = 600
    samples: int = 5
    seed: int = 0
    checkpoint: str = "base"
    adapter: Artifact | None = None
    name: str = ""
    at_once: int = 256
    routing: RoutingConfig | None = None
    drawn: bool = False


Report = Callable[[int, int], None]
"""Is told how many tasks of how many are done."""


@dataclass
class _Ask:
    """Everything that asking needs."""

    run: str
    plan: Plan
    settings: Settings
    model: Model
    ports: RolloutPorts
    artifacts: Artifacts


async def calibrate(
    settings: Settings, plan: Plan, run: str, report: Report = lambda done, all_: None
) -> CalibrationReport:
    """Ask what ``run`` has not asked yet, fit, score, and store the calibrators as the next revisions of theirs.

    Raises:
        ConfigError: ``run`` was begun with another plan, or there are too few held-out tasks.
        OperationError: too few right or too few wrong answers to learn from.
    """
    tasks = _tasks(settings, plan)
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True))
        scored = await taken_up(log, run, _began(settings, plan))
        ask = await _open(settings, plan, run, stack)
        scored += await _answered(ask, log, tasks, scored, report)
        try:
            calibration = judged(run, plan.name or _name(ask), plan.checkpoint, plan.seed, scored)
        except ValueError as error:
            raise OperationError("Nothing can be calibrated.", f"{error}.", "Ask more: --items.") from error
        return replace(calibration, revisions=await _store(log, calibration))


def _name(ask: _Ask) -> str:
    if ask.plan.routing is None:
        return ask.model.name
    return " ".join([ask.model.name, ROUTED, *([SAMPLED] if ask.plan.drawn else [])])


def _tasks(settings: Settings, plan: Plan) -> list[tuple[Split, Task]]:
    """Half of them of one split, half of the other."""
    sizes: tuple[tuple[Split, int], ...] = ((FITTING, plan.items // 2), (SCORING, plan.items - plan.items // 2))
    domains = settings.run.curriculum.domains
    try:
        return [(split, task) for split, n in sizes for task in heldout(split, n, plan.seed, domains)]
    except ValueError as error:
        raise ConfigError("The held-out sets cannot be drawn.", f"{error}.", "Ask fewer: --items.") from error


def _began(settings: Settings, plan: Plan) -> BenchmarkStarted:
    actor, domains = settings.run.student, settings.run.curriculum.domains
    return BenchmarkStarted(
        name="calibration" if plan.routing is None else f"calibration of turns {_asked_how(plan)}".strip(),
        benchmarks=(FITTING, SCORING),
        modes=("tools",),
        samples=plan.routing.samples if plan.routing else plan.samples,
        limit=plan.items,
        seed=plan.seed,
        actor=actor.model_dump(mode="json"),
        adapter=plan.adapter,
        checkpoint=plan.checkpoint,
        files={},
        versions={domain: student_prompt(actor, domain).version for domain in domains},
    )


def _asked_how(plan: Plan) -> str:
    critique = plan.routing is not None and plan.routing.self_critique
    return " ".join([*(["self-critique"] if critique else []), *([SAMPLED] if plan.drawn else [])])


async def _open(settings: Settings, plan: Plan, run: str, stack: AsyncExitStack) -> _Ask:
    artifacts = artifact_store(settings)
    ports = await open_rollout_ports(settings, artifacts, stack)
    return _Ask(run, plan, settings, ports.models.open(settings.run.student), ports, artifacts)


async def _answered(
    ask: _Ask, log: Log, tasks: Sequence[tuple[Split, Task]], scored: Sequence[ItemScored], report: Report
) -> list[ItemScored]:
    """Every task of which a sample is missing, some at once; what came of them."""
    answered = {(item.benchmark, item.item, item.sample) for item in scored}
    todo = [(s, t) for s, t in tasks if any((s, t.canonical, n) not in answered for n in range(ask.plan.samples + 1))]
    room = asyncio.Semaphore(max(1, ask.plan.at_once // (ask.plan.samples + 1)))
    out: list[ItemScored] = []
    done = len(tasks) - len(todo)
    report(done, len(tasks))

    async def answer_task(split: Split, task: Task) -> None:
        nonlocal done
        async with room:
            answers = await _answers(ask, split, task)
            await log.append([_named(ask.run, each) for each in answers])
        out.extend(answers)
        done += 1
        report(done, len(tasks))

    async with asyncio.TaskGroup() as group:
        for split, task in todo:
            group.create_task(answer_task(split, task))
    return [each for each in out if (each.benchmark, each.item, each.sample) not in answered]


def _named(run: str, scored: ItemScored) -> Recorded:
    """Under an id that the same sample has whenever it is scored."""
    name = effect_id(run, f"{scored.benchmark}/{scored.item}", scored.sample)
    return recorded(run, scored).model_copy(update={"id": name})


async def _answers(ask: _Ask, split: Split, task: Task) -> list[ItemScored]:
    """One task: greedily, and in further samples that say how far it agrees with itself."""
    if ask.plan.routing is not None:
        return [await _turn_answer(ask, split, task, ask.plan.routing)]
    greedy, *others = await asyncio.gather(*(_solved(ask, task, n) for n in range(ask.plan.samples + 1)))
    tried = [greedy, *others]
    verdicts = await verifier_for(task).judge(task, [attempt.answer for attempt in tried], ask.ports.verifier_sandbox)
    signals = [greedy.signals | beside(greedy, others), *(attempt.signals for attempt in others)]
    return [
        _item(ask, split, task, n, attempt, verdict, features)
        for n, (attempt, verdict, features) in enumerate(zip(tried, verdicts, signals, strict=True))
    ]


async def _turn_answer(ask: _Ask, split: Split, task: Task, routing: RoutingConfig) -> ItemScored:
    """One task, with the signals that a router measures of the turn that answers it."""
    last = LastTurn(ask.model)
    solved = await _solved(ask, task, int(ask.plan.drawn), last)
    [verdict] = await verifier_for(task).judge(task, [solved.answer], ask.ports.verifier_sandbox)
    measure = measure_of(routing, ask.settings.run.student)
    signals = await measure.of(ask.model, last.request, last.written) if solved.answer is not None else {}
    return _item(ask, split, task, 0, solved, verdict, signals)


async def _solved(ask: _Ask, task: Task, sample: int, model: Model | None = None) -> AttemptResult:
    config = ask.settings.run.student
    conditions = Conditions(
        model or ask.model,
        config,
        ask.ports.sandbox,
        Scratch(),
        seed=int(sha256(f"{ask.plan.seed} {task.canonical} {sample}")[:12], 16),
        adapter=ask.plan.adapter,
        group=ask.run,
        temperature=None if sample else 0.0,
        cache=ask.ports.tool_cache,
        policy=ask.settings.run.policy,
        web=ask.ports.web,
    )
    return await solve(task, student_prompt(config, task.domain), conditions)


def _item(
    ask: _Ask, split: Split, task: Task, sample: int, solved: AttemptResult, verdict: Verdict, signals: dict[str, float]
) -> ItemScored:
    return ItemScored(
        benchmark=split,
        item=task.canonical,
        mode="tools",
        sample=sample,
        **answer_fields(solved, verdict, ask.artifacts),
        facts={"domain": task.domain, "family": task.family, "level": str(task.level), "question": task.question},
        signals=signals,
    )


async def _store(log: Log, calibration: CalibrationReport) -> dict[str, int]:
    """Every calibrator as the next revision of its name and signal, once a run; the revisions of those of its first
    answers, by signal."""
    events = [(r.run, r.event) async for r in log.read(types=["CalibratorFitted"])]
    fitted = [(run, event) for run, event in events if isinstance(event, CalibratorFitted)]
    fresh, revisions = [], dict[str, int]()
    for part, calibrator in [
        (whole, each) for whole in (calibration, calibration.sampled) if whole for each in whole.measured
    ]:
        same = [(run, old) for run, old in fitted if (old.name, old.signal) == (part.name, calibrator.candidate.signal)]
        mine = [
            old.revision for run, old in same if run == calibration.run and old.checkpoint == calibration.checkpoint
        ]
        revision = mine[0] if mine else max((old.revision for _, old in same), default=0) + 1
        revisions.setdefault(calibrator.candidate.signal, revision)
        if not mine:
            fresh.append(to_event(part, calibrator, revision))
    if fresh:
        await log.append([recorded(calibration.run, event) for event in fresh])
    return revisions
