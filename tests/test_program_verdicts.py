"""What becomes of a program under its tests: the verdict, its reason and what was called. The programs here are this
project's own, so that they need no sandbox; ``tests/sandbox`` has the others."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from agent0.ports.sandbox import SandboxCall, SandboxResult
from agent0.verification.programs import MOST_ROUNDS, Opaque, Outcome, Problem, check, perform
from agent0.verification.programs.inside import values
from agent0.verification.programs.source import foreseen, modules, prefix, program_of, stands, top_level
from events.values import ToolState
from tests.memory import TrustingSandbox

DOUBLE = Problem("assert double(3) == 6\nassert double('ab') == 'abab'", entry="double")
BOX = "class Box:\n    pass\n"


class Folder(TrustingSandbox):
    """Runs a call in a folder of its own, and returns the files that it leaves there."""

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        with tempfile.TemporaryDirectory() as name:
            for path, data in call.files.items():
                (Path(name) / path).parent.mkdir(exist_ok=True)
                (Path(name) / path).write_bytes(data)
            code = f"import os, sys\nos.chdir({name!r})\nsys.path.insert(0, '')\n{call.code}"
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-B", "-c", code),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await process.communicate()
            files = {path.name: path.read_bytes() for path in Path(name).iterdir() if path.is_file()}
        state = ToolState.OK if process.returncode == 0 else ToolState.ERROR
        said = out.decode(), err.decode()
        return SandboxResult(state, process.returncode, *said, 0.01, 0.01, 1.0, "none", "folder", files=files)


class Failing(Folder):
    """Answers as it is told to."""

    def __init__(self, state: ToolState, reason: str = "", **files: bytes) -> None:
        super().__init__()
        self.state, self.reason, self.files = state, reason, files

    async def call(self, call: SandboxCall) -> SandboxResult:
        self.calls.append(call)
        files = {name.replace("_", ".", 1): data for name, data in self.files.items()}
        return SandboxResult(
            self.state, 1, "", "first\nlast said\n", 0.1, 0.1, 1.0, "none", "failing", files=files, reason=self.reason
        )


def outcome(problem: Problem, reply: str, sandbox: TrustingSandbox | None = None) -> Outcome:
    return asyncio.run(check(problem, reply, sandbox or Folder()))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("def double(x): return x + x", Outcome(True, "all tests pass", 2)),
        ("def double(x): return 6 if x == 3 else x + 1", Outcome(False, "TypeError: can only concatenate str", 2)),
        ("def double(x): return 0", Outcome(False, "AssertionError: ", 2)),
        ("def triple(x): return 0", Outcome(False, "NameError: name 'double' is not defined", 2)),
        ("double = (", Outcome(False, "the program does not run: SyntaxError: '(' was never closed", 0)),
        ("import os\nos._exit(3)", Outcome(False, "the program does not run: error", 0)),
        ("import os\ndef double(x): os._exit(3)", Outcome(False, "call 1 of 2 did not return: error", 0)),
    ],
)
def test_a_verdict_says_what_failed(reply: str, expected: Outcome) -> None:
    found = outcome(DOUBLE, reply)
    assert (found.passed, found.calls) == (expected.passed, expected.calls)
    assert expected.reason in found.reason and (found.passed is False or found == expected)


def test_the_sandbox_is_called_once_for_all_calls_that_were_foreseen_and_once_for_the_tests() -> None:
    sandbox = Folder()
    assert outcome(Problem(DOUBLE.test, entry="double", wall_s=7.0, mem_mib=99), "def double(x): return 2 * x", sandbox)
    assert [call.code.splitlines() for call in sandbox.calls] == [
        ["import random", "random.seed(0)", f"from judged import {name}"] for name in ("candidate", "judge")
    ]
    assert {(call.kind, call.wall_s, call.mem_mib) for call in sandbox.calls} == {("python", 7.0, 99)}
    assert not any(b"== 6" in data for data in sandbox.calls[0].files.values()), "a candidate sees no test"


def test_calls_that_follow_from_results_take_another_round_and_twice_is_counted() -> None:
    test = "def check(candidate):\n    x = candidate(1)\n    assert candidate(x) == 3\n    assert candidate(1) == 2"
    found = outcome(Problem(test, entry="f"), "def f(x): return x + 1")
    assert found == Outcome(True, "all tests pass", 3)


def test_tests_that_call_on_and_on_are_given_up() -> None:
    class Asking(Folder):
        """Each verdict asks for another call, and each call is answered."""

        async def call(self, call: SandboxCall) -> SandboxResult:
            self.calls.append(call)
            rows = b'{"loaded": true}\n' + b"{}\n" * len(self.calls)
            wanted = json.dumps({"needs": [f"call {len(self.calls)}"], "whole": False}).encode()
            files = {"results.jsonl": rows, "verdict.json": wanted}
            return SandboxResult(ToolState.OK, 0, "", "", 0.1, 0.1, 1.0, "none", "asking", files=files)

    sandbox = Asking()
    found = outcome(Problem("x = 1"), "", sandbox)
    assert found == Outcome(None, f"still calling after {MOST_ROUNDS} rounds", MOST_ROUNDS - 1)
    asked = [json.loads(call.files["request.json"]).get("calls") for call in sandbox.calls]
    assert [one for one in asked if one] == [[f"call {2 * n + 1}"] for n in range(MOST_ROUNDS - 1)]


@pytest.mark.parametrize(
    ("test", "reply", "reference", "expected"),
    [
        ("assert f(3) == 6", f"{BOX}def f(x): return Box()", "", (False, "a value of type Box", "result")),
        ("assert f(3) == 6", f"{BOX}def f(x): return Box()", "def f(x): return 2 * x", (False, "Box", "result")),
        ("assert f(3) == 6", f"{BOX}def f(x): return Box()", "def f(x): return object()", (None, "Box", "result")),
        ("assert f(print) == 6", "def f(x): return 6", "", (None, "a value of type builtin", "argument")),
        ("assert len(f(3)[0]) == 6", "def f(x): return 'a' * 10**7", "", (False, "a value that is too large", "size")),
        ("assert len(f(3)) == 10**7", "def f(x): return 'a' * 10**7", "", (True, "all tests pass", "")),
    ],
)
def test_what_is_no_plain_data_is_named(
    test: str, reply: str, reference: str, expected: tuple[bool | None, str, Opaque]
) -> None:
    found = outcome(Problem(test, entry="f", reference=reference), reply)
    passed, reason, opaque = expected
    assert (found.passed, found.opaque, found.calls) == (passed, opaque, opaque != "argument")
    assert reason in found.reason and (passed or found.reason.endswith(" cannot be compared"))


@pytest.mark.parametrize("state", [ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR, ToolState.REFUSED])
def test_a_sandbox_that_fails_decides_nothing(state: ToolState) -> None:
    assert outcome(DOUBLE, "", Failing(state, "why")) == Outcome(None, f"the sandbox: {state.value} why")
    assert outcome(DOUBLE, "", Failing(state)) == Outcome(None, f"the sandbox: {state.value}")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (b"", Outcome(False, "the program does not run: timeout, last said")),
        (b"no JSON", Outcome(False, "the program does not run: timeout, last said")),
        (b'{"value": "1"}\n', Outcome(False, "the program does not run: timeout, last said")),
        (b"[1]\n", Outcome(False, "the program does not run: timeout, last said")),
        (b'{"broken": "E: x"}\n', Outcome(False, "the program does not run: E: x")),
        (b'{"loaded": true}\n', Outcome(False, "call 1 of 2 did not return: timeout, last said")),
        (b'{"loaded": true}\n{"value": 1}\n{"val', Outcome(False, "call 2 of 2 did not return: timeout, last said", 1)),
    ],
)
def test_what_a_program_leaves_unwritten_it_did_not_return(written: bytes, expected: Outcome) -> None:
    sandbox = Failing(ToolState.TIMEOUT, results_jsonl=written)
    assert asyncio.run(perform("", ["a", "b"], DOUBLE, sandbox)) == expected


def test_results_are_those_of_the_calls_in_their_order() -> None:
    rows = b'{"loaded": true}\n{"value": 1}\n{"raised": ["E", "x"]}\n'
    found = asyncio.run(perform("", ["a", "b"], DOUBLE, Failing(ToolState.OK, results_jsonl=rows)))
    assert found == {"a": {"value": 1}, "b": {"raised": ["E", "x"]}}


def test_tests_that_leave_no_verdict_decide_nothing() -> None:
    no_calls = Problem("x = 1")
    sandbox = Failing(ToolState.TIMEOUT)
    assert outcome(no_calls, "", sandbox) == Outcome(None, "the tests did not end: timeout, last said")
    broken = Failing(ToolState.OK, verdict_json=b'{"needs": []}')
    assert outcome(no_calls, "", broken) == Outcome(None, "the tests call otherwise each time")
    failed = Failing(ToolState.OK, verdict_json=b'{"failure": "no"}')
    assert outcome(no_calls, "", failed) == Outcome(False, "no")


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


def test_calls_with_literals_are_foreseen() -> None:
    test = "assert f(1, k=[2]) == f(1, k=[2])\nassert f(x)\nassert g(3)\nassert h.f(4)\nassert f(*[1])"
    found: Any = [(values.call_of(call, {}), call.partition("\n")[2]) for call in foreseen(test, ["f"], "")]
    assert found == [(["f", [1], {"k": [2]}], ""), (["f", [1], {"k": [2]}], "2")]
    checking = "def check(candidate):\n    assert candidate(5) == 6\n    assert f(7)"
    assert [values.call_of(call, {}) for call in foreseen(checking, ["f"], "f")] == [["f", [7], {}], ["f", [5], {}]]
    assert [values.call_of(call, {}) for call in foreseen(checking, ["f"], "")] == [["f", [7], {}]]
    assert foreseen("def (", ["f"], "f") == []
    assert len(foreseen("\n".join(f"f({n})" for n in range(600)), ["f"], "")) == 500
