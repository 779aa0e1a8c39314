"""The page that says where a student stands before anything is done about it, as `agent0 bench baseline` makes it."""

from collections.abc import Iterable, Mapping, Sequence

from agent0.evaluation.benchmark_scores import NAMES
from agent0.projections.base import Row
from agent0.report.conclusions import conclusion
from agent0.report.html.rendering import NOTHING, number, share
from agent0.report.markdown.rendering import render
from agent0.report.score_answers import cut_off_line
from agent0.report.tables import Cells, failure_mode_rows, tested_columns

MENDED_FIRST = 8
"""Failure modes that are listed."""


def baseline_page(
    results: Row, verified: Mapping[str, Row], skipped: Mapping[str, str], model_facts: Mapping[str, str]
) -> str:
    """Markdown from ``bench_findings``. ``verified`` are verifiers' summaries by file of pairs, ``skipped`` says why a
    benchmark was not scored, ``model_facts`` has ``command``, ``date``, ``student`` and ``version``."""
    conclusions = [conclusion(row["word"]) for row in results["tools_against_plain"]]
    domains = [row for row in results["domains"] if row["mode"] == "tools"]
    modes = [row["modes"] for row in results["failures"] if row["mode"] == "tools" and row["modes"]]
    policies = {f"{name}, policy": scores["policy"] for name, scores in verified.items() if scores["policy"]["n"]}
    files = sorted(results["settings"]["files"].items())
    compared = {row["benchmark"]: _compared(row) for row in results["tools_against_plain"]}
    unsolved = _unsolved(results["scores"])
    return render(
        "baseline.md.jinja",
        made=model_facts,
        settings=results["settings"],
        cut_off=cut_off_line(results),
        accuracy=", ".join(f"{_cell(row['domain'] or 'other')} {share(row['accuracy'])}" for row in domains),
        counts=", ".join(f"{verdict} on {conclusions.count(verdict)}" for verdict in dict.fromkeys(conclusions)),
        most=_cells(failure_mode_rows([modes[0][0]] if modes else [])),
        domains=_cells(_scores(results["domains"], "domain")),
        suites=_cells(
            {**row, **compared.get(str(row["benchmark"]), NOT_COMPARED)}
            for row in _scores(
                [row for row in results["scores"] if row["benchmark"] not in unsolved], "benchmark", "domain"
            )
        ),
        unsolved=", ".join(_cell(name) for name in unsolved),
        compared=compared,
        verified=_cells(_verifier(name, scores) for name, scores in {**verified, **policies}.items()),
        failures=[
            _cells({"": number, **row} for number, row in enumerate(failure_mode_rows(rows[:MENDED_FIRST]), 1))
            for rows in modes
        ],
        files=_cells({"file": name, "sha256": digest} for name, digest in files),
        skipped=_cells({"suite": name, "why": why} for name, why in skipped.items()),
    )


def _unsolved(scores: Sequence[Row]) -> list[str]:
    """Benchmarks of which no item was solved, in whichever way they were asked."""
    best: dict[str, float] = {}
    for row in scores:
        best[row["benchmark"]] = max(best.get(row["benchmark"], 0.0), row["accuracy"] or 0.0)
    return [name for name, accuracy in best.items() if not accuracy]


def _scores(scores: Sequence[Row], *names: str) -> list[Cells]:
    """One row a suite or domain: with tools beside without."""
    rows: dict[str, Row] = {}
    used = ["tool use"] if any("metrics" in score for score in scores) else []
    for score in scores:
        row = rows.setdefault(score[names[0]], {name: score[name] or "other" for name in names} | {"n": score["n"]})
        row[NAMES[score["mode"]]] = (
            f"{share(score['accuracy'])} ({share(score['lower95'])} to {share(score['upper95'])})"
        )
        if used and score["mode"] == "tools":
            row["tool use"] = share(score["metrics"].get("tool_use"))
    order = [*names, "n", *NAMES.values(), *used]
    return [{name: row.get(name) for name in order} for row in rows.values()]


NOT_COMPARED: Cells = dict.fromkeys(("points", "p (Holm)", "detectable", "conclusion"))
"""The columns of a suite that was asked in one way alone."""


def _compared(effect: Row) -> Cells:
    columns = tested_columns(effect)
    interval = columns.pop("95 %")
    return {**columns, "points": f"{columns['points']} ({interval})", "conclusion": conclusion(effect["word"])}


def _verifier(name: str, scores: Row) -> Cells:
    return {
        "pairs": name,
        "n": scores["n"],
        "accuracy": number(scores["accuracy"]),
        "at least (95 %)": number(scores["lower95"]),
        "right ones accepted": share(scores["tpr"]),
        "wrong ones accepted": share(scores["fpr"]),
        "undecided": scores["undecided"],
        "slowest, s": number(scores["slowest_s"]),
    }


def _cells(rows: Iterable[Mapping[str, object]]) -> list[dict[str, str]]:
    return [{name: _cell(value) for name, value in row.items()} for row in rows]


def _cell(value: object) -> str:
    """Rows of a benchmark may hold what Markdown would obey."""
    text = " ".join(str(NOTHING if value is None else value).split())
    return "".join(f"\\{c}" if c in "|<>`*[]\\" else c for c in text)
