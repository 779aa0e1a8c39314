"""A benchmark at a server that goes silent, is busy or breaks off: it waits, says for what, goes on by itself, and
names how to go on later; nothing is lost and nothing is scored twice."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent0.assembly.evaluation import server_wait
from agent0.assembly.evaluation.server_wait import ServerWait
from agent0.errors import (
    Agent0Error,
    BudgetExhaustedError,
    DependencyError,
    ModelChangedError,
    NotSentError,
    ServerBusyError,
    TransientError,
)
from tests.openai_server import OpenAIStandIn, serving
from tests.terminal import Said, agent0

ITEMS = 4


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"question": f"What is {n}+{n}?", "answer": f"#### {2 * n}"} for n in range(ITEMS)]
    (tmp_path / "gsm8k_test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_wait, "FIRST_S", 0.001)


def silent(server: OpenAIStandIn, *numbers: int) -> list[int]:
    """Let the requests of items with these numbers, from 0, get no answer; returns those that were asked so far."""
    asked, answer = list[int](), server.answer

    def answered(method: str, path: str, body: dict[str, Any], key: str) -> tuple[int, Any]:
        if "What is" in str(body.get("messages")):
            asked.append(len(asked))
            if asked[-1] in numbers:
                server.hung.wait()
        return answer(method, path, body, key)

    server.answer = answered  # type: ignore[method-assign]
    return asked


def bench(server: OpenAIStandIn, data: Path, *more: str) -> Said:
    settings = {
        "base_url": f"{server.url}/v1",
        "timeout_s": 0.3,
        "silent_s": 0.3,
        "parallel": 2,
        "max_calls": 0,
        "max_turns": 1,
    }
    sets = [word for name, value in settings.items() for word in ("-s", f"run.student.{name}={value}")]
    words = ("gsm8k", "--data", str(data), "--provider", "openai", "--model", "student", *sets, *more)
    return agent0("bench", "run", *words, home=data / "home")


def run_of(said: Said) -> str:
    return re.findall(r"bench-[0-9a-f]{6}", said.err)[0]


@pytest.mark.usefixtures("shared_sandbox")
def test_a_server_that_goes_silent_and_comes_back_loses_nothing(data: Path) -> None:
    with serving(level="text") as server:
        asked = silent(server, 2, 3, 4, 5)
        said = bench(server, data)
        assert said.code == 0, said.err
        run = run_of(said)
        assert f"{run} waits" in said.err and "goes on" in said.err
        assert f"agent0 bench run --resume {run} --data {data}" in said.err
        until = len(asked)
        assert until > 2 * ITEMS and said.out.count(f"%) of {ITEMS}") == 2, "what got no answer was asked again"
        again = agent0("bench", "run", "--resume", run, "--data", str(data), home=data / "home")
        assert (again.code, again.out, len(asked)) == (0, said.out, until), again.err


@pytest.mark.usefixtures("shared_sandbox")
def test_what_gave_up_goes_on_by_the_command_that_it_names(data: Path) -> None:
    with serving(level="text") as server:
        asked = silent(server, *range(3, 99))
        said = bench(server, data, "-s", "run.give_up_after=0.2")
        assert said.code == 5 and "waited" in said.err, said.err
        (command,) = set(re.findall(r"agent0 bench run --resume .*", said.err))
        assert len(asked) < 2 * ITEMS + 3
        asked += range(99)
        further = agent0(*command.split()[1:], home=data / "home")
        assert further.code == 0 and further.out.startswith("Right: "), further.err
        assert further.out.count(f"%) of {ITEMS}") == 2


@pytest.mark.usefixtures("shared_sandbox")
def test_a_server_that_is_not_there_at_first_is_an_error_and_not_waited_for(data: Path) -> None:
    with serving(level="text") as server:
        pass
    said = bench(server, data)
    assert said.code == 5 and "is not available" in said.err and " waits" not in said.err
    assert f"agent0 bench run --resume {run_of(said)}" in said.err


def test_a_file_that_is_not_there_leaves_nothing_to_go_on_with(tmp_path: Path) -> None:
    said = agent0("bench", "run", str(tmp_path / "none.jsonl"), "--profile", "scripted", home=tmp_path)
    assert said.code and "is not available" in said.err and "--resume" not in said.err


def test_going_on_needs_a_run_or_names(tmp_path: Path) -> None:
    def refused(*words: str) -> Said:
        return agent0("bench", "run", *words, "--provider", "scripted", home=tmp_path)

    nothing = refused()
    assert (nothing.code, "No benchmark is named" in nothing.err) == (2, True)
    unknown = refused("--resume", "bench-ffffff")
    assert (unknown.code, "'bench-ffffff'" in unknown.err, "agent0 bench runs" in unknown.err) == (1, True, True)


# --- the wait itself -------------------------------------------------------------------------------------------------

AWAY = DependencyError("The server", "It is silent.")


class Server:
    """Fails as told while ``errors`` last; counts what is under way."""

    def __init__(self, *errors: Agent0Error) -> None:
        self.errors, self.calls, self.most, self.now = list(errors), 0, 0, 0

    async def ask(self) -> int:
        self.calls, self.now = self.calls + 1, self.now + 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            if self.errors:
                raise self.errors.pop(0)
            return self.calls
        finally:
            self.now -= 1


def waiting(said: list[str], **given: Any) -> ServerWait:
    return ServerWait(said.append, "b1", "agent0 bench run --resume b1", **given)


ONCE = TransientError("The sandbox did not run.")


@pytest.mark.parametrize(
    ("errors", "lines"),
    [
        ([], 0),
        ([AWAY], 2),
        ([AWAY] * 5, 2),
        ([ServerBusyError("The server", after_s=0.001)], 2),
        ([ONCE], 0),
        ([ONCE, TransientError("It took too long.")], 2),
        ([ONCE] * 8, 2),
        ([AWAY, ONCE, AWAY], 2),
        ([NotSentError("The server")] * 3, 2),
        ([AWAY, NotSentError("The server"), ServerBusyError("The server"), ONCE], 2),
    ],
)
async def test_what_passes_is_waited_for_and_said_once(errors: list[Agent0Error], lines: int) -> None:
    said: list[str] = []
    server = Server(*errors)
    assert await waiting(said, answered=True).through(server.ask) == len(errors) + 1
    assert len(said) == lines and all(word in line for word, line in zip(("waits", "goes on"), said, strict=False))


@pytest.mark.parametrize(
    "error",
    [BudgetExhaustedError("A budget", "", ""), ModelChangedError("The server"), Agent0Error("Something else.")],
)
async def test_what_does_not_pass_ends_it_at_once(error: Agent0Error) -> None:
    for server in (Server(error), Server(AWAY, error)):
        with pytest.raises(type(error)) as raised:
            await waiting([], answered=True).through(server.ask)
        assert raised.value is error and server.calls <= 2


async def test_what_fails_for_one_item_alone_is_not_the_server() -> None:
    wait, there, bad = waiting([], answered=True), Server(), Server(*[ONCE] * 999)
    failing = asyncio.ensure_future(wait.through(bad.ask))
    async with asyncio.timeout(60):
        while not failing.done():
            await wait.through(there.ask)
            await asyncio.sleep(0.001)
    with pytest.raises(TransientError):
        failing.result()
    assert bad.calls < 20


async def test_who_was_never_reached_is_not_waited_for() -> None:
    with pytest.raises(NotSentError):
        await waiting([], answered=False).through(Server(NotSentError("The server")).ask)
    wait, server = waiting([], answered=False), Server(AWAY, NotSentError("The server"))
    assert await wait.through(server.ask) == 3, "it took the first request, so it is there"
    busy = Server(ServerBusyError("The server"))
    assert await waiting([], answered=False).through(busy.ask) == 2


async def test_one_asks_for_all_while_a_server_is_away() -> None:
    said: list[str] = []
    server = Server(*[AWAY] * 40)
    wait = waiting(said, answered=True)
    found = await asyncio.gather(*(wait.through(server.ask) for _ in range(32)))
    assert len(found) == 32 and server.calls == 72 and len(said) == 2
    assert "b1" in said[0] and "The server" in said[0]


async def test_patience_ends_where_it_is_limited() -> None:
    said: list[str] = []
    server = Server(*[AWAY] * 10_000)
    with pytest.raises(DependencyError, match="is not available") as raised:
        await waiting(said, answered=True, give_up_after_s=0.02).through(server.ask)
    assert "waited" in raised.value.why and len(said) == 1


async def test_all_end_where_the_one_that_asks_gives_up() -> None:
    server = Server(*[AWAY] * 10_000)
    wait = waiting([], answered=True, give_up_after_s=0.02)
    async with asyncio.timeout(60):
        ends = await asyncio.gather(*(wait.through(server.ask) for _ in range(8)), return_exceptions=True)
    assert all(isinstance(end, DependencyError) for end in ends)
