"""The chart of a study on a ladder: accuracy by level, a line for each variant and one for the untrained students."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from agent0.report.charts.plots import lines


def levels_chart(results: Mapping[str, Any]) -> Markup:
    """Draw the accuracy of each variant's last students by level, means over seeds on fresh tasks; empty without."""
    rows = results.get("ladder_levels", ())
    levels = sorted({level for row in rows for level in row["levels"]}, key=int)
    return lines(
        {row["arm"]: [row["levels"].get(level) for level in levels] for row in rows},
        levels,
        "accuracy on fresh tasks by level, means over seeds",
    )
