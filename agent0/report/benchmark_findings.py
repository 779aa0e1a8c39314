"""What a benchmark run came to: scores with their intervals, with tools beside without, where it fails, what it took,
what its confidence was worth. Read models are all it reads; who has the rows may add what was asked."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from agent0.errors import Agent0Error
from agent0.evaluation.benchmark_scores import Compared, grouped, modes_compared, tally
from agent0.evaluation.benchmarks import Item, benchmarks
from agent0.evaluation.failure_modes import ItemOutcome, error_class, failure_counts, failure_modes
from agent0.events.benchmarks import BenchmarkScored, ItemScored
from agent0.events.values import Usage
from agent0.ports.storage import Artifacts
from agent0.projections.base import Row
from agent0.projections.benchmark_items import scored_items
from agent0.projections.benchmark_scores import show_benchmark_run
from agent0.projections.evaluation_items import conversation_at, last_reply
from agent0.report.answers import MAX_TRUNCATED
from agent0.stats.calibrators import brier, ece, ece_interval, reliability

QuestionItems = Mapping[str, Mapping[str, Item]]
"""Benchmark -> id -> item, for benchmarks whose rows are there as they were."""

MODES = 20
SAMPLES = 3
"""Wrong items of a benchmark and mode that are shown."""
FEWEST = 20
"""Items with a confidence, below which nothing is said of it."""
LONG = 1500
"""Items above which fewer rounds make the interval of the calibration error."""


def bench_findings(
    db: sqlite3.Connection,
    artifacts: Artifacts,
    run: str,
    questions: QuestionItems,
    max_truncated: float = MAX_TRUNCATED,
) -> Row:
    """Everything about ``run``, or about the newest, as JSON would have it. Where more than the share ``max_truncated``
    of replies were cut off, an accuracy is no score of the model.

    Raises:
        NotFoundError: there is no such run.
    """
    benchmark_run = show_benchmark_run(db, run)
    rows = scored_items(db, benchmark_run["run"])
    items = [_item(row) for row in rows]
    price = benchmark_run["settings"]["actor"].get("price") or (0, 0)
    return {
        **{name: benchmark_run[name] for name in ("run", "status", "time", "checkpoint", "samples")},
        "settings": benchmark_run["settings"],
        "provider": benchmark_run["settings"]["actor"].get("provider", ""),
        "max_tokens": benchmark_run["settings"]["actor"].get("max_tokens"),
        "max_truncated": max_truncated,
        "scores": [_score(tally(part), price) for part in grouped(items).values()],
        "domains": _domains(items),
        "tools_against_plain": tool_effects(items),
        "failures": [_failures(mode, part) for mode, part in _by_mode(items)],
        "calibration": [rows for mode, part in _by_mode(items) for rows in _calibration(mode, part)],
        "wrong": _wrong(db, artifacts, rows, questions),
    }


def _item(row: Row) -> ItemScored:
    columns = {name: row[name] for name in ItemScored.model_fields if name in row}
    tokens = Usage(prompt_tokens=row["prompt_tokens"] or 0, completion_tokens=row["completion_tokens"] or 0)
    return ItemScored(**{**columns, "correct": _truth(row["correct"]), "usage": tokens})


def _truth(stored: int | None) -> bool | None:
    return None if stored is None else bool(stored)


def _score(scored: BenchmarkScored, price: Sequence[float]) -> Row:
    """``cost`` is None where the student has no price."""
    row = scored.model_dump()
    tokens = (row["metrics"].get("prompt_tokens", 0.0), row["metrics"].get("completion_tokens", 0.0))
    cost = sum(t * p for t, p in zip(tokens, price, strict=False)) / 1e6
    return {**row, "cost": cost if any(price) else None, "domain": _domain(scored.benchmark)}


def _domains(items: Sequence[ItemScored]) -> list[Row]:
    """Scores over all items of a domain, of whichever benchmark."""
    items = [
        item.model_copy(update={"benchmark": _domain(item.benchmark), "item": f"{item.benchmark} {item.item}"})
        for item in items
    ]
    names = ("mode", "n", "accuracy", "lower95", "upper95", "undecided")
    tallies = [tally(part) for part in grouped(items).values()]
    return [{"domain": score.benchmark, **{name: getattr(score, name) for name in names}} for score in tallies]


def _domain(name: str) -> str:
    """Of a benchmark, or of the one it is a part of; empty where it is gone."""
    entry = benchmarks().get(name.partition(":")[0])
    return entry.domain if entry else ""


def tool_effects(items: Sequence[ItemScored]) -> list[Row]:
    """The same student with tools against without, one row a benchmark."""
    return [
        {**difference_row(comparison), "without": comparison.before, "with": comparison.after}
        for comparison in modes_compared(items)
    ]


def difference_row(comparison: Compared) -> Row:
    """A comparison as a row: the difference with its interval, the adjusted p and the verdict."""
    named = {"benchmark": comparison.benchmark, "mode": comparison.mode}
    return {**named, **asdict(comparison.difference), "adjusted_p": comparison.adjusted, "word": comparison.verdict}


def _by_mode(items: Sequence[ItemScored]) -> list[tuple[str, list[ItemScored]]]:
    by_mode: dict[str, list[ItemScored]] = defaultdict(list)
    for item in items:
        by_mode[item.mode].append(item)
    return sorted(by_mode.items(), reverse=True)


def _failures(mode: str, items: Sequence[ItemScored]) -> Row:
    outcomes = [_outcome(item) for item in items]
    return {
        "mode": mode,
        **failure_counts(outcomes),
        "modes": [asdict(mode) for mode in failure_modes(outcomes)[:MODES]],
    }


def _outcome(item: ItemScored) -> ItemOutcome:
    used = "a call went well" if item.tool_ok else "no call went well" if item.tool_calls else "no call"
    marks = {
        "benchmark": item.benchmark,
        "domain": _domain(item.benchmark),
        "error": item.error or error_class(item.answer, item.correct, reason=item.reason, end=item.end),
        "tool": used if item.mode == "tools" else "",
        **{name: f"{item.benchmark}: {value}" for name, value in item.facts.items()},
    }
    return ItemOutcome(item.correct, marks, item.item)


def _calibration(mode: str, items: Sequence[ItemScored]) -> Iterator[Row]:
    """Each signal that says how sure the student was, as it is, on items that were decided."""
    by_signal: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for item in items:
        signals = {"token_confidence": item.confidence, **item.signals}
        for name, value in signals.items():
            if value is not None and item.correct is not None:
                by_signal[name].append((min(max(value, 0.0), 1.0), item.correct))
    for name, pairs in sorted(by_signal.items()):
        if len(pairs) >= FEWEST:
            yield {"mode": mode, "signal": name, **_worth([c for c, _ in pairs], [o for _, o in pairs])}


def _worth(confidences: list[float], outcomes: list[bool]) -> Row:
    low, high = ece_interval(confidences, outcomes, rounds=1000 if len(outcomes) <= LONG else 200)
    bins = [(b.confidence, b.accuracy, b.n) for b in reliability(confidences, outcomes) if b.n]
    error = ece(confidences, outcomes)
    return {
        "n": len(outcomes),
        "ece": error,
        "lower95": low,
        "upper95": high,
        "brier": brier(confidences, outcomes),
        "bins": bins,
    }


def _wrong(db: sqlite3.Connection, artifacts: Artifacts, rows: Sequence[Row], questions: QuestionItems) -> list[Row]:
    """Some wrong items of each benchmark and mode: of different mistakes first."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["correct"] != 1:
            groups[row["benchmark"], row["mode"]].append(row)
    return [
        {**_answered_row(row, questions), "reply": _reply(db, artifacts, row["scored_seq"])}
        for group in groups.values()
        for row in _various(group)
    ]


def _various(rows: Sequence[Row]) -> list[Row]:
    kinds: dict[tuple[str, str], int] = defaultdict(int)
    ordered = []
    for index, row in enumerate(rows):
        kind = (row["error"] or "", row["reason"] or "")
        ordered.append((kinds[kind], index, row))
        kinds[kind] += 1
    return [row for *_, row in sorted(ordered, key=lambda item: item[:2])[:SAMPLES]]


def _answered_row(row: Row, questions: QuestionItems) -> Row:
    names = ("benchmark", "mode", "item", "sample", "answer", "reason", "error", "end", "tool_calls", "tool_ok")
    item = questions.get(row["benchmark"], {}).get(row["item"])
    context = {"reason": row["reason"] or "", "end": row["end"] or "", "right": item.gold if item else ""}
    error = row["error"] or error_class(row["answer"], _truth(row["correct"]), **context)
    return {
        **{name: row[name] for name in names},
        "error": error,
        "question": item.question if item else None,
        "gold": item.gold if item else None,
    }


def _reply(db: sqlite3.Connection, artifacts: Artifacts, seq: int) -> str:
    try:
        return last_reply(conversation_at(db, seq, artifacts)["transcript"])
    except Agent0Error as error:
        return f"({error})"
