"""Verifies the answers of stored evaluations again by the present verifiers. No model is called."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent0.errors import LogError
from agent0.events.values import Task
from agent0.ports.sandbox import Sandbox
from agent0.tasks.families import families
from agent0.tasks.splits import task_of
from agent0.verification.verifiers import verifier_for

Verdict = bool | None


@dataclass(frozen=True)
class StoredTask:
    """A task with its answers as they were stored, each with a label and its verdict of then.

    Of sampled attempts at an item of an evaluation only the last one's verdict may be right.
    """

    domain: str
    task: str
    question: str
    answers: tuple[tuple[str, str | None, Verdict], ...]


@dataclass(frozen=True)
class VerdictChange:
    """An answer whose verdict has changed. ``attempt``: its number from 0, ``most`` for the most frequent answer,
    ``greedy`` and ``sampled 1`` … of an evaluation."""

    task: str
    attempt: str
    answer: str | None
    was: Verdict
    rejudged: Verdict


def stored(content: bytes) -> list[StoredTask]:
    """Read the artifact of a ``StudentExamined`` or a ``CheckpointEvaluated``.

    Raises:
        LogError: it holds something else.
    """
    try:
        rows = [json.loads(line) for line in content.decode().split("\n") if line.strip()]
        return [StoredTask(row["domain"], row["task"], row["question"], tuple(_answers(row))) for row in rows]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}."[:200]
        raise LogError("An artifact of stored answers cannot be read.", why, "See: agent0 artifacts check") from error


def _answers(row: dict[str, Any]) -> Iterator[tuple[str, str | None, Verdict]]:
    if "answers" in row:
        pairs = zip(row["answers"], row["correct"], strict=True)
        yield from ((str(number), answer, correct) for number, (answer, correct) in enumerate(pairs))
        yield "most", row["most"], row["most_correct"]
        return
    yield "greedy", row["answer"], row["correct"]
    for number, answer in enumerate(row.get("tried", ()), 1):
        yield f"sampled {number}", answer, number == row["within"]


async def differences(rows: Sequence[StoredTask], sandbox: Sandbox) -> list[VerdictChange]:
    """Verify every answer of ``rows`` again; returns those whose verdict has changed, in order.

    Raises:
        LogError: a question that no family reads as the task that is named with it.
    """
    differing = await asyncio.gather(*(_differing(row, sandbox) for row in rows))
    return [difference for row_differences in differing for difference in row_differences]


async def _differing(row: StoredTask, sandbox: Sandbox) -> list[VerdictChange]:
    task = _task(row)
    verdicts = await verifier_for(task).judge(task, [answer for _, answer, _ in row.answers], sandbox)
    pairs = zip(row.answers, (verdict.correct for verdict in verdicts), strict=True)
    return [
        VerdictChange(row.task, label, answer, was, rejudged)
        for (label, answer, was), rejudged in pairs
        # of a sampled attempt that was not accepted only that is stored, undecided or wrong
        if ((was is True) != (rejudged is True) if label.startswith("sampled") else was != rejudged)
    ]


def _task(row: StoredTask) -> Task:
    read = (task_of(family, row.question) for family in families(row.domain, None).values())
    task = next((task for task in read if task and task.canonical == row.task), None)
    if task is None:
        why = f"No family of {row.domain[:40]} reads its question as {row.task[:80]!r}."
        raise LogError("A stored task cannot be judged again.", why, "Its family may come from a plugin: install it.")
    return task
