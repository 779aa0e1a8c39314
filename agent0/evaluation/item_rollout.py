"""One item of an evaluation is attempted and verified: greedily, and where answers can be checked by sampled attempts
too, so that pass@k with the verifier as selector is known beside accuracy."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from agent0.evaluation.benchmarks import Item as BenchmarkItem
from agent0.evaluation.checkpoint_score import ScoredItem
from agent0.evaluation.suite import BenchmarkSuite, suite
from agent0.events.checkpoints import EvaluationRequested
from agent0.events.values import Artifact, Task
from agent0.grading import Grade
from agent0.ports.environments import Environments
from agent0.ports.models import Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts, QuestionFile
from agent0.ports.web import Web
from agent0.rollout.attempt import AttemptResult
from agent0.rollout.attempt_events import in_episode, user_model
from agent0.rollout.student import Conditions, solve, start_folder, student_of, student_prompt
from agent0.rollout.tool_prompts import opening
from agent0.rollout.workspace_store import Scratch
from agent0.state.run_state import RunState
from agent0.tasks.families import families
from agent0.tasks.seeds import derive_seed
from agent0.tools.cache import ToolCache
from agent0.tools.definition import Tool
from agent0.tools.snapshots import save
from agent0.verification.panel import VerificationContext
from agent0.verification.panel.opinion import docstring_reader, judge_opinion
from agent0.verification.programs.source import written_program
from agent0.verification.repositories.mined_task import keep_repository
from agent0.verification.verifiers import Verdict, verifier_for
from agent0.verification.verifiers.tests import UNANSWERED, program_of


@dataclass(frozen=True)
class RolloutPorts:
    """The ports that attempting and verifying an item takes; each field has the name of its port."""

    models: Models
    sandbox: Sandbox
    verifier_sandbox: Sandbox
    tool_cache: ToolCache
    web: Web
    tools: Mapping[str, Tool]
    question_file: QuestionFile
    environments: Environments | None = None


@dataclass(frozen=True)
class ItemAttempt:
    """An item of an evaluation with its greedy attempt and the verdict on that."""

    item: ScoredItem
    result: AttemptResult
    verdict: Verdict | Grade


async def attempt_item(request: EvaluationRequested, number: int, run: RunState, ports: RolloutPorts) -> ScoredItem:
    """Attempt item ``number`` of the evaluation; returns it with its verdict. As ``solve_item``."""
    return (await solve_item(request, number, run, ports)).item


async def solve_item(request: EvaluationRequested, number: int, run: RunState, ports: RolloutPorts) -> ItemAttempt:
    """Attempt item ``number`` of the evaluation, counted from 0, under the settings of ``run``.

    Raises:
        DependencyError: model or sandbox is unavailable.
        TransientError: the sandbox failed through no fault of the code.
    """
    task = suite(request, run.config, ports.question_file)[number]
    conditions = _conditions(
        request.adapter, number, run, ports, opening(run.config.student.form) if request.forced_tool else ""
    )
    verify = _verify(run, ports)
    attempt = _item_attempt(task, *await attempt_task(task, replace(conditions, temperature=0.0), verify))
    checked = run.config.evaluation.checked
    family = families(long=None).get(task.family)
    if not checked or family is None or family.check is None:
        return attempt
    seeds = [derive_seed("checked", request.seed, request.split, number, k) for k in range(checked)]
    within, tried = await _within(task, conditions, seeds, verify)
    return replace(attempt, item=replace(attempt.item, within=within, tries=len(tried), tried=tried))


async def solve_benchmark_item(
    request: EvaluationRequested, number: int, benchmark: BenchmarkSuite, run: RunState, ports: RolloutPorts
) -> ItemAttempt:
    """Attempt item ``number`` of a benchmark greedily, as the run's student attempts tasks; the benchmark's own judge
    decides. Errors as for ``solve_item``."""
    entry, item = benchmark.entry, benchmark.items[number]
    forced = opening(run.config.student.form) if request.forced_tool else ""
    conditions = replace(_conditions(request.adapter, number, run, ports, forced), temperature=0.0)
    if item.files and conditions.config.max_calls:
        conditions = replace(conditions, start=save(item.files, conditions.artifacts))
    task = Task(question=item.question, domain=entry.domain, family=entry.name, level=1, canonical=item.id)
    solved = await solve(task, student_prompt(conditions.config, task.domain), conditions)
    verdict = await entry.judge(item, judged_reply(item, solved), solved.answer, ports.verifier_sandbox)
    return _item_attempt(task, solved, verdict)


def judged_reply(item: BenchmarkItem, solved: AttemptResult) -> str:
    """Return what a benchmark's judge reads: the last turn that the student wrote, empty where there is none. Where a
    program is asked for, the last turn that holds it, since a block of code may be a call and the turn after it speak
    of it only; where none holds all of it, all turns."""
    written = _written(solved)
    if item.problem is None:
        return "".join(written[-1:])
    return written_program(written, item.problem.entry) or "\n\n".join(written)


def _written(solved: AttemptResult) -> list[str]:
    """The turns that the student wrote."""
    return [turn.content for turn in solved.transcript if turn.role == "assistant"][-max(solved.turns, 1) :]


async def attempt_all(
    request: EvaluationRequested,
    run: RunState,
    ports: RolloutPorts,
    finished: Mapping[int, ScoredItem] = MappingProxyType({}),
    report: Callable[[int, ScoredItem], None] = lambda number, item: None,
) -> list[ScoredItem]:
    """Attempt every item but those ``finished``, by number, ``run.evaluation.at_once`` at a time, in this process and
    without an event; returns all of them in set order. ``report`` is called with each one's number as soon as it is
    finished. Errors as for ``attempt_item``."""
    finished_items, room = dict(finished), asyncio.Semaphore(run.config.evaluation.at_once)

    async def attempt(number: int) -> None:
        async with room:
            finished_items[number] = await attempt_item(request, number, run, ports)
            report(number, finished_items[number])

    numbers = range(len(suite(request, run.config, ports.question_file)))
    await asyncio.gather(*(attempt(number) for number in numbers if number not in finished))
    return [finished_items[number] for number in numbers]


async def attempt_greedily(
    tasks: Sequence[Task], adapter: Artifact | None, run: RunState, ports: RolloutPorts
) -> list[ScoredItem]:
    """Attempt each of ``tasks`` greedily with the student that has ``adapter``, ``run.evaluation.at_once`` at a time;
    returns them with their verdicts, in order. Errors as for ``attempt_item``."""
    room = asyncio.Semaphore(run.config.evaluation.at_once)

    async def attempt(number: int, task: Task) -> ScoredItem:
        async with room:
            return (await solve_task(task, number, adapter, run, ports)).item

    return await asyncio.gather(*(attempt(number, task) for number, task in enumerate(tasks)))


async def solve_task(
    task: Task, number: int, adapter: Artifact | None, run: RunState, ports: RolloutPorts
) -> ItemAttempt:
    """Attempt ``task`` greedily, the ``number``-th of a set, under the settings of ``run``. Errors as for
    ``solve_item``."""
    verify = _verify(run, ports)
    conditions = replace(_conditions(adapter, number, run, ports), temperature=0.0)
    return _item_attempt(task, *await attempt_task(task, conditions, verify))


def _conditions(
    adapter: Artifact | None, number: int, run: RunState, ports: RolloutPorts, prefill: str = ""
) -> Conditions:
    actor = run.config.student
    return Conditions(
        ports.models.open(actor),
        actor,
        ports.sandbox,
        Scratch(),
        seed=number,
        adapter=adapter,
        group=run.run,
        prefill=prefill,
        cache=ports.tool_cache,
        policy=run.config.policy,
        web=ports.web,
        tools=ports.tools,
        user=user_model(ports.models, run.config),
    )


@dataclass(frozen=True)
class Verify:
    """How an answer is verified: by the verifiers and rules of the run. ``files`` has those that its rows name."""

    sandbox: Sandbox
    context: VerificationContext
    files: Callable[[], Artifacts]

    async def verdict(self, task: Task, answer: str | None, artifacts: Artifacts) -> Verdict:
        """Verify one answer, which may name a folder of ``artifacts``: right, wrong or undecided."""
        context = replace(self.context, artifacts=artifacts)
        return (await verifier_for(task).judge(task, [answer], self.sandbox, context))[0]


def _verify(run: RunState, ports: RolloutPorts) -> Verify:
    judge = (ports.models, run.config.verification.judge, run.config.seed, run.run)
    files = partial(ports.question_file.files, run.config.questions)
    context = VerificationContext(
        rules=run.config.verification,
        ask=judge_opinion(*judge),
        environments=ports.environments,
        read=docstring_reader(*judge),
    )
    return Verify(ports.verifier_sandbox, context, files)


async def attempt_task(
    task: Task, conditions: Conditions, verify: Verify, statement: Task | None = None
) -> tuple[AttemptResult, Verdict]:
    """Attempt ``task`` once as a run's student does, over turns in its work folder where it has one; returns the
    attempt and its verdict on ``task``. ``statement`` is how the student is asked for it, None: as it is. Errors as for
    ``solve_item``."""
    statement = statement or task
    config = student_of(conditions.config, task)
    conditions = replace(conditions, config=config, prefill=conditions.prefill if config.uses_tools else "")
    if task.row and task.row.repository:
        keep_repository(task.row.repository, verify.files(), conditions.artifacts)
        conditions = replace(conditions, start=start_folder(statement), by_files=True)
    async with in_episode(task, conditions, verify.context.environments) as ports:
        solved = await solve(statement, student_prompt(ports.config, task.domain, long=task.kind == "long"), ports)
    if program := program_of(task, _written(solved)):
        solved = replace(solved, answer=program, end="answered" if solved.end in UNANSWERED else solved.end)
    return solved, await verify.verdict(task, solved.answer, conditions.artifacts)


async def _within(
    task: Task, conditions: Conditions, seeds: list[int], verify: Verify
) -> tuple[int, tuple[str | None, ...]]:
    """The number, from 1, of the first attempt that the check accepts, 0 where none is; and the answers of all that
    were made. A student at temperature 0 would only repeat itself."""
    seeds, tried = seeds if conditions.config.temperature else seeds[:1], list[str | None]()
    for number, seed in enumerate(seeds, 1):
        solved, verdict = await attempt_task(task, replace(conditions, seed=seed), verify)
        tried.append(solved.answer)
        if verdict.correct:
            return number, tuple(tried)
    return 0, tuple(tried)


def _item_attempt(task: Task, solved: AttemptResult, verdict: Verdict | Grade) -> ItemAttempt:
    item = ScoredItem(
        task=task.canonical,
        domain=task.domain,
        level=task.level,
        question=task.question,
        answer=solved.answer,
        correct=verdict.correct,
        tool_ok=solved.tool_ok,
        tokens=solved.usage.completion_tokens,
        seconds=solved.wall_s,
        signals=solved.signals,
        truncated=solved.end == "length",
    )
    return ItemAttempt(item, solved, verdict)
