"""From judged held-out items to a ``CheckpointEvaluated``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from agent0.statistics import quantile, wilson
from events.checkpoints import CheckpointEvaluated, EvaluationRequested
from events.values import Artifact


@dataclass(frozen=True)
class Item:
    """One held-out task as attempted. ``seconds`` counts model and tool time, waiting in the batch included;
    ``signals`` say how sure the student was (``agent0.confidence``)."""

    task: str
    domain: str
    level: int
    question: str
    answer: str | None
    correct: bool | None
    tool_ok: int
    tokens: int
    seconds: float
    signals: dict[str, float] = field(default_factory=dict)


def score(request: EvaluationRequested, items: Sequence[Item], stored: Artifact) -> CheckpointEvaluated:
    """Accuracy with its Wilson 95 % interval; undecided items count as wrong and are counted apart."""
    right = sum(item.correct is True for item in items)
    low, high = wilson(right, len(items))
    seconds = [item.seconds for item in items]
    return CheckpointEvaluated(
        evaluation=request.evaluation,
        checkpoint=request.checkpoint,
        iteration=request.iteration,
        split=request.split,
        forced_tool=request.forced_tool,
        n=len(items),
        correct=right,
        accuracy=right / len(items) if items else 0.0,
        lower95=low,
        upper95=high,
        tool_use=fmean(item.tool_ok > 0 for item in items) if items else 0.0,
        undecided=sum(item.correct is None for item in items),
        by_domain=_shares((item.domain, item) for item in items),
        by_level=_shares((str(item.level), item) for item in items),
        latency_p50_s=quantile(seconds, 0.5),
        latency_p95_s=quantile(seconds, 0.95),
        items=stored,
        outcomes="".join("?" if i.correct is None else str(int(i.correct)) for i in items),
        wall_s=max(seconds, default=0.0),
    )


def _shares(keyed: Iterable[tuple[str, Item]]) -> dict[str, float]:
    groups: dict[str, list[bool]] = {}
    for key, item in keyed:
        groups.setdefault(key, []).append(item.correct is True)
    return {key: fmean(values) for key, values in sorted(groups.items())}
