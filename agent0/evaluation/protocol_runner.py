"""Runs an evaluation protocol: all attempts concurrently, each verified as any attempt is."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from agent0.evaluation.protocol import EvaluationProtocol
from agent0.ports.sandbox import Sandbox
from agent0.rollout.confidence.signals import agreement
from agent0.rollout.prompts import prompt
from agent0.rollout.student import Conditions, solve
from agent0.tasks.seeds import derive_seed
from agent0.verification.verifiers import verifier_for
from events.values import Task


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


async def run_protocol(
    tasks: Sequence[Task], protocol: EvaluationProtocol, given: Conditions, sandbox: Sandbox
) -> ProtocolResult:
    """Run all attempts of ``protocol`` concurrently, so that the model batches them.

    Each attempt's random stream depends on the protocol's seed, the task's place and the attempt's number only.
    """

    async def one(place: int, task: Task) -> tuple[Answered, int]:
        asked = prompt(given.config.prompts, task.domain, "student", long=task.kind == "long")
        seeds = [
            derive_seed("exam", protocol.seed, protocol.split, place, number) for number in range(protocol.attempts)
        ]
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

    found = await asyncio.gather(*(one(place, task) for place, task in enumerate(tasks)))
    return ProtocolResult(tuple(answered for answered, _ in found), sum(tokens for _, tokens in found))


def as_json_lines(answers: Sequence[Answered]) -> bytes:
    """Write answered tasks as JSON lines, as they are stored."""
    return "".join(json.dumps(asdict(one), sort_keys=True) + "\n" for one in answers).encode()
