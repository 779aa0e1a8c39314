"""What a run came to beyond its scores: what may be claimed, where it fails, how tools are used, how varied its tasks
and solutions are. Read models and the artifacts they name are all it reads."""

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import TypedDict

from agent0.evaluation.failure_modes import ItemOutcome, error_class, failure_counts, failure_modes
from agent0.ports.storage import Artifacts
from agent0.projections.base import Row
from agent0.projections.evaluations import scores_with_shared
from agent0.projections.indexes import index_of, rejections
from agent0.projections.iterations import list_iterations
from agent0.projections.traces import list_traces
from agent0.report.columns import WITHIN, shown_iteration
from agent0.report.conclusions import claim_against, scored
from agent0.report.diversity import FREQUENT, diversity, trace_of
from agent0.report.eval_items import held_items, outcome_of
from agent0.rollout.confidence.run_signals import confidence_signals
from agent0.rollout.tool_patterns import Trace, tool_shares, transitions, used, with_and_without
from agent0.stats.claims import claims, step_by_step

MODES = 15
"""Failure modes that are told."""


class RunFindings(TypedDict):
    """What a run came to, as ``--json`` prints it. ``iterations`` are scores on validation, ``test`` those on the test
    set; ``curves`` accuracies by domain and by level, in order of the scores; ``tools`` tables of tool use."""

    iterations: list[Row]
    test: list[Row]
    forms: list[Row]
    curves: dict[str, dict[str, list[float | None]]]
    failures: list[Row]
    tools: Row
    diversity: Row
    confidence: list[Row]
    rejected: list[Row]
    decontamination: str


def findings(db: sqlite3.Connection, artifacts: Artifacts, run: str) -> RunFindings:
    """Find out everything about a run; ``run`` is its id."""
    scores = scores_with_shared(db, run)
    validations = [e for e in scores if e["split"] == "validation" and not e["forced_tool"]]
    traces = list_traces(db, run)
    return {
        "iterations": _iterations(validations),
        "test": _tests([e for e in scores if e["split"] == "test"]),
        "forms": list_iterations(db, run),
        "curves": {part: _curves(validations, part) for part in ("by_domain", "by_level")},
        "failures": [f for f in (_held_failures(artifacts, validations), _tried_failures(traces)) if f],
        "tools": _tools([trace_of(row) for row in traces]),
        "diversity": diversity(db, run, traces),
        "confidence": confidence_signals(traces),
        "rejected": rejections(db, run),
        "decontamination": decontamination(index_of(db, run)),
    }


def _iterations(validations: Sequence[Row]) -> list[Row]:
    """One row a score on validation, in the order in which they were made."""
    differences = step_by_step([scored(e) for e in validations])
    return [
        {**_score(e), "against_before": claim_against(before), "against_base": claim_against(base)}
        for e, (before, base) in zip(validations, differences, strict=True)
    ]


def _tests(tests: Sequence[Row]) -> list[Row]:
    """The first, the control and the last, the last against either of the others."""
    last = tests[-1] if tests and tests[-1]["iteration"] >= 0 and not tests[-1]["forced_tool"] else None
    earlier = [e for e in tests if e is not last]
    differences = claims([(scored(e), scored(last)) for e in earlier]) if last else [None] * len(earlier)
    pairs = zip(earlier, differences, strict=True)
    rows = [{**_score(e), "last_against_this": claim_against(claim)} for e, claim in pairs]
    return [*rows, {**_score(last), "last_against_this": None}] if last else rows


def _score(evaluation: Row) -> Row:
    names = ("evaluation", "iteration", "checkpoint", "forced_tool", "n", "accuracy", "lower95", "upper95", "tool_use")
    return {name: evaluation[name] for name in (*names, *WITHIN)}


def _curves(validations: Sequence[Row], part: str) -> dict[str, list[float | None]]:
    """Accuracy by score, in order, of each domain or level."""
    keys = sorted({key for e in validations for key in e[part] or {}})
    return {key: [(e[part] or {}).get(key) for e in validations] for key in keys}


def _held_failures(artifacts: Artifacts, validations: Sequence[Row]) -> Row | None:
    """Of the last score on validation. Test items are not looked into: what is mended by them is tested no more."""
    last = validations[-1] if validations else None
    items = held_items(artifacts, last["items"]) if last else None
    if last is None or items is None:
        return None
    return _failures(f"validation tasks, {last['checkpoint']}", [outcome_of(item) for item in items])


def _tried_failures(traces: Sequence[Row]) -> Row | None:
    decided = [row for row in traces if row["iteration"] == traces[-1]["iteration"]]
    if not decided:
        return None
    title = f"training attempts of iteration {shown_iteration(decided[0]['iteration'])}"
    return _failures(title, [_outcome(row) for row in decided])


def _failures(of: str, outcomes: Sequence[ItemOutcome]) -> Row:
    return {"of": of, **failure_counts(outcomes), "modes": [asdict(mode) for mode in failure_modes(outcomes)[:MODES]]}


def _outcome(row: Row) -> ItemOutcome:
    marks = {
        "domain": row["domain"] or "",
        "level": str(row["level"] or ""),
        "family": row["family"] or "",
        "error": _error(row),
        "tool": used(trace_of(row).calls),
    }
    return ItemOutcome(row["correct"], marks, row["task"])


def _error(row: Row) -> str:
    context = {"reason": row["reason"] or "", "end": row["end"], "right": row["expected"] or ""}
    return error_class(row["answer"], row["correct"], **context)


def _tools(traces: Sequence[Trace]) -> Row:
    return {
        "attempts": len(traces),
        "used": tool_shares(traces),
        "transitions": transitions(traces)[:FREQUENT],
        "with_and_without": with_and_without(traces),
    }


def decontamination(index: Row | None) -> str:
    """Describe in a sentence what the run's tasks were compared with for contamination."""
    if index is None:
        return "not compared: no benchmark folder named"
    return f"against {index['items']:,} items of {len(index['benchmarks'])} benchmarks"
