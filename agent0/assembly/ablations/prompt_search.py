"""Part of the rim: a search over a student's prompt, on tasks of the training split. The optimizer runs in a
thread; attempts, replies and records are made in the event loop, and none is repeated after a kill."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from agent0.assembly.ablations.prompt_optimizer import LEAST, MINIBATCH, ScoredAnswer, best_instruction, front_size
from agent0.assembly.ablations.variant_records import VariantRecords
from agent0.assembly.evaluation.finished_items import FinishedItems
from agent0.errors import ConfigError
from agent0.evaluation.benchmarks.rows.question_file import questions
from agent0.evaluation.item_rollout import ItemAttempt, solve_task
from agent0.events.checkpoints import EvaluationItemScored
from agent0.events.experiments import PromptCandidateScored
from agent0.events.values import Conversation, Task, Turn, Usage
from agent0.experiments.ablation_runs import requested_compute
from agent0.ports.models import GenerateRequest, Sampling
from agent0.ports.storage import QuestionFile
from agent0.rollout.prompts import prompt
from agent0.rollout.prompts.own_text import instruction_of, with_instruction
from agent0.rollout.student import student_prompt
from agent0.settings import RunConfig
from agent0.tasks.seeds import derive_seed
from agent0.tasks.splits import heldout

REPLY = 2_000
"""Characters of a reply, and of what is said about it, that a reflection reads."""
WRITTEN = 512
"""Tokens that a proposal may have, at least."""
PREFIX = "search-"
"""Evaluations of attempts that a search made begin so."""
T = TypeVar("T")


async def search(records: VariantRecords) -> str:
    """Search for a better prompt of the variant's student; returns the whole text of the best.

    Raises:
        ConfigError: there are too few tasks or attempts. DependencyError: a model or the sandbox is not there.
    """
    config = records.config
    seed, budget = derive_seed(config.seed, "prompt search"), budget_of(config)
    tasks = training_tasks(config, records.ports.question_file, budget, seed)
    front = front_size(budget, len(tasks))
    key = f"{records.ablation.run} {records.ablation.search} {config.model_dump_json()}"
    with FinishedItems.of(records.settings).opened(key, str) as (replies, keep):
        caller = _Caller(records, tasks, original_prompt(config), replies, keep, asyncio.get_running_loop())
        work = partial(
            best_instruction,
            instruction_of(caller.original),
            caller,
            range(front, len(tasks)),
            range(front),
            budget=budget,
            seed=seed,
            reflects=records.ablation.search == "reflective",
            stopped=lambda: caller.failure is not None,
        )
        return caller.whole(await _in_thread(work, caller))


async def _in_thread(work: Callable[[], str], caller: "_Caller") -> str:
    """Return the result of ``work`` in a thread; the thread ends before this returns or raises."""
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        best = await asyncio.shield(thread)
    except BaseException as error:
        caller.stop(error)
        await asyncio.gather(thread, return_exceptions=True)
    if caller.failure:
        raise caller.failure
    return best


def budget_of(config: RunConfig) -> int:
    """Return how many attempts a search has: as many as the loop would be asked for."""
    return requested_compute(config)["in_all"]


def original_prompt(config: RunConfig) -> str:
    """Return the text that a search begins with.

    Raises:
        ConfigError: the prompts of the run's domains differ.
    """
    domains = (config.questions.domain or "math",) if config.questions.file else config.curriculum.domains
    first, *others = (student_prompt(config.student, domain).text for domain in domains)
    if any(other != first for other in others):
        why = f"Those of {', '.join(domains)} differ, and a search is over one."
        raise ConfigError("The student has more than one prompt.", why, "Set run.curriculum.domains to one domain.")
    return first


def with_prompt(config: RunConfig, text: str) -> RunConfig:
    """Return ``config`` with ``text`` as the prompt of its student."""
    return config.model_copy(update={"student": config.student.model_copy(update={"prompts": text})})


def training_tasks(config: RunConfig, file: QuestionFile, budget: int, seed: int) -> list[Task]:
    """Draw tasks of the training split in an order of ``seed``, half as many as ``budget`` where there are so many:
    rows of the run's file, else tasks of its families."""
    n = max(budget // 2, LEAST + MINIBATCH)
    if config.questions.file:
        rows = [*questions(file, config.questions).tasks["train"]]
        random.Random(seed).shuffle(rows)
        return rows[:n]
    plan = config.curriculum
    tasks = _drawn(config, n, seed, plan.domains, plan.families)
    random.Random(seed).shuffle(tasks)
    return tasks


def _drawn(config: RunConfig, n: int, seed: int, domains: Sequence[str], families: Sequence[str]) -> list[Task]:
    """At most ``n``: some families have few forms."""
    while n >= LEAST + MINIBATCH:
        try:
            return heldout("train", n, seed, domains, names=families, levels=config.evaluation.levels)
        except ValueError:
            n //= 2
    return []


@dataclass
class _Caller:
    """What the thread of a search calls (``PromptTasks``)."""

    records: VariantRecords
    tasks: Sequence[Task]
    original: str
    replies: dict[int, str]
    keep: Callable[[int, str], None]
    loop: asyncio.AbstractEventLoop
    failure: BaseException | None = None
    """Of a call; the search then ends."""
    _pending: Future[Any] | None = None
    _written: int = 0
    _scored: int = 0
    _spent: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)

    def whole(self, instruction: str) -> str:
        """The prompt with ``instruction``; empty where that makes none."""
        if instruction == instruction_of(self.original):
            return self.original
        try:
            return with_instruction(self.original, instruction)
        except ConfigError:
            return ""

    def score(self, instruction: str, numbers: Sequence[int], *, front: bool) -> list[ScoredAnswer]:
        """As ``PromptTasks.score``."""
        return self._call(self._score(self.whole(instruction), numbers, front))

    def write(self, prompt: str) -> str:
        """As ``PromptTasks.write``."""
        return self._call(self._write(prompt))

    def stop(self, error: BaseException) -> None:
        """End the search, because of ``error`` where nothing else failed before."""
        self.failure = self.failure or error
        if self._pending:
            self._pending.cancel()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        if self.failure:
            work.close()
            raise RuntimeError("the search has ended")
        try:
            call = asyncio.run_coroutine_threadsafe(work, self.loop)
            self._pending = call
            return call.result()
        except BaseException as error:
            self.failure = self.failure or error
            raise

    async def _score(self, text: str, numbers: Sequence[int], front: bool) -> list[ScoredAnswer]:
        records, candidate = self.records, self._numbers.setdefault(text, len(self._numbers))
        items = await self._attempted(text, numbers) if text else [None] * len(numbers)
        right = [item is not None and item.correct is True for item in items]
        self._spent += len(numbers)
        if self._scored == len(records.candidates):  # else this search was killed, and comes by here again
            event = PromptCandidateScored(
                search="reflective" if records.ablation.search == "reflective" else "random",
                number=self._scored,
                candidate=candidate,
                text=text,
                items=tuple(numbers),
                outcomes="".join(str(int(mark)) for mark in right),
                front=front,
                attempts=self._spent,
                usage=records.usage,
            )
            await records.record(event, "candidate", self._scored)
            records.usage = Usage()
            of = "those that decide" if front else "a minibatch"
            records.report(f"prompt {candidate}: {sum(right)} of {len(right)} of {of}, {self._spent} attempts", None)
        self._scored += 1
        answers = zip(numbers, items, right, strict=True)
        return [ScoredAnswer(mark, self._record(number, item)) for number, item, mark in answers]

    async def _attempted(self, text: str, numbers: Sequence[int]) -> list[EvaluationItemScored]:
        state = self.records.state(with_prompt(self.records.config, text))

        async def attempt(number: int) -> ItemAttempt:
            return await solve_task(self.tasks[number], number, None, state, self.records.ports)

        evaluation = f"{PREFIX}{prompt(text, 'any', 'student').version}"
        return await self.records.attempted(evaluation, numbers, attempt)

    def _record(self, number: int, item: EvaluationItemScored | None) -> dict[str, str]:
        question = self.tasks[number].question
        if item is None:
            return {"Question": question, "Reply": "", "Feedback": "The instruction cannot be used."}
        verdict = "right" if item.correct else f"wrong: {item.reason}; expected {item.expected}; got {item.answer}"
        return {"Question": question, "Reply": self._reply(item), "Feedback": verdict[:REPLY]}

    def _reply(self, item: EvaluationItemScored) -> str:
        """What the student wrote and what its tools returned, behind the question."""
        conversation = item.conversation
        if item.conversation_artifact:
            conversation = Conversation.model_validate_json(self.records.artifacts.get(item.conversation_artifact))
        turns = conversation.transcript if conversation else ()
        last = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=-1)
        return "\n".join(f"[{turn.role}] {turn.content}" for turn in turns[last + 1 :])[:REPLY]

    async def _write(self, text: str) -> str:
        """The reply to ``text`` of the teacher's model, or of the untrained student's where the run has no teacher."""
        number, config = self._written, self.records.config
        self._written += 1
        if number in self.replies:
            return self.replies[number]
        actor = config.teacher if config.has_teacher else config.student
        seed = derive_seed(config.seed, "proposal", number)
        sampling = Sampling(actor.temperature, actor.top_p, max(actor.max_tokens, WRITTEN), seed)
        turn = Turn(role="user", content=text)
        request = GenerateRequest((turn,), sampling, group=self.records.ablation.run)
        model = self.records.ports.models.open(actor)
        reply = await self.records.wait.through(partial(model.generate, request))
        self.records.count(reply.usage)
        self.keep(number, reply.text)
        return reply.text
