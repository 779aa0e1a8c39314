"""How well signals of confidence separate the right answers of a run from its wrong ones."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agent0.rollout.confidence.signals import SELF_CRITIQUE
from agent0.stats.calibrators import worth

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
    `Worth`. Attempts at one task are one cluster; a signal that no attempt has is left out."""
    answers: dict[str, Counter[str]] = {}
    for row in traces:
        answers.setdefault(row["task"], Counter())[row["answer"]] += 1
    decided = [row for row in traces if row["answer"] is not None and row["correct"] is not None]
    rows = [{"signal": name, **_worth(signal, decided, answers)} for name, signal in SIGNALS.items()]
    return [row for row in rows if len(row) > 1]


def _worth(signal: Signal, decided: Sequence[Row], answers: dict[str, Counter[str]]) -> dict[str, Any]:
    pairs = [(signal(row, answers[row["task"]]), row) for row in decided]
    told = [(value, row) for value, row in pairs if value is not None]
    measured = worth(
        [value for value, _ in told], [row["correct"] for _, row in told], [row["task"] for _, row in told]
    )
    return asdict(measured) if measured else {}
