"""Benchmarks that a run scored, each score paired with earlier ones on the same items; and what its targets came to."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agent0.projections.checkpoints import list_checkpoints
from agent0.projections.costs import attempt_seconds, iterations_used
from agent0.report.columns import shown_iteration
from agent0.report.conclusions import conclusion
from agent0.report.diversity import solutions_of
from agent0.report.html.rendering import p_value, points, share
from agent0.report.targets import RunMeasures, Spent, target_table
from agent0.settings import RunConfig
from agent0.state.run_state import BASE
from agent0.stats.claims import Claim, Scored, claims
from agent0.stats.intervals import quantile

Row = dict[str, Any]


def benchmark_scores(db: sqlite3.Connection, run: str, scores: Sequence[Row]) -> list[Row]:
    """List the benchmark scores among the evaluations ``scores`` of ``run``, in order: each against the last promoted
    checkpoint that was scored before it, and against the base, with Holm's correction over each of the two columns."""
    scored = [score for score in scores if score["split"] == "benchmark" and score["status"] == "evaluated"]
    promoted = {
        checkpoint["checkpoint"] for checkpoint in list_checkpoints(db, run) if checkpoint["status"] == "promoted"
    } | {BASE}
    students = _claims(scored, [_last(scored[:index], score, promoted) for index, score in enumerate(scored)])
    bases = _claims(scored, [_last(scored[:index], score, {BASE}) for index, score in enumerate(scored)])
    names = ("benchmark", "iteration", "checkpoint", "n", "correct", "undecided", "accuracy", "lower95", "upper95")
    return [
        {**{name: score[name] for name in (*names, "tool_use")}, "against_promoted": student, "against_base": base}
        for score, student, base in zip(scored, students, bases, strict=True)
    ]


def _last(earlier: Sequence[Row], score: Row, among: set[str]) -> Row | None:
    same = [
        e for e in earlier if e["benchmark"] == score["benchmark"] and e["checkpoint"] in among - {score["checkpoint"]}
    ]
    return same[-1] if same else None


def _claims(scored: Sequence[Row], rivals: Sequence[Row | None]) -> list[Row | None]:
    tested = iter(claims([(_scored(old), _scored(new)) for old, new in zip(rivals, scored, strict=True) if old]))
    return [_claim_row(next(tested)) if old else None for old in rivals]


def _scored(score: Row) -> Scored:
    return Scored(score["checkpoint"], score["outcomes"] or "")


def _claim_row(claim: Claim | None) -> Row | None:
    if claim is None:
        return None
    return {"against": claim.against, "word": claim.verdict, "adjusted_p": claim.adjusted, **asdict(claim.difference)}


def target_rows(
    db: sqlite3.Connection, run: str, scores: Sequence[Row], benchmarks: Sequence[Row], config: Mapping[str, Any]
) -> list[Row]:
    """Make the target table of ``run``. ``scores`` are its finished evaluations, ``benchmarks`` its benchmark scores.

    Tool use is that of the last unforced evaluation, of the test set where there is one.
    """
    free = [e for e in scores if not e["forced_tool"] and e["split"] != "benchmark"]
    tests = [e for e in free if e["split"] == "test" and e["iteration"] >= 0] or free
    validation = [e for e in free if e["split"] == "validation"]
    promoted = {c["checkpoint"] for c in list_checkpoints(db, run) if c["status"] == "promoted"} | {BASE}
    (simple, many), solved = attempt_seconds(db, run), solutions_of(db, run)
    measured = RunMeasures(
        gains=_gains(benchmarks),
        tool_use=tests[-1]["tool_use"] if tests else None,
        simple_s=quantile(simple, 0.95) if simple else None,
        complex_s=quantile(many, 0.95) if many else None,
        validation=[e["accuracy"] for e in validation],
        promoted=[e["accuracy"] for e in validation if e["checkpoint"] in promoted],
        spent=_spent(iterations_used(db, run)),
        patterns=solved["per_1000"] if solved["tasks"] else None,
        counts={
            **{row["benchmark"]: row["against_base"]["items"] for row in benchmarks if row["against_base"]},
            **({"tool_use": tests[-1]["n"]} if tests else {}),
            "simple_s": len(simple),
            "complex_s": len(many),
            **({"validation": min(e["n"] for e in validation)} if validation else {}),
            "patterns": solved["tasks"],
        },
    )
    try:
        settings = RunConfig.recorded(config)
    except ValueError:  # recorded with settings that this version does not know
        return []
    return target_table(measured, settings)


def _spent(used: Sequence[Row]) -> Spent:
    tokens = {
        role: (sum(usage[f"{role}_read"] for usage in used), sum(usage[f"{role}_written"] for usage in used))
        for role in ("student", "teacher")
    }
    return Spent(len(used), tokens, sum(usage["hours"] for usage in used))


def _gains(scores: Sequence[Row]) -> dict[str, float]:
    """Of the last score of each benchmark that is paired with the base's."""
    return {score["benchmark"]: score["against_base"]["mean"] for score in scores if score["against_base"]}


def benchmark_rows(scores: Sequence[Row]) -> list[Row]:
    """Make the rows of a run's benchmark table for people."""

    def worded(claim: Row | None) -> str:
        if claim is None:
            return ""
        spread = f"{points(claim['lower95'])} to {points(claim['upper95'])}"
        what = f"{claim['against']}: {points(claim['mean'])} ({spread}), {p_value(claim['adjusted_p'])}"
        return f"{what}: {conclusion(claim['word'])}"

    return [
        {
            "benchmark": score["benchmark"],
            "iteration": shown_iteration(score["iteration"]),
            "checkpoint": score["checkpoint"],
            "right": f"{score['correct']}/{score['n']}",
            "accuracy": share(score["accuracy"]),
            "95 %": f"{share(score['lower95'])} to {share(score['upper95'])}",
            "undecided": score["undecided"],
            "against the last promoted": worded(score["against_promoted"]),
            "against the base": worded(score["against_base"]),
        }
        for score in scores
    ]
