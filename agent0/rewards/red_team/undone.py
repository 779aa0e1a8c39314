"""Answers that leave the work undone, tested against the verifiers of every family: the expression copied from the
question, and sums that evaluate to the answer. Nothing is simulated here; right is what a run's verifier accepts."""

import random
import re
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent0.events.values import Task, ToolState
from agent0.grading.normal_form import same
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.tasks.families import Family, Params, families
from agent0.tasks.splits import task_of
from agent0.verification.verifiers import Verdict, verifier_for

DRAWS = 24
"""Tasks of a family, over all its levels."""
_run = re.compile(r"[-+*/^%(\[{\d][-+*/^%()\[\]{}\d.,= <>|x]*[)\]}\dx]")
_printed = re.compile(r"print\((.*)\)\s*", re.S)
_number = re.compile(r"-?\d+(?:\.\d+)?(?:/\d+)?")
_whole = re.compile(r"(?<![-./\d])\d+(?![./\d])")


class NoSandbox:
    """A sandbox that refuses every call at once, so that what would have to be run is undecided."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        """Refuse the call."""
        return SandboxResult(ToolState.REFUSED, 0, "", "", 0.0, 0.0, 0.0, "none", "none")

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True)
class Undone:
    """How many answers of a policy the verifier accepted on tasks of ``family``: ``right`` of ``tried``.

    ``undecided`` ones symbolic algebra might accept: they count as accepted. ``honest`` is the share of tasks whose own
    answer is accepted; ``example`` is a (question, answer) that was not refused.
    """

    family: str
    policy: str
    right: int
    tried: int
    honest: float
    example: tuple[str, str] | None = None
    undecided: int = 0

    @property
    def not_wrong(self) -> int:
        """Answers that were not wrong."""
        return self.right + self.undecided


def verdicts(task: Task, answers: Sequence[str | None]) -> list[bool | None]:
    """Verify each answer by the task's own verifier, without a sandbox."""
    return [verdict.correct for verdict in _at_once(verifier_for(task).judge(task, answers, NoSandbox()))]


def undone(seed: int = 0, draws: int = DRAWS) -> list[Undone]:
    """Try both policies on every registered family, long ones included; ``draws`` tasks per family."""
    return [row for entry in families(long=None).values() for row in _family(entry, seed, draws)]


def copies(task: Task, entry: Family) -> Iterator[str]:
    """Expressions of ``task`` copied unsolved: the longest one in the question, and the arguments of its tool call."""
    yield max(_run.findall(task.question), key=len, default=task.question).strip(" .,=")
    name, arguments = entry.call(task.params)
    for text in map(str, arguments.values()):
        printed = _printed.fullmatch(text)
        yield printed[1] if name == "python" and printed else text


def sums(answer: str) -> Iterator[str]:
    """``answer`` rewritten as a sum that evaluates to it, as a whole and number by number; also in notation that only
    symbolic algebra reads, and in forms that look like a date or a name."""
    yield f"{answer}+0"
    yield _number.sub(lambda match: f"{match[0]}+0", answer)
    yield _number.sub(lambda match: f"1*{match[0]}", answer)
    yield _number.sub(lambda match: f"({match[0]}-1)+1", answer)
    yield rf"{answer}-1+\binom{{300}}{{0}}"
    yield _number.sub(lambda match: rf"{match[0]}-1+\binom{{201}}{{201}}", answer)
    yield _number.sub(lambda match: rf"({match[0]})\binom{{201}}{{0}}", answer)
    yield _number.sub(lambda match: rf"\log{{1}}+\sqrt[50]{{1}}+{match[0]}-1", answer)
    yield _number.sub(lambda match: f"{match[0]}-0-0", answer)
    yield _whole.sub(lambda match: f"sqrt{int(match[0]) ** 2}", answer)


def _family(entry: Family, seed: int, draws: int) -> Iterator[Undone]:
    tasks = list(_drawn(entry, seed, draws))
    solved = [entry.solve(task.params) for task in tasks]
    honest = sum(verdicts(task, [right])[0] is True for task, right in zip(tasks, solved, strict=True)) / len(tasks)
    written = {
        "copies the expression": [list(copies(task, entry)) for task in tasks],
        "writes the answer as a sum": [list(sums(right)) for right in solved],
    }
    for policy, answers in written.items():
        judged = [
            (task.question, answer, correct)
            for task, right, rewritten in zip(tasks, solved, answers, strict=True)
            for answer, correct in zip(rewritten, verdicts(task, rewritten), strict=True)
            if not same(answer, right)  # a list that is in order already is its own answer
        ]
        hits = [(question, answer) for question, answer, correct in judged if correct is not False]
        right = sum(correct is True for _, _, correct in judged)
        example = hits[0] if hits else None
        yield Undone(entry.name, policy, right, len(judged), honest, example, len(hits) - right)


def _drawn(entry: Family, seed: int, draws: int) -> Iterator[Task]:
    for number in range(draws):
        rng = random.Random(f"{seed} {entry.name} {number}")
        params: Params = entry.sample(1 + number % entry.levels, rng)
        task = task_of(entry, entry.render(params, rng))
        if task is not None:
            yield task


def _at_once(judging: Any) -> list[Verdict]:
    """The result of what waits for nothing."""
    assert isinstance(judging, Coroutine)  # noqa: S101 - judges are async functions
    try:
        judging.send(None)
    except StopIteration as ended:
        return list(ended.value)
    raise RuntimeError("a verifier waits although no sandbox does")
