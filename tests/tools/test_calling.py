"""Tools through the one door: what the model's mistakes get, what is run once, and what an attempt may use up."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent0.errors import SandboxUnavailableError
from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.infra.sandbox import Refusing
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult
from agent0.settings import PolicyConfig
from agent0.tools import tool, tools
from agent0.tools.cache import ToolCache
from agent0.tools.calling import call_tool
from agent0.tools.results import answer, shorten
from agent0.tools.workspace import Workspace

DONE = SandboxResult(ToolState.OK, 0, "42\n", "", 0.1, 0.1, 50.0, "watchdog", "counting")
NAMES = ("python", "shell", "sympy", "write_file")


class Counting:
    """A sandbox that counts calls and gives one answer, after letting others run."""

    def __init__(self, result: SandboxResult = DONE) -> None:
        self.calls: list[SandboxCall] = []
        self.result = result

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        await asyncio.sleep(0)
        return self.result

    async def close(self) -> None:
        return None


def work(
    sandbox: Counting, cache: ToolCache | None = None, allowed: Sequence[str] = NAMES, **more: object
) -> Workspace:
    return Workspace(sandbox, allowed, cache=cache, **more)


async def python(code: str, place: Workspace) -> ToolResult:
    return await call_tool(ToolCall(name="python", arguments={"code": code}), place)


async def test_what_could_not_be_parsed_is_told_and_not_run() -> None:
    sandbox = Counting()
    result = await call_tool(ToolCall(name="", raw="{", error="no closing brace"), work(sandbox))
    assert (result.state, sandbox.calls) == (ToolState.ERROR, [])
    assert "no closing brace" in result.output


@pytest.mark.parametrize(("name", "near"), [("pyton", "python"), ("sympi", "sympy"), ("zzz", "")])
async def test_an_unknown_tool_gets_the_nearest_name(name: str, near: str) -> None:
    result = await call_tool(ToolCall(name=name), work(Counting()))
    assert result.state is ToolState.ERROR
    assert ("Did you mean" in result.output) == bool(near)
    assert near in result.output
    assert f"The tools are: {', '.join(NAMES)}." in result.output


async def test_a_tool_that_is_not_allowed_does_not_exist() -> None:
    sandbox = Counting()
    call = ToolCall(name="shell", arguments={"command": "ls"})
    result = await call_tool(call, work(sandbox, allowed=["python"]))
    assert (result.state, sandbox.calls) == (ToolState.ERROR, [])
    assert "The tools are: python." in result.output


async def test_no_sandbox_is_nobodys_mistake() -> None:
    with pytest.raises(SandboxUnavailableError):
        await python("1", Workspace(Refusing("away."), NAMES, cache=ToolCache()))


async def test_equal_calls_are_run_once() -> None:
    sandbox, cache = Counting(), ToolCache()
    together = await asyncio.gather(*(python("print(42)", work(sandbox, cache)) for _ in range(5)))
    later = await python("print(42)", work(sandbox, cache))
    assert len(sandbox.calls) == 1
    assert [r.cached for r in together] == [False, True, True, True, True]
    assert later == together[0].model_copy(update={"cached": True})
    await python("print(43)", work(sandbox, cache))
    assert len(sandbox.calls) == 2


@pytest.mark.parametrize("change", [{"files": {"a": b"1"}}, {"policy": PolicyConfig(modules=())}, {"seconds": 3.0}])
async def test_another_folder_policy_or_short_limit_is_another_call(change: dict[str, object]) -> None:
    sandbox, cache = Counting(), ToolCache()
    await python("1", work(sandbox, cache))
    await python("1", work(sandbox, cache, **change))
    assert len(sandbox.calls) == 2


async def test_a_cached_call_leaves_the_same_folder_in_each_attempt() -> None:
    sandbox, cache = Counting(replace(DONE, files={"a": b"1"})), ToolCache()
    one, two = work(sandbox, cache), work(sandbox, cache)
    await asyncio.gather(python("1", one), python("1", two))
    three = work(sandbox, cache)
    await python("1", three)
    assert len(sandbox.calls) == 1
    assert one.files == two.files == three.files == {"a": b"1"}


async def test_what_is_not_pure_or_hit_a_limit_is_run_again() -> None:
    cache, shell = ToolCache(), Counting()
    slow = Counting(replace(DONE, state=ToolState.TIMEOUT, rc=None))
    for _ in range(2):
        await call_tool(ToolCall(name="shell", arguments={"command": "date"}), work(shell, cache))
        await python("1", work(slow, cache))
    assert (len(shell.calls), len(slow.calls)) == (2, 2)


async def test_the_cache_is_bounded_and_forgets_the_oldest() -> None:
    sandbox, cache = Counting(), ToolCache(size=2)
    for code in ["1", "2", "1", "3", "1", "2"]:
        await python(code, work(sandbox, cache))
    assert [c.code for c in sandbox.calls] == ["1", "2", "3", "2"]


async def test_the_cache_holds_no_more_than_its_room() -> None:
    sandbox, cache = Counting(replace(DONE, files={"a": bytes(100)})), ToolCache(room=250)
    for code in ["1", "2", "3", "2", "3", "1"]:
        await python(code, work(sandbox, cache))
    assert [c.code for c in sandbox.calls] == ["1", "2", "3", "1"]


async def test_a_cancelled_caller_does_not_take_the_others_result() -> None:
    sandbox, cache = Counting(), ToolCache()
    first, second = (asyncio.create_task(python("1", work(sandbox, cache))) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).output == "42"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_failure_reaches_every_caller_and_is_not_kept() -> None:
    cache = ToolCache()
    refusing = (python("1", Workspace(Refusing("away."), NAMES, cache=cache)) for _ in range(3))
    failures = await asyncio.gather(*refusing, return_exceptions=True)
    assert [type(f) for f in failures] == [SandboxUnavailableError] * 3
    assert (await python("1", work(Counting(), cache))).output == "42"


async def test_tool_time_is_used_up_and_then_nothing_is_run() -> None:
    sandbox = Counting(replace(DONE, wall_s=2.0))
    place = work(sandbox, seconds=5.0)
    states = [(await python(str(n), place)).state for n in range(5)]
    assert states == [ToolState.OK] * 3 + [ToolState.REFUSED] * 2
    assert [call.wall_s for call in sandbox.calls] == [5.0, 3.0, 1.0]
    refused = place.journal[-1].result
    assert "tool time is used up" in refused.output and refused.reason


async def test_output_is_used_up_but_its_beginning_can_be_read() -> None:
    place = work(Counting(replace(DONE, stdout="x" * 3000)), characters=4000)
    lengths = [len((await python(str(n), place)).output) for n in range(4)]
    assert lengths[0] == 3000
    assert all(200 <= length < 1100 for length in lengths[1:])


async def test_the_journal_holds_every_call_with_the_folder_after_it() -> None:
    place = work(Counting())
    await call_tool(ToolCall(name="write_file", arguments={"path": "a", "content": "1"}), place)
    await call_tool(ToolCall(name="nonsense"), place)
    await call_tool(ToolCall(name="write_file", arguments={"path": "b", "content": "2"}), place)
    assert [dict(done.files) for done in place.journal] == [{"a": b"1"}, {"a": b"1"}, {"a": b"1", "b": b"2"}]
    assert [done.result.files for done in place.journal] == [1, 1, 2]
    assert place.start == {}


async def test_a_call_that_was_not_run_changes_no_folder() -> None:
    for state in (ToolState.REFUSED, ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR):
        place = work(Counting(replace(DONE, state=state)), files={"a": b"1"})
        await python("1", place)
        assert place.files == {"a": b"1"}


async def test_the_policy_is_the_root_of_every_call() -> None:
    sandbox = Counting(replace(DONE, files={"a.py": b""}))
    programs = ("bash", "cat", "ruff")
    policy = PolicyConfig(executables=programs, modules=("numpy",))
    place = work(sandbox, allowed=sorted(tools()), policy=policy, files={"a.py": b""})
    for name, arguments in [("python", {"code": "1"}), ("shell", {"command": "cat"}), ("lint", {}), ("run_tests", {})]:
        await call_tool(ToolCall(name=name, arguments=arguments), place)
    assert [call.root for call in sandbox.calls[:3]] == [Root(programs, ("numpy",))] * 3
    assert sandbox.calls[3].root.executables == programs
    assert set(sandbox.calls[3].root.modules) > {"numpy", "pytest"}


@given(st.text(max_size=200))
def test_output_is_clean(text: str) -> None:
    read = answer(replace(DONE, stdout=f"\x1b[2J\x1b]0;title\x07{text}\x00"))
    assert not [c for c in read.output if ord(c) < 32 and c not in "\t\n"]


@given(st.text(alphabet="ab\n", max_size=300), st.integers(8, 64))
def test_long_output_is_cut_and_says_so(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert short == text if len(text) <= limit else f"[{len(text) - limit} characters left out]" in short


def test_a_tool_needs_words_and_types() -> None:
    async def wordless(work: Workspace, code: str) -> ToolResult: ...

    async def untyped(work: Workspace, code) -> ToolResult:
        """Has words."""

    known = list(tools())
    for broken in (wordless, untyped):
        with pytest.raises(TypeError):
            tool(pure=True)(broken)
    assert list(tools()) == known


def test_the_host_never_imports_what_parses() -> None:
    """No text of a model reaches sympy, pytest or sqlite in this process: the tools do not even load them."""
    code = "import sys, agent0.tools as t; t.tools(); print({'sympy', 'pytest', 'sqlite3', 'ruff'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout == "set()\n"
