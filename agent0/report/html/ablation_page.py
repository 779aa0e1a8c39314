"""One HTML file about an ablation study, variants over seeds: it opens from disk."""

from collections.abc import Mapping
from typing import Any

from agent0.experiments.ablation_results import CONTROLS, MEASURES
from agent0.report.answers import study_answer
from agent0.report.charts.ablation_charts import curve, means
from agent0.report.html.rendering import render
from agent0.report.markdown.ablation import sentences


def ablation_page(results: Mapping[str, Any]) -> str:
    """Write the HTML page of a study from its results. The same results give the same bytes."""
    return render(
        "grid.html.jinja",
        found=results,
        answer=study_answer(results),
        titles=MEASURES,
        controls=CONTROLS,
        curve=curve(results),
        said=sentences(results),
        pictures={name: means(results, name) for name in results["measures"]},
    )
