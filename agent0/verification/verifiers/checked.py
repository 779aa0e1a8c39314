"""Verifies tasks of families that only check: many answers are right, none is known, and nothing is compared."""

from collections.abc import Sequence

from agent0.events.values import Task
from agent0.ports.sandbox import Sandbox
from agent0.tasks.families import families
from agent0.verification.verifiers import Verdict, verifier


def _checkable(task: Task) -> bool:
    family = families(long=None).get(task.family)
    return family is not None and family.check is not None


@verifier("checked", applies=_checkable, rank=0)
async def checked(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[Verdict]:
    """Run the family's check of the parsed question on each answer."""
    family = families(long=None)[task.family]
    params = family.parse(task.question)
    if family.check is None or params is None:
        return [Verdict(None, "the question does not read as its family") for _ in answers]
    reasons = ["no answer" if answer is None else family.check(params, answer) for answer in answers]
    return [
        Verdict(not why, why[:200] or "checked step by step", "", (answer or "")[:200])
        for answer, why in zip(answers, reasons, strict=True)
    ]
