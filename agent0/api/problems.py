"""Errors as problem documents (RFC 9457), from the one tree of errors."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from math import ceil
from typing import Any

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from agent0.errors import Agent0Error, AuthError, BudgetExhaustedError, ErrorKind, OperationError

MEDIA = "application/problem+json"
RETRY_S = 5


class ProblemDocument(BaseModel):
    """A problem document. ``fix`` is what to do next, ``errors`` what of a request does not fit, ``error`` the same for
    clients of OpenAI's API."""

    type: str = Field(examples=["urn:agent0:problem:not_found"])
    title: str
    status: int
    detail: str = ""
    fix: str = ""
    instance: str = ""
    errors: list[dict[str, object]] = []
    error: dict[str, object] | None = None


class UnknownKeyError(AuthError):
    """No key came, or none that is known."""


class StaleError(OperationError):
    """What was decided on has changed since it was looked at."""


class FullError(OperationError):
    """More requests are under way than the server has seats for who asks."""


class PendingError(OperationError):
    """What was asked for is being made, and is there when it is asked for again in some seconds."""


class RateError(OperationError):
    """More was asked of the server in a minute than settings allow; ``after_s``: seconds to wait."""

    def __init__(self, what: str, why: str, after_s: float) -> None:
        super().__init__(what, why, f"Ask again in {ceil(after_s)} s.")
        self.after_s = after_s


_OWN: Mapping[type[Agent0Error], tuple[int, str]] = {
    BudgetExhaustedError: (402, ""),
    UnknownKeyError: (401, "auth_missing"),
    StaleError: (412, "changed_since"),
    FullError: (503, "server_full"),
    PendingError: (503, "being_made"),
    RateError: (429, "rate_limited"),
}
"""Errors whose status of HTTP, and mostly slug, say more than those of their kind."""


def problem_of(error: Agent0Error, path: str = "") -> ProblemDocument:
    """``error`` as a problem document about the resource at ``path``."""
    status, slug = _OWN.get(type(error), (error.kind.status, ""))
    return ProblemDocument(
        type=f"urn:agent0:problem:{slug or error.kind.slug}",
        title=error.what,
        status=status,
        detail=error.why,
        fix=error.fix,
        instance=path,
    )


def plain_problem(status: int, title: str, path: str = "", **more: Any) -> ProblemDocument:
    """A problem of HTTP itself: no such path, a method that is not allowed, a body that does not fit."""
    slug = {404: ErrorKind.NOT_FOUND.slug, 422: ErrorKind.CONFIG.slug}.get(status, "")
    kind = f"urn:agent0:problem:{slug}" if slug else "about:blank"
    return ProblemDocument(type=kind, title=title or HTTPStatus(status).phrase, status=status, instance=path, **more)


def headers_of(error: Agent0Error) -> Mapping[str, str]:
    """What a response to ``error`` says beside the problem document."""
    return {"Retry-After": str(ceil(error.after_s))} if isinstance(error, RateError) else {}


def response_of(problem: ProblemDocument, headers: Mapping[str, str] = {}) -> Response:
    """Make the response that carries the problem document ``problem``."""
    more = {"Retry-After": str(RETRY_S)} if problem.status == 503 else {}
    if problem.status == 401:
        more["WWW-Authenticate"] = "Bearer"
    body = json.dumps(problem.model_dump(exclude_none=True), ensure_ascii=True)
    return Response(body, problem.status, {**more, **headers}, MEDIA)


def is_page(request: Request) -> bool:
    """Whether ``request`` is that of a person's browser for a page."""
    path = request.url.path
    return (
        not path.startswith("/v1") and not path.endswith(".json") and "text/html" in request.headers.get("accept", "")
    )


def responses(*statuses: int) -> dict[int | str, dict[str, object]]:
    """The problems that a route documents, besides those that any may give."""
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
    codes = sorted({400, 401, 403, 404, 409, 413, 422, 500, 503, *statuses})
    return {code: {"description": HTTPStatus(code).phrase, "content": {MEDIA: schema}} for code in codes}
