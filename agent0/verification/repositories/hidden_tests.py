"""Verifies a repository by tests that whoever changed it has not seen, run in the sandbox on its changed files.

Files of tests and of their runner are those of the task, whatever a student wrote beside them, and no network is there.
"""

import base64
import inspect
import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from agent0.events.values import ToolState
from agent0.ports.sandbox import Root, Sandbox, SandboxCall
from agent0.tools.builtin.run_tests import PYTEST
from agent0.verification.repositories import hidden_runner

MEM_MIB = 1024
GRACE_S = 10.0
"""What the sandbox leaves the runner beyond its seconds: to import, collect and report."""
WAITING = 4
"""How many times as long as their processor may work tests may take on the clock."""
ROOT = Root(executables=(), modules=PYTEST)
"""All that tests have: the standard library and their runner."""
_NOBODYS_FAULT = (ToolState.BUSY, ToolState.CANCELLED, ToolState.SANDBOX_ERROR, ToolState.REFUSED)
Call = tuple[str, int]
"""A function: its file, and the line where it begins."""


@dataclass(frozen=True)
class TestRun:
    """One run of tests. ``outcomes`` by id; ``messages`` of those that failed; ``seconds`` of each; ``calls``: the
    functions each called, where they were watched, and ``inputs``: arguments of module functions, by file and name, as
    they are written; ``broken``: files that cannot be imported, with the reason;
    ``problem``: why the run as a whole says nothing (it hangs, ends its own process), empty where it came to its end;
    ``sandbox_failed``: the sandbox itself failed."""

    __test__ = False

    outcomes: Mapping[str, str] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    calls: Mapping[str, frozenset[Call]] = field(default_factory=dict)
    inputs: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    sandbox_failed: bool = False

    @property
    def passed(self) -> frozenset[str]:
        """Ids of the tests that passed."""
        return frozenset(test for test, outcome in self.outcomes.items() if outcome == "passed")


async def run_hidden_tests(
    files: Mapping[str, bytes],
    roots: Sequence[str],
    paths: Sequence[str],
    sandbox: Sandbox,
    seconds: float,
    tests: Sequence[str] = (),
    code: Sequence[str] = (),
    messages: bool = True,
) -> TestRun:
    """Run the test files ``paths`` of a repository, of its tests those of ``tests`` alone where any is named, for
    ``seconds`` of processor time at most. ``roots`` are the folders that its packages are imported from; of the files
    ``code`` each test's calls are watched; without ``messages`` failed asserts do not say why.

    Raises:
        SandboxUnavailableError: there is no sandbox.
    """
    request = {
        "roots": list(roots),
        "paths": list(paths),
        "wanted": list(tests),
        "code": list(code),
        "messages": messages,
        "seconds": seconds,
        "longest": WAITING * seconds,
    }
    text = base64.b85encode(zlib.compress(json.dumps(request).encode())).decode()
    program = f"{inspect.getsource(hidden_runner)}\nmain(json.loads(zlib.decompress(base64.b85decode({text!r}))))\n"
    call = SandboxCall("python", program, files, wall_s=WAITING * seconds + GRACE_S, mem_mib=MEM_MIB, root=ROOT)
    result = await sandbox.call(call)
    if result.state in _NOBODYS_FAULT:
        return TestRun(problem=f"the sandbox: {result.state.value} {result.reason}".strip(), sandbox_failed=True)
    try:
        report = json.loads(zlib.decompress(base64.b85decode(result.stdout)))
    except (ValueError, zlib.error):
        return TestRun(problem=f"the tests ended their runner: {result.state.value}")
    return _read(report["lines"], report["over"])


def _read(lines: Sequence[str], over: bool) -> TestRun:
    """The run that its lines report. A line that is no report is left out: the tests may write some, too."""
    entries: list[dict[str, Any]] = []
    for line in lines:
        with suppress(ValueError):
            entry = json.loads(line)
            entries += [entry] if isinstance(entry, dict) else []
    tests = {entry["test"]: entry for entry in entries if _is_test(entry)}
    ends = sum("status" in entry for entry in entries)
    return TestRun(
        outcomes={test: entry["outcome"] for test, entry in tests.items()},
        messages={test: str(entry["message"]) for test, entry in tests.items() if entry.get("message")},
        seconds={test: float(entry["seconds"]) for test, entry in tests.items()},
        calls={
            test: frozenset((str(path), int(line)) for path, line in entry["called"])
            for test, entry in tests.items()
            if "called" in entry
        },
        inputs={
            (path, name): tuple(texts)
            for entry in entries
            for path, name, texts in (entry.get("inputs", []) if _is_inputs(entry) else [])
        },
        broken={str(entry["broken"]): str(entry.get("message")) for entry in entries if "broken" in entry},
        problem="its tests hang" if over else "" if ends == 1 else "its tests end their own process",
    )


def _is_inputs(entry: Mapping[str, Any]) -> bool:
    """Whether the runner may have written what functions were called with."""
    return isinstance(entry.get("inputs"), list) and all(
        isinstance(each, list)
        and [type(part) for part in each] == [str, str, list]
        and all(isinstance(text, str) for text in each[2])
        for each in entry["inputs"]
    )


def _is_test(entry: Mapping[str, Any]) -> bool:
    """Whether the runner may have written it."""
    called = entry.get("called", [])
    calls = isinstance(called, list) and all(
        isinstance(call, list) and [type(part) for part in call] == [str, int] for call in called
    )
    numbers = isinstance(entry.get("seconds"), int | float)
    return isinstance(entry.get("test"), str) and entry.get("outcome") in hidden_runner.WORST and numbers and calls
