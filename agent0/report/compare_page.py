"""One HTML file about runs and experiments side by side: it opens from disk."""

from collections.abc import Mapping
from typing import Any

from agent0.report.drawing import Score, intervals, lines
from agent0.report.rendering import render


def compare_page(found: Mapping[str, Any]) -> str:
    """The page, from what ``agent0.side_by_side`` found. The same findings give the same bytes."""
    curves = found["curves"]
    longest = max((len(curve) for curve in curves.values()), default=0)
    last = {
        f"{name} ({curve[-1]['n']})": [Score("last", *(curve[-1][k] for k in ("accuracy", "lower95", "upper95")))]
        for name, curve in curves.items()
        if curve
    }
    return render(
        "compare.html.jinja",
        found=found,
        curve=lines(
            {name: [score["accuracy"] for score in curve] for name, curve in curves.items()},
            [str(place) for place in range(longest)],
            "validation accuracy, score by score",
        ),
        last=intervals(last, "last validation score with 95 % intervals"),
    )
