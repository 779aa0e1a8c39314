"""From judged held-out items to the ``CheckpointEvaluated`` event."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from agent0.events.checkpoints import CheckpointEvaluated, EvaluationRequested
from agent0.events.values import Artifact
from agent0.rewards.features import confidence
from agent0.settings import RewardConfig
from agent0.stats.intervals import quantile, wilson


@dataclass(frozen=True)
class ScoredItem:
    """One held-out task as attempted.

    ``seconds`` counts model and tool time, waiting in the batch included; ``signals`` are confidence signals
    (``agent0.rollout.confidence.signals``). ``within`` is the number, from 1, of the sampled attempt that its family's
    check accepts, 0 where none of ``tries`` is, None where none was made. ``tried`` are the answers of these.
    ``truncated``: its reply met the limit of tokens without an answer.
    """

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
    within: int | None = None
    tries: int = 0
    tried: tuple[str | None, ...] = ()
    truncated: bool = False

    def row(self) -> dict[str, object]:
        """The row of the item table, without fields that were not measured or do not hold."""
        left_out = {"within", "tries", "tried"} if self.within is None else set()
        left_out |= set() if self.truncated else {"truncated"}
        return {name: value for name, value in vars(self).items() if name not in left_out}


def score(
    request: EvaluationRequested,
    items: Sequence[ScoredItem],
    stored: Artifact,
    checked: int = 0,
    rules: RewardConfig | None = None,
) -> CheckpointEvaluated:
    """Score a checkpoint: accuracy with its Wilson 95 % interval; undecided items count as wrong and are counted apart.

    With ``checked`` attempts at items that can be checked, also pass@k with the verifier as selector (k = ``checked``).
    ``rules`` name the calibrator of confidences, if there is one.
    """
    right = sum(item.correct is True for item in items)
    low, high = wilson(right, len(items))
    seconds = [item.seconds for item in items]
    scored = CheckpointEvaluated(
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
        truncated=sum(item.truncated for item in items),
        by_domain=_shares((item.domain, item) for item in items),
        by_level=_shares((str(item.level), item) for item in items),
        latency_p50_s=quantile(seconds, 0.5),
        latency_p95_s=quantile(seconds, 0.95),
        items=stored,
        outcomes="".join("?" if i.correct is None else str(int(i.correct)) for i in items),
        confidences=_confidences(items, rules or RewardConfig()),
        wall_s=max(seconds, default=0.0),
        benchmark=request.benchmark,
    )
    return scored.model_copy(update=_within(items, checked)) if checked else scored


def _confidences(items: Sequence[ScoredItem], rules: RewardConfig) -> str:
    confidences = [confidence(rules, item.signals) for item in items]
    digits = "".join("--" if value is None else f"{min(99, round(100 * value)):02d}" for value in confidences)
    return digits if digits.strip("-") else ""


def _within(items: Sequence[ScoredItem], checked: int) -> dict[str, str | float]:
    tried = [item for item in items if item.within is not None]
    solved = sum(bool(item.within) for item in tried)
    counted: dict[str, str | float] = {
        "checked": checked,
        "checkable": len(tried),
        "outcomes_within": "".join("-" if item.within is None else str(int(item.within > 0)) for item in items),
        "attempts_within": sum(item.tries for item in tried),
    }
    if not tried:
        return counted
    low, high = wilson(solved, len(tried))
    once = fmean(item.correct is True for item in tried)
    shares = {"solved_at_once": once, "solved_within": solved / len(tried)}
    return counted | shares | {"lower95_within": low, "upper95_within": high}


def _shares(keyed: Iterable[tuple[str, ScoredItem]]) -> dict[str, float]:
    groups: dict[str, list[bool]] = {}
    for key, item in keyed:
        groups.setdefault(key, []).append(item.correct is True)
    return {key: fmean(values) for key, values in sorted(groups.items())}
