"""Environments of others by OpenEnv's wire: added, asked in a run, judged by themselves; what lies, floods, hangs or is
lost is never a reward."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from agent0.api.openenv import serve_openenv
from agent0.assembly.environments.openenv import add_openenv
from agent0.assembly.evaluation import benchmark_run
from agent0.assembly.validate.questions import with_questions
from agent0.assembly.validate.run_config import check_names
from agent0.errors import Agent0Error, ConfigError, DependencyError
from agent0.events.episodes import Episode
from agent0.events.tasks import ResultVerified, TaskAttempted, TaskProposed
from agent0.events.values import QUESTIONS, SourceRow, Task
from agent0.infra.models import scripted
from agent0.infra.models.replay import Replay
from agent0.infra.sandbox import Refusing
from agent0.infra.storage.datasets import LocalQuestions
from agent0.infra.web import openenv
from agent0.infra.web.openenv import LARGEST, OpenEnvServers, base_url
from agent0.ports.environments import EnvironmentFaultError
from agent0.settings import Settings
from agent0.tasks.families import families
from agent0.tasks.splits import task_of
from agent0.verification.panel import VerificationContext
from agent0.verification.verifiers import verifier_for
from tests.play import finished, play
from tests.terminal import agent0
from tests.world import ports, small, started

FAMILY = families()["countdown"]
NONE = Refusing("none is needed", "")
OBSERVED: dict[str, Any] = {"observation": {"question": "How many?"}, "reward": None, "done": False}
ENDED: dict[str, Any] = {"observation": {}, "reward": 1.0, "done": True}
STATE = json.dumps({"type": "state", "data": {"step_count": 1}})


def observation(**data: Any) -> str:
    return json.dumps({"type": "observation", "data": data})


@contextmanager
def served() -> Iterator[str]:
    """The address of our own server of countdown, in a thread."""
    loop, up = asyncio.new_event_loop(), threading.Event()
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        up.set()

    task = loop.create_task(serve_openenv(FAMILY, (1,), NONE, 0, say))

    def work() -> None:
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert up.wait(20)
        yield next(word for word in said[0].split() if word.startswith("ws://")).removesuffix(".")
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(20)


def say(request, skill, rng):  # type: ignore[no-untyped-def]
    """A student that is right at every other task."""
    question = next(turn.content for turn in reversed(request.turns) if turn.role == "user")
    params = FAMILY.parse(question)
    assert params is not None, question
    return f"\\boxed{{{FAMILY.solve(params) if len(question) % 2 else '1'}}}"


def test_our_own_server_is_added_asked_and_judges_as_the_family_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as url:
        result = agent0("env", "add", "openenv", url, "--count", "40", "--json", home=tmp_path)
        assert result.code == 0, result.err
        assert result.json["environment"] == "agent0-countdown" and len(result.json["tasks"]) > 30
        again = agent0("env", "add", "openenv", url, home=tmp_path)
        assert again.code == 1 and "There is an environment agent0-countdown" in again.err
        (row,) = agent0("env", "list", "--json", home=tmp_path).json
        sizes: dict[str, Any] = {"iterations": 1, "tasks": 4, "attempts": 2, "evaluation": {"validation": 1, "test": 0}}
        config = with_questions(small(**sizes, questions={"file": row["folder"]}))
        check_names(config)
        assert config.questions.sha256 == row["sha256"], "the run names what it asks"
        monkeypatch.setattr(scripted, "_say", say)
        told = [recorded.event for recorded in finished(play(started(config), ports() | {"environments": SERVERS}))]
    proposed = [event for event in told if isinstance(event, TaskProposed)]
    questions = {event.task: event.proposal.question for event in proposed if event.proposal}
    answers = {event.attempt: event.answer for event in told if isinstance(event, TaskAttempted)}
    verdicts = [event for event in told if isinstance(event, ResultVerified)]
    assert len(verdicts) == 8 and {event.verifier for event in verdicts} == {"openenv"}
    assert {event.correct for event in verdicts} == {True, False}
    for event in verdicts:
        task = task_of(FAMILY, questions[event.task])
        assert task is not None
        assert event.correct is asyncio.run(own_verdict(task, answers[event.attempt]))
    with pytest.raises(DependencyError):
        asyncio.run(judged(url, "1"))
    next(Path(row["folder"], "tasks").iterdir()).unlink()
    with pytest.raises(DependencyError, match="It has changed"):
        LocalQuestions().read(config.questions)
    assert agent0("env", "rm", "agent0-countdown", home=tmp_path).code == 0


def test_a_benchmark_of_single_steps_is_decided_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmark's judge cannot reach it: undecided would be reported as wrong."""
    replies: list[str] = []

    def model(actor, models, items):  # type: ignore[no-untyped-def]
        (_, rows), *_ = items.values()
        replies.extend(
            "1" if number % 2 else f"{FAMILY.solve(FAMILY.parse(row.question))}" for number, row in enumerate(rows)
        )
        return Replay({row.question: f"\\boxed{{{reply}}}" for row, reply in zip(rows, replies, strict=True)})

    monkeypatch.setattr(benchmark_run, "_model", model)
    with served() as url:
        added = agent0("env", "add", "openenv", url, "--count", "8", "--json", home=tmp_path).json
        folder = tmp_path / "environments" / added["environment"]
        words = ("bench", "run", str(folder), "--provider", "scripted", "--json")
        result = agent0(*words, home=tmp_path)
    assert result.code == 0, result.err
    right = (len(replies) + 1) // 2
    assert len(replies) > 4 and result.json["results"][folder.name]["acc,tools"] == right / len(replies)


SERVERS = OpenEnvServers(answer_s=10.0)


async def own_verdict(task: Task, answer: str | None) -> bool | None:
    (verdict,) = await verifier_for(task).judge(task, [answer], NONE)
    return verdict.correct


def asked(url: str) -> Task:
    episode = Episode(url=base_url(url), seed=3, question="question", action="answer")
    row = SourceRow(id="1", answer="", episode=episode)
    return Task(question="How many?", domain="math", family=QUESTIONS, level=1, canonical="how many?", row=row)


async def judged(url: str, answer: str | None, answer_s: float = 10.0) -> tuple[bool | None, str]:
    task, context = asked(url), VerificationContext(environments=OpenEnvServers(answer_s))
    (verdict,) = await verifier_for(task).judge(task, [answer], NONE, context)
    return verdict.correct, verdict.reason


async def against(answers: dict[str, list[str | bytes] | None], answer_s: float = 10.0) -> tuple[bool | None, str]:
    """The verdict where a server answers each kind of frame so; None closes the socket without a word."""

    async def converse(socket: ServerConnection) -> None:
        async for text in socket:
            frames = {"reset": [observation(**OBSERVED)], "state": [STATE], **answers}[json.loads(text)["type"]]
            if frames is None:
                socket.transport.abort()
                return
            for frame in frames:
                await socket.send(frame)

    async with serve(converse, "127.0.0.1", 0, max_size=None) as server:
        return await judged(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "7", answer_s)


def step(**changes: Any) -> str:
    return observation(**{**ENDED, **changes})


@pytest.mark.parametrize(
    ("reward", "right"), [(1, True), (1.5, True), (0.99, False), (0, False), (-3.0, False), (None, None)]
)
async def test_a_finite_reward_is_a_verdict_and_none_is_undecided(reward: float | None, right: bool | None) -> None:
    correct, reason = await against({"step": [step(reward=reward)]})
    assert correct is right and reason == ("it gives no reward" if reward is None else f"reward {reward:g}")


LIES: dict[str, tuple[dict[str, list[str | bytes] | None], str]] = {
    "a bool": ({"step": [step(reward=True)]}, "reward"),
    "a text": ({"step": [step(reward="1")]}, "reward"),
    "NaN": ({"step": [step(reward=float("nan"))]}, "reward"),
    "infinite": ({"step": [step(reward=float("inf"))]}, "reward"),
    "too large a number": ({"step": [step(reward=1).replace('"reward": 1', '"reward": 1e999')]}, "reward"),
    "done is a number": ({"step": [step(done=1)]}, "done"),
    "done is missing": ({"step": ['{"type": "observation", "data": {"observation": {}, "reward": 1}}']}, "done"),
    "not done": ({"step": [step(done=False)]}, "goes on after its answer"),
    "done at once": ({"reset": [observation(**{**OBSERVED, "done": True})], "step": [step()]}, "before its first step"),
    "two to a step": ({"step": [step(reward=0), step()]}, "more than one frame"),
    "two to a reset": ({"reset": [observation(**OBSERVED), step()], "step": [step(reward=0)]}, "more than one frame"),
    "a flood": ({"step": [step()] * 500}, "more than one frame"),
    "too much": ({"step": [step(observation={"x": "y" * LARGEST})]}, "no frame of at most"),
    "a state": ({"step": [STATE]}, "a state, and none was asked for"),
    "no JSON": ({"step": ["{"]}, "no frame of the wire"),
    "deep": ({"step": ["[" * 100_000]}, "no frame of the wire"),
    "bytes": ({"step": [b"\xff\xfe"]}, "no frame of the wire"),
    "half a character": ({"step": [step(observation={"x": "\ud800"})]}, "no frame of the wire"),
    "no state": (
        {"step": [step()], "state": ['{"type": "error", "data": {"code": "VALIDATION_ERROR"}}']},
        "no state: VALIDATION_ERROR",
    ),
    "another type": ({"step": ['{"type": "reward", "data": {}}']}, "no frame of the wire"),
    "refused": ({"step": ['{"type": "error", "data": {"code": "EXECUTION_ERROR", "message": "no"}}']}, "EXECUTION_ERR"),
}


@pytest.mark.parametrize("name", LIES)
async def test_what_is_no_reward_is_undecided_and_says_why(name: str) -> None:
    answers, why = LIES[name]
    correct, reason = await against(answers)
    assert correct is None and why in reason and len(reason) < 500, reason


AWAY: dict[str, dict[str, list[str | bytes] | None]] = {
    "lost at the step": {"step": None},
    "lost at the reset": {"reset": None},
    "lost before the state": {"step": [step()], "state": None},
    "full": {"reset": ['{"type": "error", "data": {"code": "CAPACITY_REACHED"}}']},
    "another question": {
        "reset": [observation(**{**OBSERVED, "observation": {"question": "How few?"}})],
        "step": [step()],
    },
}


@pytest.mark.parametrize("name", AWAY)
async def test_an_environment_that_is_lost_or_another_is_waited_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openenv, "PAUSES_S", (0.01,))
    with pytest.raises(DependencyError, match=r"The environment at http://127"):
        await against(AWAY[name])


async def test_sessions_of_a_server_that_has_room_for_one_follow_one_another() -> None:
    """As with theirs, a session is over a moment later than its socket."""
    taken: list[ServerConnection] = []

    async def converse(socket: ServerConnection) -> None:
        if taken:
            await socket.send('{"type": "error", "data": {"code": "CAPACITY_REACHED"}}')
            return
        taken.append(socket)
        async for text in socket:
            frames = {"reset": observation(**OBSERVED), "step": step(), "state": STATE}
            await socket.send(frames[json.loads(text)["type"]])
        asyncio.get_running_loop().call_later(0.1, taken.clear)

    async def reward(servers: OpenEnvServers, episode: Episode) -> float | None:
        async with servers.opened(episode) as session:
            return (await session.step("", {"answer": "7"})).reward

    async with serve(converse, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        episode, servers = Episode(url=url, seed=0, question="question", action="answer"), OpenEnvServers(10.0)
        assert await asyncio.gather(*(reward(servers, episode) for _ in range(4))) == [1.0] * 4


async def test_a_hang_ends() -> None:
    """At a step it is the answer's verdict that there is none; before one nothing was asked, and the run waits."""
    assert await against({"step": []}, 0.2) == (None, "It gives nothing to step in 0.2 s.")
    with pytest.raises(DependencyError, match=r"It answers nothing to reset"):
        await against({"reset": []}, 0.2)


async def test_no_answer_is_wrong_and_nobody_is_asked() -> None:
    assert await judged("http://127.0.0.1:9", None) == (False, "there is no answer")


NO_ADDRESSES = ["", "localhost:80", "ftp://a", "http://", "http://u:p@a", "http://a?key=1", "http://a:99999"]
NO_ADDRESSES += ["http://[::1", f"http://{'a' * 64}", "http://a b", "http://a:0"]


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="is no address"):
        base_url(url)


def test_one_address_has_one_form() -> None:
    assert {base_url(f"{scheme}://a:1{end}") for scheme in ("http", "ws") for end in ("", "/", "/ws")} == {"http://a:1"}
    assert base_url("wss://a/b/ws") == "https://a/b"


@asynccontextmanager
async def foreign(metadata: object, schema: object, ask: Callable[[int], dict[str, Any]]) -> AsyncIterator[str]:
    """The address of a server that says this of itself, and asks so at a seed."""
    pages = {"/metadata": metadata, "/schema": schema}

    def answer(socket: ServerConnection, request: Request) -> Response | None:
        return socket.respond(200, json.dumps(pages[request.path])) if request.path in pages else None

    async def converse(socket: ServerConnection) -> None:
        async for text in socket:
            await socket.send(observation(**{**OBSERVED, "observation": ask(json.loads(text)["data"]["seed"])}))

    async with serve(converse, "127.0.0.1", 0, process_request=answer) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


TEXT: dict[str, Any] = {"action": {"properties": {"message": {"type": "string"}}, "required": ["message"]}}
BAD_SERVERS: dict[str, tuple[object, object, type[Agent0Error], str]] = {
    "no name": ({}, TEXT, EnvironmentFaultError, "/metadata: name"),
    "a schema that is none": ({"name": "a"}, {"action": []}, EnvironmentFaultError, "/schema: action"),
    "a number": ({"name": "a"}, {"action": {"properties": {}, "required": ["n"]}}, ConfigError, "An action needs: n"),
    "a hostile name": ({"name": "../.."}, TEXT, ConfigError, "is no name"),
    "no text": ({"name": "a"}, TEXT, ConfigError, "has no text 'question'. It has: prompt"),
}


@pytest.mark.parametrize("name", BAD_SERVERS)
async def test_a_server_that_cannot_be_asked_leaves_nothing(name: str, tmp_path: Path) -> None:
    metadata, schema, error, why = BAD_SERVERS[name]
    async with foreign(metadata, schema, lambda seed: {"prompt": "x"}) as url:
        with pytest.raises(error) as raised:
            await add_openenv(Settings(home=tmp_path), url, "", 3, "question", SERVERS)
    assert why in str(raised.value) and not [path for path in tmp_path.rglob("*") if path.is_file()]


async def test_only_seeds_that_ask_the_same_again_are_tasks(tmp_path: Path) -> None:
    asked_before: list[int] = []

    def ask(seed: int) -> dict[str, Any]:
        asked_before.append(seed)
        return {"prompt": ["Same", "Same", f"Other {len(asked_before)}", "", "Fine"][seed]}

    async with foreign({"name": "Their Echo", "version": None}, TEXT, ask) as url:
        path, tried = await add_openenv(Settings(home=tmp_path), url, "", 5, "prompt", SERVERS)
    assert path.name == "their-echo"
    whys = ["", "it asks what an earlier one asks", "it does not ask the same again", "its question is empty", ""]
    assert all(task.why.startswith(why) and bool(task.why) == bool(why) for task, why in zip(tried, whys, strict=True))
    stored = json.loads((path / "tasks/seed-00004.json").read_text())
    assert Episode.model_validate(stored["episode"]) == Episode(url=url, seed=4, question="prompt", action="message")
