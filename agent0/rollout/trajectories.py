"""Assembles the sampled tokens of a conversation into one trajectory, never re-tokenised."""

from collections.abc import Sequence
from math import isfinite

from agent0.events.values import Capture, Trajectory, Usage
from agent0.ports.models import Generation


def assemble(generations: Sequence[Generation], exact_from: int = 0) -> tuple[Trajectory | None, str]:
    """Join a conversation's turns into one trajectory; returns (trajectory, "") or (None, why not).

    Each turn's ``prompt_ids + token_ids`` must be a prefix of the next turn's ``prompt_ids``; then the last context is
    the whole sequence, and each turn's sampled tokens lie at the length of its own prompt. A turn before ``exact_from``
    that was written after something which was shortened since is only read there.
    """
    if why := next((g.untrainable for g in generations if g.untrainable), ""):
        return None, why
    if not generations or any(not g.prompt_ids or not g.token_ids for g in generations):
        return None, "the model gives no token ids"
    if any(len(g.logprobs) != len(g.token_ids) for g in generations):
        return None, "the model gives no log-probabilities"
    whole = generations[-1].prompt_ids + generations[-1].token_ids
    mask, logprobs = [0] * len(whole), [0.0] * len(whole)
    for number, turn in enumerate(generations):
        context = turn.prompt_ids + turn.token_ids
        if whole[: len(context)] != context:
            if number < exact_from:
                continue
            return None, f"turn {number} is no prefix of the last context"
        start = len(turn.prompt_ids)
        mask[start : len(context)] = [1] * len(turn.token_ids)
        logprobs[start : len(context)] = turn.logprobs
    return Trajectory(token_ids=whole, mask=tuple(mask), logprobs=tuple(logprobs)), ""


def least_capture(generations: Sequence[Generation]) -> Capture:
    """Return how much is known of every turn: what the poorest one has."""
    order: tuple[Capture, ...] = ("text", "logprobs", "tokens", "")
    return min((g.capture for g in generations), key=order.index, default="")


def mean_logprob(generations: Sequence[Generation]) -> float | None:
    """Mean log-probability (nats) of all sampled tokens, None where none is known."""
    logprobs = [value for g in generations for value in g.logprobs]
    return sum(logprobs) / len(logprobs) if logprobs else None


def total_usage(generations: Sequence[Generation]) -> Usage:
    """Sum the tokens and seconds of all turns of a conversation."""
    waits = [g.usage.first_s for g in generations if g.usage.first_s is not None]
    return Usage(
        prompt_tokens=sum(g.usage.prompt_tokens for g in generations),
        completion_tokens=sum(g.usage.completion_tokens for g in generations),
        wall_s=sum(g.usage.wall_s for g in generations),
        first_s=sum(waits) if waits and len(waits) == len(generations) else None,
    )


def token_fault(trajectory: Trajectory, turns: int, counted: int) -> str:
    """Say what is wrong with the tokens of an attempt of ``turns`` turns; empty where each turn's prompt is what stood
    before it, together with what was written. ``counted``: tokens that the model's server counted, 0 for none."""
    ids, mask, logprobs = trajectory.token_ids, trajectory.mask, trajectory.logprobs
    if not len(ids) == len(mask) == len(logprobs):
        return f"{len(ids)} ids, {len(mask)} marks and {len(logprobs)} log-probabilities"
    if any(id < 0 for id in ids) or not set(mask) <= {0, 1}:
        return "an id below 0, or a mark that is neither 0 nor 1"
    wrong = (n for n, (marked, value) in enumerate(zip(mask, logprobs, strict=True)) if not _fits(marked, value))
    if (at := next(wrong, None)) is not None:
        return f"token {at} has the log-probability {logprobs[at]}"
    if not mask or not mask[-1]:
        return "it does not end with what was written"
    starts = sum(marked > before for before, marked in zip((0, *mask), mask, strict=False))
    if starts > turns:
        return f"{starts} stretches were written in {turns} turns"
    if counted and sum(mask) != counted:
        return f"{sum(mask)} tokens are marked as written, and {counted} were counted"
    return ""


def _fits(marked: int, logprob: float) -> bool:
    return isfinite(logprob) and logprob <= ROUNDING if marked else logprob == 0


ROUNDING = 1e-4
"""How far above 0 arithmetic may leave the logarithm of a probability."""
