"""How an exam is sat: every attempt at once, each judged as any attempt is."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from agent0.evaluation.protocol import Exam
from agent0.ports.sandbox import Sandbox
from agent0.rollout.confidence.signals import agreement
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, solve
from agent0.tasks.curriculum.sampler import stream
from agent0.verification.verifiers import verifier_for
from events.values import Task


@dataclass(frozen=True)
class Answered:
    """A task with each attempt's answer and verdict, and the answer that most attempts gave with its own."""

    domain: str
    family: str
    task: str
    question: str
    answers: tuple[str | None, ...]
    correct: tuple[bool | None, ...]
    most: str | None
    most_correct: bool | None


@dataclass(frozen=True)
class Sat:
    """``answers``: one a task, in set order. ``tokens``: written in all."""

    answers: tuple[Answered, ...]
    tokens: int

    @property
    def right(self) -> tuple[int, ...]:
        """Right attempts of each task."""
        return tuple(one.correct.count(True) for one in self.answers)

    @property
    def majority(self) -> str:
        """1, 0 or ? a task, for the answer that most attempts gave."""
        return "".join({True: "1", False: "0", None: "?"}[one.most_correct] for one in self.answers)


async def sit(tasks: Sequence[Task], exam: Exam, given: Conditions, sandbox: Sandbox) -> Sat:
    """Every attempt at once, so that the model batches them; each has a random stream of its own, which depends on
    nothing but the exam's seed, the task's place and the attempt's number."""

    async def one(place: int, task: Task) -> tuple[Answered, int]:
        asked = prompt(given.config.prompts, task.domain, "student")
        seeds = [stream("exam", exam.seed, exam.split, place, number) for number in range(exam.attempts)]
        conditions = [replace(given, seed=seed, temperature=exam.temperature) for seed in seeds]
        solved = await asyncio.gather(*(solve(task, asked, each) for each in conditions))
        answers = [each.answer for each in solved]
        most = agreement(answers).majority
        verdicts = await verifier_for(task).judge(task, [*answers, most], sandbox)
        *correct, last = (verdict.correct for verdict in verdicts)
        found = Answered(
            task.domain, task.family, task.canonical, task.question, tuple(answers), tuple(correct), most, last
        )
        return found, sum(each.usage.completion_tokens for each in solved)

    found = await asyncio.gather(*(one(place, task) for place, task in enumerate(tasks)))
    return Sat(tuple(answered for answered, _ in found), sum(tokens for _, tokens in found))


def lines(answers: Sequence[Answered]) -> bytes:
    """JSON lines, as they are stored."""
    return "".join(json.dumps(asdict(one), sort_keys=True) + "\n" for one in answers).encode()
