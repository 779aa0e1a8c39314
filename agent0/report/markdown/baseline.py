"""The page that says where a student stands before anything is done about it: ``docs/results/baseline.md``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent0.evaluation.benchmark_scores import NAMES
from agent0.report.conclusions import conclusion
from agent0.report.html.rendering import NOTHING, number, p_value, points, share
from agent0.report.markdown.rendering import render
from agent0.report.score_answers import cut_off_line
from agent0.report.tables import failure_mode_rows

Row = dict[str, Any]

MENDED_FIRST = 16
"""Failure modes that are listed."""


def baseline_page(found: Mapping[str, Any], verified: Mapping[str, Row], skipped: Mapping[str, str], made: Row) -> str:
    """Markdown from ``bench_findings``. ``verified`` are verifiers' summaries by file of pairs, ``skipped`` says why a
    benchmark was not scored, ``made`` has ``command``, ``date``, ``student`` and ``version``."""
    words = [conclusion(one["word"]) for one in found["tools_against_plain"]]
    domains = [one for one in found["domains"] if one["mode"] == "tools"]
    modes = [one["modes"] for one in found["failures"] if one["mode"] == "tools" and one["modes"]]
    policies = {f"{name}, policy": scores["policy"] for name, scores in verified.items() if scores["policy"]["n"]}
    files = sorted(found["settings"]["files"].items())
    return render(
        "baseline.md.jinja",
        made=made,
        settings=found["settings"],
        cut_off=cut_off_line(found),
        accuracy=", ".join(f"{_cell(one['domain'] or 'other')} {share(one['accuracy'])}" for one in domains),
        counts=", ".join(f"{word} on {words.count(word)}" for word in dict.fromkeys(words)),
        most=_cells(failure_mode_rows([modes[0][0]] if modes else [])),
        domains=_cells(_scores(found["domains"], "domain")),
        suites=_cells(_scores(found["scores"], "benchmark", "domain")),
        compared=_cells(map(_compared, found["tools_against_plain"])),
        verified=_cells(_verifier(name, scores) for name, scores in {**verified, **policies}.items()),
        failures=[_cells(_numbered(failure_mode_rows(rows[:MENDED_FIRST]))) for rows in modes],
        files=_cells({"file": name, "sha256": digest} for name, digest in files),
        skipped=_cells({"suite": name, "why": why} for name, why in skipped.items()),
    )


def _scores(scores: Sequence[Row], *names: str) -> list[Row]:
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


def _compared(one: Row) -> Row:
    return {
        "suite": one["benchmark"],
        "points": f"{points(one['mean'])} ({points(one['lower95'])} to {points(one['upper95'])})",
        "p (Holm)": p_value(one["adjusted_p"]).removeprefix("p ").removeprefix("= "),
        "detectable": f"{100 * one['detectable']:.1f}",
        "with tools": conclusion(one["word"]),
    }


def _verifier(name: str, scores: Row) -> Row:
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


def _numbered(rows: Iterable[Row]) -> list[Row]:
    return [{"": place, **row} for place, row in enumerate(rows, 1)]


def _cells(rows: Iterable[Row]) -> list[Row]:
    return [{name: _cell(value) for name, value in row.items()} for row in rows]


def _cell(value: Any) -> str:
    """Rows of a benchmark may hold what Markdown would obey."""
    text = " ".join(str(NOTHING if value is None else value).split())
    return "".join(f"\\{c}" if c in "|<>`*[]\\" else c for c in text)
