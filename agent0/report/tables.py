"""The findings of a run as tables for a terminal: (title, rows) in reading order."""

from collections.abc import Iterator, Sequence

from agent0.experiments.compare_runs import ClaimRow
from agent0.projections.base import Row
from agent0.report.columns import shown_iteration
from agent0.report.conclusions import ClaimAgainst, conclusion
from agent0.report.findings import RunFindings
from agent0.report.html.rendering import p_value, points, share
from agent0.run.monitors.form import form_change

Cells = dict[str, object]
"""A row of a table as it is printed, by column."""
TitledTable = tuple[str, list[Cells]]


def run_tables(results: RunFindings, start: str = "untrained") -> Iterator[TitledTable]:
    """Yield the tables of a run's findings as (title, rows); empty ones are left out. ``start``: what its first student
    is called."""
    yield from ((title, rows) for title, rows in _tables(results, start) if rows)


def _tables(results: RunFindings, start: str) -> Iterator[TitledTable]:
    yield "Iteration over iteration, on validation", [_score(score, start) for score in results["iterations"]]
    yield "Conclusions on validation", list(_claims(results["iterations"]))
    yield "Held-out test", [_score(score, start) for score in results["test"]]
    yield "Conclusions on the last test", [_claim("last", c) for c in _compared(results["test"], "last_against_this")]
    yield "What is learned, by verdict: right attempts / all answered ones", form_rows(results["forms"])
    for failure in results["failures"]:
        yield (
            f"Where it fails: {failure['of']}, {failure['wrong']} of {failure['items']} wrong",
            failure_mode_rows(failure["modes"]),
        )
    tools = results["tools"]
    yield "Attempts by successful tools", [_fared(row) for row in tools["with_and_without"]]
    yield "Tool transitions", [_shares(row, "correct") for row in tools["transitions"]]
    yield "Tools", [_shares(row, "success", "share_of_attempts") for row in tools["used"]]
    yield "Signals of confidence: which tells right answers from wrong ones", confidence_rows(results["confidence"])
    yield "Diversity of tasks and solutions", _varied(results["diversity"])
    yield "Rejected tasks", _rejected(results["rejected"], results["decontamination"])


def _score(score: Row, start: str) -> Cells:
    return {
        "iteration": shown_iteration(score["iteration"], start),
        "student": score["checkpoint"] + (", tool forced (control)" if score["forced_tool"] else ""),
        "accuracy": share(score["accuracy"]),
        "95 %": f"{share(score['lower95'])} to {share(score['upper95'])}",
        "n": score["n"],
        **(pass_at_k_columns(score) if score["checked"] else {}),
        "tool use": share(score["tool_use"]),
    }


def pass_at_k_columns(score: Row) -> Cells:
    """Make the columns of a score's checkable items: pass@1, and pass@k with its 95 % interval, where a verifier
    selects among k attempts."""
    low, high = score["lower95_within"], score["upper95_within"]
    return {
        "checkable": score["checkable"],
        "pass@1": share(score["solved_at_once"]),
        f"pass@{score['checked']} (verifier-selected)": share(score["solved_within"]),
        f"95 % of pass@{score['checked']}": f"{share(low)} to {share(high)}" if low is not None else "",
    }


def _claims(scores: Sequence[Row]) -> Iterator[Cells]:
    """Each iteration against the one before and against the untrained; once where both are the same."""
    for score in scores:
        against = {claim["against"]: claim for claim in _compared([score], "against_before", "against_base")}
        yield from (_claim(shown_iteration(score["iteration"]), claim) for claim in against.values())


def _compared(scores: Sequence[Row], *names: str) -> list[ClaimAgainst]:
    return [score[name] for score in scores for name in names if score[name]]


def _claim(iteration: str, claim: ClaimAgainst) -> Cells:
    concluded = {"conclusion": conclusion(claim["word"])}
    return {"iteration": iteration, "against": claim["against"], **tested_columns(claim), **concluded}


def tested_columns(claim: ClaimRow | Row) -> dict[str, str]:
    """Make the columns of the paired test behind a claim."""
    return {
        "points": points(claim["mean"]),
        "95 %": f"{points(claim['lower95'])} to {points(claim['upper95'])}",
        "p (Holm)": p_value(claim["adjusted_p"]).removeprefix("p ").removeprefix("= "),
        "detectable": f"{100 * claim['detectable']:.1f}",
    }


def failure_mode_rows(modes: Sequence[Row]) -> list[Cells]:
    """Make the rows of a table of failure modes, the most accuracy to gain first."""
    return [
        {
            "by": mode["by"],
            "what": mode["mode"],
            "items": mode["items"],
            "wrong": mode["wrong"],
            "accuracy": share(mode["accuracy"]),
            "of all failures": share(mode["share"]),
            "to gain": f"{points(mode['gain'])} ({points(mode['lower95'])} to {points(mode['upper95'])})",
        }
        for mode in modes
    ]


def form_rows(iterations: Sequence[Row]) -> list[Cells]:
    """A row an iteration whose right attempts have another length or form than all answered ones."""
    return [
        {
            "iteration": shown_iteration(row["iteration"]),
            "tokens": f"{row['tokens_right']:.0f} / {row['tokens_answered']:.0f}",
            "programs": f"{share(row['programs_right'])} / {share(row['programs_answered'])}",
            "comments": "" if None in comments else "{:.1f} / {:.1f}".format(*comments),
        }
        for row in iterations
        for comments in [(row["comments_right"], row["comments_answered"])]
        if form_change(row)
    ]


def _fared(row: Row) -> Cells:
    spread = f"{share(row['lower95'])} to {share(row['upper95'])}"
    return {"tools": row["tools"], "attempts": row["attempts"], "correct": share(row["correct"]), "95 %": spread}


def confidence_rows(signals: Sequence[Row]) -> list[Cells]:
    """A row a signal: AUROC over all attempts and within a task, ECE, Brier score; with 95 % intervals over tasks."""
    measures = (("AUROC", "auroc"), ("within a task", "within"), ("ECE", "ece"), ("Brier", "brier"))
    return [
        {
            "signal": signal["signal"],
            "answers": signal["items"],
            "tasks": signal["clusters"],
            "right": share(signal["right"] / signal["items"]),
            "confidence": share(signal["confidence"]),
            **{name: _spread(signal[key], signal[f"{key}95"]) for name, key in measures},
        }
        for signal in signals
    ]


def _spread(value: float | None, interval: tuple[float, float] | None) -> str | None:
    if value is None:
        return None
    return f"{value:.3f}" + (f" ({interval[0]:.3f} to {interval[1]:.3f})" if interval else "")


def _shares(row: Row, *names: str) -> Cells:
    return {**row, **{name: share(row[name]) for name in names}}


def _varied(diversity: Row) -> list[Cells]:
    """Canonical forms of tasks, then patterns of solutions, over the run and by iteration."""
    forms = diversity["forms"]
    rows = [{"of": "tasks accepted, by canonical form", "tasks": forms["accepted"], "different": forms["patterns"]}]
    results = [("solutions, by pattern", diversity["solutions"])]
    results += [
        (f"solutions of iteration {shown_iteration(row['iteration'])}", row) for row in diversity["by_iteration"]
    ]
    rows += [{"of": of, "tasks": row["tasks"], "different": row["patterns"]} for of, row in results]
    per = [forms["per_1000"], *(row["per_1000"] for _, row in results)]
    return (
        [{**row, "per 1,000": None if value is None else f"{value:,.0f}"} for row, value in zip(rows, per, strict=True)]
        if forms["accepted"]
        else []
    )


def _rejected(rows: Sequence[Row], compared: str) -> list[Cells]:
    """By reason; how many were contaminated, and by what, is always said."""
    by_reason = {"contaminated": 0} | {str(row["reason"]): row["tasks"] for row in rows}
    return [
        {"reason": r, "tasks": n, "measured": compared if r == "contaminated" else ""} for r, n in by_reason.items()
    ]


def benchmark_rows(scores: Sequence[Row]) -> list[Cells]:
    """Make the rows of a table of benchmark scores, one per benchmark and mode, with their cost."""
    return [
        {
            "benchmark": score["benchmark"],
            "mode": score["mode"],
            "n": score["n"],
            "accuracy": share(score["accuracy"]),
            "95 %": f"{share(score['lower95'])} to {share(score['upper95'])}",
            "undecided": score["undecided"],
            **{f"pass@{k}": share(value) for k, value in score["pass_at"].items() if k != "1"},
            "median s": score["metrics"]["latency_p50_s"],
            "cost": score["cost"],
        }
        for score in scores
    ]


def tool_effect_rows(compared: Sequence[Row]) -> list[Cells]:
    """Make the rows that compare a benchmark with and without tools, with the paired test behind the conclusion."""
    return [
        {
            "benchmark": row["benchmark"],
            "without": share(row["without"]),
            "with": share(row["with"]),
            **tested_columns(row),
            "tools are": conclusion(row["word"]),
        }
        for row in compared
    ]
