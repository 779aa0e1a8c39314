"""Self-consistency: the majority answer of the student's own attempts is taken for right (arXiv 2511.16043,
section 3.1)."""

from collections.abc import Sequence

from agent0.events.values import Task
from agent0.grading.math.undone import UNDONE
from agent0.grading.normal_form import normal_form
from agent0.ports.sandbox import Sandbox
from agent0.rollout.confidence.signals import agreement
from agent0.verification.panel import VerificationContext, is_unevaluated
from agent0.verification.verifiers import Verdict, verifier


@verifier("self_consistency", applies=lambda task: True, rank=9, collective=True)
async def self_consistency(
    task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext
) -> list[Verdict]:
    """Compare with a majority that at least two attempts share; without one, everything is undecided.

    Unevaluated arithmetic counts for no majority, and is wrong where there is one.
    """
    undone = [is_unevaluated(task, answer) for answer in answers]
    consensus = agreement([None if left else answer for answer, left in zip(answers, undone, strict=True)])
    if consensus.majority is None or consensus.count < 2:
        return [Verdict(None, "no two attempts agree") for _ in answers]
    why = f"majority of {consensus.share:.0%}"
    return [
        Verdict(
            a is not None and not left and normal_form(a) == consensus.majority,
            UNDONE if left else why,
            consensus.majority[:200],
            (a or "")[:200],
        )
        for a, left in zip(answers, undone, strict=True)
    ]
