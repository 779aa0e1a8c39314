"""Verifies tasks of families that compute the answer from the question."""

from collections.abc import Sequence

from agent0.events.values import Task
from agent0.grading.answer_types import left_undone
from agent0.grading.normal_form import normal_form, same
from agent0.ports.sandbox import Sandbox
from agent0.tasks.families import families
from agent0.verification.verifiers import Verdict, compare_answer, verifier


def _computable(task: Task) -> bool:
    family = families(long=None).get(task.family)
    return family is not None and family.check is None


async def _grade(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[bool | None]:
    """Compare with the steps of the question as written."""
    family = families(long=None)[task.family]
    params = family.parse(task.question)
    steps = family.steps(params) if family.steps and params is not None else ()
    if len(steps) != len(answers) + 1:
        return [None for _ in answers]
    pairs = zip(steps, answers, strict=False)
    return [(await _compare(step.answer, answer, sandbox)).correct for step, answer in pairs]


@verifier("exact", applies=_computable, rank=1, grade=_grade)
async def exact(task: Task, answers: Sequence[str | None], sandbox: Sandbox) -> list[Verdict]:
    """Compare each answer with the family's own solution of the parsed question."""
    family = families(long=None)[task.family]
    params = family.parse(task.question)
    if params is None:
        return [Verdict(None, "the question does not read as its family") for _ in answers]
    expected = family.solve(params)
    return [await _compare(expected, answer, sandbox) for answer in answers]


async def _compare(expected: str, answer: str | None, sandbox: Sandbox) -> Verdict:
    if answer is not None and same(expected, answer) and not left_undone("", expected, answer):
        return Verdict(True, "computed from the question", normal_form(expected)[:200], normal_form(answer)[:200])
    return await compare_answer(expected, answer, sandbox)
