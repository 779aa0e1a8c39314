"""The list of runs: filtered, with the columns that are chosen, each run with its curve, to be ticked and compared."""

import secrets
from typing import Annotated

from fastapi import Query

from agent0.api.conditional import LIMIT, After, At, Limit, keyed_page
from agent0.api.context import Context
from agent0.api.pages.rendering import Shown, twin
from agent0.api.pages.routes import known_profiles
from agent0.api.v1.runs import Chosen, Hidden
from agent0.assembly.log.carriers import carried
from agent0.assembly.requests.run_deletion import tags_of
from agent0.assembly.runtime.read_models import NothingError
from agent0.projections.base import Row
from agent0.projections.runs import EVERY, list_runs, run_labels, run_places
from agent0.report.charts.run_charts import Style, thinned
from agent0.report.charts.run_series import VALIDATION, metrics, series

COLUMNS = {
    "status": "status",
    "iteration": "iteration",
    "validation": "validation",
    "curve": "its curve",
    "heldout_first": "test, first",
    "heldout_last": "test, last",
    "profile": "profile",
    "seed": "seed",
    "student": "student",
    "tasks": "tasks",
    "attempts": "attempts",
    "tool_calls": "tool calls",
    "started": "started",
    "wall_s": "seconds",
    "events": "events",
}
"""Columns that a list may have, in their order, and their heads."""
USUAL = ("status", "iteration", "validation", "curve", "heldout_first", "heldout_last", "profile", "started")
NUMBERS = (
    "iteration", "validation", "heldout_first", "heldout_last", "seed", "tasks", "attempts", "tool_calls", "wall_s",
    "events",
)  # fmt: skip
SHARES = ("validation", "heldout_first", "heldout_last")
SPARK_WIDE, SPARK_HIGH, SPARK_POINTS = 96, 24, 48
"""The small curve of a run: its size, from nothing solved to all, and its points at most."""
Columns = Annotated[list[str], Query(max_length=40, description="columns that the page shows")]


@twin("/runs", "runs.html.jinja", tagged=False)
def runs(
    context: Context,
    chosen: Chosen,
    limit: Limit = LIMIT,
    after: After = "",
    hidden: Hidden = False,
    column: Columns = [],  # noqa: B006 - it is copied for each request
    at: At = 0,
) -> Shown:
    """Show the runs that the filter lets through, newest first, and a form for another."""
    rows, curves, places = list[Row](), dict[str, list[float]](), dict[str, int]()
    labels: Row = {"tag": [], "profile": [], "status": []}
    try:
        with context.tables() as live, context.tables(at) as db:
            rows, labels = list_runs(db, limit + 1, after, hidden, chosen), run_labels(db)
            places = run_places(live, [row["run"] for row in rows])
            curves = {row["run"]: [*series(db, row, metrics()[VALIDATION], "step").ys] for row in rows}
    except NothingError:
        pass
    listed = keyed_page(carried(context.settings, rows), limit, "run")
    data = [{**row, "curve": curves[row["run"]]} for row in listed.data]
    columns = [name for name in COLUMNS if name in (column or USUAL)] or [*USUAL]
    more: Row = {"profiles": known_profiles(context) if context.log else [], "again": secrets.token_urlsafe(16)}
    more |= {"profile": context.settings.profile, "hidden": hidden, "labels": labels, "filtered": chosen != EVERY}
    more |= {"chosen": chosen, "columns": columns, "every_column": COLUMNS, "numbers": NUMBERS, "shares": SHARES}
    more["no_columns"] = [name for name in dict.fromkeys(column) if name not in COLUMNS]
    more["drawn"] = {
        row["run"]: {"style": Style.of(places[row["run"]]), "spark": spark(row["curve"]), "tags": tags_of(row)}
        for row in data
    }
    more["writes"] = bool(context.log) and not at
    return Shown({"runs": data, "next": listed.next, "home": str(context.settings.home)}, at, more)


def spark(values: list[float]) -> str:
    """The points of a small curve through ``values``, shares of 1; none where there are fewer than two."""
    if len(values) < 2:
        return ""
    across, up = (SPARK_WIDE - 4) / (len(values) - 1), SPARK_HIGH - 4
    return " ".join(f"{2 + n * across:.1f},{2 + up * (1 - values[n]):.1f}" for n in thinned(values, SPARK_POINTS))
