"""The pages of runs, models and the server itself."""

import asyncio
import secrets
from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agent0.api.conditional import LIMIT, After, At, Limit
from agent0.api.context import ApiContext, Context
from agent0.api.pages import readings, settings_form
from agent0.api.pages.attempt_views import Shade, View, called, files_data, shaded, view_data, view_parts
from agent0.api.pages.drawing import curve, curves, histogram, lineages
from agent0.api.pages.rendering import MEDIA, Shown, linker, router, standalone, static_files, twin
from agent0.api.status import consumers, status, streams
from agent0.api.v1.deletion import Age, OfTag, Size, prunable
from agent0.assembly.requests.run_deletion import tags_of
from agent0.config.loading import profiles
from agent0.errors import NotFoundError
from agent0.projections.alarms import list_alarms
from agent0.projections.base import Row
from agent0.projections.checkpoints import registry
from agent0.projections.evaluation_items import first_scored
from agent0.projections.events import event_stats, extent, first_event, show_event
from agent0.projections.failures import list_failures
from agent0.projections.seals import list_seals
from agent0.report.charts.training_steps import step_panels

Turn = Annotated[int, Query(ge=1, le=1_000_000, description="the page that has this turn")]
Number = Annotated[float | None, Query(allow_inf_nan=False)]


@router.get("/")
def root() -> Response:
    """Lead to the first page, the list of runs."""
    return RedirectResponse("/runs", 307)


@router.get("/static/{name}")
def static(name: str) -> Response:
    """The style sheet or the script; their addresses change with them."""
    if name not in static_files():
        raise NotFoundError("There is no such file.")
    keep = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(static_files()[name], headers=keep, media_type=MEDIA[name.rpartition(".")[2]])


WORDS = {"running": ("pause", "cancel"), "paused": ("resume", "cancel"), "failed": ("resume", "cancel")}
OVER = ("finished", "cancelled", "failed")
"""What may be decided of a run, by its status."""
Profile = Annotated[str, Query(max_length=255, description="a profile's name; empty: the server's")]
Behind = Annotated[int, Query(ge=0, le=10_000_000, description="rows before")]
Call = Annotated[str, Path(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$", description="as the student counts; 0: the start")]
File = Annotated[str, Query(max_length=1000, description="the file whose text is shown")]
SEALS = 20
"""Seals of the log that the page of the server shows, the newest."""
CURVES = ("solve_rate", "tool_use", "reward")
"""What the second picture of a run's page shows, by iteration."""
ROWS = 150
"""Rows of a long list that a page shows at once."""


def known_profiles(context: ApiContext) -> list[str]:
    """Names of the profiles that a form offers: the packaged ones and the server's own."""
    return sorted({*profiles(), context.settings.profile} - {""})


@twin("/runs/{run}", "run.html.jinja")
def run(context: Context, run: str, at: At = 0) -> Shown:
    """One run: answer, why, curve, scores, what happens now."""
    with context.tables() as live, context.tables(at) as db:
        data, end = readings.run_data(context, db, run, at), readings.moments(live, run)
        row = data["run"]
        steps, training = readings.training_steps(context, db, row["run"], at)
        panels = step_panels(steps)
    lines = curves([[{**point, "validation": point[key]} for point in row["validation"]] for key in CURVES])
    drawn = {"curve": curve(row["shared"] + row["validation"]), "lines": lines, "curves": CURVES, "panels": panels}
    more: Row = {**drawn, "training": training, "moments": end, "link": linker(row["run"], at)}
    actions = WORDS.get(row["status"], ()) if context.log and not at else ()
    more |= {"removable": bool(context.log) and not at and row["status"] in OVER, "hidden": row["hidden"]}
    more |= {"tags": tags_of(row), "writes": bool(context.log) and not at}
    student = f"{row['run']}/{row['student']}" if context.models and row["student"] else ""
    return Shown(data, at, {**more, "words": actions, "again": secrets.token_urlsafe(16), "student": student})


@twin("/runs/{run}/iterations/{number}", "iteration.html.jinja")
def iteration(
    context: Context,
    run: str,
    number: int,
    low: Number = None,
    high: Number = None,
    after: Behind = 0,
    tasks_after: Behind = 0,
    at: At = 0,
) -> Shown:
    """One iteration: its rewards, its tasks, what was refused, what was not trained on."""
    with context.tables() as live, context.tables(at) as db:
        data = readings.iteration_data(db, run, number, low, high)
        since = min(first_event(db, data["run"], rows[0]["task"]) for rows in (data["tasks"], data["refused"]) if rows)
        begins, end = readings.fork_points(db, run), readings.moments(live, run, since)
    bars = histogram([attempt["reward"] for attempt in data["attempts"] if attempt["reward"] is not None])
    begin = begins.get(number) if context.log else None
    rows, following = readings.page_of(data["chosen"], after, ROWS)
    tasks, more = readings.page_of(data["tasks"], tasks_after, ROWS)
    shown = {"shown": rows, "following": following, "after": after}
    shown |= {"tasks_shown": tasks, "tasks_following": more, "tasks_after": tasks_after}
    forked = {"begin": begin, "again": secrets.token_urlsafe(16), "moments": end}
    return Shown(data, at, {"bars": bars, "link": linker(data["run"], at), **forked, **shown})


@twin("/runs/{run}/tasks/{task}", "group.html.jinja")
def group(context: Context, run: str, task: str, at: At = 0) -> Shown:
    """All attempts at a task side by side."""
    with context.tables() as live, context.tables(at) as db:
        data = readings.group_data(context, db, run, task)
        end = readings.moments(live, run, first_event(db, data["run"], data["task"]["task"]))
    return Shown(data, at, {"link": linker(data["run"], at), "moments": end})


@router.get("/runs/{run}/trajectories/{attempt}.html")
def saved(context: Context, run: str, attempt: str, at: At = 0) -> Response:
    """One attempt as a self-contained HTML file, which loads nothing and needs no server."""
    with context.tables(at) as db:
        data = readings.trajectory_data(context, db, run, attempt)
        tokens = readings.tokens_of(context, db, data)
    text = standalone("saved.html.jinja", shaded=shaded(tokens, "probability"), at=at, **data)
    name = quote(f"{data['run']}-{data['attempt']['attempt']}.html", safe="")
    return HTMLResponse(text, headers={"Content-Disposition": f'attachment; filename="{name}"'})


@twin("/runs/{run}/trajectories/{attempt}", "trajectory.html.jinja")
def trajectory(
    request: Request,
    context: Context,
    run: str,
    attempt: str,
    view: View = "conversation",
    turn: Turn = 1,
    shade: Shade = "probability",
    at: At = 0,
) -> Shown:
    """Show one attempt with its tokens, verdicts and rewards, in one of four views; of a long one a part at once, but
    all of it in the twin."""
    whole = request.url.path.endswith(".json")
    with context.tables() as live, context.tables(at) as db:
        data = view_data(context, db, run, attempt, view, turn, whole=whole)
        end = readings.moments(live, run, readings.began(db, data["run"], data["attempt"]))
        tokens = readings.tokens_of(context, db, data)
    return Shown({**data, "tokens": tokens}, at, {"moments": end, "shaded": shaded(tokens, shade), **view_parts(data)})


@twin("/runs/{run}/evaluations/{evaluation}", "evaluation.html.jinja")
def evaluation(
    context: Context,
    run: str,
    evaluation: str,
    correct: bool | None = None,
    limit: Limit = LIMIT,
    after: After = "",
    at: At = 0,
) -> Shown:
    """Show the items of an evaluation, or of all evaluations of a split, checkpoint or benchmark."""
    with context.tables() as live, context.tables(at) as db:
        data = readings.evaluation_data(db, run, evaluation, correct, limit, after)
        end = readings.moments(live, run, first_scored(live, data["run"], evaluation))
    chosen = None if correct is None else str(correct).lower()
    return Shown(data, at, {"moments": end, "chosen": chosen})


@twin("/runs/{run}/trajectories/{attempt}/files/{call}", "files.html.jinja")
def files(context: Context, run: str, attempt: str, call: Call, file: File = "", at: At = 0) -> Shown:
    """Show the work folder after one tool call, and what the call changed in it."""
    with context.tables() as live, context.tables(at) as db:
        data = files_data(context, db, run, attempt, call, file)
        return Shown(data, at, {"moments": readings.moments(live, run, called(db, data))})


@twin("/models", "models.html.jinja")
def models(context: Context, limit: Limit = LIMIT, at: At = 0) -> Shown:
    """Checkpoints of all runs, and what each was trained from."""
    with context.tables(at) as db:
        rows = registry(db, limit=limit)
        lineage = readings.lineage(db, rows)
    students = [row["model"] for row in rows if row["role"] == "student"]
    return Shown({"checkpoints": rows, "lineage": lineage}, at, {"pictures": lineages(lineage), "students": students})


@twin("/models/{run}/{checkpoint}", "model.html.jinja")
def model(context: Context, run: str, checkpoint: str, at: At = 0) -> Shown:
    """One checkpoint: what it was made of, how it was judged, its scores."""
    with context.tables(at) as db:
        data = readings.model_data(db, run, checkpoint)
        student, earlier = readings.students_of(db, data["checkpoint"]["run"])
    again = secrets.token_urlsafe(16) if context.log and not at else ""
    return Shown(data, at, {"student": student, "earlier": earlier, "again": again})


@twin("/events/{event}", "event.html.jinja")
def event(context: Context, event: str, at: At = 0) -> Shown:
    """One event with everything in it, and what it caused."""
    with context.tables(at) as db:
        row = show_event(db, event)
    return Shown({"event": row}, at, {"link": linker(row["run"], at)})


@twin("/config", "config.html.jinja", tagged=False)
def config(context: Context, profile: Profile = "") -> Shown:
    """Show every setting and where it comes from, without the secrets, and a form that starts a run with others."""
    shown = settings_form.shown(context.settings, profile)
    more = {
        "sections": settings_form.sections(shown["settings"]),
        "process": [row for row in shown["settings"] if not row["key"].startswith("run.")],
        "profiles": sorted({*known_profiles(context), shown["profile"]}),
        "again": secrets.token_urlsafe(16) if context.log else "",
    }
    return Shown(shown, more=more)


@twin("/admin/prune", "prune.html.jinja", tagged=False)
async def prune(context: Context, older_than: Age = "0h", larger_than: Size = "0", tag: OfTag = "") -> Shown:
    """Show which runs that are over meet each condition, and a form that deletes them."""
    criteria = {"older_than": older_than, "larger_than": larger_than, "tag": tag}
    return Shown({"deletions": (await prunable(context, **criteria)).data}, more={"criteria": criteria})


@twin("/admin", "admin.html.jinja", tagged=False)
async def admin(context: Context, at: At = 0) -> Shown:
    """Show log, tables, streams, consumers, failures that wait, seals; at a past moment what the tables knew then."""
    state = await status(context.settings, context.log)
    log = context.log if not at else None
    fields: Row = {
        "streams": await streams(context.settings, log) if log else [],
        "consumers": await consumers(context.settings, log) if log else [],
        "rebuild": context.rebuilding.said,
    }
    kept, end = await asyncio.to_thread(_kept, context, at) if state["tables"] is not None else (_NOTHING_KEPT, None)
    return Shown(
        {"status": state, **fields, **kept},
        at,
        {"writes": log is not None, "moments": end, "again": secrets.token_urlsafe(16)},
    )


_NOTHING_KEPT: Row = {"events": [], "failures": [], "alarms": [], "seals": [], "sealed": 0}


def _kept(context: ApiContext, at: int) -> tuple[Row, Row]:
    """What the tables say of the whole log, and from which event to which it can be looked at."""
    with context.tables() as live, context.tables(at) as db:
        first, last = extent(live)
        seals = list_seals(db)
        kept = {"events": event_stats(db), "failures": list_failures(db), "alarms": list_alarms(db)}
        return {**kept, "seals": seals[: -SEALS - 1 : -1], "sealed": len(seals)}, {
            "first": first,
            "last": last,
            "iterations": {},
        }
