"""A task family served by OpenEnv's wire: an episode is one task, its single step the answer, its reward the verdict.

A session is a WebSocket. Frames are JSON, each answered by one; what is no frame of the wire is answered by an error
with its code, and nothing of it is carried out.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Literal

import uvicorn
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from agent0.config.distribution import installed_version
from agent0.errors import Agent0Error, OperationError
from agent0.events.values import Task
from agent0.ports.sandbox import Sandbox
from agent0.tasks.families import Family
from agent0.tasks.seeds import derive_seed
from agent0.tasks.splits import task_of
from agent0.verification.verifiers import Verdict, verifier_for

SESSIONS, IDLE_S, LARGEST = 64, 600.0, 1 << 20
"""Sessions at once; seconds without a frame after which one ends; bytes of a frame."""
LONGEST_ANSWER = 65_536
HOST = "127.0.0.1"
Judge = Callable[[Task, str], Awaitable[Verdict]]
Frame = Mapping[str, JsonValue]


class ResetFields(BaseModel):
    """What a client may choose of an episode; other keys are let be."""

    model_config = ConfigDict(strict=True)

    seed: int | None = Field(None, ge=0, lt=1 << 63)
    episode_id: str | None = Field(None, max_length=255)
    level: int | None = Field(None, ge=1)


class AnswerAction(BaseModel):
    """The one action of an episode: the answer to its question."""

    model_config = ConfigDict(strict=True, extra="forbid")

    answer: str = Field(max_length=LONGEST_ANSWER, description="the answer alone, exactly")


class TaskObservation(BaseModel):
    """What a client sees: the question; after the answer the verdict, with its reason, too."""

    question: str
    family: str
    level: int
    verdict: Literal["", "right", "wrong", "undecided"] = ""
    reason: str = ""


class EpisodeState(BaseModel):
    """Where a session stands: its episode, and the steps that it has taken."""

    episode_id: str | None = None
    step_count: int = 0


class RefusedFrameError(Exception):
    """A frame that is not carried out: its code of the wire, and why."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class _ClientFrame(BaseModel):
    model_config = ConfigDict(strict=True)

    type: str
    data: dict[str, JsonValue] = Field(default_factory=dict)


class EpisodeSession:
    """One client's episodes, one after the other. ``numbers`` gives the seed of those that name none."""

    def __init__(self, family: Family, levels: Sequence[int], numbers: "count[int]", judge: Judge) -> None:
        self._family, self._levels, self._numbers, self._judge = family, levels, numbers, judge
        self._task: Task | None = None
        self._done = False
        self._state = EpisodeState()

    async def answer(self, text: str) -> Frame | None:
        """Carry out one frame; returns the frame that answers it, None where the client closes."""
        try:
            frame = _frame(text)
            if frame.type == "close":
                return None
            if frame.type == "reset":
                return self._reset(ResetFields.model_validate(frame.data))
            if frame.type == "step":
                return await self._step(AnswerAction.model_validate(frame.data))
            if frame.type == "state":
                return {"type": "state", "data": self._state.model_dump()}
            raise RefusedFrameError("UNKNOWN_TYPE", f"There is no frame {frame.type[:80]!r}.")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            return error_frame("VALIDATION_ERROR", f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        except RefusedFrameError as error:
            return error_frame(error.code, str(error))

    def _reset(self, fields: ResetFields) -> Frame:
        if fields.level is not None and fields.level > self._family.levels:
            raise RefusedFrameError("VALIDATION_ERROR", f"level: {self._family.name} has {self._family.levels}.")
        number = next(self._numbers) if fields.seed is None else fields.seed
        rng = random.Random(derive_seed("openenv", self._family.name, number))
        level = fields.level or rng.choice(self._levels)
        self._task = task_of(self._family, self._family.render(self._family.sample(level, rng), rng))
        self._done = False
        self._state = EpisodeState(episode_id=fields.episode_id or f"{self._family.name}-{number}")
        return self._observation(None, "")

    async def _step(self, action: AnswerAction) -> Frame:
        if self._task is None or self._done:
            why = "The episode has ended" if self._done else "There is no episode"
            raise RefusedFrameError("EXECUTION_ERROR", f"{why}: reset first.")
        self._done = True
        try:
            verdict = await self._judge(self._task, action.answer)
        except Agent0Error as error:
            self._done = False
            raise RefusedFrameError("EXECUTION_ERROR", str(error)) from error
        self._state = self._state.model_copy(update={"step_count": 1})
        return self._observation(verdict.correct, verdict.reason)

    def _observation(self, correct: bool | None, reason: str) -> Frame:
        assert self._task is not None  # noqa: S101 - an episode has begun
        verdict = {True: "right", False: "wrong", None: "undecided"}[correct] if self._done else ""
        observation = TaskObservation(
            question=self._task.question,
            family=self._task.family,
            level=self._task.level,
            verdict=verdict,
            reason=reason,
        )
        reward = None if correct is None else float(correct)
        return {
            "type": "observation",
            "data": {"observation": observation.model_dump(), "reward": reward, "done": self._done},
        }


def _frame(text: str) -> _ClientFrame:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedFrameError("INVALID_JSON", f"It is no JSON: {error}.") from error
    return _ClientFrame.model_validate(read)


def error_frame(code: str, message: str) -> Frame:
    """The frame that says why another one was not carried out."""
    return {"type": "error", "data": {"code": code, "message": message[:1000]}}


def application(family: Family, levels: Sequence[int], sandbox: Sandbox, sessions: int = SESSIONS) -> Starlette:
    """Make the server's application: tasks of ``family`` at ``levels``, for at most ``sessions`` clients at once."""
    numbers, open_sessions = count(), list[None]()

    async def judge(task: Task, answer: str) -> Verdict:
        return (await verifier_for(task).judge(task, [answer], sandbox))[0]

    async def socket(ws: WebSocket) -> None:
        await ws.accept()
        if len(open_sessions) >= sessions:
            await ws.send_json(error_frame("CAPACITY_REACHED", f"There are {sessions} sessions."))
            await ws.close()
            return
        open_sessions.append(None)
        try:
            await _converse(ws, EpisodeSession(family, levels, numbers, judge))
        finally:
            open_sessions.pop()

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "healthy"})

    async def metadata(request: Request) -> JSONResponse:
        about = f"Tasks of the family {family.name}: reset gives a question, the one step its answer."
        return JSONResponse({"name": f"agent0-{family.name}", "description": about, "version": installed_version()})

    async def schema(request: Request) -> JSONResponse:
        models: Mapping[str, type[BaseModel]] = {
            "action": AnswerAction,
            "observation": TaskObservation,
            "state": EpisodeState,
        }
        return JSONResponse({name: model.model_json_schema() for name, model in models.items()})

    routes = [Route(f"/{route.__name__}", route) for route in (health, metadata, schema)]
    routes += [Route("/mcp", _no_tools, methods=["POST"]), Route("/openapi.json", _openapi)]
    return Starlette(routes=[*routes, WebSocketRoute("/ws", socket)])


async def _no_tools(request: Request) -> JSONResponse:
    error = {"code": -32601, "message": "There are no tools here: an episode is played over /ws."}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error})


async def _openapi(request: Request) -> JSONResponse:
    """What is served beside the socket; without reset and step, which that alone has, it is OpenEnv's production."""
    done = {"responses": {"200": {"description": "JSON"}}}
    paths = {f"/{name}": {"get": done} for name in ("health", "metadata", "schema")} | {"/mcp": {"post": done}}
    info = {"title": "Agent0's task families", "version": installed_version()}
    return JSONResponse({"openapi": "3.1.0", "info": info, "paths": paths})


async def _converse(ws: WebSocket, session: EpisodeSession) -> None:
    """Answer frames one by one until the client closes, says nothing for ``IDLE_S``, or is gone."""
    try:
        while True:
            message = await asyncio.wait_for(ws.receive(), IDLE_S)
            if message["type"] != "websocket.receive":
                return
            text = message.get("text")
            reply = error_frame("INVALID_JSON", "It is no text.") if text is None else await session.answer(text)
            if reply is None:
                break
            await ws.send_json(reply)
    except TimeoutError:
        pass
    except WebSocketDisconnect:
        return
    await ws.close()


async def serve_openenv(
    family: Family, levels: Sequence[int], sandbox: Sandbox, port: int, say: Callable[[str], None]
) -> None:
    """Serve ``family`` on this machine's loopback until cancelled; ``say`` gets the address.

    Raises:
        OperationError: the port is taken.
    """
    config = uvicorn.Config(
        application(family, levels, sandbox),
        host=HOST,
        port=port,
        log_level="critical",
        ws="websockets-sansio",
        ws_max_size=LARGEST,
        lifespan="off",
    )
    try:
        sock = config.bind_socket()
    except SystemExit as error:
        raise OperationError(f"Port {port} is taken.", "", "Name another with --port.") from error
    say(f"{family.name} at ws://{HOST}:{sock.getsockname()[1]}/ws. Ctrl-C stops.")
    with sock:
        await uvicorn.Server(config).serve(sockets=[sock])
