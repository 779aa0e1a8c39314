"""An MCP server over HTTP: who is let in is decided as for the API, by name, page, key, rate and size; each request
stands for itself, so there is no session to take over, and no answer to wait for."""

import json
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent0.api.admission.guard import Guard
from agent0.api.admission.keys import KeyFile
from agent0.api.context import ApiContext
from agent0.api.past import PastTables
from agent0.api.problems import headers_of, plain_problem, problem_of, response_of
from agent0.api.server import address_of, is_loopback, listening, serve
from agent0.errors import Agent0Error
from agent0.settings import Settings

PATH, SESSION = "/mcp", "mcp-session-id"
LARGEST = 4 << 20
"""Bytes of a message, where ``api.max_body`` allows as many."""
NO_JSON, NO_MESSAGE = -32700, -32600


async def serve_mcp_http(
    settings: Settings,
    opening: AbstractAsyncContextManager[ASGIApp],
    reads: Collection[str],
    say: Callable[[str], None],
) -> None:
    """Let what ``opening`` opens answer where ``settings.api`` says, until cancelled; ``say`` gets the address. Calls
    of tools whose names are not in ``reads`` are changes: they take the scope for it, and are counted.

    Raises:
        AuthError: it would listen elsewhere than on loopback without a key. OperationError: the port is taken.
    """
    bounded = settings.api.model_copy(update={"max_body": min(LARGEST, settings.api.max_body)})
    settings = settings.model_copy(update={"api": bounded})
    with listening(settings) as sock:
        loopback = is_loopback(sock.getsockname()[0])
        context = ApiContext(settings, KeyFile(settings.home), PastTables(settings), loopback=loopback)
        async with opening as application:
            await serve(context, sock, lambda: say(address_of(sock) + PATH), _guarded(context, application, reads))


def _guarded(context: ApiContext, application: ASGIApp, reads: Collection[str]) -> Starlette:
    return Starlette(
        routes=[Route(PATH, _Messages(application, reads))],
        middleware=[Middleware(Guard, context=context, reading=(PATH,))],
        exception_handlers={HTTPException: _refused, Agent0Error: _not_admitted, 500: _defect},
    )


class _Messages:
    """Passes on one message at a time, whole; what is none is refused."""

    def __init__(self, application: ASGIApp, reads: Collection[str]) -> None:
        self._application, self._reads = application, reads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.method != "POST":
            raise HTTPException(405, "Messages are sent by POST; there is no stream besides.", {"Allow": "POST"})
        if SESSION in request.headers:
            raise HTTPException(404, "There are no sessions here: initialize again, without Mcp-Session-Id.")
        body = await request.body()
        called = _called_tool(body)
        if isinstance(called, int):
            why = "The body is no JSON." if called == NO_JSON else "A body is one message of JSON-RPC 2.0 that asks."
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": called, "message": why}}
            await JSONResponse(error, 400)(scope, receive, send)
            return
        if called and called not in self._reads:
            scope["agent0.change"]()
        parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return parts.pop() if parts else await receive()

        await self._application(scope, replayed, send)


def _called_tool(body: bytes) -> str | int:
    """The name of the tool that a message calls, empty where it calls none; the code of JSON-RPC for what is no message
    to a server that asks nothing."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return NO_JSON
    if not isinstance(message, dict) or not isinstance(params := message.get("params", {}), dict):
        return NO_MESSAGE
    types = (type(message.get("method")), type(message.get("id", 0)))
    if message.get("jsonrpc") != "2.0" or types not in ((str, str), (str, int)):
        return NO_MESSAGE
    return str(params.get("name", "")) if message["method"] == "tools/call" else ""


async def _not_admitted(request: Request, error: Exception) -> Response:
    assert isinstance(error, Agent0Error)  # noqa: S101 - the handler is registered for this class
    return response_of(problem_of(error, request.url.path), headers_of(error))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler is registered for this class
    return response_of(plain_problem(error.status_code, "", request.url.path, detail=error.detail), error.headers or {})


async def _defect(request: Request, _: Exception) -> Response:
    why = "See the server's messages."
    return response_of(plain_problem(500, "Agent0 made a mistake.", request.url.path, detail=why))
