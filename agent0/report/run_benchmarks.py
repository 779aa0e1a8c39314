"""Benchmarks that a run scored, each score paired with earlier ones on the same items; and what its targets came to."""

import sqlite3
from collections.abc import Sequence

from agent0.projections.base import Row
from agent0.projections.checkpoints import list_checkpoints
from agent0.projections.costs import attempt_seconds, iterations_used
from agent0.report.columns import shown_iteration
from agent0.report.conclusions import ClaimAgainst, claim_against, conclusion, scored
from agent0.report.diversity import solutions_of
from agent0.report.html.rendering import p_value, points, share
from agent0.report.targets import RunMeasures, Spent, TargetRow, target_table
from agent0.settings import RunConfig
from agent0.state.run_state import BASE
from agent0.stats.claims import claims
from agent0.stats.intervals import quantile


def benchmark_scores(db: sqlite3.Connection, run: str, scores: Sequence[Row]) -> list[Row]:
    """List the benchmark scores among the evaluations ``scores`` of ``run``, in order: each against the last promoted
    checkpoint that was scored before it, and against the base, with Holm's correction over each of the two columns."""
    done = [score for score in scores if score["split"] == "benchmark" and score["status"] == "evaluated"]
    promoted = _promoted(db, run)
    students = _claims(done, [_last(done[:index], score, promoted) for index, score in enumerate(done)])
    bases = _claims(done, [_last(done[:index], score, {BASE}) for index, score in enumerate(done)])
    names = ("benchmark", "iteration", "checkpoint", "n", "correct", "undecided", "accuracy", "lower95", "upper95")
    return [
        {**{name: score[name] for name in (*names, "tool_use")}, "against_promoted": student, "against_base": base}
        for score, student, base in zip(done, students, bases, strict=True)
    ]


def _promoted(db: sqlite3.Connection, run: str) -> set[str]:
    return {row["checkpoint"] for row in list_checkpoints(db, run) if row["status"] == "promoted"} | {BASE}


def _last(earlier: Sequence[Row], score: Row, among: set[str]) -> Row | None:
    same = [
        e for e in earlier if e["benchmark"] == score["benchmark"] and e["checkpoint"] in among - {score["checkpoint"]}
    ]
    return same[-1] if same else None


def _claims(scores: Sequence[Row], rivals: Sequence[Row | None]) -> list[ClaimAgainst | None]:
    tested = iter(claims([(scored(old), scored(new)) for old, new in zip(rivals, scores, strict=True) if old]))
    return [claim_against(next(tested)) if old else None for old in rivals]


def target_rows(
    db: sqlite3.Connection, run: str, scores: Sequence[Row], benchmarks: Sequence[Row], config: Row
) -> list[TargetRow]:
    """Make the target table of ``run``. ``scores`` are its finished evaluations, ``benchmarks`` its benchmark scores.

    Tool use is that of the last unforced evaluation, of the test set where there is one.
    """
    free = [e for e in scores if not e["forced_tool"] and e["split"] != "benchmark"]
    tests = [e for e in free if e["split"] == "test" and e["iteration"] >= 0] or free
    validation = [e for e in free if e["split"] == "validation"]
    promoted, spent = _promoted(db, run), _spent(iterations_used(db, run))
    (simple, many), solved = attempt_seconds(db, run), solutions_of(db, run)
    measured = RunMeasures(
        gains={row["benchmark"]: row["against_base"]["mean"] for row in benchmarks if row["against_base"]},
        tool_use=tests[-1]["tool_use"] if tests else None,
        simple_s=quantile(simple, 0.95) if simple else None,
        complex_s=quantile(many, 0.95) if many else None,
        validation=[e["accuracy"] for e in validation],
        promoted=[e["accuracy"] for e in validation if e["checkpoint"] in promoted],
        spent=spent,
        patterns=solved.per_1000,
        counts={
            **{row["benchmark"]: row["against_base"]["items"] for row in benchmarks if row["against_base"]},
            **({"tool_use": tests[-1]["n"]} if tests else {}),
            "simple_s": len(simple),
            "complex_s": len(many),
            **({"validation": min(e["n"] for e in validation)} if validation else {}),
            "patterns": solved.tasks,
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


def benchmark_rows(scores: Sequence[Row], start: str) -> list[Row]:
    """Make the rows of a run's benchmark table for people; ``start``: what its first student is called."""

    def worded(claim: ClaimAgainst | None) -> str:
        if claim is None:
            return ""
        spread = f"{points(claim['lower95'])} to {points(claim['upper95'])}"
        what = f"{claim['against']}: {points(claim['mean'])} ({spread}), {p_value(claim['adjusted_p'])}"
        return f"{what}: {conclusion(claim['word'])}"

    return [
        {
            "benchmark": score["benchmark"],
            "iteration": shown_iteration(score["iteration"], start),
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
