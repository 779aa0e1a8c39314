"""An environment's process that lies, floods, falls silent or ends is a fault with a name, never a step."""

import re
import sys

import pytest

from agent0.errors import DependencyError
from agent0.infra.environments import process
from agent0.infra.environments.process import EnvironmentProcess, ProcessEpisode
from agent0.ports.environments import EnvironmentFaultError

PROCESS = """
import json, socket, sys, time
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[-1])
listener.listen()
print("ready", flush=True)
connection, _ = listener.accept()
for line in connection.makefile("rb"):
    request = json.loads(line)
    answer = {"question": "?", "tools": [{"name": "act", "description": "", "parameters": {"type": "object"}}]}
    if request["kind"] == "step":
        answer = {"text": "", "reward": None, "done": False, "refused": False}
    frame = {"id": request["id"], "answer": answer}
    frames = [frame]
    if request["kind"] == sys.argv[1]:
        exec(sys.argv[2])
    for frame in frames:
        text = frame if isinstance(frame, str) else json.dumps(frame)
        connection.sendall(text.encode() + b"\\n")
"""
LIES: dict[str, tuple[str, str, str]] = {
    "NaN": ("step", "answer.update(done=True, reward=float('nan'))", "reward"),
    "infinite": ("step", "answer.update(done=True, reward=float('inf'))", "reward"),
    "a bool": ("step", "answer.update(done=True, reward=True)", "reward"),
    "a text": ("step", "answer.update(done=True, reward='1')", "reward"),
    "a reward before the end": ("step", "answer.update(reward=1.0)", "a reward before the end"),
    "done is a number": ("step", "answer.update(done=1)", "done"),
    "a field more": ("step", "answer.update(more=1)", "more"),
    "another id": ("step", "frame.update(id=99)", "more than one answer"),
    "no JSON": ("step", "frames = ['{']", "no answer to step"),
    "deep": ("step", "frames = ['[' * 20000]", "no answer to step"),
    "an error": ("step", "frame.update(answer=None, error='It broke.\\x1b[2J')", "an error: It broke."),
    "a flood": ("step", "frames = ['x' * (1 << 20)]", "no line of at most"),
    "silence": ("step", "frames = []", "nothing to step in"),
    "no tools": ("open", "answer.update(tools=[])", "tools"),
    "a tool without a name": ("open", "answer['tools'][0].update(name='')", "name"),
    "a tool of no object": ("open", "answer['tools'][0].update(parameters={'type': 'array'})", "cannot be called"),
}


def lying(kind: str, what: str, answer_s: float = 20.0) -> EnvironmentProcess:
    return EnvironmentProcess("lying", [sys.executable, "-I", "-c", PROCESS, kind, what], answer_s=answer_s)


async def steps_of(served: EnvironmentProcess, count: int) -> None:
    try:
        async with served.connection() as connection:
            session = await ProcessEpisode.begun(connection, 0)
            for _ in range(count):
                await session.step("act", {})
    finally:
        await served.close()


@pytest.mark.parametrize("name", LIES)
async def test_what_cannot_be_believed_is_no_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, what, why = LIES[name]
    monkeypatch.setattr(process, "LARGEST", 1 << 16)
    with pytest.raises(EnvironmentFaultError, match=re.escape(why)):
        await steps_of(lying(kind, what, 1.0 if name == "silence" else 20.0), 1)


async def test_two_answers_to_one_request_show_at_the_next() -> None:
    with pytest.raises(EnvironmentFaultError, match="more than one answer"):
        await steps_of(lying("open", "frames = [frame, frame]"), 1)


async def test_a_process_that_does_not_start_or_ends_says_its_last_line() -> None:
    for broken in (
        EnvironmentProcess("broken", [sys.executable, "-I", "-c", "raise SystemExit('no such domain')"]),
        lying("step", "raise SystemExit('no such domain')"),
    ):
        with pytest.raises(DependencyError, match="no such domain"):
            await steps_of(broken, 1)
    with pytest.raises(DependencyError, match="It does not start"):
        await steps_of(EnvironmentProcess("absent", ["/no/such/python"]), 1)
