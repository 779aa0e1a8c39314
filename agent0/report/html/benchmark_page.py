"""One HTML file about a benchmark run: it opens from disk, and no reply of a model can do anything in it."""

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from agent0.evaluation.benchmark_scores import NAMES
from agent0.experiments.ablation_results import CONTROLS, measure_title
from agent0.experiments.compare_runs import RunComparison
from agent0.experiments.study_results import StudyResults
from agent0.projections.base import Row
from agent0.report.answers import compare_answer, study_answer
from agent0.report.charts.ablation_charts import curve, means
from agent0.report.charts.plots import Score, intervals, lines, reliability, spreads
from agent0.report.columns import shown_iteration
from agent0.report.html.rendering import render
from agent0.report.markdown.ablation import sentences
from agent0.report.score_answers import benchmark_answer


def bench_page(results: Row) -> str:
    """The report as HTML, from what ``bench_findings`` says. The same findings give the same bytes."""
    return render(
        "bench.html.jinja",
        found=results,
        answer=benchmark_answer(results),
        names=NAMES,
        accuracy=accuracy_picture(results["scores"]),
        ks=sorted({int(k) for score in results["scores"] for k in score["pass_at"]}),
        # of some benchmarks only: acc_norm where the provider gives likelihoods
        metrics=sorted({name for score in results["scores"] for name in score["metrics"]} - set(_SHOWN)),
        reliabilities=[
            (row, reliability(row["bins"], f"reliability of {row['signal']} {NAMES[row['mode']]}"))
            for row in results["calibration"]
        ],
    )


def accuracy_picture(scores: Sequence[Row]) -> Markup:
    """A row a benchmark and mode, without tools below with tools."""
    groups: dict[str, list[Score]] = {}
    for score in sorted(scores, key=lambda score: (score["benchmark"], score["mode"] != "tools")):
        drawn = Score(NAMES[score["mode"]], score["accuracy"], score["lower95"], score["upper95"])
        groups.setdefault(f"{score['benchmark']} ({score['n']})", []).append(drawn)
    return intervals(groups, "accuracy with 95 % intervals, by benchmark and mode")


_SHOWN = ("latency_p50_s", "latency_p95_s", "prompt_tokens", "completion_tokens", "tool_use", "cost")


def compare_page(results: RunComparison) -> str:
    """The page, from what ``agent0.experiments.compare_runs`` found. The same findings give the same bytes."""
    scored = {
        name: {int(score["iteration"]): float(score["accuracy"]) for score in curve}
        for name, curve in results["curves"].items()
        if curve
    }
    places = sorted({iteration for curve in scored.values() for iteration in curve})
    names = ("accuracy", "lower95", "upper95")
    last = {
        f"{name} ({curve[-1]['n']})": [Score("last", *(float(curve[-1][k]) for k in names))]
        for name, curve in results["curves"].items()
        if curve
    }
    return render(
        "compare.html.jinja",
        found=results,
        answer=compare_answer(results),
        curve=lines(
            {name: [*map(curve.get, places)] for name, curve in scored.items()},
            [shown_iteration(iteration) for iteration in places],
            "validation accuracy by iteration",
        ),
        last=intervals(last, "last validation score with 95 % intervals"),
        paid=spreads(_paid(results["rewards"]), "rewards: the middle one, and from the lowest to the highest tenth"),
    )


def _paid(rows: Iterable[Mapping[str, str | float]]) -> dict[str, list[Score]]:
    """The roles of each name."""
    groups: dict[str, list[Score]] = {}
    for row in rows:
        middle, low, high = (float(row[name]) for name in ("p50", "p10", "p90"))
        groups.setdefault(str(row["name"]), []).append(Score(str(row["role"]), middle, low, high))
    return groups


def ablation_page(results: StudyResults) -> str:
    """Write the HTML page of a study from its results. The same results give the same bytes."""
    return render(
        "grid.html.jinja",
        found=results,
        answer=study_answer(results),
        title=measure_title,
        controls=CONTROLS,
        curve=curve(results),
        said=sentences(results),
        pictures={name: means(results, name) for name in results["measures"]},
    )
