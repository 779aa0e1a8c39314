"""Runs an evaluation protocol: many tasks concurrently, each attempt verified as any attempt is."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from agent0.evaluation.protocol import EvaluationProtocol
from agent0.events.values import Task
from agent0.ports.sandbox import Sandbox
from agent0.rollout.confidence.signals import agreement
from agent0.rollout.student import Conditions, solve, student_prompt
from agent0.tasks.seeds import derive_seed
from agent0.verification.verifiers import verifier_for


@dataclass(frozen=True)
class Answered:
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
class ProtocolResult:
    """The result of a protocol: ``answers``, one per task in set order, and how many tokens were generated."""

    answers: tuple[Answered, ...]
    tokens: int

    @property
    def right(self) -> tuple[int, ...]:
        """How many attempts at each task are right."""
        return tuple(one.correct.count(True) for one in self.answers)

    @property
    def majority(self) -> str:
        """One character per task, 1, 0 or ?, for the verdict on the most frequent answer."""
        return "".join({True: "1", False: "0", None: "?"}[one.most_correct] for one in self.answers)


Finished = tuple[Answered, int]
"""A task with its answers, and how many tokens were generated for them."""
AT_ONCE = 128
"""Tasks under way at once where nobody says."""


async def run_protocol(
    tasks: Sequence[Task],
    protocol: EvaluationProtocol,
    given: Conditions,
    sandbox: Sandbox,
    at_once: int = AT_ONCE,
    known: Mapping[int, Finished] = MappingProxyType({}),
    report: Callable[[int, Finished], None] = lambda place, found: None,
) -> ProtocolResult:
    """Run ``protocol`` on all tasks but those ``known`` by place, ``at_once`` at a time, the attempts at each
    concurrently, so that the model batches them. ``report`` is called with each task's place once it is finished.

    Each attempt's random stream depends on the protocol's seed, the task's place and the attempt's number only.
    """
    found, room = dict(known), asyncio.Semaphore(at_once)

    async def one(place: int, task: Task) -> None:
        async with room:
            found[place] = await answer_task(place, task, protocol, given, sandbox)
            report(place, found[place])

    await asyncio.gather(*(one(place, task) for place, task in enumerate(tasks) if place not in known))
    whole = [found[place] for place in range(len(tasks))]
    return ProtocolResult(tuple(answered for answered, _ in whole), sum(tokens for _, tokens in whole))


async def answer_task(
    place: int, task: Task, protocol: EvaluationProtocol, given: Conditions, sandbox: Sandbox
) -> Finished:
    """Attempt the task at ``place`` as ``protocol`` says, and verify its answers and the most frequent of them."""
    asked = student_prompt(given.config, task.domain, long=task.kind == "long")
    seeds = [derive_seed("exam", protocol.seed, protocol.split, place, number) for number in range(protocol.attempts)]
    conditions = [replace(given, seed=seed, temperature=protocol.temperature) for seed in seeds]
    solved = await asyncio.gather(*(solve(task, asked, each) for each in conditions))
    answers = [each.answer for each in solved]
    most = agreement(answers).majority
    verdicts = await verifier_for(task).judge(task, [*answers, most], sandbox)
    *correct, last = (verdict.correct for verdict in verdicts)
    found = Answered(
        task.domain, task.family, task.canonical, task.question, tuple(answers), tuple(correct), most, last
    )
    return found, sum(each.usage.completion_tokens for each in solved)


def as_row(found: Finished) -> dict[str, Any]:
    """Write a finished task as a row of JSON."""
    return {"answered": asdict(found[0]), "tokens": found[1]}


def of_row(row: Mapping[str, Any]) -> Finished:
    """Read the row of a finished item that ``as_row`` wrote."""
    held = row["answered"]
    return Answered(**{**held, "answers": tuple(held["answers"]), "correct": tuple(held["correct"])}), row["tokens"]


def as_json_lines(answers: Sequence[Answered]) -> bytes:
    """Write answered tasks as JSON lines, as they are stored."""
    return "".join(json.dumps(asdict(one), sort_keys=True) + "\n" for one in answers).encode()
