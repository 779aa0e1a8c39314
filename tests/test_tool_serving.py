"""A server of tool calls that nothing may end."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.assembly.tooling.tool_calls import ToolRequest, open_bench
from agent0.assembly.tooling.workspaces import content, find
from agent0.cli.tools import jsonl_server
from agent0.cli.tools.jsonl_server import LONGEST, LineSplitter, serve
from agent0.events.values import ToolState
from tests.test_tool_cli import KEYS, held

LIGHT = {"sandbox__workers": "1", "run__policy__modules": "[]"}
"""One fork server without packages starts in a fraction of a second."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


STEPS = [
    {"tool": "shell", "args": {"command": "echo a; echo b >&2; echo c > c"}},
    {"tool": "python", "args": {"code": "print(open('c').read())"}},
]
CALLS: list[tuple[Any, dict[str, Any]]] = [
    ({"tool": "python", "code": "print(6 * 7)"}, {"state": "ok", "stdout": "42\n", "rc": 0}),
    ({"tool": "shell", "code": "echo hi; exit 4", "id": "a"}, {"state": "error", "rc": 4, "id": "a"}),
    ({"tool": "python", "code": "while True: pass", "wall": 0.3, "id": 7}, {"state": "timeout", "id": 7}),
    ({"tool": "python", "code": "x = bytearray(400 << 20)", "mem": 128}, {"state": "memory"}),
    ({"tool": "python", "args": {"code": "print(1)"}, "id": None}, {"state": "ok", "output": "1", "id": None}),
    ({"tool": "sympy", "args": {"nonsense": 1}}, {"state": "error", "rc": None}),
    ({"tool": "python", "code": "print(open('a/b').read())", "files": {"a/b": "in"}}, {"stdout": "in\n"}),
    ({"tool": "python", "code": "open('c', 'w').write('x')", "keep": True}, {"files": {"c": 1}}),
    ({"tool": "python", "code": "1", "files": {"../out": "x", "a": ""}}, {"state": "refused", "files": {}}),
    ({"tool": "read_file", "args": {"path": "a"}, "files": {"a": "", "a/b": ""}}, {"state": "refused", "files": {}}),
    ({"tool": "python", "code": "a\0b"}, {"state": "refused"}),
    ({"tool": "python", "code": "\udcff\ud800 = 1"}, {"state": "error"}),
    ({"tool": "python", "code": "#" * (2 << 20)}, {"state": "refused"}),
    ({"tool": "pyton", "code": "1", "id": [1]}, {"state": "error", "id": [1]}),
    ({"tool": "sympy", "code": "1"}, {"state": "error"}),
    ({"tool": "plan", "args": {"steps": STEPS}}, {"stdout": "a\nc\n\n", "stderr": "b\n", "files": {"c": 2}}),
    ({"tool": "python"}, {"state": "error"}),
    ({"tool": "python", "code": "1", "args": {}}, {"state": "error"}),
    ({"tool": "python", "code": 1}, {"state": "error"}),
    ({"tool": ["python"], "code": "1"}, {"state": "error", "tool": ""}),
    ({"tool": "python", "code": "1", "wall": -1}, {"state": "error"}),
    ({"tool": "python", "code": "1", "wall": float("nan")}, {"state": "error"}),
    ({"tool": "python", "code": "1", "wall": True}, {"state": "error"}),
    ({"tool": "python", "code": "1", "mem": 1.5}, {"state": "error"}),
    ({"tool": "python", "code": "1", "files": {"a": 1}}, {"state": "error"}),
    ({"tool": "python", "code": "1", "from": "nonsense"}, {"state": "error"}),
    ({"tool": "python", "code": "1", "shell": "x"}, {"state": "error"}),
    (b"", {"state": "error"}),
    (b"nonsense", {"state": "error"}),
    (b"[]", {"state": "error"}),
    (b"\xff\xfe\x00", {"state": "error"}),
    (b"[" * 200_000, {"state": "error"}),
    (b"1" * 10_000, {"state": "error"}),
    (b'{"tool": "python", "code": "' + b"x" * LONGEST + b'"}', {"state": "error"}),
    ({"tool": "python", "code": "print('last')"}, {"state": "ok", "stdout": "last\n"}),
]


async def pieces(data: bytes, size: int = 1 << 16) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def test_every_line_is_answered_in_order_whatever_it_says(home: Path) -> None:
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one, _ in CALLS]
    said: list[str] = []
    async with open_bench(held(home, sandbox__workers="1")) as bench:
        await serve(held(home), bench, pieces(b"\n".join(lines)), said.append)  # the last line has no end
    answers = [json.loads(line) for line in said]
    assert all(line.endswith("\n") and line.isascii() and line.count("\n") == 1 for line in said)
    assert len(answers) == len(CALLS)
    for (asked, wanted), answer in zip(CALLS, answers, strict=True):
        assert {name: answer.get(name) for name in wanted} == wanted, (str(asked)[:200], answer)
        assert ("id" in answer) == (isinstance(asked, dict) and "id" in asked)
        assert answer["state"] in set(ToolState)
        assert set(answer) - {"id", "output"} == KEYS
        assert answer["reason"] or answer["state"] in ("ok", "error")
        measured = answer["tier"] and answer["backend"] and min(answer["cpu_s"], answer["peak_mem_mib"]) > 0
        assert measured or answer["state"] != "ok"
    kept = answers[7]["manifest"]
    assert kept and all(answer["manifest"] is None for n, answer in enumerate(answers) if n != 7)
    assert content(held(home), find(held(home), kept)) == {"c": b"x"}


@pytest.mark.parametrize(("beyond", "held_bytes", "most"), [(2, 1 << 20, 7), (1000, 110, 3)])
async def test_what_waits_to_be_told_is_bounded(
    home: Path, monkeypatch: pytest.MonkeyPatch, beyond: int, held_bytes: int, most: int
) -> None:
    """By lines (one is being told, one is waiting for its place), and by bytes: a line has 33."""

    class Counting:
        room, now, most = 3, 0, 0

        async def answer(self, asked: ToolRequest) -> dict[str, Any]:
            self.now += 1
            self.most = max(self.most, self.now)
            for _ in range(int(asked.code or 0)):
                await asyncio.sleep(0)
            self.now -= 1
            return {"code": asked.code}

    monkeypatch.setattr(jsonl_server, "BEYOND", beyond)
    monkeypatch.setattr(jsonl_server, "HELD", held_bytes)
    bench: Any = Counting()
    codes = [str(n * 7 % 50) for n in range(60)]
    said: list[str] = []
    data = b"".join(json.dumps({"tool": "python", "code": code}).encode() + b"\n" for code in codes)
    await serve(held(home), bench, pieces(data, 100), said.append)
    assert [json.loads(line)["code"] for line in said] == codes
    assert 1 < bench.most <= most


async def test_lines_beyond_the_queue_are_told_busy_and_the_next_one_is_served(home: Path) -> None:
    lines: list[dict[str, Any]] = [{"tool": "python", "code": "print(1)", "id": n} for n in range(5)]
    lines.append({"tool": "python", "args": {"code": "print(1)"}, "id": 5})
    said: list[dict[str, Any]] = []
    answered = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        yield b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        await answered.wait()
        yield json.dumps({**lines[0], "id": 6}).encode()

    def write(line: str) -> None:
        said.append(json.loads(line))
        if len(said) == len(lines):
            loop.call_soon_threadsafe(answered.set)

    loop = asyncio.get_running_loop()
    small = held(home, **LIGHT, sandbox__calls="1", sandbox__queue="2")
    async with open_bench(small) as bench:
        await serve(small, bench, source(), write)
    assert [one["id"] for one in said] == list(range(7))
    assert [one["state"] for one in said] == ["ok"] * 3 + ["busy"] * 3 + ["ok"]
    assert all("2 calls are waiting already (sandbox.queue)" in one["reason"] for one in said[3:6])
    assert all(set(one) - {"output"} == KEYS | {"id"} for one in said)


async def test_a_defect_is_an_answer_too(
    home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT0_HOME", str(home))

    class Broken:
        room = 2

        async def answer(self, asked: ToolRequest) -> dict[str, Any]:
            raise KeyError("what nobody thought of")

    bench: Any = Broken()
    said: list[str] = []
    line = b'{"tool": "python", "code": "1", "id": 1}\n'
    await serve(held(home), bench, pieces(line * 2), said.append)
    answers = [json.loads(line) for line in said]
    assert [(answer["id"], answer["state"]) for answer in answers] == [(1, "sandbox_error")] * 2
    assert all("defect" in answer["reason"] for answer in answers)
    assert "nobody thought of" in capfd.readouterr().err


async def test_a_reader_that_went_away_ends_the_server(home: Path) -> None:
    class Quick:
        room = 2

        async def answer(self, asked: ToolRequest) -> dict[str, Any]:
            return {}

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b'{"tool": "python", "code": "1"}\n'
            await asyncio.sleep(0)

    def gone(_: str) -> None:
        raise BrokenPipeError

    bench: Any = Quick()
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(serve(held(home), bench, endless(), gone), 60)


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 50))
def test_lines_do_not_depend_on_how_they_are_cut(parts: list[bytes], longest: int) -> None:
    data = b"\n".join(parts)
    cutter, got = LineSplitter(longest), list[bytes | None]()
    for part in parts[:-1]:
        got += [*cutter.feed(part), *cutter.feed(b"\n")]
    got += [*cutter.feed(parts[-1] if parts else b""), *cutter.end()]
    whole = LineSplitter(longest)
    assert got == [*whole.feed(data), *whole.end()]
    expected = data.split(b"\n") if data else []
    if expected and not expected[-1]:
        expected.pop()
    assert got == [line if len(line) <= longest else None for line in expected]


@pytest.fixture
def server(home: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "AGENT0_HOME": str(home)}
    command = [sys.executable, "-m", "agent0", "tool", "serve", "--json-lines", "--set", "sandbox.workers=1"]
    command += ["--set", "run.policy.modules=[]"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[1],
    ) as process:
        yield process
        process.kill()


@pytest.mark.slow  # part of make crash
def test_one_running_instance_talks_line_by_line(server: "subprocess.Popen[str]") -> None:
    assert server.stdin and server.stdout
    for n in range(3):  # each is asked only once the one before was answered
        server.stdin.write(json.dumps({"tool": "shell", "code": f"echo {n}", "id": n}) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        assert (answer["id"], answer["stdout"], answer["state"]) == (n, f"{n}\n", "ok")
    server.stdin.close()
    assert server.stdout.read() == ""
    assert server.wait(30) == 0


def test_a_server_that_is_told_to_stop_stops_at_once(server: "subprocess.Popen[str]") -> None:
    assert server.stdin and server.stdout
    server.stdin.write('{"tool": "shell", "code": "echo 1"}\n')
    server.stdin.flush()
    assert json.loads(server.stdout.readline())["state"] == "ok"
    server.send_signal(signal.SIGTERM)  # while it waits for a line
    assert server.wait(30) == 143
