"""The tools that run or read code, in the real sandbox: python, shell, sympy, lint, analyze_code."""

import os

import pytest

from agent0.events.values import ToolCall, ToolResult, ToolState
from agent0.infra.sandbox import Bubblewrap
from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.settings import PolicyConfig
from agent0.tools import tools
from agent0.tools.calling import call_tool
from agent0.tools.results import LIMIT
from agent0.tools.workspace import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def _do(place: Bubblewrap | Workspace, name: str, **arguments: object) -> ToolResult:
    work = place if isinstance(place, Workspace) else Workspace(place, sorted(tools()))
    return await call_tool(ToolCall(name=name, arguments=arguments), work)


@pytest.mark.parametrize(
    ("code", "state", "output"),
    [
        ("print(6 * 7)", ToolState.OK, "42"),
        ("print(1); 1 / 0", ToolState.ERROR, "ZeroDivisionError: division by zero"),
        ("def f(", ToolState.ERROR, "SyntaxError"),
        ("print('x' * 20000)", ToolState.OK, "characters left out"),
        ("b = []\nwhile True: b.append(bytearray(9 << 20))", ToolState.MEMORY, "more memory than its limit"),
        ("while True: print('y' * 65536)", ToolState.OUTPUT_FLOOD, "printed far too much"),
        ("import os\nos.kill(os.getpid(), 11)", ToolState.ERROR, "ended by signal 11"),
        ("import sympy, numpy\nprint(sympy.sqrt(8), numpy.arange(3).sum())", ToolState.OK, "2*sqrt(2) 3"),
    ],
    ids=["answer", "exception", "syntax", "long", "memory", "flood", "signal", "ready"],
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


async def test_files_are_kept_from_tool_to_tool_and_variables_are_not(sandbox: Bubblewrap) -> None:
    work = Workspace(sandbox, sorted(tools()))
    await _do(work, "python", code="x = 1\nimport os\nos.mkdir('d')\nopen('d/a.txt', 'w').write('one\\n')")
    await _do(work, "shell", command="echo two >> d/a.txt; y=1; export y")
    assert (await _do(work, "read_file", path="d/a.txt")).output == "one\ntwo"
    assert (await _do(work, "shell", command='wc -l < d/a.txt; echo "[$y]"')).output == "2\n[]"
    assert "NameError" in (await _do(work, "python", code="print(x)")).output
    failed = await _do(work, "python", code="open('b', 'w').write('kept too')\n1 / 0")
    assert (failed.state, failed.files) == (ToolState.ERROR, 2)
    assert work.files == {"b": b"kept too", "d/a.txt": b"one\ntwo\n"}


async def test_shell(sandbox: Bubblewrap) -> None:
    result = await _do(sandbox, "shell", command="printf '3\\n1\\n2\\n' | sort | tr '\\n' ' '; bc <<< 6*7; nosuch")
    assert result.state is ToolState.ERROR
    assert result.output.startswith("1 2 3 42")
    assert "nosuch: command not found" in result.output


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("gerp x", "there is no program gerp here; did you mean grep?"),
        ("git log | cat", "there is no program git here; there are: [ awk"),
        ("/usr/bin/git log", "there is no program git here"),
        ("python3 -c 1", "there is no program python3 here; call the tool python"),
        ("echo $(hg log)", "there is no program hg here"),
        ("f() { ls; }; f", ""),
        ("echo git; true # git", ""),
        ("echo 'echo 1' > run.sh; chmod +x run.sh; ./run.sh", ""),
        ("echo 'open", ""),
    ],
)
async def test_a_program_that_is_not_there_is_told(sandbox: Bubblewrap, command: str, note: str) -> None:
    """Whatever bash made of it: in a pipe, nothing failed."""
    output = (await _do(sandbox, "shell", command=command)).output
    assert ("there is no program" in output) == bool(note)
    assert note in output


async def test_a_program_off_the_allowlist_is_not_there(sandbox: Bubblewrap) -> None:
    policy = PolicyConfig(executables=("bash", "cat", "ls"))
    result = await _do(Workspace(sandbox, ["shell"], policy), "shell", command="ls /usr/bin; wc x; cat /usr/bin/wc")
    assert result.state is ToolState.ERROR
    assert result.output.split()[:3] == ["bash", "cat", "ls"]
    assert "wc: command not found" in result.output
    assert "[there is no program wc here" in result.output


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


async def test_lint_reads_a_file_or_a_folder_and_changes_nothing(sandbox: Bubblewrap) -> None:
    files = {"a.py": b"import os\n", "d/b.py": b"def f(:\n", "d/c.txt": b"import os\n", ".gitignore": b"*\n"}
    work = Workspace(sandbox, ["lint"], files=files)
    one, below, every = [await _do(work, "lint", path=path) for path in ("./a.py", "d/", "")]
    assert "a.py:1:8: F401" in one.output and "b.py" not in one.output
    assert "d/b.py:1:7: invalid-syntax" in below.output and "a.py" not in below.output
    assert "a.py:1:8" in every.output and "d/b.py:1:7" in every.output
    assert {result.state for result in (one, below, every)} == {ToolState.OK}
    assert work.files == files


class WithoutRuff:
    """A machine that lacks a program of the packaged list."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        return SandboxResult(ToolState.ERROR, 127, "", "ruff: command not found", 0.1, 0.1, 1.0, "", "", call.files)

    async def close(self) -> None:
        """Nothing is open."""


async def test_lint_says_where_ruff_is_not_installed() -> None:
    result = await _do(Workspace(WithoutRuff(), ["lint"], files={"a.py": b""}), "lint")
    assert (result.state, "not installed on this machine" in result.reason) == (ToolState.REFUSED, True)
    assert result.reason in result.output


CODE = b'''"""Words."""
import os.path as p, sys
from . import x
from a.b import c as d

def outer(a, b=1, /, *args, c, d=2, **more):
    def inner():
        return sys.exit(a) if a and b or c else [n for n in args if n if n > 1]
    for _ in more:
        try:
            inner()
        except (OSError, ValueError):
            p.join("x")()
    return lambda: inner()

class Thing:
    async def run(self): ...
    class Part:
        def go(self, *, x): assert x

outer(1, c=3)
'''


async def test_analysis_tells_what_is_there(sandbox: Bubblewrap) -> None:
    result = await _do(Workspace(sandbox, ["analyze_code"], files={"a.py": CODE}), "analyze_code", path="a.py")
    assert result.output.splitlines() == [
        "lines: 21, functions: 4, classes: 2",
        "imports: os.path, sys, .x, a.b.c",
        "module: complexity 1, calls outer",
        "def outer(a, b=, /, *args, c, d=, **more), lines 6-14, complexity 3, calls inner, p.join",
        "def outer.inner(), lines 7-8, complexity 7, calls sys.exit",
        "class Thing, lines 16-19",
        "def Thing.run(self), line 17, complexity 1",
        "class Thing.Part, lines 18-19",
        "def Thing.Part.go(self, *, x), line 19, complexity 2",
    ]
