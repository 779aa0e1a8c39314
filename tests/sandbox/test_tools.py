"""Tools through the one door: what the model is told, what its mistakes get, and what each tool says."""

import asyncio
import os
import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent0.errors import SandboxUnavailableError
from agent0.ports import SandboxCall, SandboxResult
from agent0.tools import call_tool, tool, tools
from agent0.tools.answer import LIMIT, answer, shorten
from agent0.tools.cache import ToolCache
from events.values import ToolCall, ToolResult, ToolState
from infra.sandbox import Bubblewrap, Refusing

pytestmark = pytest.mark.asyncio(loop_scope="session")
NAMES = ("python", "run_tests", "shell", "sympy")
DONE = SandboxResult(ToolState.OK, 0, "42\n", "", 0.1, 0.1, 50.0, "watchdog", "counting")


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


async def _do(sandbox: Bubblewrap, name: str, **arguments: object) -> ToolResult:
    return await call_tool(ToolCall(name=name, arguments=arguments), sandbox, NAMES)


async def test_every_tool_tells_the_model_what_it_needs() -> None:
    assert tuple(tools()) == NAMES
    for name, entry in tools().items():
        spec = entry.spec
        assert (spec.name, spec.parameters["type"]) == (name, "object")
        assert len(spec.description) > 40
        assert set(spec.parameters["required"]) <= set(spec.parameters["properties"])
        assert "sandbox" not in spec.parameters["properties"]


async def test_what_could_not_be_parsed_is_told_and_not_run() -> None:
    sandbox = Counting()
    result = await call_tool(ToolCall(name="", raw="{", error="no closing brace"), sandbox, NAMES)
    assert (result.state, sandbox.calls) == (ToolState.ERROR, [])
    assert "no closing brace" in result.output


@pytest.mark.parametrize(("name", "near"), [("pyton", "python"), ("sympi", "sympy"), ("zzz", "")])
async def test_an_unknown_tool_gets_the_nearest_name(name: str, near: str) -> None:
    result = await call_tool(ToolCall(name=name), Counting(), NAMES)
    assert result.state is ToolState.ERROR
    assert ("Did you mean" in result.output) == bool(near)
    assert near in result.output
    assert "python, run_tests, shell, sympy" in result.output


async def test_a_tool_that_is_not_allowed_does_not_exist() -> None:
    sandbox = Counting()
    result = await call_tool(ToolCall(name="shell", arguments={"command": "ls"}), sandbox, ("python",))
    assert (result.state, sandbox.calls) == (ToolState.ERROR, [])
    assert "The tools are: python." in result.output


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(NAMES),
    arguments=st.dictionaries(st.sampled_from(("code", "command", "solution", "tests", "operation")) | st.text(), JSON),
)
async def test_any_arguments_are_run_or_explained(name: str, arguments: dict[str, object]) -> None:
    sandbox = Counting()
    fits = set(arguments) == set(tools()[name].spec.parameters["required"]) and all(
        isinstance(value, str) for value in arguments.values()
    )
    result = await call_tool(ToolCall(name=name, arguments=arguments), sandbox, NAMES)
    assert len(sandbox.calls) == (1 if fits and name != "sympy" else 0)
    if not sandbox.calls:
        assert result.state is ToolState.ERROR
        assert result.output.startswith(f"{name} was called with wrong arguments.")
        assert len(result.output) < 1500


async def test_no_sandbox_is_nobodys_mistake() -> None:
    with pytest.raises(SandboxUnavailableError):
        await call_tool(ToolCall(name="python", arguments={"code": "1"}), Refusing("away."), NAMES, ToolCache())


async def test_equal_calls_are_run_once() -> None:
    sandbox, cache = Counting(), ToolCache()
    call = ToolCall(name="python", arguments={"code": "print(42)"})
    together = await asyncio.gather(*(call_tool(call, sandbox, NAMES, cache) for _ in range(5)))
    later = await call_tool(call, sandbox, NAMES, cache)
    assert len(sandbox.calls) == 1
    assert [r.cached for r in together] == [False, True, True, True, True]
    assert later == replace_cached(together[0])
    await call_tool(ToolCall(name="python", arguments={"code": "print(43)"}), sandbox, NAMES, cache)
    assert len(sandbox.calls) == 2


def replace_cached(result: ToolResult) -> ToolResult:
    return result.model_copy(update={"cached": True})


async def test_what_is_not_pure_or_hit_a_limit_is_run_again() -> None:
    cache, shell = ToolCache(), Counting()
    slow = Counting(replace(DONE, state=ToolState.TIMEOUT, rc=None))
    for _ in range(2):
        await call_tool(ToolCall(name="shell", arguments={"command": "date"}), shell, NAMES, cache)
        await call_tool(ToolCall(name="python", arguments={"code": "1"}), slow, NAMES, cache)
    assert (len(shell.calls), len(slow.calls)) == (2, 2)


async def test_the_cache_is_bounded_and_forgets_the_oldest() -> None:
    sandbox, cache = Counting(), ToolCache(size=2)
    for code in ["1", "2", "1", "3", "1", "2"]:
        await call_tool(ToolCall(name="python", arguments={"code": code}), sandbox, NAMES, cache)
    assert [c.code for c in sandbox.calls] == ["1", "2", "3", "2"]


async def test_a_cancelled_caller_does_not_take_the_others_result() -> None:
    sandbox, cache = Counting(), ToolCache()
    call = ToolCall(name="python", arguments={"code": "1"})
    first, second = (asyncio.create_task(call_tool(call, sandbox, NAMES, cache)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).output == "42"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_failure_reaches_every_caller_and_is_not_kept() -> None:
    cache = ToolCache()
    call = ToolCall(name="python", arguments={"code": "1"})
    refusing = (call_tool(call, Refusing("away."), NAMES, cache) for _ in range(3))
    failures = await asyncio.gather(*refusing, return_exceptions=True)
    assert [type(f) for f in failures] == [SandboxUnavailableError] * 3
    assert (await call_tool(call, Counting(), NAMES, cache)).output == "42"


@given(st.text(max_size=200))
async def test_output_is_clean(text: str) -> None:
    read = answer(replace(DONE, stdout=f"\x1b[2J\x1b]0;title\x07{text}\x00"))
    assert not [c for c in read.output if ord(c) < 32 and c not in "\t\n"]


@given(st.text(alphabet="ab\n", max_size=300), st.integers(8, 64))
async def test_long_output_is_cut_and_says_so(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert short == text if len(text) <= limit else f"[{len(text) - limit} characters left out]" in short


@pytest.mark.parametrize(
    ("code", "state", "output"),
    [
        ("print(6 * 7)", ToolState.OK, "42"),
        ("print(1); 1 / 0", ToolState.ERROR, "ZeroDivisionError: division by zero"),
        ("def f(", ToolState.ERROR, "SyntaxError"),
        ("print('x' * 20000)", ToolState.OK, "characters left out"),
        ("b = []\nwhile True: b.append(bytearray(9 << 20))", ToolState.MEMORY, "more memory than its limit"),
        ("while True: print('y' * 65536)", ToolState.OUTPUT_FLOOD, "printed far too much"),
    ],
    ids=["answer", "exception", "syntax", "long", "memory", "flood"],
)
async def test_python(sandbox: Bubblewrap, code: str, state: ToolState, output: str) -> None:
    result = await _do(sandbox, "python", code=code)
    assert result.state is state
    assert output in result.output
    assert len(result.output) < 2 * LIMIT + 200


async def test_python_sees_no_secret(sandbox: Bubblewrap) -> None:
    os.environ["AGENT0_TEST_CANARY"] = "canary-77"
    try:
        code = "import os\nprint(dict(os.environ))\nfor p in '/proc/1/environ', '/proc/self/environ':\n"
        code += "  try: print(open(p).read())\n  except OSError as e: print(e)\n"
        result = await _do(sandbox, "python", code=code)
    finally:
        del os.environ["AGENT0_TEST_CANARY"]
    assert result.state is ToolState.OK
    assert "canary" not in result.output.lower()


async def test_shell(sandbox: Bubblewrap) -> None:
    result = await _do(sandbox, "shell", command="printf '3\\n1\\n2\\n' | sort | tr '\\n' ' '; bc <<< 6*7; nosuch")
    assert result.state is ToolState.ERROR
    assert result.output.startswith("1 2 3 42")
    assert "nosuch: command not found" in result.output


@pytest.mark.parametrize(
    ("operation", "expression", "more", "output"),
    [
        ("solve", "2*x + 3 = 11", {}, "4"),
        ("solve", "x^2 = 9", {}, "-3, 3"),
        ("solve", "2(x - 3) = 5x", {}, "-2"),
        ("solve", "x + y = 3", {"variable": "y"}, "3 - x"),
        ("solve", "x = x + 1", {}, "no solution"),
        ("solve", "x = x", {}, "every value"),
        ("simplify", "(x^2 - 1)/(x - 1)", {}, "x + 1"),
        ("integrate", "x*sin(x)", {}, "-x*cos(x) + sin(x)"),
        ("diff", "3x^2", {}, "6*x"),
        ("factor", "x^2 - 1", {}, "(x - 1)*(x + 1)"),
        ("factor", "84", {}, "2**2*3*7"),
        ("expand", "(x + 1)^2", {}, "x**2 + 2*x + 1"),
        ("equal", "(x + 1)^2", {"other": "x^2 + 2x + 1"}, "True"),
        ("equal", "2 = 3", {}, "False"),
        ("evaluate", "2/4 + 1/3", {}, "5/6"),
    ],
)
async def test_sympy(sandbox: Bubblewrap, operation: str, expression: str, more: dict[str, str], output: str) -> None:
    result = await _do(sandbox, "sympy", operation=operation, expression=expression, **more)
    assert (result.state, result.output) == (ToolState.OK, output)


@pytest.mark.parametrize(
    ("operation", "expression", "output"),
    [
        ("solve", "x + y = 3", "name one variable: the expression has x, y"),
        ("evaluate", "2 +", "cannot be read"),
        ("evaluate", "1/0", "division by zero"),
        ("evaluate", "().__class__", "not a mathematical expression"),
        ("evaluate", "x.func", "not a mathematical expression"),
        ("simplify", 'open("x")', "not a mathematical expression"),
        ("evaluate", "(" * 30 + "1" + ")" * 30, "too large"),
        ("evaluate", "9" * 50, "too large"),
        ("dance", "x", "wrong arguments"),
    ],
)
async def test_sympy_explains(sandbox: Bubblewrap, operation: str, expression: str, output: str) -> None:
    result = await _do(sandbox, "sympy", operation=operation, expression=expression)
    assert result.state is not ToolState.OK
    assert output in result.output


@pytest.mark.parametrize(
    ("solution", "tests", "output"),
    [
        ("def f(x): return 2 * x", "assert f(2) == 4\nassert f(3) == 6", "2 passed, 0 failed"),
        ("def f(x): return 2 * x", "assert f(2) == 4\nassert f(3) == 7", "1 passed, 1 failed"),
        ("def f(x): return 2 * x", "def test_two():\n  assert f(2) == 4", "1 passed, 0 failed"),
        ("def f(): return g()", "from solution import f\nassert f()", "NameError"),
        ("x =", "assert 1", "SyntaxError"),
        ("x = 1", "assert", "invalid syntax"),
        ("x = 1", "y = 2", "neither an assert nor a test_ function"),
        ("raise SystemExit(0)", "assert 1", "0 passed, 1 failed"),
        ("import os; os._exit(0)", "assert 1", "it ended before its tests"),
    ],
)
async def test_run_tests(sandbox: Bubblewrap, solution: str, tests: str, output: str) -> None:
    result = await _do(sandbox, "run_tests", solution=solution, tests=tests)
    assert output in result.output
    assert (result.state is ToolState.OK) == ("0 failed" in output)


async def test_a_tool_needs_words_and_types() -> None:
    async def wordless(sandbox: object, code: str) -> ToolResult: ...

    async def untyped(sandbox: object, code) -> ToolResult:
        """Has words."""

    for broken in (wordless, untyped):
        with pytest.raises(TypeError):
            tool(pure=True)(broken)
    assert tuple(tools()) == NAMES


async def test_the_host_never_imports_what_parses() -> None:
    """No text of a model reaches sympy in this process: the tools do not even load it."""
    import subprocess

    code = "import sys, agent0.tools as t; t.tools(); print('sympy' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout == "False\n"
