"""How well signals of confidence separate the right answers of a run from its wrong ones."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from agent0.rollout.confidence.signals import SELF_CRITIQUE
from agent0.stats.calibrators import auroc, worth
from agent0.stats.paired_tests import bootstrap

Row = Mapping[str, Any]
Signal = Callable[[Row, Counter[str]], float | None]


def _mean_token(row: Row, answers: Counter[str]) -> float | None:
    """The geometric mean probability of the attempt's tokens."""
    return None if row["mean_logprob"] is None else math.exp(row["mean_logprob"])


def _agreement(row: Row, answers: Counter[str]) -> float | None:
    """The share of the task's other attempts with the same answer, as it is written."""
    others = answers.total() - 1
    return (answers[row["answer"]] - 1) / others if others else None


def _self_critique(row: Row, answers: Counter[str]) -> float | None:
    critique: float | None = row["self_critique"]
    return critique


SIGNALS: dict[str, Signal] = {
    "mean_token": _mean_token,
    "agreement": _agreement,
    SELF_CRITIQUE: _self_critique,
}


def confidence_signals(traces: Sequence[Row]) -> list[dict[str, Any]]:
    """What each signal is worth over the run's answered attempts that have a verdict: a row a signal with the fields of
    `Worth`, where attempts at one task are one cluster. A signal that no attempt has is left out.

    ``within`` is the mean AUROC of the attempts at one task, over the ``mixed`` tasks that have right and wrong ones,
    with its interval: over all attempts a signal may know no more than which tasks are hard.
    """
    answers: dict[str, Counter[str]] = {}
    for row in traces:
        answers.setdefault(row["task"], Counter())[row["answer"]] += 1
    decided = [row for row in traces if row["answer"] is not None and row["correct"] is not None]
    rows = []
    for name, signal in SIGNALS.items():
        values = [(signal(row, answers[row["task"]]), row) for row in decided]
        rows.append({"signal": name, **_worth([(value, row) for value, row in values if value is not None])})
    return [row for row in rows if len(row) > 1]


def _worth(values: Sequence[tuple[float, Row]]) -> dict[str, Any]:
    tasks: dict[str, tuple[list[float], list[bool]]] = {}
    for value, row in values:
        confidences, outcomes = tasks.setdefault(row["task"], ([], []))
        confidences.append(value)
        outcomes.append(row["correct"])
    areas = [area for area in (auroc(*task) for task in tasks.values()) if area is not None]
    clusters = [row["task"] for _, row in values]
    measured = worth([value for value, _ in values], [row["correct"] for _, row in values], clusters)
    within = {
        "mixed": len(areas),
        "within": fmean(areas) if areas else None,
        "within95": bootstrap(areas) if areas else None,
    }
    return asdict(measured) | within if measured else {}
