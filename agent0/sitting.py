"""How an exam is sat: every attempt at once, each judged as any attempt is."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent0.confidence import agreement
from agent0.curriculum import stream
from agent0.exams import Exam
from agent0.ports import Sandbox
from agent0.prompts import prompt
from agent0.student import Conditions, solve
from agent0.verifiers import verifier_for
from events.values import Task


@dataclass(frozen=True)
class Sat:
    """``right``: right attempts of each task, in set order. ``majority``: 1, 0 or ? a task, for the answer that most
    attempts gave. ``tokens``: written in all."""

    right: tuple[int, ...]
    majority: str
    tokens: int


async def sit(tasks: Sequence[Task], exam: Exam, given: Conditions, sandbox: Sandbox) -> Sat:
    """Every attempt at once, so that the model batches them; each has a random stream of its own, which depends on
    nothing but the exam's seed, the task's place and the attempt's number."""

    async def one(place: int, task: Task) -> tuple[int, str, int]:
        asked = prompt(given.config.prompts, task.domain, "student")
        seeds = [stream("exam", exam.seed, exam.split, place, number) for number in range(exam.attempts)]
        conditions = [replace(given, seed=seed, temperature=exam.temperature) for seed in seeds]
        solved = await asyncio.gather(*(solve(task, asked, each) for each in conditions))
        answers = [each.answer for each in solved]
        most = agreement(answers).majority
        verdicts = await verifier_for(task).judge(task, [*answers, most], sandbox)
        said = {True: "1", False: "0", None: "?"}[verdicts[-1].correct]
        right = sum(verdict.correct is True for verdict in verdicts[:-1])
        return right, said, sum(each.usage.completion_tokens for each in solved)

    found = await asyncio.gather(*(one(place, task) for place, task in enumerate(tasks)))
    return Sat(tuple(r for r, _, _ in found), "".join(said for _, said, _ in found), sum(t for _, _, t in found))
