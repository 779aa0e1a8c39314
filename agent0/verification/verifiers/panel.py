"""A task that nothing computes, judged conservatively: several independent checks of all its attempts."""

from collections.abc import Sequence

from agent0.events.values import Task, Vote
from agent0.ports.sandbox import Sandbox
from agent0.verification.panel import VerificationContext, case_of, combine_votes, disputed, votes_on
from agent0.verification.verifiers import PANEL, Verdict, verifier


@verifier(PANEL, applies=lambda task: True, rank=8, collective=True)
async def panel(
    task: Task, answers: Sequence[str | None], sandbox: Sandbox, context: VerificationContext
) -> list[Verdict]:
    """Right where two checks say so and none objects; wrong where two say so and more than object; else undecided."""
    case = case_of(task, answers, context)
    votes = await votes_on(case)
    return [_verdict(answer, cast) for answer, cast in zip(answers, votes, strict=True)]


def _verdict(answer: str | None, votes: tuple[Vote, ...]) -> Verdict:
    if answer is None:
        return Verdict(False, "no answer")
    phrases = {True: "for it", False: "against it"}
    reasons = [f"{phrases[vote.correct]}: {vote.check}" for vote in votes if vote.correct is not None]
    why = "; ".join(reasons) or "no check can tell"
    return Verdict(combine_votes(votes), f"checks disagree: {why}" if disputed(votes) else why, "", answer[:200], votes)
