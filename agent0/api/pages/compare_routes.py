"""The page of comparisons: many runs in charts, two checkpoints, or two attempts."""

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from fastapi import Depends, Query

from agent0.api.conditional import LIMIT, At
from agent0.api.context import ApiContext, Context
from agent0.api.pages.attempt_pairs import names_attempt, pair_data
from agent0.api.pages.checkpoint_pairs import CHANGES, Change, ItemChoice, checkpoint_data
from agent0.api.pages.rendering import Shown, twin
from agent0.api.pages.routes import Behind
from agent0.api.pages.run_lists import COLUMNS, NUMBERS, SHARES
from agent0.api.v1.runs import Chosen
from agent0.config.setting_entries import leaves
from agent0.errors import ConfigError, NotFoundError
from agent0.projections.base import Row
from agent0.projections.checkpoints import registry
from agent0.projections.events import extent
from agent0.projections.runs import EVERY, RunFilter, list_runs, resolve, run_labels, run_places, show_runs
from agent0.report.charts.run_charts import LineCache, LineValues, RunChart, Style, line_values, run_chart
from agent0.report.charts.run_series import VALIDATION, AxisName, Metric, metrics, series
from agent0.report.html.rendering import LONGEST

MOST_RUNS, NEWEST, MOST_CHARTS = 50, 8, 4
"""Runs of a chart, those that are shown where none is named, and charts of a page."""
OFFERED = 100
"""Runs that the form offers."""
FACTS = (
    "status", "profile", "seed", "iteration", "tasks", "attempts", "tool_calls", "student", "validation",
    "heldout_first", "heldout_last", "wall_s",
)  # fmt: skip
Name = Annotated[str, Query(max_length=200)]
Question = Annotated[str, Query(max_length=2000, description="what the form begins with")]


@dataclass(frozen=True)
class ChartChoice:
    """Which runs are drawn (none: the newest that the filter lets through), and how."""

    runs: Sequence[str]
    metrics: Sequence[Metric]
    x: AxisName
    smooth: float


def chart_choice(
    run: Annotated[list[Name], Query(max_length=MOST_RUNS, description="runs, by id, name, LAST …")] = [],  # noqa: B006
    y: Annotated[list[Name], Query(max_length=20, description="metrics, as `agent0 run export` names them")] = [],  # noqa: B006
    x: Annotated[
        AxisName, Query(description="step (or iteration), time since the start, tokens learned from")
    ] = "step",
    smooth: Annotated[float, Query(ge=0, le=0.999, description="weight of the value before in an average")] = 0.0,
) -> ChartChoice:
    """Make the choice of a page's charts from its query."""
    return ChartChoice(run, _chosen_metrics(y), x, smooth)


@twin("/compare", "compare.html.jinja")
def compare(
    context: Context,
    chosen: Chosen,
    charts: Annotated[ChartChoice, Depends(chart_choice)],
    left: Name = "",
    right: Name = "",
    question: Question = "",
    on: Name = "",
    change: Change = "",
    after: Behind = 0,
    at: At = 0,
) -> Shown:
    """Many runs in charts, or two checkpoints or two attempts side by side, where ``left`` and ``right`` name them."""
    with context.tables() as live, context.tables(at) as db:
        if "/" in left + right or any(names_attempt(db, name) for name in (left, right) if name):
            data, more = pair_of(context, db, left, right, ItemChoice(on, change, after)), Row()
        else:
            choice = replace(charts, runs=[name for name in (*charts.runs, left, right) if name])
            data, more = charted(live, db, choice, chosen, context.lines)
        models = [row["model"] for row in registry(db, role="student", limit=LIMIT)]
    again = secrets.token_urlsafe(16) if context.log and not at else ""
    more |= {"checkpoints": [*dict.fromkeys([*models, *filter(None, (left, right))])], "asked": (left, right)}
    return Shown(data, at, {**more, "question": question, "again": again, "changes": CHANGES, "longest": LONGEST})


def charted(
    live: sqlite3.Connection, db: sqlite3.Connection, choice: ChartChoice, chosen: RunFilter, lines: LineCache
) -> tuple[Row, Row]:
    """What the page of many runs shows as of the tables ``db``, and what only its template needs. Names are those of
    the tables as they are, ``live``.

    Raises:
        NotFoundError: there is no such run.
    """
    exact = run_places(live, choice.runs)
    names = [name if name in exact else resolve(live, name) for name in choice.runs]
    most = NEWEST if chosen == EVERY else MOST_RUNS
    names = names or [row["run"] for row in list_runs(db, most, chosen=chosen)]
    data, charts = runs_data(db, run_places(live, names), replace(choice, runs=names), lines)
    first, last = extent(live)
    more = {"charts": charts, "offered": list_runs(db, OFFERED), "metrics": list(metrics().values())}
    more |= {"facts": FACTS, "heads": COLUMNS, "numbers": NUMBERS, "shares": SHARES, "filtered": chosen != EVERY}
    missed = chosen.tag if chosen.tag and not data["runs"] else ""
    more["no_run_has"] = missed if missed and missed not in run_labels(db)["tag"] else ""
    more["live"] = any(row["status"] in ("running", "paused") for row in data["runs"])
    return data, {**more, "moments": {"first": first, "last": last, "iterations": {}}}


def _chosen_metrics(names: Sequence[str]) -> list[Metric]:
    """The metrics ``names``, each once; validation where there is none.

    Raises:
        NotFoundError: there is no such metric. ConfigError: there are too many.
    """
    chosen = [*dict.fromkeys(name for name in names if name)] or [VALIDATION]
    for name in chosen:
        if name not in metrics():
            fix = "The form offers all; `agent0 run export` writes them by name."
            raise NotFoundError(f"There is no metric {name[:80]!r}.", f"One is {VALIDATION}.", fix)
    if len(chosen) > MOST_CHARTS:
        why = f"A page has {MOST_CHARTS} charts at most."
        raise ConfigError(f"{len(chosen)} metrics were asked for.", why, "Ask for fewer.")
    return [metrics()[name] for name in chosen]


def runs_data(
    db: sqlite3.Connection, places: Mapping[str, int], choice: ChartChoice, lines: LineCache
) -> tuple[Row, list[RunChart]]:
    """Where each of some runs stands, the settings by which they differ, and a chart for each metric. Runs that had not
    begun at the moment are ``absent``. ``places``: how many runs started before each; ``lines``: those drawn lately."""
    rows, x = show_runs(db, choice.runs), choice.x
    begun = {row["run"] for row in rows}
    styles = Style.apart([places[row["run"]] for row in rows])
    charts = [
        run_chart(metric, x, [row["run"] for row in rows], _lines(db, lines, rows, metric, choice), choice.smooth)
        for metric in choice.metrics
    ]
    facts = [{fact: row[fact] for fact in ("run", "name", "note", *FACTS)} for row in rows]
    data = {
        "kind": "runs",
        "runs": [{**fact, "colour": s.colour, "dash": s.dash} for fact, s in zip(facts, styles, strict=True)],
        "absent": [run for run in choice.runs if run not in begun],
        "settings": _settings(rows),
        "x": x,
        "smooth": choice.smooth,
        "drawn": [chart.row() for chart in charts],
    }
    return data, charts


def _lines(
    db: sqlite3.Connection, lines: LineCache, rows: Sequence[Row], metric: Metric, choice: ChartChoice
) -> list[LineValues]:
    """What is drawn of ``metric`` of each run, read where the run has events that were not drawn yet."""

    def read(row: Row) -> LineValues:
        return line_values(series(db, row, metric, choice.x), choice.smooth, len(rows))

    chosen = metric.name, choice.x, choice.smooth, len(rows)
    return [lines.line((row["run"], row["events"], *chosen), partial(read, row)) for row in rows]


def _settings(rows: Sequence[Row]) -> list[Row]:
    """Settings that are not the same in all runs, with the value that each run has."""
    plans = [dict(leaves(row["config"])) for row in rows]
    names = sorted({name for plan in plans for name in plan})
    values = {name: [plan.get(name) for plan in plans] for name in names}
    return [{"setting": name, "values": of} for name, of in values.items() if any(value != of[0] for value in of)]


def pair_of(context: ApiContext, db: sqlite3.Connection, left: str, right: str, items: ItemChoice) -> Row:
    """Compare two checkpoints, both named as RUN/CHECKPOINT, or two attempts: RUN/ATTEMPT, an item of an evaluation, or
    a submitted task.

    Raises:
        NotFoundError: no such checkpoint or attempt. ConfigError: two things of different kinds, or one alone.
    """
    if not (left and right):
        side, other = ("right", left) if left else ("left", right)
        fix = "Choose it in the form of /compare, or name both: /compare?left=RUN/CHECKPOINT&right=RUN/CHECKPOINT"
        raise ConfigError(f"The {side} side is missing: what is {other[:80]!r} to be compared with?", fix=fix)
    attempts = [names_attempt(db, name) for name in (left, right)]
    if all(attempts):
        return {"kind": "attempts", **pair_data(context, db, left, right)}
    if any(attempts) or ("/" in left) != ("/" in right):
        fix = "Name two runs, two checkpoints, or two attempts."
        raise ConfigError("Things of different kinds cannot be compared.", fix=fix)
    return {"kind": "checkpoints", **checkpoint_data(db, _full(db, left), _full(db, right), items)}


def _full(db: sqlite3.Connection, name: str) -> str:
    run, _, checkpoint = name.partition("/")
    return f"{resolve(db, run)}/{checkpoint}"
