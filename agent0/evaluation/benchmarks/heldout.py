"""Our own held-out tasks as suites, one per domain: validation tasks, on which nothing is ever trained. Test tasks are
left alone: runs score them, for the first and the last student only."""

import random
from functools import partial

from agent0.evaluation.benchmarks import Benchmark, Item, benchmark
from agent0.grading import Grade, answer_in
from agent0.ports.sandbox import Sandbox
from agent0.tasks.families import families
from agent0.tasks.splits import heldout, task_of
from agent0.verification.verifiers import verifier_for

SET_SEED = 20260101
"""Draws the set, as ``run.evaluation.seed`` does unless set otherwise; the seed of a benchmark run only orders it."""
SIZE, MOST = 50, 300


def _make(domain: str, n: int, seed: int) -> list[Item]:
    """The first ``n`` of ``MOST`` tasks."""
    tasks = heldout("validation", MOST, SET_SEED, (domain,))
    random.Random(f"heldout {domain} {seed}").shuffle(tasks)
    solve = {name: family.solve for name, family in families(domain).items()}
    return [
        Item(
            id=f"heldout_{domain}/{task.canonical}",
            question=task.question,
            gold=(gold := solve[task.family](task.params)),
            reference=f"\\boxed{{{gold}}}",
            facts={"family": task.family, "level": str(task.level)},
        )
        for task in tasks[:n]
    ]


async def judge(item: Item, reply: str, answer: str | None, sandbox: Sandbox) -> Grade:
    """Grade as a run's own verifier decides, from what the question says."""
    task = task_of(families()[item.facts["family"]], item.question)
    assert task is not None  # noqa: S101 - made from a question that reads so
    submitted = answer if answer is not None else answer_in(reply)
    verdict = (await verifier_for(task).judge(task, [submitted], sandbox))[0]
    return Grade(verdict.correct, verdict.reason, verdict.expected, verdict.got)


MATH, LOGIC, CODE = (
    benchmark(
        Benchmark(
            name=f"heldout_{domain}",
            title=f"held-out tasks of our own families, {domain}",
            domain=domain,
            judge=judge,
            licence="MIT (Agent0)",
            source="agent0.tasks.splits, split validation",
            make=partial(_make, domain),
            size=SIZE,
        )
    )
    for domain in ("math", "logic", "code")
)
