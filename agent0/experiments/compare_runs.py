"""Compares runs and experiments: rewards, held-out scores with paired tests, cost, and adapters that were trained again
with the run's own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import TypedDict

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


class ClaimRow(TypedDict):
    """A claim as JSON: its verdict, Holm's p, and the fields of its ``Difference``."""

    word: str
    adjusted_p: float
    mean: float
    lower95: float
    upper95: float
    p: float
    items: int
    gained: int
    lost: int
    detectable: float
    size: float


class AgainstRow(TypedDict):
    """A side compared with the first: rank correlations of the rewards that both assigned, the tasks whose teacher
    reward crossed its side's mean, and the claim on validation, each None where nothing can be compared."""

    name: str
    against: str
    student_rank_correlation: float | None
    teacher_rank_correlation: float | None
    deeds_in_common: int
    changed_sides: list[str]
    held_out: ClaimRow | None


class RunComparison(TypedDict):
    """Runs and experiments side by side, as ``--json`` prints it; ``read`` and ``cost`` are those of ``Side``."""

    names: list[str]
    rewards: list[dict[str, str | float]]
    curves: dict[str, list[dict[str, str | float]]]
    read: list[dict[str, str | int]]
    cost: list[dict[str, str | float]]
    against: list[AgainstRow]


def side_by_side(sides: Sequence[Side]) -> RunComparison:
    """Summarise each side, and compare every other one with the first."""
    first = sides[0]
    held_out = claims([(_last(first), _last(other)) for other in sides[1:]])
    return {
        "names": [side.name for side in sides],
        "rewards": [row for side in sides for row in reward_distribution(side)],
        "curves": {side.name: [_score(scored) for scored in side.curve] for side in sides},
        "read": [{"name": side.name, **side.read} for side in sides],
        "cost": [  # counts are whole
            {"name": side.name, **{k: v if isinstance(v, int) else round(v, 3) for k, v in side.cost.items()}}
            for side in sides
        ],
        "against": [_against(first, other, claim) for other, claim in zip(sides[1:], held_out, strict=True)],
    }


def same_checkpoint(original: Side, again: Side) -> dict[str, object] | None:
    """Compare the last checkpoint that both scored, trained again, with the run's own of that name; None where there is
    none, or not on the same number of items."""
    before, after = ({scored.checkpoint: scored.outcomes for scored in side.curve} for side in (original, again))
    both = [name for name in after if name in before]
    if not both:
        return None
    (claim,) = claims([(Scored(original.name, before[both[-1]]), Scored(again.name, after[both[-1]]))])
    return {"checkpoint": both[-1], **claim_row(claim)} if claim else None


def reward_distribution(side: Side) -> list[dict[str, str | float]]:
    """One row per role: count, mean, deviation and quantiles of its rewards."""
    rows: list[dict[str, str | float]] = []
    for role in ("student", "teacher"):
        totals = [total for (_, _, whose), total in side.rewards.items() if whose == role]
        if totals:
            tenths = {f"p{int(q * 100)}": quantile(totals, q) for q in (0.1, 0.5, 0.9)}
            spread = {"mean": fmean(totals), "sd": pstdev(totals)}
            rows.append({"name": side.name, "role": role, "n": len(totals), **spread, **tenths})
    return rows


def _against(first: Side, other: Side, claim: Claim | None) -> AgainstRow:
    both = [key for key in first.rewards if key in other.rewards]
    teacher = {key[0]: (first.rewards[key], other.rewards[key]) for key in both if key[2] == "teacher"}
    return {
        "name": other.name,
        "against": first.name,
        "student_rank_correlation": _rank_correlation(first, other, [key for key in both if key[2] == "student"]),
        "teacher_rank_correlation": _rank_correlation(first, other, [key for key in both if key[2] == "teacher"]),
        "deeds_in_common": len(both),
        "changed_sides": crossed_mean(teacher),
        "held_out": claim_row(claim) if claim else None,
    }


def _rank_correlation(first: Side, other: Side, keys: Sequence[ReceiptKey]) -> float | None:
    return spearman([first.rewards[key] for key in keys], [other.rewards[key] for key in keys]) if keys else None


def _last(side: Side) -> Scored:
    return Scored(side.name, side.curve[-1].outcomes if side.curve else "")


def _score(scored: CheckpointEvaluated) -> dict[str, str | float]:
    low, high = wilson(scored.correct, scored.n)
    row = scored.model_dump(include={"checkpoint", "iteration", "n", "accuracy", "tool_use"})
    return {**row, "lower95": low, "upper95": high}


def claim_row(claim: Claim) -> ClaimRow:
    """Turn a claim into values as JSON has them."""
    difference = claim.difference
    return {
        "word": claim.verdict,
        "adjusted_p": claim.adjusted,
        "mean": difference.mean,
        "lower95": difference.lower95,
        "upper95": difference.upper95,
        "p": difference.p,
        "items": difference.items,
        "gained": difference.gained,
        "lost": difference.lost,
        "detectable": difference.detectable,
        "size": difference.size,
    }


class AdapterRow(TypedDict):
    """A checkpoint that was trained again: whether its adapter is the ``same`` as the run's own (None: the run has
    none), whether both were trained on the same samples by the same recipe, and in which names of the recorded
    ``environment`` they differ, with both values."""

    checkpoint: str
    same: bool | None
    same_inputs: bool
    environment: dict[str, list[str]]


def compare_adapters(
    originals: Mapping[str, CheckpointTrained], again: Sequence[CheckpointTrained]
) -> list[AdapterRow]:
    """Compare each checkpoint of ``again`` with its training in ``originals``."""
    return [
        {
            "checkpoint": trained.checkpoint,
            "same": None
            if (before := originals.get(trained.checkpoint)) is None
            else before.adapter == trained.adapter,
            "same_inputs": before is not None and before.recipe == trained.recipe and before.samples == trained.samples,
            "environment": {} if before is None else _differences(before.environment, trained.environment),
        }
        for trained in again
    ]


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str]]:
    names = sorted(before.keys() | after.keys())
    pairs = {name: [before.get(name, "not recorded"), after.get(name, "not recorded")] for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def adapters_answer(rows: Sequence[AdapterRow], changed: bool) -> str:
    """One sentence of what ``compare_adapters`` returns; ``changed``: other settings, rewards or tasks were asked for.
    Checkpoints build on one another, so the first that differs is the one to explain."""
    compared = [row for row in rows if row["same"] is not None]
    if not compared:
        return "The run has no adapter of its own beside them."
    first = next((row for row in compared if not row["same"]), None)
    if first is None:
        single = len(compared) == 1
        return f"The {'adapter is' if single else 'adapters are'} the very same as the run's own."
    head = f"{first['checkpoint']} is not the very same adapter as the run's own"
    if changed or not first["same_inputs"]:
        return f"{head}: what it was trained on, or how, is another."
    if not first["environment"]:
        return f"{head}, on the same processor, threads and packages: nothing that is recorded explains it."
    differences = "; ".join(f"{name} {before}, now {after}" for name, (before, after) in first["environment"].items())
    return f"{head}. Where it was computed differs ({differences}), which changes roundings and so explains it."
