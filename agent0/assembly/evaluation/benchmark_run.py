"""Part of the rim: asks a student the items of benchmarks and writes each one down when it is judged. What is written
is never asked again, so a run that was killed goes on where it was."""

import asyncio
import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version as installed
from pathlib import Path

from agent0.assembly.evaluation.benchmark_item import BenchmarkContext, score_samples, student_for
from agent0.assembly.evaluation.benchmark_item import Plan as Plan
from agent0.assembly.evaluation.rollout_ports import open_rollout_ports
from agent0.assembly.evaluation.server_wait import ServerWait
from agent0.assembly.log.access import open_log
from agent0.assembly.log.artifact_store import artifact_store
from agent0.assembly.models.lineage import check_stored
from agent0.assembly.runtime.stamping import recorded, utc_now
from agent0.assembly.validate.call_forms import with_tool_form
from agent0.errors import ConfigError, NotFoundError
from agent0.evaluation.benchmark_scores import cost, grouped, results, tally
from agent0.evaluation.benchmarks import Benchmark, Item, chosen, drawn, make_items, read_items
from agent0.evaluation.benchmarks.rows.mined_rows import DOMAINS
from agent0.evaluation.benchmarks.rows.question_benchmark import is_question_file, question_benchmark
from agent0.evaluation.benchmarks.rows.question_file import without_writing
from agent0.events.base import Recorded, effect_id, sha256
from agent0.events.benchmarks import BenchmarkFinished, BenchmarkScored, BenchmarkStarted, ItemScored, Mode
from agent0.events.checkpoints import CheckpointTrained
from agent0.events.episodes import STEPS
from agent0.events.values import REPAIR, Artifact
from agent0.infra.log.event_log import Log
from agent0.infra.models.replay import Replay
from agent0.infra.storage.datasets import LocalQuestions, find
from agent0.ports.models import Model, Models
from agent0.rollout.student import student_prompt
from agent0.settings import Settings, StudentConfig
from agent0.stats.intervals import quantile


@dataclass(frozen=True)
class Progress:
    """How far a run is: items done of all, right ones among them, in ``benchmark`` and ``mode``; ``scored`` are those,
    ``price`` that of a million tokens read and written; up to ``at_once`` items are asked together."""

    benchmark: str
    mode: Mode
    done: int
    all: int
    right: int
    scored: Sequence[ItemScored] = ()
    price: tuple[float, float] = (0.0, 0.0)
    at_once: int = 1

    @property
    def cost(self) -> float:
        """What the tokens so far cost."""
        return cost(self.scored, self.price)

    def latency_s(self, share: float) -> float:
        """Seconds from asking an item to its answer, the whole batches it was in: the quantile ``share``."""
        return quantile([item.wall_s for item in self.scored], share) if self.scored else 0.0


Report = Callable[[Progress], None]
BenchmarkItems = tuple[Benchmark, list[Item]]
RUNS = "agent0 bench runs"
"""What tells the ids of benchmark runs."""


def resume_command(run: str, folder: Path) -> str:
    """Return the command that goes on with ``run``, whose rows lie in ``folder``."""
    return f"agent0 bench run --resume {run} --data {shlex.quote(str(folder))}"


def read_plan(plan: Plan) -> tuple[dict[str, BenchmarkItems], dict[str, str]]:
    """Items of every benchmark of ``plan``, and the digests of their files, or of the items where they are made. A
    benchmark may be a file of questions or a folder of mined tasks, named by its path.

    Raises:
        ConfigError, NotFoundError: no such benchmark, no such file, a row that is none, or folders without tools.
        DependencyError: no such file of questions.
    """
    benchmark_items: dict[str, BenchmarkItems] = {}
    files: dict[str, str] = {}
    for benchmark in plan.benchmarks:
        if is_question_file(benchmark):
            entry, rows, digest = question_benchmark(benchmark, LocalQuestions(), plan.questions)
            if entry.in_folders and "tools" not in plan.modes:
                raise without_writing(())
            benchmark_items[entry.name] = entry, drawn(entry, rows, plan.limit, plan.seed)
            files[entry.name] = digest
            continue
        (entry,) = chosen([benchmark])
        if entry.make:
            items, digest = make_items(entry, plan.limit, plan.seed)
            name = f"{entry.name}, {len(items)} items of seed {plan.seed}"
        else:
            source = find(plan.folder, entry.files, entry.name, entry.parts)
            rows = read_items(entry, source.text, source.name)
            items, digest, name = drawn(entry, rows, plan.limit, plan.seed), source.sha256, source.name
        benchmark_items[entry.name], files[name] = (entry, items), digest
    return benchmark_items, files


async def begun_plan(settings: Settings, run: str, folder: Path) -> tuple[Settings, Plan]:
    """Read how ``run`` was begun: ``settings`` with its student, and its plan with the rows of ``folder``.

    Raises:
        NotFoundError: it has not begun.
    """
    async with open_log(settings, make=True) as log:
        begun = await anext((r.event async for r in log.read(run, ["BenchmarkStarted"])), None)
    if not isinstance(begun, BenchmarkStarted):
        raise _not_begun(run)
    run_settings = settings.run.model_copy(update={"student": StudentConfig.model_validate(begun.actor)})
    plan = Plan(
        begun.benchmarks,
        folder,
        begun.modes,
        samples=begun.samples,
        limit=begun.limit,
        seed=begun.seed,
        control=begun.control,
        checkpoint=begun.checkpoint,
        adapter=begun.adapter,
        questions=settings.run.questions,
    )
    return settings.model_copy(update={"run": run_settings, "profile": begun.name}), plan


def _not_begun(run: str) -> NotFoundError:
    return NotFoundError(f"There is no benchmark run {run[:80]!r} to go on with.", fix=f"See: {RUNS}")


async def run_benchmarks(
    settings: Settings,
    plan: Plan,
    run: str,
    report: Report = lambda _: None,
    *,
    begun: bool = False,
    say: Callable[[str], object] = lambda _: None,
    command: str = "",
) -> dict[str, object]:
    """Score everything that ``run`` has not scored yet; the results file, which is also stored. ``begun``: it must be
    there already. A model server that goes away is waited for. ``say`` says that,
    and which run it is once all rows are read. ``command`` goes on with it; empty: ``bench run --resume``.

    Raises:
        ConfigError: ``run`` was begun with other settings, a row is none, or the student cannot change folders.
        NotFoundError: it was to be there, and is not.
        DependencyError: the server was never there, or away for longer than ``run.give_up_after``.
    """
    benchmark_items, files = read_plan(plan)
    _began(settings, settings.run.student, plan, benchmark_items, files)  # refuses a student before anything is opened
    provider = settings.run.student.provider
    say(f"Benchmark run {run}: {', '.join(plan.benchmarks)}; {provider}, data in {settings.home}")
    if provider == "scripted":
        say("The scripted student replays reference replies: this checks everything but a model.")
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(settings, make=True))
        bench = await _open(settings, plan, run, log, stack)
        bench.actor = await _with_tool_form(bench, say)
        began = _began(settings, bench.actor, plan, benchmark_items, files)
        scored = await taken_up(log, run, began, begun)
        bench.model = _model(bench.actor, bench.models, benchmark_items)
        bench.scored = scored
        limit_s = settings.run.give_up_after
        command = command or resume_command(run, plan.folder)
        bench.wait = ServerWait(say, run, command, answered=begun or bool(scored), give_up_after_s=limit_s)
        for mode in plan.modes:
            for entry, items in benchmark_items.values():
                await _score(bench, entry, items, mode, report)
        return await _finish(bench, began)


def same_run(settings: Settings, plan: Plan) -> str:
    """Return the id of a benchmark run as a digest of all that its scores depend on, so that equal plans share one run.
    Errors as for ``read_plan``."""
    began = _began(settings, settings.run.student, plan, *read_plan(plan))
    return f"bench-{sha256(began.model_dump_json() + settings.run.policy.model_dump_json())[:10]}"


async def _with_tool_form(bench: BenchmarkContext, say: Callable[[str], object]) -> StudentConfig:
    """The student with the form in which it calls tools: as the benchmark run was begun with, else as it is tried."""
    started = await anext((r.event async for r in bench.log.read(bench.run, ["BenchmarkStarted"])), None)
    if isinstance(started, BenchmarkStarted):
        form = started.actor.get("tool_form", bench.actor.tool_form)
        return bench.actor.model_copy(update={"tool_form": form}) if bench.actor.tool_form == "auto" else bench.actor
    if "tools" not in bench.plan.modes:
        return bench.actor
    actor, notice = await with_tool_form(bench.actor, bench.models)
    if notice:
        say(notice)
    return actor


def _began(
    settings: Settings,
    actor: StudentConfig,
    plan: Plan,
    benchmarks: Mapping[str, BenchmarkItems],
    files: dict[str, str],
) -> BenchmarkStarted:
    return BenchmarkStarted(
        name=settings.profile,
        benchmarks=plan.benchmarks,
        modes=plan.modes,
        samples=plan.samples,
        limit=plan.limit,
        seed=plan.seed,
        control=plan.control,
        actor=actor.model_dump(mode="json"),
        adapter=plan.adapter,
        checkpoint=plan.checkpoint,
        files=files,
        versions={
            **{name: version(entry, actor, plan.modes) for name, (entry, _) in benchmarks.items()},
            **{entry.package: installed(entry.package) for entry, _ in benchmarks.values() if entry.package},
        },
    )


async def _open(settings: Settings, plan: Plan, run: str, log: Log, stack: AsyncExitStack) -> BenchmarkContext:
    artifacts = artifact_store(settings)
    ports = await open_rollout_ports(settings, artifacts, stack, log)
    return BenchmarkContext(
        run=run,
        plan=plan,
        actor=settings.run.student,
        models=ports.models,
        log=log,
        artifacts=artifacts,
        sandbox=ports.sandbox,
        verifier=ports.verifier_sandbox,
        cache=ports.tool_cache,
        policy=settings.run.policy,
        environments=ports.environments,
    )


def version(entry: Benchmark, actor: StudentConfig, modes: Sequence[Mode] = ("tools", "plain")) -> str:
    """Digest of what the scores of a benchmark depend on besides its rows: the prompt of each mode, and its name; where
    folders are changed, the tools too."""
    if entry.in_folders:
        student = student_for(entry, actor, "tools")
        domains = (student_prompt(student, domain, long=True).version for domain in (*DOMAINS.values(), REPAIR, STEPS))
        return sha256(f"{entry.name} {' '.join((*domains, *student.tools))}")[:12]
    prompts = [student_prompt(student_for(entry, actor, mode), entry.domain).version for mode in modes]
    return sha256(f"{entry.name} {' '.join(prompts)}")[:12]


def _model(actor: StudentConfig, models: Models, benchmarks: Mapping[str, BenchmarkItems]) -> Model:
    """The student's; the scripted provider replays references, which checks everything but a model."""
    if actor.provider != "scripted":
        return models.open(actor)
    return Replay({item.question: item.reference for _, items in benchmarks.values() for item in items})


async def taken_up(log: Log, run: str, began: BenchmarkStarted, begun: bool = False) -> list[ItemScored]:
    """What ``run`` has scored already; begins it where it is new. ``begun``: it must have begun before.

    Raises:
        NotFoundError: it has not. ConfigError: it was begun with other settings.
    """
    events = [r.event async for r in log.read(run, ["BenchmarkStarted", "ItemScored"])]
    first = next((event for event in events if isinstance(event, BenchmarkStarted)), None)
    if first is None and begun:
        raise _not_begun(run)
    if first is None:
        await log.append([recorded(run, began)])
    elif first != began:
        changed = [name for name in BenchmarkStarted.model_fields if getattr(first, name) != getattr(began, name)]
        fix = "Start a new one, or repeat the command that began it."
        raise ConfigError(f"{run} was begun otherwise.", f"Different: {', '.join(changed)}.", fix)
    return [event for event in events if isinstance(event, ItemScored)]


async def _score(bench: BenchmarkContext, entry: Benchmark, items: Sequence[Item], mode: Mode, report: Report) -> None:
    """Every sample of every item that is not scored yet, some at once; none without tools where folders are changed."""
    if entry.in_folders and mode == "plain":
        return
    earlier = [item for item in bench.scored if (item.benchmark, item.mode) == (entry.name, mode)]
    done = {(item.item, item.sample) for item in earlier}
    numbers = range(bench.plan.samples)
    parts = [numbers] if bench.plan.control == "refined" else [range(s, s + 1) for s in numbers]
    todo = [(i, part) for part in parts for i in items if not all((i.id, s) in done for s in part)]
    left = sum(len(part) for _, part in todo)
    room, whole = asyncio.Semaphore(bench.plan.at_once), len(earlier) + left

    def say() -> None:
        right = sum(item.correct is True for item in earlier)
        report(Progress(entry.name, mode, len(earlier), whole, right, earlier, bench.actor.price, bench.plan.at_once))

    async def score_item(item: Item, part: Sequence[int]) -> None:
        async with room:
            scored = await bench.wait.through(partial(score_samples, bench, entry, item, mode, part))
            await bench.log.append([scored_event(bench.run, each) for each in scored])
        bench.scored += scored
        earlier.extend(scored)
        say()

    say()
    start = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for item, part in todo:
            group.create_task(score_item(item, part))
    if todo:
        bench.paces[entry.name, mode] = left / max(time.monotonic() - start, 1e-6)


def scored_event(run: str, scored: ItemScored) -> Recorded:
    """The event of a sample, under an id that it has whenever it is scored."""
    name = effect_id(run, f"{scored.benchmark}/{scored.item}/{scored.mode}", scored.sample)
    return recorded(run, scored).model_copy(update={"id": name})


async def _finish(bench: BenchmarkContext, began: BenchmarkStarted) -> dict[str, object]:
    """Scores and the results file; stored once."""
    scores = [_paced(tally(items, bench.actor.price), bench) for items in grouped(bench.scored).values()]
    events = [r.event async for r in bench.log.read(bench.run, ["BenchmarkFinished"])]
    finished = next((event for event in events if isinstance(event, BenchmarkFinished)), None)
    if finished is not None:
        return dict(json.loads(bench.artifacts.get(finished.results)))
    summary = results(began, scores, bench.run, utc_now().isoformat())
    kept = bench.artifacts.put(json.dumps(summary, sort_keys=True).encode(), "application/json")
    await bench.log.append([recorded(bench.run, event) for event in (*scores, BenchmarkFinished(results=kept))])
    return summary


def _paced(score: BenchmarkScored, bench: BenchmarkContext) -> BenchmarkScored:
    """With how many items a second came, where some came in this process."""
    pace = bench.paces.get((score.benchmark, score.mode))
    return score if pace is None else score.model_copy(update={"metrics": {**score.metrics, "items_per_s": pace}})


async def scored_items(settings: Settings, run: str) -> tuple[list[ItemScored], list[BenchmarkScored]]:
    """What a run has scored, from the log.

    Raises:
        NotFoundError: no such run, or nothing is scored yet.
    """
    async with open_log(settings, "reader") as log:
        events = [r.event async for r in log.read(run, ["ItemScored", "BenchmarkScored"])]
    items = [event for event in events if isinstance(event, ItemScored)]
    if not items:
        raise NotFoundError(f"No benchmark run {run!r} has scored items.", fix=f"See: {RUNS}")
    return items, [event for event in events if isinstance(event, BenchmarkScored)]


async def adapter_of(settings: Settings, run: str, checkpoint: str) -> Artifact:
    """The adapter that a run's checkpoint was trained to.

    Raises:
        NotFoundError: no such run or checkpoint, or its adapter was pruned or is gone.
        LogError: its adapter is damaged.
    """
    async with open_log(settings, "reader") as log:
        trained = [r.event async for r in log.read(run, ["CheckpointTrained"])]
        for event in trained:
            if isinstance(event, CheckpointTrained) and event.checkpoint == checkpoint and event.adapter is not None:
                await check_stored(log, artifact_store(settings), f"{run}/{checkpoint}", event.adapter)
                return event.adapter
    raise NotFoundError(f"Run {run!r} has no checkpoint {checkpoint!r}.", fix="See: agent0 run show RUN")
