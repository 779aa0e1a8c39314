"""Runs an evaluation protocol: many tasks concurrently, each attempt verified as any attempt is."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

from agent0.evaluation.protocol import EvaluationProtocol
from agent0.events.values import Task
from agent0.ports.sandbox import Sandbox
from agent0.rollout.confidence.signals import agreement
from agent0.rollout.student import Conditions, solve, student_prompt
from agent0.tasks.seeds import derive_seed
from agent0.verification.verifiers import verifier_for


@dataclass(frozen=True)
class AnsweredTask:
    """A task with each attempt's answer and verdict, and the most frequent answer with its own."""

    domain: str
    family: str
    task: str
    question: str
    answers: tuple[str | None, ...]
    correct: tuple[bool | None, ...]
    most: str | None
    most_correct: bool | None


@dataclass(frozen=True)
class FinishedTask:
    """A task with its answers, and how many tokens were generated for them."""

    answered: AnsweredTask
    tokens: int


@dataclass(frozen=True)
class ProtocolResult:
    """The result of a protocol: ``answers``, one per task in set order, and how many tokens were generated."""

    answers: tuple[AnsweredTask, ...]
    tokens: int

    @property
    def right(self) -> tuple[int, ...]:
        """How many attempts at each task are right."""
        return tuple(answered.correct.count(True) for answered in self.answers)

    @property
    def majority(self) -> str:
        """One character per task, 1, 0 or ?, for the verdict on the most frequent answer."""
        return "".join({True: "1", False: "0", None: "?"}[answered.most_correct] for answered in self.answers)


AT_ONCE = 128
"""Tasks under way at once where nobody says."""


async def run_protocol(
    tasks: Sequence[Task],
    protocol: EvaluationProtocol,
    base: Conditions,
    sandbox: Sandbox,
    at_once: int = AT_ONCE,
    finished: Mapping[int, FinishedTask] = MappingProxyType({}),
    report: Callable[[int, FinishedTask], None] = lambda number, answered: None,
) -> ProtocolResult:
    """Run ``protocol`` on all tasks but those ``finished``, by number, ``at_once`` at a time, the attempts at each
    concurrently, so that the model batches them. ``report`` is called with each task's number once it is finished.

    Each attempt's random stream depends on the protocol's seed, the task's number and the attempt's number only.
    """
    by_number, room = dict(finished), asyncio.Semaphore(at_once)

    async def finish(number: int, task: Task) -> None:
        async with room:
            by_number[number] = await answer_task(number, task, protocol, base, sandbox)
            report(number, by_number[number])

    await asyncio.gather(*(finish(number, task) for number, task in enumerate(tasks) if number not in finished))
    whole = [by_number[number] for number in range(len(tasks))]
    return ProtocolResult(tuple(task.answered for task in whole), sum(task.tokens for task in whole))


async def answer_task(
    number: int, task: Task, protocol: EvaluationProtocol, base: Conditions, sandbox: Sandbox
) -> FinishedTask:
    """Attempt task ``number`` as ``protocol`` says, and verify its answers and the most frequent of them."""
    prompt = student_prompt(base.config, task.domain, long=task.kind == "long")
    seeds = [
        derive_seed("exam", protocol.seed, protocol.split, number, attempt) for attempt in range(protocol.attempts)
    ]
    conditions = [replace(base, seed=seed, temperature=protocol.temperature) for seed in seeds]
    solved = await asyncio.gather(*(solve(task, prompt, each) for each in conditions))
    answers = [each.answer for each in solved]
    most = agreement(answers).majority
    verdicts = await verifier_for(task).judge(task, [*answers, most], sandbox)
    *correct, last = (verdict.correct for verdict in verdicts)
    answered = AnsweredTask(
        task.domain, task.family, task.canonical, task.question, tuple(answers), tuple(correct), most, last
    )
    return FinishedTask(answered, sum(each.usage.completion_tokens for each in solved))


def as_json_lines(answers: Sequence[AnsweredTask]) -> bytes:
    """Write answered tasks as JSON lines, as they are stored."""
    return "".join(json.dumps(asdict(answered), sort_keys=True) + "\n" for answered in answers).encode()
