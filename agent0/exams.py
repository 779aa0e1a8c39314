"""A student asked several times: what one attempt, several checked ones and their majority come to, at any temperature.

The controls that need no training are such exams of the base: greedy, sampled at several temperatures, with its tool
forced, the majority of 8, 32 checked attempts.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent0.confidence import agreement
from agent0.curriculum import stream
from agent0.ports import Sandbox
from agent0.prompts import prompt
from agent0.statistics import wilson
from agent0.student import Conditions, solve
from agent0.verifiers import verifier_for
from events.checkpoints import StudentExamined
from events.values import Split, Task


@dataclass(frozen=True)
class Exam:
    """``attempts`` of each of ``n`` tasks of ``split``, drawn by ``seed``, at ``temperature`` (0: greedy, where more
    than one attempt says nothing new); ``forced_tool``: each begins with a tool call."""

    n: int
    seed: int
    attempts: int = 1
    temperature: float = 0.0
    split: Split = "test"
    forced_tool: bool = False

    @property
    def name(self) -> str:
        """For people: ``8 at T=1, tool forced``."""
        heat = f"{self.attempts} at T={self.temperature:g}" if self.temperature else "greedy"
        return f"{heat}, tool forced" if self.forced_tool else heat


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


def scores(event: StudentExamined) -> dict[str, Any]:
    """One attempt, any of all (a check picks), their majority (nobody picks): shares of tasks with 95 % intervals
    (Wilson 1927; one attempt's is of the mean over attempts, as if each task counted once)."""
    n = len(event.right)
    single = sum(event.right) / (n * event.attempts)
    shares = {
        "single": single,
        "within": sum(right > 0 for right in event.right) / n,
        "majority": event.majority.count("1") / n,
    }
    told: dict[str, Any] = {"exam": event.exam, "n": n, "attempts": event.attempts}
    for name, share in shares.items():
        low, high = wilson(round(share * n), n)
        told |= {name: round(share, 4), f"{name}_lower95": round(low, 4), f"{name}_upper95": round(high, 4)}
    return told
