"""Environments from packages, in processes of their own: added, played and judged again; what lies, hangs or ends is
never a reward, and another program than the one that was added is not asked."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.environments import programs as adding
from agent0.assembly.validate.questions import with_questions
from agent0.chat_format import format_call
from agent0.errors import DependencyError
from agent0.events.episodes import Episode
from agent0.events.tasks import ResultVerified, ToolCalled
from agent0.infra.environments import process, programs
from agent0.infra.environments.by_kind import EnvironmentsByKind
from agent0.infra.environments.programs import EnvironmentProgram, Programs, program_digest
from agent0.infra.models import scripted
from agent0.ports.environments import EnvironmentFaultError
from agent0.tasks.families import families
from tests.play import play
from tests.terminal import agent0
from tests.world import ports, small, started

GYMNASIUM = '''
"""Stands in for gymnasium: a line of cells, whose end is the goal."""
from types import SimpleNamespace

class Discrete:
    def __init__(self, n):
        self.n, self.start = n, 0
    def contains(self, action):
        return action in range(self.n)
    def __repr__(self):
        return f"Discrete({self.n})"

class Line:
    """Walk to the end.

    ## Action Space
    - 0: left
    - 1: right

    ## Rewards
    1 at the end.
    """
    metadata, render_mode, action_space = {"render_modes": ["ansi"]}, "ansi", Discrete(2)

    def __init__(self):
        self.unwrapped, self.lie = self, {}
    def reset(self, seed):
        print("a word that is no answer")
        self.at, self.length = 0, 2 + seed % 7
        return self.at, {}
    def step(self, action):
        self.at += 1 if action else -1
        ended = self.at in (-1, self.length)
        reward = self.lie.get("reward", float(self.at == self.length))
        return self.at, reward, self.lie.get("ended", ended), False, {}
    def render(self):
        cells = ["\\x1b[41m.\\x1b[0m" if cell == self.at else "." for cell in range(self.length)]
        return "".join(cells)
    def close(self):
        pass

def make(name, render_mode=None, **options):
    line = Line()
    line.lie = options
    return line
'''
VERIFIERS = '''
"""Stands in for verifiers: adding numbers."""
import logging

class Rubric:
    logger = logging.getLogger("rubric")
    async def score_rollout(self, state):
        text = state["completion"][-1]["content"]
        if text == "raise":
            self.logger.error("a reward function raised")
        state["reward"] = float(text == state["answer"])

class SingleTurnEnv:
    rubric, dataset = Rubric(), True
    def get_dataset(self):
        return [{"prompt": [{"role": "user", "content": f"{n} + 1"}], "answer": str(n + 1)} for n in range(3)]

def load_environment(name, **options):
    return SingleTurnEnv()
'''
SERVER = """
import os
from agent0.api.openenv import application
from agent0.infra.sandbox import Refusing
from agent0.tasks.families import families

app = application(families()[os.environ["THEIR_FAMILY"]], (1,), Refusing("none is needed", ""), sessions=1)
"""
TYPES = """
class RolloutInput(dict):
    pass
class RolloutTiming:
    pass
class State(dict):
    def __init__(self, input, timing):
        super().__init__(input)
"""


async def install(folder: Path, packages: Sequence[str], python: str) -> None:
    """An environment of Python by hand, with the stand-ins: no index is asked."""
    inside = folder / programs.PACKAGES
    site = inside / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    for path, text in {
        inside / "pyvenv.cfg": f"home = {Path(sys.base_prefix, 'bin')}\n",
        site / "gymnasium/__init__.py": GYMNASIUM,
        site / "gymnasium-9.dist-info/METADATA": "Metadata-Version: 2.1\nName: gymnasium\nVersion: 9\n",
        site / "gymnasium-9.dist-info/RECORD": "gymnasium/__init__.py,sha256=x,1\n",
        site / "verifiers/__init__.py": VERIFIERS,
        site / "verifiers/types.py": TYPES,
        site / "verifiers-8.dist-info/METADATA": "Metadata-Version: 2.1\nName: verifiers\nVersion: 8\n",
        site / "their_env/server.py": SERVER,
        site / "openenv_theirs-3.dist-info/METADATA": "Metadata-Version: 2.1\nName: openenv-theirs\nVersion: 3\n",
        site / "openenv_theirs-3.dist-info/entry_points.txt": "[console_scripts]\nserver = their_env.server:main\n",
        site / "openenv_theirs-3.dist-info/REQUESTED": "",
        site / "ours.pth": f"import site; site.addsitedir({str(Path(pytest.__file__).parents[1])!r})\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (inside / "bin").mkdir()
    (inside / "bin/python").symlink_to(Path(sys.base_prefix, "bin/python3"))


@pytest.fixture(autouse=True)
def without_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adding, "_install", install)
    monkeypatch.setattr(process, "STOP_S", 0.2)  # the stand-ins do not end by themselves


def walk(request, skill, rng):  # type: ignore[no-untyped-def]
    """A student that tries what there is not, then walks right."""
    tried = any(turn.role == "tool" for turn in request.turns)
    return format_call("act", {"action": 1 if tried else 7})


def test_an_environment_of_gymnasium_is_added_played_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = agent0("env", "add", "gym", "Line-v1", "--count", "20", "--json", home=tmp_path)
    assert added.code == 0, added.err
    assert "Its code runs as you" in added.err
    assert (added.json["environment"], len(added.json["tasks"]), len(added.json["refused"])) == ("line-v1", 7, 13)
    (row,) = agent0("env", "list", "--json", home=tmp_path).json
    stored = json.loads(next(Path(row["folder"], "tasks").iterdir()).read_text())
    assert stored["version"] == "9" and "- 1: right" not in stored["statement"]
    assert stored["episode"]["url"] == "gym:line-v1"
    assert stored["episode"]["program"] == program_digest(Path(row["folder"]))
    sizes: dict[str, Any] = {"iterations": 1, "tasks": 2, "attempts": 2, "evaluation": {"validation": 1, "test": 0}}
    config = with_questions(small(**sizes, questions={"file": row["folder"]}))
    monkeypatch.setattr(scripted, "_say", walk)

    async def played() -> list[Any]:
        environments = EnvironmentsByKind(tmp_path / "environments")
        try:
            return [r.event for r in await play(started(config), ports() | {"environments": environments})]
        finally:
            await environments.close()

    told = asyncio.run(played())
    verdicts = [event for event in told if isinstance(event, ResultVerified)]
    assert [(event.verifier, event.correct, event.reason) for event in verdicts] == [("gym", True, "reward 1")] * 4
    shown = [event.result.output for event in told if isinstance(event, ToolCalled)]
    assert "action must be in Discrete(2), and is 7" in shown[0] and shown[1].startswith(".[.]")
    assert agent0("env", "rm", "line-v1", home=tmp_path).code == 0 and not Path(row["folder"]).exists()


def test_an_environment_of_verifiers_is_added(tmp_path: Path) -> None:
    added = agent0("env", "add", "verifiers", "sums", "--json", home=tmp_path)
    assert added.code == 0 and len(added.json["tasks"]) == 3, added.err
    asyncio.run(a_reply_is_worth_what_the_rubric_says(tmp_path))


async def a_reply_is_worth_what_the_rubric_says(tmp_path: Path) -> None:
    reached = Programs(tmp_path / "environments")
    stored = json.loads((tmp_path / "environments/sums/tasks/seed-00002.json").read_text())
    assert stored["statement"] == "2 + 1"
    try:
        for text, reward in (("3", 1.0), ("4", 0.0)):
            async with reached.opened(Episode.model_validate(stored["episode"])) as session:
                assert (await session.step("reply", {"text": 3})).refused
                seen = await session.step("reply", {"text": text})
                assert (seen.reward, seen.done) == (reward, True)
        async with reached.opened(Episode.model_validate(stored["episode"])) as session:
            with pytest.raises(EnvironmentFaultError, match="a reward function raised"):
                await session.step("reply", {"text": "raise"})
    finally:
        await reached.close()


def test_a_package_of_openenv_is_served_as_it_is_told(tmp_path: Path) -> None:
    """Its folder is called otherwise than it, its variable says what it serves, and resets are told levels in turn."""
    options = ("--option", "THEIR_FAMILY=countdown", "--option", "level=2", "--option", "level=3")
    added = agent0("env", "add", "openenv", "./their_env", "--count", "6", *options, "--json", home=tmp_path)
    assert added.code == 0 and added.json["environment"] == "their_env", added.err
    family = families()["countdown"]
    stored = [json.loads(path.read_text()) for path in sorted(Path(added.json["folder"], "tasks").iterdir())]
    asked = [family.parse(task["statement"]) for task in stored]
    levels = [task["episode"]["options"]["level"] for task in stored]
    assert len(asked) > 3 and levels == [2 + task["episode"]["seed"] % 2 for task in stored]
    assert levels == [params and family.level(params) for params in asked]
    assert {(task["environment"], task["version"]) for task in stored} == {("openenv-theirs", "3")}
    assert asked[0] is not None
    episode, answer = Episode.model_validate(stored[0]["episode"]), family.solve(asked[0])
    assert asyncio.run(rewards(tmp_path / "environments", episode, (answer, "1"))) == [1.0, 0.0]


async def rewards(folder: Path, episode: Episode, answers: Sequence[str]) -> list[float | None]:
    """At the same time, where the server has room for one."""
    reached = EnvironmentsByKind(folder)

    async def reward(answer: str) -> float | None:
        async with reached.opened(episode) as session:
            return (await session.step("", {"answer": answer})).reward

    try:
        given = await asyncio.gather(*map(reward, answers))
        with pytest.raises(DependencyError, match=r"The environment their_env is not available\. It was lost"):
            async with reached.opened(episode) as session:
                os.kill(reached._programs._process("their_env").pid or 0, signal.SIGKILL)
                await session.step("", {"answer": "1"})
        return given
    finally:
        await reached.close()


HOSTILE = """
import json, os, socket, sys, time
lie = json.loads(sys.argv[2]).get("lie", "")
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[3])
listener.listen()
os.write(1, b".")
tools = [{"name": "act", "description": "Acts.", "parameters": {"type": "object"}}]
while True:
    wire = listener.accept()[0].makefile("rwb")
    for line in wire:
        request = json.loads(line)
        answer = {"name": "n", "version": ""}
        if request["kind"] == "open":
            answer = {"question": "Go.", "tools": tools}
        if lie == "flood" and request["kind"] == "step":
            wire.write(b"x" * (1 << 20))
        if request["kind"] == "step":
            answer = {"text": "x", "reward": 1.0, "done": True, "refused": False}
            if lie == "exit":
                os._exit(3)
            if lie == "hang":
                time.sleep(100)
            answer |= json.loads(lie) if lie.startswith("{") else {}
        reply = json.dumps({"id": request["id"] + (lie == "number"), "answer": answer}).encode() + b"\\n"
        if lie == "text" and request["kind"] == "step":
            reply = b"[" * 100_000 + b"\\n"
        wire.write(reply * (1 + (lie == "two" and request["kind"] == "step")))
        wire.flush()
"""
LIES: dict[str, tuple[str, type[Exception], str]] = {
    "a bool": ('{"reward": true}', EnvironmentFaultError, "reward"),
    "NaN": ('{"reward": NaN}', EnvironmentFaultError, "reward|no answer"),
    "done is a number": ('{"done": 1}', EnvironmentFaultError, "done"),
    "more than asked": ('{"advantage": 1}', EnvironmentFaultError, "advantage"),
    "no JSON": ("text", EnvironmentFaultError, "no answer to step"),
    "two answers": ("two", EnvironmentFaultError, "more than one answer"),
    "a flood": ("flood", EnvironmentFaultError, "no line of at most"),
    "a hang": ("hang", EnvironmentFaultError, "nothing to step"),
    "an end": ("exit", DependencyError, "It was lost"),
}


@pytest.mark.parametrize("name", LIES)
async def test_what_a_process_lies_is_no_step(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lie, error, why = LIES[name]
    inside, folder = tmp_path / "inside", tmp_path / "liar"
    for path, text in {
        inside / "wire.py": "",
        inside / "gym_episodes.py": HOSTILE,
        folder / programs.PROGRAM: json.dumps({"kind": "gym", "name": "x", "options": {"lie": lie}}),
    }.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    await install(folder, (), "")
    monkeypatch.setattr(process, "LARGEST", 1 << 18)
    monkeypatch.setattr(programs, "INSIDE", inside)
    reached = Programs(tmp_path, answer_s=0.5 if lie == "hang" else 20.0)
    episode = Episode(url="gym:liar", seed=0, question="", action="", program=program_digest(folder))
    try:
        with pytest.raises(error, match=why):
            async with reached.opened(episode) as session:
                await session.step("act", {})
    finally:
        await reached.close()


@pytest.mark.parametrize("lie", [{"reward": True}, {"reward": "1"}, {"ended": 1}, {"ended": "no"}], ids=str)
async def test_what_gymnasium_lies_is_no_step(lie: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "line"
    folder.mkdir()
    program = EnvironmentProgram(kind="gym", name="Line-v1", options=lie)
    (folder / programs.PROGRAM).write_text(program.model_dump_json())
    await install(folder, (), "")
    reached = Programs(tmp_path)
    try:
        episode = Episode(url="gym:line", seed=1, question="", action="", program=program_digest(folder))
        async with reached.opened(episode) as session:
            with pytest.raises(EnvironmentFaultError, match=r"an error: TypeError.* is expected"):
                await session.step("act", {"action": 1})
    finally:
        await reached.close()


async def test_another_program_is_not_asked_and_a_killed_one_starts_again(tmp_path: Path) -> None:
    folder = tmp_path / "line"
    folder.mkdir()
    (folder / programs.PROGRAM).write_text(EnvironmentProgram(kind="gym", name="Line-v1").model_dump_json())
    await install(folder, (), "")
    episode = Episode(url="gym:line", seed=1, question="", action="", program=program_digest(folder))
    reached = Programs(tmp_path)

    async def begun() -> str:
        async with reached.opened(episode) as session:
            return session.question

    try:
        assert len(set(await asyncio.gather(*(begun() for _ in range(100))))) == 1, "all at once"
        async with reached.opened(episode) as session:
            await session.step("act", {"action": 1})
            child = reached._process("line")._child
            assert child is not None
            os.kill(child.pid, signal.SIGKILL)
            await child.wait()
            with pytest.raises(DependencyError, match="It was lost"):
                await session.step("act", {"action": 1})
        async with reached.opened(episode) as session:
            assert (await session.step("act", {"action": 1})).text.startswith(".[.]")
        (record,) = folder.glob("packages/lib/*/site-packages/gymnasium-9.dist-info/RECORD")
        record.write_text("gymnasium/__init__.py,sha256=y,1\n")
        with pytest.raises(DependencyError, match="others than when it was added"):
            async with reached.opened(episode):
                pass
    finally:
        await reached.close()
