"""One HTML file about an ablation study, variants over seeds: it opens from disk."""

from collections.abc import Mapping
from typing import Any

from agent0.experiments.ablation_results import CONTROLS, MEASURES
from agent0.report.answers import study_answer
from agent0.report.charts.ablation_charts import curve, means
from agent0.report.html.rendering import render
from agent0.report.markdown.ablation import sentences


def ablation_page(found: Mapping[str, Any]) -> str:
    """Write the HTML page of a study from its results. The same results give the same bytes."""
    return render(
        "grid.html.jinja",
        found=found,
        answer=study_answer(found),
        titles=MEASURES,
        controls=CONTROLS,
        curve=curve(found),
        said=sentences(found),
        pictures={name: means(found, name) for name in found["measures"]},
    )
