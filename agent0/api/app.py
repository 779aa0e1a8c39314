"""Puts the application together: routes, the guard around them, and every error as a problem document."""

import sqlite3
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from agent0.api import metrics
from agent0.api.admission.guard import Guard, dress
from agent0.api.conditional import NotModified
from agent0.api.context import ApiContext
from agent0.api.metrics import Measures, RequestMetrics
from agent0.api.openai import routes as chats
from agent0.api.pages import compare_routes, forms, routes, run_lists, searching, study_routes, talking
from agent0.api.pages.rendering import problem_page
from agent0.api.problems import ProblemDocument, headers_of, is_page, plain_problem, problem_of, response_of
from agent0.api.v1 import (
    admin,
    batches,
    decisions,
    deletion,
    events,
    families,
    lists,
    questions,
    reviews,
    runs,
    studies,
    tasks,
    writes,
)
from agent0.config.distribution import installed_version
from agent0.errors import Agent0Error, OperationError, escaped

DESCRIPTION = """The runs of a data folder. The sequence of an event is the one cursor: `after` of a page of events, the
id of a streamed one, and `at`, which shows anything as it was behind that event. Errors are problem documents
(RFC 9457), `type` as the command line's exit codes have it."""
CHATS = ("/v1/chat/", "/v1/messages", "/v1/models", "/v1/recordings/", "/v1/responses")
"""Paths that clients of others' APIs call."""
PAGES = (routes, run_lists, study_routes, compare_routes, talking, searching)
"""Modules whose pages register, with one router, when they are imported."""
ROUTED = (
    *(writes, decisions, deletion, questions, reviews, tasks, batches, studies, runs, events, families, lists, admin),
    *(chats, forms, metrics, PAGES[0]),
)
"""Modules with a router, in the order in which paths are looked for."""
SHOWN = 300
"""Characters of a value that does not fit."""
Answer = Callable[[Request, Any], Coroutine[Any, Any, Response]]


def create_app(context: ApiContext) -> FastAPI:
    """Make the application that serves the data folder of ``context``."""
    app = FastAPI(
        title="Agent0",
        version=installed_version(),
        description=DESCRIPTION,
        docs_url=None,  # both fetch scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        exception_handlers=_handlers(),
        redirect_slashes=False,
        telemetry={"tracing": False},
    )
    app.state.context = context
    app.state.measures = measures = Measures(context)
    app.add_middleware(Guard, context=context)
    app.add_middleware(RequestMetrics, measures=measures)
    for module in ROUTED:
        app.include_router(module.router)
    app.include_router(chats.router, prefix="/v1/recordings/{recording}", include_in_schema=False)
    app.add_api_route("/healthz", _healthy, operation_id="be_healthy", tags=["server"])
    app.add_api_route("/version", _version, operation_id="show_version", tags=["server"])
    _describe(app)
    return app


def _healthy() -> dict[str, str]:
    """The server answers."""
    return {"status": "ok"}


def _version() -> dict[str, str]:
    """Which Agent0 this is."""
    return {"version": installed_version()}


def _describe(app: FastAPI) -> None:
    """Let the description of the API know problem documents and keys, of which no route speaks."""
    original = app.openapi

    def described() -> dict[str, object]:
        schema = original()
        if "securitySchemes" not in schema.get("components", {}):
            parts = schema.setdefault("components", {})
            problem_schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
            parts.setdefault("schemas", {})["ProblemDocument"] = problem_schema
            parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{}, {"key": []}]
        return schema

    app.openapi = described  # type: ignore[method-assign]


def _handlers() -> dict[int | type[Exception], Answer]:
    return {
        Agent0Error: _user_error,
        NotModified: _same,
        RequestValidationError: _invalid,
        HTTPException: _http,
        sqlite3.Error: _tables,
        500: _defect,
    }


async def _user_error(request: Request, error: Agent0Error) -> Response:
    return _shown(request, problem_of(error, request.url.path), headers_of(error))


async def _same(_: Request, unchanged: NotModified) -> Response:
    return Response(status_code=304, headers={"ETag": unchanged.tag})


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    wrong = [
        {"where": ".".join(map(str, item["loc"])), "why": item["msg"], "given": repr(item.get("input"))[:SHOWN]}
        for item in error.errors()
    ]
    title, detail = "The request does not fit.", f"{wrong[0]['where']}: {wrong[0]['why']}"
    return _shown(request, plain_problem(422, title, request.url.path, detail=detail, errors=wrong))


async def _http(request: Request, error: HTTPException) -> Response:
    title = {404: "There is nothing here.", 405: "This cannot be done here."}.get(error.status_code, "")
    detail = "" if error.detail == HTTPStatus(error.status_code).phrase else escaped(str(error.detail or ""))[:SHOWN]
    problem = plain_problem(error.status_code, title, request.url.path, detail=detail)
    return _shown(request, problem, error.headers or {})


async def _tables(request: Request, error: sqlite3.Error) -> Response:
    fix = "Run `agent0 projections rebuild`: the log has all."
    failure = OperationError("The tables cannot be read.", f"SQLite says: {error}.", fix)
    return _shown(request, problem_of(failure, request.url.path).model_copy(update={"status": 500}))


async def _defect(request: Request, _: Exception) -> Response:
    """A mistake of ours: what it was is in the server's log, not in the response."""
    problem = plain_problem(500, "Agent0 made a mistake.", request.url.path, detail="See the server's log.")
    answer = _shown(request, problem)
    dress(answer.headers, request.scope["agent0.nonce"])  # it is made outside of the guard
    return answer


def _shown(request: Request, problem: ProblemDocument, headers: Mapping[str, str] = {}) -> Response:
    """For a program a problem document, for a person a page that says so."""
    if request.url.path.startswith(CHATS):  # where its clients look
        problem = problem.model_copy(
            update={"error": {"message": problem.title, "type": problem.type, "code": problem.status}}
        )
    if not is_page(request):
        return response_of(problem, headers)
    return problem_page(request, problem, headers)
