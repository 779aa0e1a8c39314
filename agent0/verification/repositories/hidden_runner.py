"""What runs inside the sandbox while a repository is tested: pytest in a process of its own, its reports read by
another.

The tests and what they test share that process, so code that is written against the runner can forge a report; see
``hidden_tests`` for what is refused before it comes here.
"""

import base64
import json
import math
import os
import resource
import select
import signal
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import pytest

WORST = ("passed", "skipped", "failed")
"""Outcomes of one test's reports; the last of these counts."""
MOST_INPUTS, MOST_CALLS, LONGEST_INPUT, DEEPEST = 40, 400, 300, 5
"""Of each function: calls that are kept and looked at. Characters of the arguments of one, and their nesting."""
_VARIADIC = 4
"""The flag of code that takes any number of arguments."""


class Recorder:
    """A plugin of pytest: writes a line to ``pipe`` for each test, and which functions of ``code`` it called; and of
    functions of modules with which literals."""

    def __init__(self, pipe: int, wanted: Sequence[str], here: str, code: Sequence[str]) -> None:
        self._pipe, self._wanted, self._watch = pipe, frozenset(wanted), bool(code)
        self._code = {os.path.join(here, path): path for path in code}  # noqa: PTH118
        self._called: set[tuple[str, int]] = set()
        self._inputs: dict[tuple[str, str], dict[str, int]] = {}
        self._looked: dict[tuple[str, str], int] = {}
        self._outcome, self._message, self._seconds = "passed", "", 0.0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run those alone that are asked for, all where none is."""
        if self._wanted:
            items[:] = [item for item in items if item.nodeid in self._wanted]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported."""
        if report.failed:
            self.write({"broken": report.nodeid, "message": _message(report)})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """One test with what is set up for it and torn down."""
        self._outcome, self._message, self._seconds = "passed", "", 0.0
        self._called = set()
        if self._watch:
            sys.setprofile(self._note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            test = {"test": item.nodeid, "outcome": self._outcome, "seconds": round(self._seconds, 4)}
            test |= {"message": self._message} if self._message else {}
            self.write({**test, "called": sorted(self._called)} if self._watch else test)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            path = self._code.get(frame.f_code.co_filename)
            if path is not None:
                self._called.add((path, frame.f_code.co_firstlineno))
                self._keep(path, frame)

    def _keep(self, path: str, frame: FrameType) -> None:
        """The arguments of a call of a module's function, where all of them are literals."""
        code = frame.f_code
        key = (path, code.co_name)
        looked = self._looked[key] = self._looked.get(key, 0) + 1
        if looked > MOST_CALLS or code.co_qualname != code.co_name or not code.co_name.isidentifier():
            return
        names = code.co_varnames
        try:
            values = [frame.f_locals[name] for name in names[: code.co_argcount]]
            if code.co_flags & _VARIADIC:
                values += frame.f_locals[names[code.co_argcount + code.co_kwonlyargcount]]
        except (KeyError, TypeError):
            return  # what a generator has rebound
        inputs = self._inputs.setdefault(key, {})
        if len(inputs) < MOST_INPUTS and all(map(_is_literal, values)):
            text = ", ".join(map(repr, values))
            if len(text) <= LONGEST_INPUT:
                inputs.setdefault(text, len(inputs))

    def end(self, status: int) -> None:
        """The last lines: what functions were called with, and how pytest ended."""
        self.write({"inputs": [[*key, list(texts)] for key, texts in self._inputs.items() if texts]})
        self.write({"status": status})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst of set-up, call, subtests and tear-down is the test's outcome; time is that of all."""
        self._seconds += report.duration
        self._outcome = max(self._outcome, report.outcome, key=WORST.index)
        if report.failed and not self._message:
            self._message = _message(report)

    def write(self, line: Mapping[str, object]) -> None:
        """One line, whole: it is read while others are written."""
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(self._pipe, data) :]


def _is_literal(value: object, depth: int = 0) -> bool:
    """Whether a value of a built-in type reads back from what it is written as. Runs nothing of it."""
    if type(value) in (list, tuple, set) and depth < DEEPEST:
        return len(value) < LONGEST_INPUT and all(_is_literal(part, depth + 1) for part in value)  # type: ignore[arg-type, attr-defined]
    if type(value) is dict and depth < DEEPEST:
        return len(value) < LONGEST_INPUT and all(
            _is_literal(part, depth + 1) for pair in value.items() for part in pair
        )
    if type(value) in (str, bytes):
        return len(value) < LONGEST_INPUT  # type: ignore[arg-type]
    if type(value) in (int, float):
        return abs(value) < 1e15  # type: ignore[arg-type]
    return value is None or type(value) is bool


def _message(report: "pytest.TestReport | pytest.CollectReport") -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash else report.longrepr).strip().splitlines()
    return "\n".join(lines[:4] if crash else lines[-2:])[:400]


def _child(pipe: int, request: Mapping[str, Any]) -> None:
    longest = math.ceil(request["seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (longest, longest + 1))
    quiet, own, here = os.open(os.devnull, os.O_RDWR), os.getpid(), os.getcwd()  # noqa: PTH109
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    sys.dont_write_bytecode = True
    sys.path[:] = [folder for folder in sys.path if folder not in ("", here)]
    sys.path[:0] = [os.path.normpath(os.path.join(here, root)) for root in request["roots"]]  # noqa: PTH118
    recorder = Recorder(pipe, request["wanted"], here, request["code"])
    options = [
        "-q",
        "--no-header",
        "-c",
        os.devnull,
        "--rootdir",
        here,
        "-p",
        "no:cacheprovider",
        "--disable-plugin-autoload",
    ]
    options += ["--continue-on-collection-errors", "--tb=short", "-W", "ignore"]
    options += [] if request["messages"] else ["--assert=plain"]  # rewriting them takes as long as all else
    status = pytest.main([*options, *request["paths"]], plugins=[recorder])
    if os.getpid() == own:  # and no child of a test's
        recorder.end(int(status))


def main(request: Mapping[str, Any]) -> None:
    """Run the tests of ``paths`` for ``seconds`` of processor time at most, or for ``longest`` seconds where they wait:
    on a busy machine they are as good as on a quiet one. Print all lines of their process, packed."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ours)
        try:
            _child(theirs, request)
        finally:
            os._exit(0)
    os.close(theirs)
    end, data, over = time.monotonic() + request["longest"], bytearray(), False
    while True:
        readable, _, _ = select.select([ours], [], [], max(0.0, end - time.monotonic()))
        piece = os.read(ours, 1 << 16) if readable else b""
        over = not readable
        if not piece:
            break
        data += piece
    os.kill(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    over |= os.waitstatus_to_exitcode(status) == -signal.SIGXCPU  # a handler of its own leads to the hard limit
    over |= used.ru_utime + used.ru_stime >= request["seconds"]
    lines = data.decode(errors="replace").splitlines()
    sys.stdout.write(base64.b85encode(zlib.compress(json.dumps({"over": over, "lines": lines}).encode())).decode())
