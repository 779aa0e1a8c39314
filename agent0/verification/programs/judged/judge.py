"""The tests' process: runs tests against stand-ins for what the candidate defines. It alone knows the tests, and it
alone writes the verdict."""

import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
import types
import warnings
from typing import Any, TypedDict

from . import values
from .judge_link import ExpiredError, JudgeLink
from .lending import Message
from .link import EndedError
from .proxies import Proxy
from .request_text import JudgeRequest
from .tests_run import Tests

TICK_S = 0.5


class TestsVerdict(TypedDict, total=False):
    """What tests came to; empty where nothing speaks against them. Fields are those of ``ProgramOutcome``, ``reached``
    a sorted list."""

    passed: bool | None
    reason: str
    broken: bool
    opaque: str
    reached: list[int]
    missed: int


def main(request: JudgeRequest) -> None:
    """Run ``request``'s tests; write the verdict as one line of JSON to what was standard output."""
    channel, output = socket.socket(fileno=os.dup(0)), os.dup(1)
    for fd, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY)):
        os.dup2(os.open(os.devnull, mode), fd)
    sys.setrecursionlimit(5000)
    warnings.simplefilter("ignore")
    random.seed(0)
    link = JudgeLink(channel, request["own"], request["wall_s"])
    random.seed = link.seed  # type: ignore[assignment]
    verdict = _judged(request, link)
    data = json.dumps({"calls": link.calls, **verdict}).encode()
    while data:
        data = data[os.write(output, data) :]
    os._exit(0)


def _judged(request: JudgeRequest, link: JudgeLink) -> TestsVerdict:
    signal.signal(signal.SIGALRM, lambda *_: _expire(link))
    signal.setitimer(signal.ITIMER_REAL, request["wall_s"], TICK_S)
    verdict: TestsVerdict = {}
    try:
        tests = _compiled(request["test"])  # while the candidate starts
        greeting = link.receive()
        if "broken" in greeting:
            return {"passed": False, "broken": True, "reason": f"the program does not run: {greeting['broken']}"[:300]}
        verdict = _run(request, _module(request, link, greeting), tests, link)
    except ExpiredError:
        pass
    except EndedError as error:
        link.ended = link.ended or str(error)
    except values.OpaqueError as error:
        link.opaque = link.opaque or str(error)
    except values.UndecidedError as error:
        verdict = {"passed": None, "reason": str(error)}
    except BaseException as error:
        verdict = _failed(error)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return _overruled(link, request["wall_s"]) or verdict


def _compiled(source: str) -> Tests | values.UndecidedError:
    """The tests in ``source``; what to raise where they do not compile, once the program is known to run."""
    try:
        return Tests(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        return values.UndecidedError(f"the tests do not run: {error}"[:300])


def _run(
    request: JudgeRequest, module: types.ModuleType, tests: Tests | values.UndecidedError, link: JudgeLink
) -> TestsVerdict:
    if isinstance(tests, values.UndecidedError):
        raise tests
    try:
        tests.run(module, request["entry"])
    except SystemExit as error:
        if error.code not in (None, 0) or "_there_" in vars(error):
            raise
    return _evidence(link, tests)


def _expire(link: JudgeLink) -> None:
    link.deadline = 0.0
    raise ExpiredError


def _overruled(link: JudgeLink, wall_s: float) -> TestsVerdict:
    """What counts whatever tests made of it: they may have caught it."""
    if link.ended:
        return {"passed": False, "reason": f"call {link.calls} did not return: {link.ended}"[:300]}
    if link.deadline == 0.0 or time.monotonic() > link.deadline:
        if link.waited > wall_s / 2:
            return {"passed": False, "reason": f"call {link.calls} did not return: timeout"}
        return {"passed": None, "reason": "the tests did not end: timeout"}
    if link.failed:
        return {"passed": None, "reason": "an assertion failed in a function that tests handed over"}
    if link.opaque:
        what = "size" if link.opaque in values.SIZES else "result"
        kind = f"a value that is {link.opaque}" if what == "size" else f"a value of type {link.opaque}"
        return {"passed": None, "opaque": what, "reason": f"{kind} cannot be compared"}
    return {}


def _failed(error: BaseException) -> TestsVerdict:
    text = ""
    with contextlib.suppress(BaseException):
        text = str(error)
    return {"passed": False, "reason": f"{type(error).__name__}: {text}"[:300]}


def _evidence(link: JudgeLink, tests: Tests) -> TestsVerdict:
    """The verdict of tests that did not fail: they must have come to their assertions, and have seen a value."""
    missed = tests.assertions - len(tests.reached)
    if not link.facts or (tests.assertions and not tests.reached):
        return {"passed": None, "reason": "no test ran: nothing of the program was looked at"}
    reached = sorted(tests.reached)
    return {"passed": True, "reason": "all tests pass", "reached": reached, "missed": missed}


def _defined(link: JudgeLink, value: Any) -> Any:
    """What stands for a name of the candidate. It is never code of this process."""
    decoded = link.decode(value)
    if issubclass(type(decoded), type) and not issubclass(decoded, BaseException):
        raise EndedError("it names a class of others")
    link.facts += not isinstance(value, list) or value[0] != "mine"
    return decoded


def _module(request: JudgeRequest, link: JudgeLink, greeting: Message) -> types.ModuleType:
    """The tests' module: the prompt's code, then what stands for the candidate's."""
    module = types.ModuleType("__main__")
    module.__file__ = "tests.py"
    sys.modules["__main__"] = module
    names = vars(module)
    exec(compile(request["setup"], "setup.py", "exec", dont_inherit=True), names)  # noqa: S102
    kinds = {name: names.get(name) for name in map(str, greeting["shared"])}
    link.shared = {name: kind for name, kind in kinds.items() if name in request["shared"] and isinstance(kind, type)}
    candidate = link.decode(greeting["module"])
    if not isinstance(candidate, Proxy):
        raise EndedError("it gives no module")
    link.module, link.names = candidate, [name for name in request["names"] if name in greeting["names"]]
    for name in ("candidate", *request["modules"]):
        sys.modules[name] = candidate  # type: ignore[assignment]
    for name in request["names"]:
        if name in greeting["names"]:
            names[name] = _defined(link, greeting["names"][name])
    return module
