"""A family by OpenEnv's wire, frame by frame: episodes, rewards, and what hostile clients get."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocketDisconnect

from agent0.api.openenv import EpisodeSession, application
from agent0.errors import SandboxUnavailableError
from agent0.events.values import Task
from agent0.infra.sandbox import Refusing
from agent0.tasks.families import families
from agent0.verification.verifiers import Verdict
from tests.terminal import agent0

FAMILY = families()["countdown"]


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(application(FAMILY, (1, 2), Refusing("none is needed", ""), sessions=2)) as client:
        yield client


def asked(ws: WebSocketTestSession, kind: str, **data: Any) -> tuple[str, dict[str, Any]]:
    """The type and data of what answers a frame."""
    ws.send_json({"type": kind, "data": data})
    reply = ws.receive_json()
    assert set(reply) == {"type", "data"}
    return reply["type"], reply["data"]


def solution(question: str) -> str:
    params = FAMILY.parse(question)
    assert params is not None
    return FAMILY.solve(params)


def test_an_episode_is_a_task_its_answer_and_its_verdict(client: TestClient) -> None:
    with client.websocket_connect("/ws") as ws:
        for seed in range(5):
            kind, first = asked(ws, "reset", seed=seed, episode_id=f"e{seed}", other=[1])
            assert kind == "observation" and (first["reward"], first["done"]) == (None, False)
            assert asked(ws, "reset", seed=seed)[1] == first, "a seed is a task"
            question = first["observation"]["question"]
            answer = solution(question) if seed % 2 else "1"
            _, second = asked(ws, "step", answer=answer)
            assert (second["reward"], second["done"]) == (float(seed % 2), True)
            assert second["observation"]["question"] == question and second["observation"]["reason"]
            assert asked(ws, "state") == ("state", {"episode_id": f"countdown-{seed}", "step_count": 1})
        assert {asked(ws, "reset", seed=seed, level=2)[1]["observation"]["level"] for seed in range(3)} == {2}
        assert asked(ws, "reset")[1] != asked(ws, "reset")[1], "without a seed each is another"
        ws.send_json({"type": "close"})
        with pytest.raises(WebSocketDisconnect):
            ws.receive_json()


def test_the_server_says_what_it_serves(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "healthy"}
    assert client.get("/metadata").json()["name"] == "agent0-countdown"
    schema = client.get("/schema").json()
    assert schema["action"]["required"] == ["answer"] and set(schema) == {"action", "observation", "state"}
    assert client.post("/mcp", json={}).json()["error"]["code"] == -32601, "as OpenEnv's validator asks for"
    openapi = client.get("/openapi.json").json()
    assert openapi["info"]["version"] and set(openapi["paths"]) == {"/health", "/metadata", "/schema", "/mcp"}
    for path, methods in openapi["paths"].items():
        assert [client.request(method, path).status_code for method in methods] == [200]


HOSTILE = [
    ("", "INVALID_JSON"),
    ("{", "INVALID_JSON"),
    ("[" * 100_000, "INVALID_JSON"),
    ("[]", "VALIDATION_ERROR"),
    ("null", "VALIDATION_ERROR"),
    ("{}", "VALIDATION_ERROR"),
    ('{"type": 1}', "VALIDATION_ERROR"),
    ('{"type": "reset", "data": []}', "VALIDATION_ERROR"),
    ('{"type": "mcp", "data": {}}', "UNKNOWN_TYPE"),
    ('{"type": "reset", "data": {"seed": true}}', "VALIDATION_ERROR"),
    ('{"type": "reset", "data": {"seed": -1}}', "VALIDATION_ERROR"),
    ('{"type": "reset", "data": {"seed": NaN}}', "VALIDATION_ERROR"),
    ('{"type": "reset", "data": {"seed": 1e400}}', "VALIDATION_ERROR"),
    ('{"type": "reset", "data": {"level": 9}}', "VALIDATION_ERROR"),
    (json.dumps({"type": "reset", "data": {"episode_id": "x" * 256}}), "VALIDATION_ERROR"),
    ('{"type": "step", "data": {}}', "VALIDATION_ERROR"),
    ('{"type": "step", "data": {"answer": 7}}', "VALIDATION_ERROR"),
    ('{"type": "step", "data": {"answer": "1", "reward": 1}}', "VALIDATION_ERROR"),
    (json.dumps({"type": "step", "data": {"answer": "1" * 70_000}}), "VALIDATION_ERROR"),
]


def test_a_hostile_frame_is_refused_by_its_code_and_the_episode_stays(client: TestClient) -> None:
    with client.websocket_connect("/ws") as ws:
        assert asked(ws, "step", answer="1")[1]["code"] == "EXECUTION_ERROR", "no episode has begun"
        question = asked(ws, "reset", seed=1)[1]["observation"]["question"]
        for text, code in HOSTILE:
            ws.send_text(text)
            reply = ws.receive_json()
            assert (reply["type"], reply["data"]["code"]) == ("error", code), text[:80]
            assert reply["data"]["message"] and len(reply["data"]["message"]) <= 1000
        ws.send_bytes(b"\xff")
        assert ws.receive_json()["data"]["code"] == "INVALID_JSON"
        assert asked(ws, "step", answer=solution(question))[1]["reward"] == 1.0
        assert asked(ws, "step", answer=solution(question))[1]["code"] == "EXECUTION_ERROR", "it has ended"
        assert asked(ws, "state")[1]["step_count"] == 1


def test_sessions_are_apart_and_have_an_end(client: TestClient) -> None:
    with client.websocket_connect("/ws") as one, client.websocket_connect("/ws") as two:
        first, second = (asked(ws, "reset", seed=n)[1] for n, ws in enumerate((one, two)))
        assert asked(one, "step", answer=solution(first["observation"]["question"]))[1]["reward"] == 1.0
        assert asked(two, "step", answer=solution(second["observation"]["question"]))[1]["reward"] == 1.0
        with client.websocket_connect("/ws") as third:
            assert third.receive_json()["data"]["code"] == "CAPACITY_REACHED"
    with client.websocket_connect("/ws") as freed:
        assert asked(freed, "reset")[0] == "observation"


async def test_what_cannot_be_judged_is_no_reward() -> None:
    """A verdict that is not reached is an error of the wire, after which the answer may be given again; one that is
    undecided has no reward."""
    verdicts: list[bool | None] = [None, True]
    away = [True]

    async def judge(task: Task, answer: str) -> Verdict:
        if away:
            away.pop()
            raise SandboxUnavailableError("The sandbox", "it is gone")
        return Verdict(verdicts.pop(0), "so it is")

    session = EpisodeSession(FAMILY, (1,), count(), judge)
    step = json.dumps({"type": "step", "data": {"answer": "1"}})
    replies = []
    for text in ('{"type": "reset"}', step, step, '{"type": "reset"}', step):
        reply = await session.answer(text)
        assert reply is not None
        replies.append(reply)
    assert replies[1]["type"] == "error" and "it is gone" in str(replies[1])
    assert [reply["data"].get("reward", "no field") for reply in replies] == [None, "no field", None, None, 1.0]  # type: ignore[union-attr]
    assert [reply["data"].get("done") for reply in replies] == [False, None, True, False, True]  # type: ignore[union-attr]


def test_a_family_that_nobody_has_is_not_served() -> None:
    assert agent0("env", "serve", "nope").code == 1
