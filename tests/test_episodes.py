"""Episodes over steps: each a call of the environment's tool and so an event, their rewards a verdict; made again they
are judged the same, and what lies or is lost is never a reward."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from agent0.assembly.environments.openenv import add_openenv
from agent0.assembly.validate.questions import with_questions
from agent0.chat_format import format_call
from agent0.errors import DependencyError
from agent0.events.base import Recorded
from agent0.events.episodes import Episode, EpisodeStep
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskProposed, ToolCalled
from agent0.events.values import QUESTIONS, SourceRow, Task, ToolCall, ToolResult, ToolState, ToolUse
from agent0.infra.models import scripted
from agent0.infra.sandbox import Refusing
from agent0.infra.web.openenv import OpenEnvServers
from agent0.settings import Settings
from agent0.tools.episode import EpisodeRecord, record_of
from agent0.verification.panel import VerificationContext
from agent0.verification.verifiers import Verdict, verifier_for
from tests.play import play
from tests.world import ports, small, started

NONE = Refusing("none is needed", "")
SERVERS = OpenEnvServers(answer_s=5.0)
ACTION = {
    "description": "Add to the sum.",
    "properties": {"number": {"type": "integer"}, "metadata": {"type": "object"}},
    "required": ["number"],
}
Change = Callable[[dict[str, Any], int], "dict[str, Any] | str | None"]


def honest(data: dict[str, Any], step: int) -> dict[str, Any]:
    return data


@asynccontextmanager
async def counting(change: Change = honest, port: int = 0) -> AsyncIterator[str]:
    """The address of a game: reach seed + 3 exactly by adding 1 to 3. ``change`` says what becomes of an answer; None
    cuts the socket."""

    def page(socket: ServerConnection, request: Request) -> Response | None:
        pages = {"/metadata": {"name": "counting", "version": "1"}, "/schema": {"action": ACTION}}
        return socket.respond(200, json.dumps(pages[request.path])) if request.path in pages else None

    async def converse(socket: ServerConnection) -> None:
        goal = total = steps = 0
        async for text in socket:
            request = json.loads(text)
            if request["type"] == "state":
                assert request == {"type": "state"}, "theirs refuses anything beside it"
                await socket.send(json.dumps({"type": "state", "data": {"step_count": steps}}))
                continue
            if request["type"] == "reset":
                goal, total, steps = request["data"]["seed"] + 3, 0, 0
                seen = {"question": f"Reach {goal}."}
                data: Any = {"observation": seen, "reward": None, "done": False}
            elif request["data"].get("number") not in (1, 2, 3):
                await socket.send(json.dumps({"type": "error", "data": {"code": "VALIDATION_ERROR", "message": "1-3"}}))
                continue
            else:
                total, steps = total + request["data"]["number"], steps + 1
                reward = 1.0 if total == goal else 0.0 if total > goal else 0.015625
                data = {"observation": {"sum": str(total)}, "reward": reward, "done": total >= goal}
            data = change(data, steps)
            if data is None:
                socket.transport.abort()
                return
            await socket.send(data if isinstance(data, str) else json.dumps({"type": "observation", "data": data}))

    async with serve(converse, "127.0.0.1", port, process_request=page) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def say(request, skill, rng):  # type: ignore[no-untyped-def]
    """A student that first adds what is refused, then 2 by 2, and of even goals one too many."""
    goal = int(next(found for turn in reversed(request.turns) if (found := re.search(r"Reach (\d+)", turn.content)))[1])
    results = [turn.content for turn in request.turns if turn.role == "tool"]
    if not results:
        return format_call("act", {"number": 9})
    total = int(results[-1]) if results[-1].isdigit() else 0
    left = goal - total
    return format_call("act", {"number": 3 if goal % 2 == 0 and left <= 2 else min(left, 2)})


async def added(home: Path, url: str, count: int = 40) -> Any:
    path, tried = await add_openenv(Settings(home=home), url, "", count, "question", SERVERS, steps=True)
    assert not [task.why for task in tried if task.why]
    sizes: dict[str, Any] = {"iterations": 1, "tasks": 4, "attempts": 2, "evaluation": {"validation": 2, "test": 0}}
    return with_questions(small(**sizes, questions={"file": str(path)}))


@pytest.fixture
def student(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripted, "_say", say)


async def test_steps_are_events_and_their_rewards_a_verdict(tmp_path: Path, student: None) -> None:
    async with counting() as url:
        config = await added(tmp_path, url)
        told = [r.event for r in await play(started(config), ports() | {"environments": SERVERS})]
        proposed = {event.task: event.proposal for event in told if isinstance(event, TaskProposed)}
        steps = [event for event in told if isinstance(event, ToolCalled)]
        verdicts = {event.attempt: event for event in told if isinstance(event, ResultVerified)}
        attempts = {event.attempt: event for event in told if isinstance(event, TaskAttempted)}
        assert len(verdicts) == 8 and {event.verifier for event in verdicts.values()} == {"openenv"}
        for name, verdict in verdicts.items():
            made = [step.result for step in steps if step.attempt == name]
            assert made[0].state is ToolState.ERROR and "VALIDATION_ERROR" in made[0].output
            assert [result.step.done for result in made if result.step] == [False] * (len(made) - 1) + [True]
            task = proposed[verdict.task]
            assert task is not None and verdict.correct is (int(task.question.split()[1][:-1]) % 2 == 1)
            attempt = attempts[name]
            assert attempt.end == "answered" and attempt.tool_calls == len(made) == attempt.turns
            rewards = [result.step.reward for result in made if result.step and result.step.reward is not None]
            assert verdict.reason == f"reward {sum(rewards):g}"
            context = VerificationContext(environments=SERVERS, again=True)
            (again,) = await verifier_for(task).judge(task, [attempt.answer], NONE, context)
            assert (again.correct, again.reason) == (verdict.correct, verdict.reason), "made again, judged the same"
    assert {event.correct for event in verdicts.values()} == {True, False}


def lie(**changes: Any) -> Change:
    """From the second step on."""
    return lambda data, step: {**data, **changes} if step > 1 else data


LIES: dict[str, tuple[Change, str]] = {
    "a bool": (lie(reward=True), "reward"),
    "NaN": (lie(reward=float("nan")), "reward"),
    "infinite": (lie(reward=float("inf")), "reward"),
    "done is a number": (lie(done=1), "done"),
    "done is a text": (lie(done="no"), "done"),
    "two answers": (
        lambda data, step: json.dumps({"type": "observation", "data": data}) + "{}" if step > 1 else data,
        "no frame of the wire",
    ),
    "deep": (lambda data, step: "[" * 100_000 if step > 1 else data, "no frame of the wire"),
    "a flood": (lie(observation={"x": "y" * (1 << 20)}), "no frame of at most"),
    "a state": (lambda data, step: '{"type": "state", "data": {}}' if step > 1 else data, "a state"),
}


async def one(url: str, home: Path) -> list[Recorded]:
    return await play(started(await added(home, url)), ports() | {"environments": SERVERS})


@pytest.mark.parametrize("name", LIES)
async def test_what_cannot_be_believed_ends_the_attempt_undecided(name: str, tmp_path: Path, student: None) -> None:
    change, why = LIES[name]
    async with counting(change) as url:
        told = [r.event for r in await one(url, tmp_path)]
    verdicts = [event for event in told if isinstance(event, ResultVerified)]
    assert len(verdicts) == 8
    assert all(event.correct is None and why in event.reason for event in verdicts), verdicts[0]
    faults = [event.result.step for event in told if isinstance(event, ToolCalled)]
    assert sum(bool(step and step.fault) for step in faults) == 8


async def test_a_lost_environment_is_waited_for(tmp_path: Path, student: None) -> None:
    async with counting() as url:
        config = await added(tmp_path, url)
    with pytest.raises(DependencyError, match=r"The environment at http://127"):
        await play(started(config), ports() | {"environments": SERVERS})
    async with counting(lambda data, step: None if step > 1 else data, int(url.rpartition(":")[2])):
        with pytest.raises(DependencyError, match=r"It was lost"):
            await play(started(config), ports() | {"environments": SERVERS})


def use(number: int, **step: Any) -> ToolUse:
    call = ToolCall(name="act", arguments={"number": number})
    return ToolUse(turn=0, call=call, result=ToolResult(state=ToolState.OK, step=EpisodeStep(**step)))


async def judged(url: str, answer: str | None, again: bool = False, **changes: Any) -> Verdict:
    fields: dict[str, Any] = {"url": url, "seed": 2, "question": "question", "action": "", "tools": "0" * 64}
    row = SourceRow(id="1", answer="", episode=Episode(**{**fields, **changes}))
    task = Task(question="Reach 5.", domain="steps", family=QUESTIONS, level=1, canonical="reach 5", row=row)
    context = VerificationContext(environments=SERVERS, again=again)
    (verdict,) = await verifier_for(task).judge(task, [answer], NONE, context)
    return verdict


async def test_a_record_says_what_the_rewards_say() -> None:
    away = "http://127.0.0.1:9"
    cases: list[tuple[list[ToolUse], bool | None, str]] = [
        ([], False, "no step was made"),
        ([use(1)], False, "it was not ended"),
        ([use(1, done=True)], None, "it gives no reward"),
        ([use(1, reward=0.5), use(1, reward=0.5)], True, "reward 1, and it was not ended"),
        ([use(1, reward=0.5), use(1, reward=0.25, done=True)], False, "reward 0.75"),
        ([use(1, reward=5.0), use(1, fault="It lies.")], None, "It lies."),
    ]
    for called, correct, reason in cases:
        verdict = await judged(away, record_of(called))
        assert (verdict.correct, verdict.reason) == (correct, reason)
    assert (await judged(away, record_of([use(1, reward=-3.0, done=True)]), right=-5.0)).correct is True
    assert (await judged("gym:taxi", record_of([use(1, reward=1.0)]))).correct is True
    with pytest.raises(DependencyError):
        await judged(away, record_of([use(1, reward=1.0)]), again=True)


async def test_what_does_not_repeat_or_is_another_is_no_verdict() -> None:
    honest_steps = [use(2, reward=0.015625, done=False), use(3, reward=1.0, done=True)]
    async with counting() as url:
        digest = ""
        async with SERVERS.opened(Episode(url=url, seed=2, question="question", action="", tools="x")) as session:
            for made, total in zip(honest_steps, (2, 5), strict=True):
                seen = await session.step("act", made.call.arguments)
                assert (seen.text, seen.reward, seen.done) == (str(total), *(made.result.step.reward, total == 5))  # type: ignore[union-attr]
        with pytest.raises(DependencyError, match="other tools"):
            await judged(url, record_of(honest_steps), again=True)
        with pytest.raises(DependencyError, match="another question"):
            await judged(url, record_of(honest_steps), again=True, seed=7, tools=digest or "y")


def test_a_record_too_long_keeps_what_decides() -> None:
    many = [use(n, reward=0.5, sha256="a" * 64) for n in range(2_000)]
    record = EpisodeRecord.model_validate_json(record_of(many) or "")
    assert record.reward == 1_000 and not record.steps
    assert asyncio.run(judged("http://127.0.0.1:9", record_of(many))).correct is True
