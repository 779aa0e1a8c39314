"""One HTML file about a benchmark run: it opens from disk, and no reply of a model can do anything in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from agent0.evaluation.benchmark_scores import NAMES
from agent0.report.charts.plots import Score, intervals, reliability
from agent0.report.html.rendering import render
from agent0.report.score_answers import benchmark_answer

Row = dict[str, Any]


def bench_page(results: Mapping[str, Any]) -> str:
    """The report as HTML, from what ``bench_findings`` says. The same findings give the same bytes."""
    return render(
        "bench.html.jinja",
        found=results,
        answer=benchmark_answer(results),
        names=NAMES,
        accuracy=accuracy_picture(results["scores"]),
        ks=sorted({int(k) for score in results["scores"] for k in score["pass_at"]}),
        metrics=_metrics(results["scores"]),
        reliabilities=[(row, _reliability(row)) for row in results["calibration"]],
    )


def accuracy_picture(scores: Sequence[Row]) -> Markup:
    """A row a benchmark and mode, without tools below with tools."""
    groups: dict[str, list[Score]] = {}
    for score in sorted(scores, key=lambda score: (score["benchmark"], score["mode"] != "tools")):
        drawn = Score(NAMES[score["mode"]], score["accuracy"], score["lower95"], score["upper95"])
        groups.setdefault(f"{score['benchmark']} ({score['n']})", []).append(drawn)
    return intervals(groups, "accuracy with 95 % intervals, by benchmark and mode")


_SHOWN = ("latency_p50_s", "latency_p95_s", "prompt_tokens", "completion_tokens", "tool_use", "cost")


def _metrics(scores: Sequence[Row]) -> list[str]:
    """Other metrics that some benchmark has: acc_norm where the provider gives likelihoods."""
    return sorted({name for score in scores for name in score["metrics"]} - set(_SHOWN))


def _reliability(signal: Row) -> Markup:
    return reliability(signal["bins"], f"reliability of {signal['signal']} {NAMES[signal['mode']]}")
