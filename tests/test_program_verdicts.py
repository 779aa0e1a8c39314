"""What becomes of a program under its tests: the verdict, its reason and what was called. The programs here are this
project's own, so that they need no sandbox; ``tests/sandbox`` has the others."""

import asyncio
import json
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from importlib import resources
from pathlib import Path

import pytest

from agent0.events.values import ToolState
from agent0.ports.sandbox import Root, SandboxCall, SandboxResult
from agent0.verification import programs
from agent0.verification.programs import GRACE_S, Opaque, Problem, ProgramOutcome, check
from agent0.verification.programs.judged import request_text
from agent0.verification.programs.source import modules, own_modules, prefix, program_of, stands, top_level
from tests.memory import TrustingSandbox

JUDGED = str(resources.files(programs))
"""Where the trusted package of these calls lies."""
DOUBLE = Problem("assert double(3) == 6\nassert double('ab') == 'abab'", entry="double")
BOX = "class Box:\n    pass\n"


class Folder(TrustingSandbox):
    """Runs a call in a folder of its own, with its guest at the other end of a socket."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        ends = socket.socketpair()
        with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as code, ends[0], ends[1]:
            for file, text in (("guest", call.guest), ("main", call.code)):
                (Path(code) / f"{file}.py").write_text(f"import sys\nsys.path.append({JUDGED!r})\n{text}")
            guest, process = [
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-B", f"{code}/{file}.py"), cwd=name, stdin=end, stdout=out, stderr=out
                )
                for file, end, out in (("guest", ends[0], DEVNULL), ("main", ends[1], PIPE))
            ]
            for end in ends:
                end.close()
            out, err = await process.communicate()
            await guest.wait()
        state = ToolState.OK if process.returncode == 0 else ToolState.ERROR
        said = out.decode(), err.decode()
        return SandboxResult(state, process.returncode, *said, 0.01, 0.01, 1.0, "none", "folder")


class Failing(Folder):
    """Answers as it is told to."""

    def __init__(self, state: ToolState, reason: str = "", printed: str = "") -> None:
        super().__init__()
        self.state, self.reason, self.printed = state, reason, printed

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        said = self.printed, "first\nlast said\n"
        return SandboxResult(self.state, 1, *said, 0.1, 0.1, 1.0, "none", "failing", reason=self.reason)


def outcome(problem: Problem, reply: str, sandbox: TrustingSandbox | None = None) -> ProgramOutcome:
    return asyncio.run(check(problem, reply, sandbox or Folder()))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("def double(x): return x + x", ProgramOutcome(True, "all tests pass", 2)),
        (
            "def double(x): return 6 if x == 3 else x + 1",
            ProgramOutcome(False, "TypeError: can only concatenate str", 2),
        ),
        ("def double(x): return 0", ProgramOutcome(False, "AssertionError: ", 1)),
        ("def triple(x): return 0", ProgramOutcome(False, "NameError: name 'double' is not defined", 0)),
        ("double = (", ProgramOutcome(False, "the program does not run: SyntaxError: '(' was never closed", 0)),
        ("import os\nos._exit(3)", ProgramOutcome(False, "call 0 did not return: it ended", 0)),
        ("import os\ndef double(x): os._exit(3)", ProgramOutcome(False, "call 1 did not return: it ended", 1)),
    ],
)
def test_a_verdict_says_what_failed(reply: str, expected: ProgramOutcome) -> None:
    found = outcome(DOUBLE, reply)
    assert (found.passed, found.calls) == (expected.passed, expected.calls)
    assert expected.reason in found.reason and (found.passed is False or found == expected)


def test_the_sandbox_is_called_once_and_the_candidate_is_told_no_test() -> None:
    sandbox = Folder()
    assert outcome(Problem(DOUBLE.test, entry="double", wall_s=7.0, mem_mib=99), "def double(x): return 2 * x", sandbox)
    (call,) = sandbox.calls
    assert (call.kind, call.wall_s, call.mem_mib, call.files) == ("python", 7.0 + GRACE_S, 99, {})
    told, guest = (_request_in(code) for code in (call.code, call.guest))
    assert "== 6" in told and "== 6" not in guest and "return 2 * x" in guest and "return 2 * x" not in told


def _request_in(code: str) -> str:
    """What the last line of ``code`` unpacks."""
    return json.dumps(request_text.unpack(code.rsplit('"', 2)[1]))


def test_packages_are_there_where_somebody_names_one() -> None:
    for reply, packages in (("def double(x): return 2 * x", ()), ("import numpy\n", Root().modules)):
        sandbox = Failing(ToolState.TIMEOUT)
        outcome(DOUBLE, reply, sandbox)
        assert [call.root.modules for call in sandbox.calls] == [packages]


def test_calls_that_follow_from_results_are_made_as_they_come() -> None:
    test = "def check(candidate):\n    x = candidate(1)\n    assert candidate(x) == 3\n    assert candidate(1) == 2"
    found = outcome(Problem(test, entry="f"), "def f(x): return x + 1")
    assert found == ProgramOutcome(True, "all tests pass", 3)


@pytest.mark.parametrize(
    ("test", "reference", "expected"),
    [
        ("for x in f(3): assert x == 1\nassert f(2) == []", "", (None, "1 assertions were not come to")),
        ("for x in f(3): assert x == 1\nassert f(2) == []", "def f(x): return []", (True, "all tests pass")),
        ("for x in f(3): assert x == 1", "def f(x): return [1]", (False, "no test ran")),
        (
            "for x in f(3): assert x == 1\nassert f(2) == []",
            "def f(x): return [1] * (x - 2)",
            (False, "does not come to"),
        ),
        ("def g(): assert f(3) == 1", "", (None, "no test ran")),
        ("def g(): assert f(3) == 1", "def f(x): return 1", (None, "no test ran")),
        ("assert True", "", (None, "no test ran")),
    ],
)
def test_assertions_that_are_not_come_to_prove_nothing(
    test: str, reference: str, expected: tuple[bool | None, str]
) -> None:
    found = outcome(Problem(test, entry="f", reference=reference), "def f(x): return []")
    assert found.passed is expected[0] and expected[1] in found.reason


@pytest.mark.parametrize(
    ("test", "reply", "reference", "expected"),
    [
        ("assert f(3) == 6", f"{BOX}def f(x): return Box()", "", (False, "a value of type Box", "result")),
        ("assert f(3) == 6", f"{BOX}def f(x): return Box()", "def f(x): return 2 * x", (False, "Box", "result")),
        ("assert f(3) == 6", f"{BOX}def f(x): return Box()", "def f(x): return object()", (None, "Box", "result")),
        ("assert f(print) == 6", "def f(x): return 6", "", (True, "all tests pass", "")),
        ("assert f(3)[0] == 6", "def f(x): return 'a' * 10**7", "", (False, "that is too large", "size")),
        ("assert len(f(3)) == 10**7", "def f(x): return 'a' * 10**7", "", (True, "all tests pass", "")),
    ],
)
def test_what_is_no_plain_data_is_named(
    test: str, reply: str, reference: str, expected: tuple[bool | None, str, Opaque]
) -> None:
    found = outcome(Problem(test, entry="f", reference=reference), reply)
    passed, reason, opaque = expected
    assert (found.passed, found.opaque, found.calls) == (passed, opaque, 1)
    assert reason in found.reason and (passed or found.reason.endswith(" cannot be compared"))


@pytest.mark.parametrize("state", [ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR, ToolState.REFUSED])
def test_a_sandbox_that_fails_decides_nothing(state: ToolState) -> None:
    assert outcome(DOUBLE, "", Failing(state, "why")) == ProgramOutcome(None, f"the sandbox: {state.value} why")
    assert outcome(DOUBLE, "", Failing(state)) == ProgramOutcome(None, f"the sandbox: {state.value}")


def test_tests_that_leave_no_verdict_were_kept_from_it() -> None:
    for printed in ("", "no JSON", "[1"):
        found = outcome(DOUBLE, "", Failing(ToolState.TIMEOUT, printed=printed))
        assert found == ProgramOutcome(False, "the tests did not end: timeout, last said")


FENCED = "Here:\n```python\n{}\n```\nDone."
HELPER, MAIN = "def h(x):\n    return x", "def f(x):\n    return h(x)"


@pytest.mark.parametrize(
    ("reply", "setup", "entry", "program"),
    [
        (MAIN, "", "f", f"\n{MAIN}"),
        (FENCED.format(MAIN), "", "f", f"\n{MAIN}\n"),
        (FENCED.format(MAIN).replace("\n", "\r\n"), "", "f", f"\n{MAIN}\n"),
        (FENCED.format(MAIN).replace("```", "~~~~"), "", "f", f"\n{MAIN}\n"),
        (FENCED.format(MAIN).replace("python", "PY"), "", "f", f"\n{MAIN}\n"),
        (f"```bash\nls\n```\n{FENCED.format(MAIN)}", "", "f", f"\n{MAIN}\n"),
        (f"```python\n{MAIN}", "", "f", f"\n{MAIN}"),
        (FENCED.format(HELPER) + FENCED.format(MAIN), "", "f", f"\n{HELPER}\n\n{MAIN}\n"),
        (FENCED.format("k = 1") + FENCED.format(MAIN), "", "f", f"\n{MAIN}\n"),
        (FENCED.format(f"{MAIN} + 1") + FENCED.format(MAIN), "", "f", f"\n{MAIN}\n"),
        (FENCED.format("a = 1") + FENCED.format("b = 2"), "", "", "\na = 1\n\nb = 2\n"),
        ("    return x + 1\n", "def f(x):\n    '''Add.'''\n", "f", "def f(x):\n    '''Add.'''\n    return x + 1\n"),
        ("return x + 1", "def f(x):\n    '''Add.'''\n", "f", "def f(x):\n    '''Add.'''\n    return x + 1"),
        (MAIN, f"import math\n{HELPER}\ndef f(x):\n    '''.'''\n", "f", f"import math\n\n{HELPER}\n{MAIN}"),
    ],
)
def test_a_reply_becomes_exactly_this_program(reply: str, setup: str, entry: str, program: str) -> None:
    assert program_of(reply, setup, entry) == program


def test_names_that_a_text_binds_uses_and_wants() -> None:
    bound = (
        "import a.b\nfrom c import d as e\nx, y = 1, 2\nclass Z:\n    w = 3\ndef f():\n    v = 4\nfor i in []: j = 1"
    )
    assert top_level(bound) == {"a", "e", "x", "y", "Z", "f", "i", "j"} and top_level("def (") == set()
    assert prefix("import a\ndef g(): pass\ndef f(x):\n", "f") == "import a\n\ndef g():\n    pass"
    assert prefix("def (", "f") == ""
    test = "import os as o\nfrom re import sub\ndef t(p, q):\n    r = p\n    return q + f(r) + g(o, sub, len, k)\nt(1)"
    assert stands(test, "k = 3", "f") == ["f", "g"] and stands(test, "", "") == ["f", "g", "k"]
    assert (stands("def (", "", "f"), stands("def (", "", "")) == (["f"], [])
    assert modules("assert math.pi and a.b and os.x\nimport os") == ["math"] and modules("def (") == []


def test_modules_that_only_the_candidate_can_be() -> None:
    test = "import os.path, numpy\nimport main as m\nfrom src.solution import f, g as h\nfrom typing import *\nf(1)"
    assert own_modules(test) == ["main", "src", "src.solution"] and own_modules("def (") == []
    assert stands(test, "", "e") == ["e", "f", "g"]


def test_a_program_within_closed_thoughts_is_none() -> None:
    thought = "<think>\n```python\ndef f(x):\n    return 2 * x\n```\n</think>\n"
    problem = Problem("assert f(2) == 4", entry="f")
    assert outcome(problem, f"{thought}I give up.").passed is False
    assert outcome(problem, f"{thought}```\ndef f(x): return x + x\n```").passed is True
