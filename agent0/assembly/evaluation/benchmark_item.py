"""Part of the rim: one item of a benchmark is asked, answered, judged, and becomes the event that says so."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent0.assembly.evaluation.server_wait import ServerWait
from agent0.chat_format import format_call
from agent0.errors import OperationError
from agent0.evaluation.benchmark_scores import chosen_by
from agent0.evaluation.benchmarks import Benchmark, Item
from agent0.evaluation.benchmarks.rows.question_file import folder_student
from agent0.evaluation.failure_modes import error_type
from agent0.evaluation.item_rollout import Verify, attempt_task, judged_reply
from agent0.events.base import sha256
from agent0.events.benchmarks import Control, ItemScored, Mode
from agent0.events.values import Artifact, Task
from agent0.grading import Grade
from agent0.infra.log.event_log import Log
from agent0.infra.models.replay import ReplayedTurns
from agent0.infra.storage.datasets import LocalQuestions
from agent0.ports.environments import Environments
from agent0.ports.models import Likelihood, Model, Models
from agent0.ports.sandbox import Sandbox
from agent0.ports.storage import Artifacts
from agent0.rollout.attempt import AttemptResult
from agent0.rollout.attempt_events import conversation_fields
from agent0.rollout.confidence.signals import token_confidence
from agent0.rollout.prompts import Prompt, render
from agent0.rollout.student import Conditions, solve, start_folder, student_prompt
from agent0.rollout.workspace_store import Scratch
from agent0.settings import PolicyConfig, QuestionsConfig, StudentConfig
from agent0.tools.cache import ToolCache
from agent0.tools.snapshots import answered_folder, entries, load, save
from agent0.verification.panel import VerificationContext
from agent0.verification.repositories.visible_check import refined_question, visible_check
from agent0.verification.verifiers import Verdict


@dataclass(frozen=True)
class Plan:
    """What to score, how. ``limit`` 0 is every item; fewer are drawn with ``seed``, the same for every student. Items
    that are made from a seed are made from that one."""

    benchmarks: tuple[str, ...]
    folder: Path
    modes: tuple[Mode, ...] = ("tools", "plain")
    samples: int = 1
    limit: int = 0
    seed: int = 0
    at_once: int = 128
    control: Control = ""
    checkpoint: str = "base"
    adapter: Artifact | None = None
    questions: QuestionsConfig = field(default_factory=QuestionsConfig)
    """How files of questions are read, which ``benchmarks`` may name by their paths."""


@dataclass
class BenchmarkContext:
    """What the evaluation of a benchmark's items needs: plan, models, log, stores and sandboxes."""

    run: str
    plan: Plan
    actor: StudentConfig
    models: Models
    log: Log
    artifacts: Artifacts
    sandbox: Sandbox
    verifier: Sandbox
    cache: ToolCache
    policy: PolicyConfig
    model: Model | None = None
    wait: ServerWait = field(default_factory=lambda: ServerWait(lambda _: None, "", "", answered=False))
    scored: list[ItemScored] = field(default_factory=list)
    paces: dict[tuple[str, Mode], float] = field(default_factory=dict)
    """Items a second of wall time, by benchmark and mode, of what this process has scored."""
    questions: LocalQuestions = field(default_factory=LocalQuestions)
    environments: Environments | None = None

    def folder(self, path: str) -> Artifacts:
        """The files of the folder of mined tasks ``path``."""
        return self.questions.files(QuestionsConfig(file=path))


@dataclass
class FolderRounds:
    """Attempts at one task in a row: the store of their work folders, and how the next one is asked (None: as the task
    says)."""

    artifacts: Scratch = field(default_factory=Scratch)
    statement: Task | None = None


async def score_samples(
    bench: BenchmarkContext, entry: Benchmark, item: Item, mode: Mode, samples: Sequence[int]
) -> list[ItemScored]:
    """Generate and judge ``samples`` of one item in a row: where they are refined, each goes on from the one before."""
    rounds = FolderRounds()
    return [await score_sample(bench, entry, item, mode, sample, rounds) for sample in samples]


async def score_sample(
    bench: BenchmarkContext, entry: Benchmark, item: Item, mode: Mode, sample: int, rounds: FolderRounds | None = None
) -> ItemScored:
    """Generate and judge one sample of one item; return its ``ItemScored``."""
    config = student_for(entry, bench.actor, mode)
    prompt_parts = student_prompt(config, entry.domain)
    conditions = await _conditions(bench, entry, item, config, sample)
    verdict: Grade | Verdict
    metrics: Mapping[str, float]
    if entry.in_folders:
        solved, verdict, metrics = await _in_folder(bench, entry, item, conditions, rounds or FolderRounds())
    else:
        task = Task(question=item.question, domain=entry.domain, family=entry.name, level=1, canonical=item.id)
        solved = await solve(task, prompt_parts, conditions)
        verdict = await _verdict(bench, entry, item, solved)
        metrics = await _likely(bench, entry, item, prompt_parts) if (mode, sample) == ("plain", 0) else {}
    return ItemScored(
        benchmark=entry.name,
        item=item.id,
        mode=mode,
        sample=sample,
        **answer_fields(solved, verdict, bench.artifacts),
        facts=dict(item.facts),
        metrics=metrics,
        signals=solved.signals,
        error=error_type(verdict.correct, verdict.reason, solved.end, solved.answer),
    )


async def _verdict(bench: BenchmarkContext, entry: Benchmark, item: Item, solved: AttemptResult) -> Grade | Verdict:
    """What decides about an answer: the benchmark's judge, or an environment of others."""
    if not entry.in_environment:
        return await entry.judge(item, judged_reply(item, solved), solved.answer, bench.verifier)
    task = Task.model_validate_json(item.data)
    return await _verify(bench, bench.artifacts).verdict(task, solved.answer, bench.artifacts)


def _verify(bench: BenchmarkContext, files: Artifacts) -> Verify:
    return Verify(bench.verifier, VerificationContext(environments=bench.environments), lambda: files)


def in_mode(actor: StudentConfig, mode: Mode) -> StudentConfig:
    """Return ``actor`` as it is scored in ``mode``: ``plain`` is one turn without tools."""
    return actor if mode == "tools" else actor.model_copy(update={"tools": (), "max_calls": 0, "max_turns": 1})


def student_for(entry: Benchmark, actor: StudentConfig, mode: Mode) -> StudentConfig:
    """Return ``actor`` as it is scored in ``mode`` on ``entry``: where folders are changed, with tools that do so.

    Raises:
        ConfigError: it has no tools.
    """
    return in_mode(folder_student(actor, typed=not actor.tools) if entry.in_folders else actor, mode)


async def _in_folder(
    bench: BenchmarkContext, entry: Benchmark, item: Item, conditions: Conditions, rounds: FolderRounds
) -> tuple[AttemptResult, Verdict, Mapping[str, float]]:
    """The attempt at a task in its work folder or environment, its verdict, and the share that was earned where parts
    count; in a control, what the student can see of it, too."""
    task, files = Task.model_validate_json(item.data), bench.folder(entry.source)
    conditions = replace(conditions, artifacts=rounds.artifacts)
    if conditions.config.provider == "scripted" and start_folder(task):
        conditions = replace(conditions, model=ReplayedTurns(await asyncio.to_thread(reference_turns, task, files)))
    verify = _verify(bench, files)
    solved, verdict = await attempt_task(task, conditions, verify, rounds.statement)
    metrics = {} if verdict.credit is None else {"credit": verdict.credit}
    if bench.plan.control:
        metrics["visible"] = await _seen(bench, task, answered_folder(solved.answer), rounds)
    return solved, verdict, metrics


async def _seen(bench: BenchmarkContext, task: Task, left: Artifact | None, rounds: FolderRounds) -> float:
    """The score of the visible check of the work folder ``left``; where samples are refined, the next goes on there."""
    tree = left or start_folder(task)
    before, work = [await asyncio.to_thread(load, each, rounds.artifacts) for each in (start_folder(task), tree)]
    check = await visible_check(task, before, work, bench.verifier)
    if bench.plan.control == "refined":
        assert task.row is not None and task.row.repository is not None  # noqa: S101 - read so
        row = task.row.model_copy(update={"repository": task.row.repository.model_copy(update={"tree": tree})})
        question = refined_question(task, before, work, check)
        rounds.statement = task.model_copy(update={"question": question, "row": row})
    return check.score


def reference_turns(task: Task, files: Artifacts) -> tuple[str, ...]:
    """Write the turns that make the work folder of ``task`` its reference: a text file a turn, then the end."""
    assert task.row is not None  # noqa: S101 - a mined task's
    before = entries(start_folder(task), files)
    reference = entries(answered_folder(task.row.answer), files)
    changed = {path: files.get(entry) for path, entry in reference.items() if before.get(path) != entry}
    calls = [{"path": path, "content": data.decode(errors="replace")} for path, data in changed.items()]
    return (*(format_call("write_file", call) for call in calls), "Done. \\boxed{done}")


def answer_fields(solved: AttemptResult, verdict: Grade | Verdict, artifacts: Artifacts) -> dict[str, object]:
    """Make the fields of an ``ItemScored`` that every attempt and its verdict have; a long conversation is stored."""
    return {
        "answer": solved.answer,
        "correct": verdict.correct,
        "reason": verdict.reason[:300],
        **conversation_fields(solved, artifacts),
        "confidence": token_confidence(solved.mean_logprob),
        "usage": solved.usage,
        "wall_s": solved.wall_s,
    }


async def _conditions(
    bench: BenchmarkContext, entry: Benchmark, item: Item, config: StudentConfig, sample: int
) -> Conditions:
    assert bench.model is not None  # noqa: S101 (opened before anything is asked)
    files = item.files if config.max_calls else {}
    return Conditions(
        bench.model,
        config,
        bench.sandbox,
        bench.artifacts,
        seed=int(sha256(f"{bench.plan.seed} {entry.name} {item.id} {sample}")[:12], 16),
        adapter=bench.plan.adapter,
        group=bench.run,
        temperature=0.0 if bench.plan.samples == 1 or bench.plan.control == "refined" else None,
        cache=bench.cache,
        policy=bench.policy,
        start=await asyncio.to_thread(save, files, bench.artifacts) if files else None,
    )


async def _likely(bench: BenchmarkContext, entry: Benchmark, item: Item, prompt_parts: Prompt) -> Mapping[str, float]:
    """``acc`` and ``acc_norm`` of an item with choices, where the model tells how likely each is as a reply to the
    question alone; nothing where it does not, or where they do not fit."""
    if not item.stem or not isinstance(bench.model, Likelihood):
        return {}
    turns = render(prompt_parts, {"question": item.stem, "domain": entry.domain})
    try:
        likely = await bench.model.likelihood(turns, item.choices, adapter=bench.plan.adapter)
    except OperationError:
        return {}
    return chosen_by(likely, item.labels.index(item.gold))
