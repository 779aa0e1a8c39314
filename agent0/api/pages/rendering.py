"""How a page is made: templates that share style and parts with the reports, one style sheet and one script; and its
twin, the same address with ``.json``, which sends what the page shows."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Request
from jinja2 import Environment
from markupsafe import Markup
from starlette.responses import HTMLResponse, JSONResponse, Response

from agent0.api.conditional import Tagged
from agent0.api.problems import RETRY_S, ProblemDocument
from agent0.projections.base import Row
from agent0.report.html.rendering import environment, visible
from agent0.report.html.shown_records import NAMED

FOLDER = Path(__file__).parent
HIDDEN = ("again", "said")
"""Fields that no form shows."""
SHORT = 12
"""Fields of a form that are shown all at once."""
MEDIA = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


@cache
def templates() -> Environment:
    """Make the environment with templates of pages and reports."""
    return environment(FOLDER / "templates")


@cache
def static_files() -> Mapping[str, bytes]:
    """What pages load, by name. The style sheet begins with that of the reports."""
    style = templates().get_template("style.css.jinja").render()
    styles, scripts = (
        [(FOLDER / "static" / f"{name}.{kind}").read_text(encoding="utf-8") for name in ("pages", "charts")]
        for kind in ("css", "js")
    )
    return {"pages.css": "\n".join([style, *styles]).encode(), "pages.js": "\n".join(scripts).encode()}


@cache
def _static_url(name: str) -> str:
    """The address of a static file: another one for another content."""
    return f"/static/{name}?v={hashlib.sha256(static_files()[name]).hexdigest()[:16]}"


def page(request: Request, template: str, at: int = 0, code: int = 200, **values: Any) -> Response:
    """The page that ``template`` makes of ``values``; links on it stay at the moment ``at``."""
    text = (
        templates()
        .get_template(template)
        .render(
            nonce=request.scope["agent0.nonce"],
            style=_static_url("pages.css"),
            script=_static_url("pages.js"),
            path="/" + request.url.path.lstrip("/"),
            query=request.url.query,
            others=[(name, value) for name, value in request.query_params.multi_items() if name != "at"],
            at=at,
            at_none=request.query_params.get("at") == "0",
            behind=request.app.state.context.behind,
            href=_hrefs(at),
            **values,
        )
    )
    return HTMLResponse(text, code)


def standalone(template: str, **values: Any) -> str:
    """The page that ``template`` makes of ``values``, with its style inside and without scripts."""
    css = Markup(static_files()["pages.css"].decode())  # noqa: S704 - a file of our own
    return templates().get_template(template).render(css=css, **values)


def problem_page(request: Request, problem: ProblemDocument, headers: Mapping[str, str]) -> Response:
    """Make the page that shows a problem to a person."""
    response = page(request, "problem.html.jinja", code=problem.status, problem=problem, typed=_typed(request, problem))
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE and request.method == "GET":
        response.headers.update({"Retry-After": str(RETRY_S), "Refresh": str(RETRY_S)})
    response.headers.update({name: value for name, value in headers.items() if name.lower() != "content-type"})
    return response


def _typed(request: Request, problem: ProblemDocument) -> dict[str, dict[str, str]]:
    """The fields of a form that was refused, as they came: those to look at, others of a long one, hidden ones."""
    form: dict[str, str] = getattr(request.state, "form", {})
    about = f"{problem.title} {problem.detail}"
    parts: dict[str, dict[str, str]] = {"hidden": {}, "shown": {}, "others": {}} if form else {}
    for name, value in form.items():
        if name in HIDDEN:
            parts["hidden"][name] = value
        else:
            parts["shown" if len(form) <= SHORT or name in about else "others"][name] = value
    return parts


def _hrefs(at: int) -> Callable[..., str]:
    """A function that makes an address of a path's parts and a query, as of the same moment."""

    def href(*parts: object, **query: object) -> str:
        path = "/".join(quote(str(part), safe="") for part in parts)
        parameters = {name: str(value) for name, value in query.items() if value not in (None, "")}
        encoded = urlencode({**parameters, **({"at": str(at)} if at else {})})
        return f"/{path}?{encoded}" if encoded else f"/{path}"

    return href


def linker(run: str, at: int) -> Callable[[Any], Markup]:
    """A function that escapes a text and makes the attempts, tasks and events that it names lead to their pages."""
    href = _hrefs(at)

    def lead(match: re.Match[str]) -> str:
        if match["event"]:
            where = href("events", match["event"])
        else:
            where = href("runs", run, "trajectories" if match["attempt"] else "tasks", match[0])
        return f'<a href="{Markup.escape(where)}">{match[0]}</a>'

    def link(text: Any) -> Markup:
        safe = str(Markup.escape(visible(str(text))))
        return Markup(NAMED.sub(lead, safe))  # noqa: S704 - escaped before, and what is added is made of digits

    return link


router = APIRouter(include_in_schema=False)


@dataclass
class Shown:
    """What a page shows: ``data`` is its twin, ``more`` what only its template needs."""

    data: Row
    at: int = 0
    more: Row = field(default_factory=dict)


def twin(path: str, template: str, *, tagged: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: what the function gives is the page at ``path`` and, with ``.json`` behind it, its twin."""

    def register(read: Callable[..., Any]) -> Callable[..., Any]:
        shown = Annotated[Shown, Depends(read)]

        def as_json(shown: shown) -> Row:
            return shown.data

        def as_page(request: Request, shown: shown) -> Response:
            return page(request, template, shown.at, **shown.data, **shown.more)

        dependencies = [Tagged] if tagged else []
        router.add_api_route(f"{path}.json", as_json, dependencies=dependencies, response_class=JSONResponse)
        router.add_api_route(path, as_page)
        return read

    return register
