"""What no tool may let happen: each hostile call ends in a state that its tool documents, within its limits, with the
next call unaffected and nothing of the host seen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent0.events.values import ToolCall, ToolState
from agent0.infra.sandbox import Bubblewrap
from agent0.tools import tools
from agent0.tools.calling import call_tool
from agent0.tools.results import LIMIT
from agent0.tools.workspace import Workspace
from tests.tools.hostile import TABLE, Hostile

CANARY = "canary-4711"
LIMITS = (ToolState.TIMEOUT, ToolState.MEMORY, ToolState.OUTPUT_FLOOD)
"""Where the sandbox had to end a call, the next one is served as ever. Attacks on it are those of ``tests/sandbox``."""


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AGENT0_TEST_SECRET", CANARY)
    yield


def test_every_tool_has_a_hostile_row() -> None:
    assert {row.tool for row in TABLE} == set(tools())


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("row", TABLE, ids=[f"{n}-{row.tool}" for n, row in enumerate(TABLE)])
async def test_a_hostile_call_ends_as_documented(sandbox: Bubblewrap, row: Hostile) -> None:
    here = sorted(Path().iterdir())
    work = Workspace(sandbox, tuple(tools()), seconds=row.seconds, files=row.files)
    result = await call_tool(ToolCall(name=row.tool, arguments=dict(row.arguments)), work)
    assert result.state in row.states, result
    assert result.state in tools()[row.tool].states
    assert row.says in result.output
    assert CANARY not in result.output
    assert len(result.output) <= 2 * LIMIT + 1000
    assert result.output.encode() is not None
    assert not [c for c in result.output if ord(c) < 32 and c not in "\t\n"]
    if row.kept is not None or row.tool not in ("python", "shell"):
        assert sorted(work.files) == sorted(row.files if row.kept is None else row.kept)
    assert sorted(Path().iterdir()) == here
    if result.state in LIMITS:
        again = ToolCall(name="python", arguments={"code": "print(6 * 7)"})
        after = await call_tool(again, Workspace(sandbox, ["python"]))
        assert (after.state, after.output) == (ToolState.OK, "42")
