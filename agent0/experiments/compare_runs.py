"""Compares runs and experiments: rewards, held-out scores with paired tests, and cost."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, pstdev
from typing import Any

from agent0.events.base import Event, Recorded
from agent0.events.checkpoints import CheckpointEvaluated, CheckpointTrained
from agent0.events.tasks import RewardAssigned, TaskAccepted, TaskAttempted, TaskProposed, ToolCalled
from agent0.experiments.receipt_diff import crossed_mean, spearman
from agent0.experiments.substitution import ReceiptKey
from agent0.stats.claims import Claim, Scored, claims
from agent0.stats.intervals import quantile, wilson

READ = ("proposals", "readable", "accepted", "attempts", "answered", "calls", "malformed")
"""Proposals of the teacher, those of them that hold a task, and tasks accepted; attempts of the student, those of them
that end in an answer, tool calls, and those of them that are malformed. `run.teacher.json_schema` and
`run.student.tool_form` are compared by them."""


@dataclass
class Side:
    """One run or experiment to compare. ``curve`` holds its validation scores in order, ``read`` how what its models
    wrote was read, by name of ``READ``."""

    name: str
    rewards: dict[ReceiptKey, float] = field(default_factory=dict)
    curve: list[CheckpointEvaluated] = field(default_factory=list)
    cost: dict[str, float] = field(
        default_factory=lambda: {"attempts": 0, "tokens": 0, "model_s": 0.0, "training_s": 0.0}
    )
    read: dict[str, int] = field(default_factory=lambda: dict.fromkeys(READ, 0))


def side_of(name: str, events: Iterable[Recorded]) -> Side:
    """Collect rewards, scores and cost of ``name`` from its events."""
    side = Side(name)
    for recorded in events:
        _count_read(side.read, recorded.event)
        match recorded.event:
            case RewardAssigned() as receipt:
                side.rewards[receipt.task, receipt.attempt, receipt.role] = receipt.total
            case CheckpointEvaluated(split="validation", forced_tool=False) as scored:
                side.curve.append(scored)
            case CheckpointTrained() as trained:
                side.cost["training_s"] += trained.wall_s
            case TaskAttempted() | TaskProposed() as wrote:
                side.cost["attempts"] += isinstance(wrote, TaskAttempted)
                side.cost["tokens"] += wrote.usage.prompt_tokens + wrote.usage.completion_tokens
                side.cost["model_s"] += wrote.usage.wall_s
    return side


def _count_read(read: dict[str, int], event: Event) -> None:
    match event:
        case TaskProposed(proposal=proposal):
            read["proposals"] += 1
            read["readable"] += proposal is not None
        case TaskAccepted():
            read["accepted"] += 1
        case TaskAttempted(answer=answer):
            read["attempts"] += 1
            read["answered"] += answer is not None
        case ToolCalled(call=call, inner=False):
            read["calls"] += 1
            read["malformed"] += bool(call.error)


def side_by_side(sides: Sequence[Side]) -> dict[str, Any]:
    """Summarise each side, and compare every other one with the first."""
    first = sides[0]
    held_out = claims([(_last(first), _last(other)) for other in sides[1:]])
    return {
        "names": [side.name for side in sides],
        "rewards": [row for side in sides for row in reward_distribution(side)],
        "curves": {side.name: [_score(scored) for scored in side.curve] for side in sides},
        "read": [{"name": side.name, **side.read} for side in sides],
        "cost": [{"name": side.name, **{k: _figure(v) for k, v in side.cost.items()}} for side in sides],
        "against": [
            {"name": other.name, "against": first.name, **reward_changes(first, other), "held_out": _claim(claim)}
            for other, claim in zip(sides[1:], held_out, strict=True)
        ],
    }


def same_checkpoint(original: Side, again: Side) -> dict[str, Any] | None:
    """Compare the last checkpoint that both scored, trained again, with the run's own of that name; None where there is
    none, or not on the same number of items."""
    before, after = ({scored.checkpoint: scored.outcomes for scored in side.curve} for side in (original, again))
    both = [name for name in after if name in before]
    if not both:
        return None
    (claim,) = claims([(Scored(original.name, before[both[-1]]), Scored(again.name, after[both[-1]]))])
    row = _claim(claim)
    return {"checkpoint": both[-1], **row} if row else None


def _figure(spent: float) -> float:
    """Counts are whole, seconds have three digits."""
    return spent if isinstance(spent, int) else round(spent, 3)


def reward_distribution(side: Side) -> list[dict[str, Any]]:
    """One row per role: count, mean, deviation and quantiles of its rewards."""
    out = []
    for role in ("student", "teacher"):
        totals = [total for (_, _, whose), total in side.rewards.items() if whose == role]
        if totals:
            tenths = {f"p{int(q * 100)}": quantile(totals, q) for q in (0.1, 0.5, 0.9)}
            spread = {"mean": fmean(totals), "sd": pstdev(totals)}
            out.append({"name": side.name, "role": role, "n": len(totals), **spread, **tenths})
    return out


def reward_changes(first: Side, other: Side) -> dict[str, Any]:
    """Rank correlation of the rewards that both sides assigned, and the tasks whose teacher reward crossed its side's
    mean."""
    both = [key for key in first.rewards if key in other.rewards]
    changes: dict[str, Any] = {}
    for role in ("student", "teacher"):
        keys = [key for key in both if key[2] == role]
        before, after = [first.rewards[d] for d in keys], [other.rewards[d] for d in keys]
        changes[f"{role}_rank_correlation"] = spearman(before, after) if keys else None
    return {**changes, "deeds_in_common": len(both), "changed_sides": _crossed(first, other, both)}


def _crossed(first: Side, other: Side, both: Sequence[ReceiptKey]) -> list[str]:
    return crossed_mean({d[0]: (first.rewards[d], other.rewards[d]) for d in both if d[2] == "teacher"})


def _last(side: Side) -> Scored:
    return Scored(side.name, side.curve[-1].outcomes if side.curve else "")


def _score(scored: CheckpointEvaluated) -> dict[str, Any]:
    low, high = wilson(scored.correct, scored.n)
    row = scored.model_dump(include={"checkpoint", "iteration", "n", "accuracy", "tool_use"})
    return {**row, "lower95": low, "upper95": high}


def _claim(claim: Claim | None) -> Mapping[str, Any] | None:
    if claim is None:
        return None
    return {"word": claim.verdict, "adjusted_p": claim.adjusted, **asdict(claim.difference)}
