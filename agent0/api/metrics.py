"""``/metrics``: the tables as Prometheus metrics, and how the server answers. Labels have a bound: routes as they are
declared, never the addresses that were asked."""

import asyncio
from time import perf_counter

from fastapi import APIRouter, Request
from prometheus_client import Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent0.api.context import ApiContext, Context
from agent0.assembly.runtime.prometheus import registry

router = APIRouter(include_in_schema=False)
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0)
METHODS = ("GET", "HEAD", "POST", "OPTIONS")
NONE = "none"
"""The route of what leads nowhere."""


class Measures:
    """Counts the answers of one server, beside the metrics of its tables."""

    def __init__(self, context: ApiContext) -> None:
        self.registry = registry(context.settings)
        about = "Seconds until an answer was complete; streams are not counted."
        self.seconds = Histogram("agent0_http_seconds", about, ["route"], buckets=BOUNDS, registry=self.registry)
        self.answers = Counter("agent0_http_answers", "Answers.", ["method", "route", "status"], registry=self.registry)
        self.open = Gauge("agent0_http_open", "Requests under way, streams among them.", registry=self.registry)


class RequestMetrics:
    """Middleware around the application that counts and times every answer."""

    def __init__(self, app: ASGIApp, measures: Measures) -> None:
        self._app, self._measures = app, measures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and count."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, outcome = perf_counter(), {"status": 500, "streamed": 0}

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                outcome["status"] = message["status"]
                short = [(name.lower(), value.split(b";")[0].strip()) for name, value in message["headers"]]
                outcome["streamed"] = int((b"content-type", b"text/event-stream") in short)
            await send(message)

        with self._measures.open.track_inprogress():
            try:
                await self._app(scope, receive, noted)
            finally:
                self._count(scope, outcome, perf_counter() - begun)

    def _count(self, scope: Scope, outcome: dict[str, int], seconds: float) -> None:
        route = getattr(scope.get("route"), "path", NONE)
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._measures.answers.labels(method, route, f"{outcome['status'] // 100}xx").inc()
        if not outcome["streamed"]:
            self._measures.seconds.labels(route).observe(seconds)


@router.get("/metrics")
async def metrics(request: Request, context: Context) -> Response:
    """Everything that is counted, in Prometheus' text format."""
    measures: Measures = request.app.state.measures
    text = await asyncio.to_thread(generate_latest, measures.registry)
    return Response(text, headers={"Content-Type": CONTENT_TYPE_LATEST})
